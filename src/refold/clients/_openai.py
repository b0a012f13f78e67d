"""OpenAI's chat completions, and every server that speaks them, over the official SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from refold.clients._factory import BadReply, Reply
from refold.clients._sdk import plain
from refold.core.messages import ToolCall
from refold.formats._base import arguments_text

if TYPE_CHECKING:
    from refold.clients._factory import Wire

__all__ = ["ChatSpeech"]

ADDRESS = "https://api.openai.com/v1"  # where the SDK goes when it is told no other
OWN = ("openai.com", "azure.com")  # hosts whose newer models refuse `max_tokens`; elsewhere it is what all know
ONCE = frozenset({"role", "type", "id", "name", "index", "format"})  # of a delta: said once, or again and the same


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
        """Return an answer in our shape."""
        if not hasattr(answer, "choices"):
            raise BadReply("the answer is no chat completion: check the base URL (it often ends in /v1)", answer)
        if not answer.choices:
            raise _refused(plain(answer))
        choice = answer.choices[0]
        return _reply(plain(choice.message), plain(answer.usage), choice.finish_reason)

    def pieces(self) -> Chunks:
        """Return what gathers one streamed answer."""
        return Chunks()


class Chunks:
    """A streamed chat completion as it comes."""

    def __init__(self) -> None:
        self._whole: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None

    def take(self, event: Any) -> str:
        """Take one chunk and return the words it adds."""
        if not hasattr(event, "choices"):
            raise BadReply("a piece of the answer is no piece of a chat completion: check the base URL", event)
        self._usage = plain(event.usage) or self._usage
        if not event.choices:
            return ""
        choice = event.choices[0]
        self._stop = choice.finish_reason or self._stop
        delta = plain(choice.delta)
        _merge(self._whole, delta)
        text: str = delta.get("content") or ""
        return text

    def reply(self, stream: Any) -> Reply:
        """Return the whole answer."""
        if self._stop is None:
            raise BadReply("the stream ended before the answer was complete: try again", self._whole)
        return _reply(self._whole, self._usage, self._stop)


def _merge(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta: texts go on, lists by the `index` of their entries, objects by their fields."""
    for key, value in delta.items():
        match whole.get(key), value:
            case None, list():
                whole[key] = []
                _merge_list(whole[key], value)
            case None, dict():
                whole[key] = {}
                _merge(whole[key], value)
            case None, _:
                whole[key] = value
            case str() as before, str() if key not in ONCE:
                whole[key] = before + value
            case dict() as inner, dict():
                _merge(inner, value)
            case list() as entries, list():
                _merge_list(entries, value)
            case "", _:
                whole[key] = value
            case _:
                pass


def _merge_list(entries: list[Any], more: Sequence[Any]) -> None:
    for entry in more:
        if not isinstance(entry, dict):
            entries.append(entry)
            continue
        index = entry.get("index")
        there = next((old for old in entries if index is not None and old.get("index") == index), None)
        if there is None:
            entries.append(there := {})
        _merge(there, entry)


def _reply(message: dict[str, Any], usage: dict[str, Any], stop: str | None) -> Reply:
    calls = message.pop("tool_calls", None) or []
    if not message.get("annotations", True):
        del message["annotations"]
    for call in calls:
        call.pop("index", None)
        call.setdefault("type", "function")
    text = message.pop("content", None)
    message.pop("role", None)  # some servers leave it out, or stream it empty
    whole = {"role": "assistant", "content": text if text is not None or calls else "", **message}
    if calls:
        whole["tool_calls"] = calls
    return Reply(whole, text if isinstance(text, str) else "", tuple(map(_call, calls)), usage, stop or "")


def _call(call: Mapping[str, Any]) -> ToolCall:
    kind = call.get("type", "function")
    inner: Mapping[str, Any] = call.get(kind) or {}
    arguments = arguments_text(inner.get("arguments", inner.get("input", "")))  # some servers send an object
    return ToolCall(call.get("id", ""), inner.get("name", ""), arguments, kind)


def _refused(body: Mapping[str, Any]) -> BadReply:
    error = body.get("error")
    said = error.get("message") if isinstance(error, Mapping) else error
    return BadReply(f"the answer holds no message{f': {said}' if said else ''}", body)
