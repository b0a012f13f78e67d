"""OpenHands events: actions and observations of a session, evaluation output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json
from refold.transcripts._bodies import reported
from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_CONTROL = frozenset(
    {
        "agent_state_changed",
        "change_agent_state",
        "condensation",
        "condensation_request",
        "loop_recovery",
        "null",
        "pause",
        "push",
        "recall",
        "resume",
        "send_pr",
        "start_project",
        "stop",
        "user_rejected",
    }
)  # events between client and server that no message is made of
_TEXTS = (
    "thought",
    "command",
    "code",
    "path",
    "url",
    "browser_actions",
    "content",
)  # fields of an action without a call


def matches(document: Document) -> bool:
    """Tell by events: a source with an action or an observation; evaluation output holds them as `history`."""
    rows = [row for _, row in document.objects[:20]]
    for history in (row["history"] for row in rows if isinstance(row.get("history"), list)):
        return any(_is_event(event) for event in _flat(history)[:5])
    return any(_is_event(row) for row in rows)


def _is_event(event: object) -> bool:
    if not isinstance(event, dict) or "source" not in event or "kind" in event:
        return False
    return isinstance(event.get("action") or event.get("observation"), str)


def _flat(history: list[Any]) -> list[Any]:
    """Return events in a row; older files pair an action with its observation."""
    return [event for entry in history for event in (entry if isinstance(entry, list) else [entry])]


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session, or one an instance of evaluation output."""
    rows = document.objects
    if any(isinstance(row.get("history"), list) for _, row in rows):
        for number, row in rows:
            yield _session(
                str(row.get("instance_id", f"line {number}")), [(0, event) for event in _flat(row.get("history") or [])]
            )
    else:
        yield _session("main", document.lines)


def _session(name: str, events: list[tuple[int, Any]]) -> RecordedConversation:
    session = _OpenHandsSession()
    for number, event in events:
        if not isinstance(event, dict):
            session.aside.add(f"{type(event).__name__} where an event should be", number)
        else:
            session.take(number, event)
    return RecordedConversation(
        "openhands",
        "openai-chat",
        session.messages,
        tools=session.tools,
        model=session.model,
        usage=tuple(session.usage),
        name=name,
        notes=session.aside.notes(),
    )


class _OpenHandsSession:
    """What has been read so far."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.aside = SkippedItems()
        self.tools: list[Any] | None = None
        self.model: str | None = None
        self.usage: list[RecordedUsage] = []
        self._seen: dict[str, int] = {}  # id of a model response -> index of its answer

    def take(self, number: int, event: Json) -> None:
        """Take in one event of the older form."""
        action, observation = event.get("action"), event.get("observation")
        args = event.get("args") or {}
        if action in _CONTROL or observation in _CONTROL or not (action or observation):
            self.aside.add(f"event {action or observation or 'without a name'}", number)
        elif isinstance(meta := event.get("tool_call_metadata"), dict):
            self._called(meta) if action else self._result(meta["tool_call_id"], event.get("content") or "")
        elif action == "system":
            self.tools = args.get("tools") or self.tools
            self.messages.append({"role": "system", "content": args.get("content", "")})
        elif action == "message":
            role = "user" if event.get("source") == "user" else "assistant"
            pictures = [
                {"type": "image_url", "image_url": {"url": url}}
                for url in args.get("image_urls") or args.get("images_urls") or []
            ]
            text = args.get("content", "")
            self.messages.append(
                {"role": role, "content": [{"type": "text", "text": text}, *pictures] if pictures else text}
            )
        elif action:
            text = "\n".join(str(args[key]) for key in _TEXTS if args.get(key))
            self.messages.append(
                {
                    "role": "user" if event.get("source") == "user" else "assistant",
                    "content": text or event.get("message", ""),
                }
            )
        else:
            self.messages.append({"role": "user", "content": event.get("content") or ""})

    def _called(self, meta: Json) -> None:
        response = meta.get("model_response") or {}
        id = response.get("id") or meta["tool_call_id"]
        if id in self._seen:  # a further call of the same answer
            return
        message = dict(response["choices"][0]["message"])
        message = {
            key: value
            for key, value in message.items()
            if key not in ("function_call", "provider_specific_fields") and value is not None
        }
        self.model = response.get("model") or self.model
        self.usage.extend(reported(len(self.messages), response.get("usage")))
        self._seen[id] = len(self.messages)
        self.messages.append({"content": None, **message})

    def _result(self, id: str, content: object) -> None:
        self.messages.append({"role": "tool", "tool_call_id": id, "content": content})
