"""Codex rollouts: JSON lines of response items, with events for the screen and token counts between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, objects, string
from refold.transcripts._conversation import RecordedConversation, RecordedUsage, usage_reports
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_ITEMS = frozenset(
    {
        "code_interpreter_call",
        "compaction",
        "computer_call",
        "computer_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "function_call",
        "function_call_output",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_call",
        "mcp_list_tools",
        "message",
        "reasoning",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
OWN_FIELDS = frozenset(
    {"internal_chat_message_metadata_passthrough", "timestamp"}
)  # the client's own fields; the API refuses them
# Beginnings of users' messages that the client writes itself; they begin no turn of a person.
_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>", "<skill>",
            "<user_shell_command>", "<subagent_notification>")  # fmt: skip
_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


def matches(document: Document) -> bool:
    """Tell by lines with a payload; older rollouts by a header with an id, then bare items."""
    rows = [row for _, row in document.objects[:20]]
    if any(row.get("type") in _LINES and isinstance(row.get("payload"), dict) for row in rows):
        return True
    header = rows[0] if rows and document.value is None else {}
    old = (
        "timestamp" in header
        and "id" in header
        and "type" not in header
        and "role" not in header
        and "source" not in header
    )
    return old and any(row.get("type") in _ITEMS or row.get("record_type") == "state" for row in rows[1:])


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a rollout."""
    session = _CodexSession()
    for number, row in document.lines:
        if isinstance(row, dict):
            session.take(number, row)
        else:
            session.aside.add(f"{type(row).__name__} where an object should be", number)
    yield RecordedConversation(
        "codex",
        "openai-responses",
        session.items,
        system=session.system,
        tools=session.tools,
        model=session.model,
        window=session.window,
        usage=tuple(session.usage),
        name="main",
        notes=(*session.notes, *session.aside.notes()),
        boundaries=tuple(session.boundaries),
    )


class _CodexSession:
    """What has been read so far."""

    def __init__(self) -> None:
        self.items: list[Json] = []
        self.aside = SkippedItems()
        self.system: Any = None
        self.tools: list[Any] | None = None
        self.model: str | None = None
        self.window: int | None = None
        self.usage: list[RecordedUsage] = []
        self.notes: list[str] = []
        self.boundaries: list[int] = []
        self._reply = -1  # where the answer begins that the next token count is about
        self._total: Any = None

    def take(self, number: int, row: Json) -> None:
        """Take in one line."""
        kind = row.get("type")
        payload = row.get("payload")
        if kind in _ITEMS and payload is None:
            self._item(number, row)
        elif not isinstance(payload, dict):
            self._header(row) if "type" not in row and "id" in row else None
            self.aside.add(
                "session header" if "id" in row else f"line of type {kind or row.get('record_type')}", number
            )
        elif kind == "response_item":
            self._item(number, payload)
        elif kind == "compacted":
            self.boundaries.append(len(self.items))
            replacement = payload.get("replacement_history")
            size = (
                f"{len(replacement)} items took the place of all before"
                if isinstance(replacement, list)
                else "a summary took the place of all before"
            )
            self.notes.append(f"line {number}: compacted before item {len(self.items)}; {size}")
        else:
            if kind == "session_meta":
                self._header(payload)
            elif kind == "turn_context":
                self.model = payload.get("model") or self.model
            elif payload.get("type") == "token_count":
                self._count(payload.get("info"))
            inner = payload.get("type") if kind == "event_msg" else None
            if inner == "thread_rolled_back":
                self._roll_back(number, payload.get("num_turns"))
                return
            self.aside.add(f"line of type {kind}/{inner}" if inner else f"line of type {kind}", number)

    def _roll_back(self, number: int, turns: object) -> None:
        """Take back the last turns of users, as the client does; what stands before the first one stays."""
        begun = [
            at
            for at, item in enumerate(self.items)
            if item.get("type") == "message" and item.get("role") == "user" and not _is_context(item)
        ]
        if not isinstance(turns, int) or turns <= 0 or not begun:
            return
        cut = begun[max(len(begun) - turns, 0)]
        while cut > begun[0] and _is_context(self.items[cut - 1]):
            cut -= 1
        self.notes.append(f"line {number}: {turns} turns were rolled back, {len(self.items) - cut} items left out")
        del self.items[cut:]
        self.usage = [report for report in self.usage if report.covers <= cut]
        self.boundaries = [at for at in self.boundaries if at <= cut]
        self._reply = -1

    def _header(self, payload: Json) -> None:
        base = payload.get("base_instructions")
        text = base.get("text") if isinstance(base, dict) else payload.get("instructions")
        self.system = text or self.system
        if isinstance(tools := payload.get("dynamic_tools"), list) and tools:
            self.tools = tools

    def _item(self, number: int, item: Json) -> None:
        kind = item.get("type")
        if kind not in _ITEMS:
            self.aside.add(f"item of type {kind}, which the client does not send", number)
            return
        from_user = kind == "message" and item.get("role") != "assistant"
        if from_user:
            self._reply = -1
        elif self._reply < 0 and not str(kind).endswith("_output"):
            self._reply = len(self.items)
        self.items.append(
            {key: value for key, value in item.items() if key not in OWN_FIELDS} if OWN_FIELDS & item.keys() else item
        )

    def _count(self, info: object) -> None:
        if not isinstance(info, dict):
            return
        self.window = info.get("model_context_window") or self.window
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        # the client repeats a count when only its rate limits have changed
        if not isinstance(last, dict) or (total is not None and total == self._total):
            return
        self._total = total
        covers = self._reply if self._reply >= 0 else len(self.items)
        self._reply = -1
        prompt, completion = last.get("input_tokens") or 0, last.get("output_tokens") or 0
        self.usage += usage_reports(covers, prompt, completion, last.get("cached_input_tokens") or 0)


def _is_context(item: Json) -> bool:
    """Tell whether the client wrote a message before a turn: settings, instructions, the environment."""
    if item.get("type") != "message" or item.get("role") not in ("user", "developer"):
        return False
    texts = [string(block, "text") for block in objects(item.get("content"))]
    return item["role"] == "developer" or any(text.startswith(_CONTEXT) for text in texts[:1])
