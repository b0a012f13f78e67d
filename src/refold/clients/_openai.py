"""OpenAI's chat completions, and every server that speaks them, over the official SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from refold.clients._protocol import BadReply, Reply
from refold.clients._sdk import plain
from refold.core._json import string_of
from refold.core.messages import ToolCall
from refold.formats._base import arguments_text

if TYPE_CHECKING:
    from refold.clients._protocol import Wire
    from refold.core._json import Json

__all__ = ["ChatSpeech"]

ADDRESS = "https://api.openai.com/v1"  # where the SDK goes when it is told no other
OWN = ("openai.com", "azure.com")  # hosts whose newer models refuse `max_tokens`; elsewhere it is what all know


class ChatSpeech:
    """How chat completions are asked for; see `refold.clients._sdk.Speech`."""

    package: ClassVar[str] = "openai"
    sdk: ClassVar[str] = "OpenAI"
    key: ClassVar[str] = "OPENAI_API_KEY"
    wire: ClassVar[Wire] = "openai-chat"

    def __init__(self, model: str, base_url: str | None, options: Mapping[str, Any]) -> None:
        self.model = model
        self._options = options
        host = urlsplit(base_url or os.environ.get("OPENAI_BASE_URL") or ADDRESS).hostname or ""
        self._most = "max_completion_tokens" if host.endswith(OWN) else "max_tokens"

    def body(
        self, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None, max_tokens: int | None
    ) -> dict[str, Any]:
        """Return the arguments of a call."""
        head = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {"model": self.model, "messages": [*head, *messages], **self._options}
        if tools:
            body["tools"] = list(tools)
        if max_tokens is not None:
            body[self._most] = max_tokens
        return body

    def create(self, sdk: Any, body: Mapping[str, Any]) -> Any:
        """Make a call."""
        return sdk.chat.completions.create(**body)

    def stream(self, sdk: Any, body: Mapping[str, Any]) -> Any:
        """Begin a streamed call."""
        return sdk.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})

    def count(self, sdk: Any, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None) -> None:
        """Return None: there is no counting endpoint."""

    def read(self, answer: Any) -> Reply:
        """Return the SDK's answer in our shape."""
        if not hasattr(answer, "choices"):
            raise BadReply("the answer is no chat completion: check the base URL (it often ends in /v1)", answer)
        return self.reply(plain(answer))

    def event(self, event: Any) -> Json:
        """Return one of the SDK's chunks as the provider sent it."""
        if not hasattr(event, "choices"):
            raise BadReply("a piece of the answer is no piece of a chat completion: check the base URL", event)
        return plain(event)

    def reply(self, body: Json) -> Reply:
        """Return the first choice of a completion in our shape."""
        if not body.get("choices"):
            raise _refused(body)
        choice = body["choices"][0]
        message = dict(choice.get("message") or {})
        calls = [{"type": "function", **call} for call in message.pop("tool_calls", None) or ()]
        if not message.get("annotations", True):
            del message["annotations"]
        text = message.pop("content", None)
        message.pop("role", None)  # some servers leave it out, or stream it empty
        native = {"role": "assistant", "content": text if text is not None or calls else "", **message}
        if calls:
            native["tool_calls"] = calls
        words = string_of(text)
        return Reply(
            native, words, tuple(map(_call, calls)), body.get("usage") or {}, choice.get("finish_reason") or ""
        )


def _call(call: Mapping[str, Any]) -> ToolCall:
    kind = call.get("type", "function")
    inner: Mapping[str, Any] = call.get(kind) or {}
    arguments = arguments_text(inner.get("arguments", inner.get("input", "")))  # some servers send an object
    return ToolCall(call.get("id", ""), inner.get("name", ""), arguments, kind)


def _refused(body: Mapping[str, Any]) -> BadReply:
    error = body.get("error")
    message = error.get("message") if isinstance(error, Mapping) else error
    return BadReply(f"the answer holds no message{f': {message}' if message else ''}", body)
