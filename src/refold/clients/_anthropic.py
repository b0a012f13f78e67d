"""Anthropic's Messages over the official SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from refold.clients._protocol import BadReply, Reply
from refold.clients._sdk import CUT, plain
from refold.core.messages import ToolCall

if TYPE_CHECKING:
    from refold.clients._protocol import Wire
    from refold.core._json import Json

__all__ = ["AnthropicSpeech"]

ANSWER = 16_384  # tokens an answer may have when nobody says; Anthropic demands a number


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
        return sdk.messages.create(**body, stream=True)

    def count(self, sdk: Any, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None) -> Any:
        """Ask the counting endpoint."""
        return sdk.messages.count_tokens(**self._request(messages, system, tools))

    def read(self, answer: Any) -> Reply:
        """Return the SDK's answer in our shape."""
        body = plain(answer) if hasattr(answer, "content") else {}
        if "content" not in body:
            message = plain(answer) if hasattr(answer, "model_dump") else answer
            raise BadReply("the answer is no message: check the base URL (Anthropic's SDK adds /v1 itself)", message)
        return self.reply(body)

    def event(self, event: Any) -> Json:
        """Return one of the SDK's events as the provider sent it."""
        return plain(event)

    def reply(self, body: Json) -> Reply:
        """Return a message in our shape."""
        if body.get("stop_reason") is None:
            raise BadReply(CUT, body)
        blocks = body["content"]
        text = "".join(block["text"] for block in blocks if block.get("type") == "text")
        calls = tuple(
            ToolCall(block["id"], block["name"], json.dumps(block.get("input") or {}, ensure_ascii=False))
            for block in blocks
            if block.get("type") == "tool_use"
        )
        native = {"role": "assistant", "content": blocks}
        return Reply(native, text, calls, body.get("usage") or {}, body["stop_reason"])

    def _request(self, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if system:
            body["system"] = system
        if tools:
            body["tools"] = list(tools)
        return body


def _most(model: str) -> int:
    from refold.models._catalog import window

    return min(ANSWER, window(model, "anthropic").output_cap or ANSWER)
