"""Anthropic's Messages over the official SDK."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from refold.core.messages import ToolCall
from refold.outside.clients import (
    CONNECTIONS,
    COUNTED_BY,
    KEPT_ALIVE,
    TIMEOUT,
    BadReply,
    Reply,
    keyless,
    missing,
    plain,
)

if TYPE_CHECKING:
    from refold.outside.clients import OnText, Wire

__all__ = ["AnthropicClient"]

KEY = "ANTHROPIC_API_KEY"
ANSWER = 16_384  # tokens an answer may have when nobody says; Anthropic demands a number
SDK_FIELDS = ("parsed_output",)  # put into blocks by the SDK, refused by the provider


class AnthropicClient:
    """A model behind Messages; see `refold.outside.clients.Client`."""

    format: ClassVar[Wire] = "anthropic"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = TIMEOUT,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            import anthropic
        except ImportError:
            raise missing("anthropic") from None
        key = api_key or os.environ.get(KEY) or ("none" if base_url else "")
        if not key:
            raise keyless(KEY)
        self.model = model
        self.base_url = base_url or ""
        self._options = dict(options or {})
        self._absent: type[Exception] = anthropic.NotFoundError
        limits = type(anthropic.DEFAULT_CONNECTION_LIMITS)(
            max_connections=CONNECTIONS, max_keepalive_connections=KEPT_ALIVE
        )
        self._sdk = anthropic.Anthropic(
            api_key=key,
            base_url=base_url,
            timeout=timeout,
            max_retries=0,  # retries are `retrying`'s and the caller's
            http_client=anthropic.DefaultHttpxClient(limits=limits, timeout=timeout),
        )

    def complete(
        self,
        messages: Sequence[Any],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Ask for the next message; with `on_text` it is streamed, and the function gets each piece of text."""
        most = max_tokens if max_tokens is not None else self._options.get("max_tokens") or _most(self.model)
        body = {**self._options, **self._request(messages, system, tools), "max_tokens": most}
        sdk: Any = self._sdk.messages
        if on_text is None:
            return _reply(sdk.create(**body))
        with sdk.stream(**body) as stream:
            for text in stream.text_stream:
                on_text(text)
            return _reply(stream.get_final_message())

    def count(self, messages: Sequence[Any], system: Any = None, tools: Sequence[Any] | None = None) -> int:
        """Return the input tokens by the counting endpoint; where there is none, by a call of 16 tokens (V08)."""
        sdk: Any = self._sdk.messages
        try:
            return int(sdk.count_tokens(**self._request(messages, system, tools)).input_tokens)
        except self._absent:
            from refold.limits.usage import reported

            return reported(self.complete(messages, system=system, tools=tools, max_tokens=COUNTED_BY).usage).prompt

    def close(self) -> None:
        """Close the connections."""
        self._sdk.close()

    def _request(self, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if system:
            body["system"] = system
        if tools:
            body["tools"] = list(tools)
        return body


def _most(model: str) -> int:
    from refold.limits.models import window

    return min(ANSWER, window(model, "anthropic").output_cap or ANSWER)


def _reply(message: Any) -> Reply:
    if not hasattr(message, "content") or message.content is None:
        raise BadReply("the answer is no message: check the base URL (Anthropic's SDK adds /v1 itself)", _body(message))
    if message.stop_reason is None:
        raise BadReply("the stream ended before the answer was complete: try again", _body(message))
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
