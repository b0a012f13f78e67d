"""Windsurf trajectories: JSON lines of steps; a tool's step holds the call and its result."""

from __future__ import annotations

from collections.abc import Iterator

from refold.core._json import Json, mapping
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

# what came back; every other field of a step was asked
_BACK = frozenset(
    {
        "output",
        "exit_code",
        "user_rejected",
        "total_results",
        "acknowledgement_type",
        "original_content",
        "error",
        "results",
        "summary",
    }
)


def matches(document: Document) -> bool:
    """Tell by steps whose content stands under the name of their type."""
    rows = [row for _, row in document.objects[:5]]
    return any(
        "status" in row and isinstance(row.get("type"), str) and isinstance(row.get(row["type"]), dict) for row in rows
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a trajectory, in Gemini's shape: the only one with calls that have no id."""
    aside = SkippedItems()
    contents: list[Json] = []
    for number, row in document.lines:
        kind = mapping(row).get("type")
        step = row.get(kind) if isinstance(kind, str) else None
        if not isinstance(step, dict):
            aside.add(f"line of type {kind or type(row).__name__}", number)
        elif kind == "user_input":
            contents.append({"role": "user", "parts": [{"text": step.get("user_response") or step.get("query") or ""}]})
        elif kind == "planner_response":
            contents.append({"role": "model", "parts": [{"text": step.get("response") or ""}]})
        else:
            _tool(contents, str(kind), step, row.get("status"))
    yield RecordedConversation("windsurf", "gemini", contents, name="main", notes=aside.notes())


def _tool(contents: list[Json], kind: str, step: Json, status: object) -> None:
    back = _BACK | {"content"} if kind.startswith(("view", "read")) else _BACK
    call = {"functionCall": {"name": kind, "args": {key: value for key, value in step.items() if key not in back}}}
    answer = {"status": status, **{key: value for key, value in step.items() if key in back}}
    if contents and contents[-1]["role"] == "model":
        contents[-1]["parts"].append(call)
    else:
        contents.append({"role": "model", "parts": [call]})
    contents.append({"role": "user", "parts": [{"functionResponse": {"name": kind, "response": answer}}]})
