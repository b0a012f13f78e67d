"""Sessions of the OpenHands SDK: events whose kind is the name of their class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_EVENTS = ("Event", "UserRejectObservation", "Condensation")


def matches(document: Document) -> bool:
    """Tell by events with a source and a kind."""
    return any("source" in row and str(row.get("kind", "")).endswith(_EVENTS) for _, row in document.objects[:20])


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session."""
    session = _OpenHandsSDKSession()
    for number, event in document.lines:
        if "kind" in mapping(event):
            session.take(number, event)
        else:
            session.aside.add(f"{type(event).__name__} that is no event", number)
    yield RecordedConversation(
        "openhands-sdk",
        "openai-chat",
        session.messages,
        tools=session.tools,
        name="main",
        notes=session.aside.notes(),
        boundaries=tuple(session.boundaries),
    )


class _OpenHandsSDKSession:
    """What has been read so far."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.aside = SkippedItems()
        self.tools: list[Any] | None = None
        self.boundaries: list[int] = []
        self._seen: dict[str, int] = {}  # id of a model response -> index of its answer

    def take(self, number: int, event: Json) -> None:
        """Take in one event."""
        match event["kind"]:
            case "SystemPromptEvent":
                self.tools = event.get("tools") or self.tools
                self.messages.append({"role": "system", "content": (event.get("system_prompt") or {}).get("text", "")})
            case "MessageEvent":
                message_fields = event["llm_message"]
                self.messages.append(
                    {"role": message_fields["role"], "content": _content(message_fields.get("content"))}
                )
            case "ActionEvent":
                self._action(event)
            case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
                observation = event.get("observation") or {}
                content = observation.get("content") if isinstance(observation, dict) else observation
                content = content or event.get("error") or event.get("rejection_reason")
                self.messages.append(
                    {"role": "tool", "tool_call_id": event["tool_call_id"], "content": _content(content)}
                )
            case kind:
                if kind == "Condensation":
                    self.boundaries.append(len(self.messages))
                self.aside.add(f"event {kind}{'/' + str(event['key']) if 'key' in event else ''}", number)

    def _action(self, event: Json) -> None:
        call = event["tool_call"]
        function = call.get("function") or {"name": call["name"], "arguments": call.get("arguments") or "{}"}
        call = {"id": event["tool_call_id"], "type": "function", "function": function}
        id = event.get("llm_response_id") or event["tool_call_id"]
        if id in self._seen:  # a further call of the same answer
            self.messages[self._seen[id]]["tool_calls"].append(call)
            return
        self._seen[id] = len(self.messages)
        message = {"role": "assistant", "content": _content(event.get("thought")), "tool_calls": [call]}
        if event.get("reasoning_content"):
            message["reasoning_content"] = event["reasoning_content"]
        self.messages.append(message)


def _content(content: object) -> Any:
    """Return SDK content in chat's shape: texts without the SDK's own marks, pictures one a block."""
    if not isinstance(content, list):
        return content or ""
    blocks: list[Any] = []
    for block in content:
        if isinstance(block, dict) and isinstance(block.get("image_urls"), list):
            blocks.extend({"type": "image_url", "image_url": {"url": url}} for url in block["image_urls"])
        elif isinstance(block, dict):
            blocks.append({key: block[key] for key in block if key not in ("cache_prompt", "enable_truncation")})
        else:
            blocks.append({"type": "text", "text": str(block)})
    return blocks
