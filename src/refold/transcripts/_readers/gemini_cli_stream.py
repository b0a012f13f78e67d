"""What Gemini CLI prints with `--output-format stream-json`: pieces of messages, calls, and results as the screen shows
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from refold.core._json import Json, mapping, string
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems, type_of
from refold.transcripts._source import Document

_LIMITS = "results are as the screen shows them: the model may have seen more; usage of single calls is not in the file"


class _Talk(Struct):
    """A conversation that is being read."""

    contents: list[Json]
    model: str | None = None
    names: dict[str, str] = {}  # of calls, by id

    def add(self, role: str, part: Json) -> None:
        """Add a part to what this side says, or begin to say it."""
        last = self.contents[-1] if self.contents else {}
        if last.get("role") == role:
            last["parts"].append(part)
        else:
            self.contents.append({"role": role, "parts": [part]})

    def take(self, row: Json) -> bool:
        """Take in a line; tell whether it belongs to the conversation."""
        id = string(row, "tool_id")
        match row.get("type"):
            case "message" if row.get("role") == "user":
                self.contents.append({"role": "user", "parts": [{"text": string(row, "content")}]})
            case "message":
                self._speak(string(row, "content"), goes_on=row.get("delta") is True)
            case "tool_use":
                self.names[id] = string(row, "tool_name")
                call = {"id": id, "name": self.names[id], "args": mapping(row.get("parameters"))}
                self.add("model", {"functionCall": call})
            case "tool_result":
                error = string(mapping(row.get("error")), "message")
                response = {"error": error} if error else {"output": string(row, "output")}
                answered = {"id": id, "name": self.names.get(id, ""), "response": response}
                self.add("user", {"functionResponse": answered})
            case _:
                return False
        return True

    def _speak(self, text: str, *, goes_on: bool) -> None:
        last = self.contents[-1] if self.contents else {}
        if goes_on and last.get("role") == "model" and "text" in last["parts"][-1]:
            last["parts"][-1]["text"] += text
        else:
            self.add("model", {"text": text})


def matches(document: Document) -> bool:
    """Tell by the first line of a run, or by a call."""
    return any(
        (row.get("type") == "init" and "session_id" in row and "model" in row)
        or (row.get("type") == "tool_use" and "tool_id" in row and "parameters" in row)
        for _, row in document.objects[:20]
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield a conversation for each session; one that is resumed in the same file goes on."""
    aside = SkippedItems()
    sessions: dict[str, _Talk] = {}
    talk = _Talk([])
    for number, row in document.lines:
        if type_of(row) == "init":
            id = string(row, "session_id")
            if sessions or not talk.contents:  # what a wrapper wrote before the first one belongs to it
                talk = sessions.get(id) or _Talk([])
            sessions[id] = talk
            talk.model = string(row, "model") or talk.model
        elif not talk.take(mapping(row)):
            aside.add(f"line of type {type_of(row)}", number)
    for at, (name, each) in enumerate((sessions or {"": talk}).items()):
        notes = (_LIMITS, *aside.notes()) if not at else (_LIMITS,)
        yield RecordedConversation(
            "gemini-cli-stream", "gemini", each.contents, model=each.model, name=name if at else "main", notes=notes
        )
