"""Anthropic's Messages over the official SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from refold.clients._factory import BadReply, Reply
from refold.clients._sdk import plain
from refold.core.messages import ToolCall

if TYPE_CHECKING:
    from refold.clients._factory import Wire

__all__ = ["AnthropicSpeech"]

ANSWER = 16_384  # tokens an answer may have when nobody says; Anthropic demands a number
SDK_FIELDS = ("parsed_output",)  # put into blocks by the SDK, refused by the provider
CUT = "the stream ended before the answer was complete: try again"


class AnthropicSpeech:
    """How Messages are asked for; see `refold.clients._sdk.Speech`."""

    package: ClassVar[str] = "anthropic"
    sdk: ClassVar[str] = "Anthropic"
    key: ClassVar[str] = "ANTHROPIC_API_KEY"
    wire: ClassVar[Wire] = "anthropic"

    def __init__(self, model: str, base_url: str | None, options: Mapping[str, Any]) -> None:
        self.model = model
        self._options = options

    def body(
        self, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None, max_tokens: int | None
    ) -> dict[str, Any]:
        """Return the arguments of a call."""
        most = max_tokens if max_tokens is not None else self._options.get("max_tokens") or _most(self.model)
        return {**self._options, **self._request(messages, system, tools), "max_tokens": most}

    def create(self, sdk: Any, body: Mapping[str, Any]) -> Any:
        """Make a call."""
        return sdk.messages.create(**body)

    def stream(self, sdk: Any, body: Mapping[str, Any]) -> Any:
        """Begin a streamed call."""
        return sdk.messages.stream(**body)

    def count(self, sdk: Any, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None) -> Any:
        """Ask the counting endpoint."""
        return sdk.messages.count_tokens(**self._request(messages, system, tools))

    def read(self, answer: Any) -> Reply:
        """Return an answer in our shape."""
        return _reply(answer)

    def pieces(self) -> AnthropicEvents:
        """Return what gathers one streamed answer."""
        return AnthropicEvents()

    def _request(self, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if system:
            body["system"] = system
        if tools:
            body["tools"] = list(tools)
        return body


class AnthropicEvents:
    """A streamed message as it comes; the SDK puts it together."""

    def __init__(self) -> None:
        self._begun = False

    def take(self, event: Any) -> str:
        """Take one event and return the words it adds."""
        self._begun = self._begun or event.type == "message_start"
        text: str = event.text if event.type == "text" else ""
        return text

    def reply(self, stream: Any) -> Reply:
        """Return the whole answer."""
        if not self._begun:
            raise BadReply(CUT)
        return _reply(stream.current_message_snapshot)


def _most(model: str) -> int:
    from refold.models._catalog import window

    return min(ANSWER, window(model, "anthropic").output_cap or ANSWER)


def _reply(message: Any) -> Reply:
    if not hasattr(message, "content") or message.content is None:
        raise BadReply("the answer is no message: check the base URL (Anthropic's SDK adds /v1 itself)", _body(message))
    if message.stop_reason is None:
        raise BadReply(CUT, _body(message))
    blocks = [_block(block) for block in message.content]
    text = "".join(block["text"] for block in blocks if block.get("type") == "text")
    calls = tuple(_call(block) for block in blocks if block.get("type") in {"tool_use", "server_tool_use"})
    native = {"role": "assistant", "content": blocks}
    ours = tuple(call for call in calls if not call.server)
    return Reply(native, text, ours, plain(message.usage), message.stop_reason)


def _body(message: Any) -> Any:
    return plain(message) if hasattr(message, "model_dump") else message


def _block(block: Any) -> dict[str, Any]:
    fields = plain(block)
    for name in SDK_FIELDS:
        fields.pop(name, None)
    return fields


def _call(block: Mapping[str, Any]) -> ToolCall:
    arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
    return ToolCall(block["id"], block["name"], arguments, server=block["type"] == "server_tool_use")
