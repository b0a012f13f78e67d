"""OpenAI's chat completions, and every server that speaks them, over the official SDK."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

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

__all__ = ["OpenAIClient"]

KEY = "OPENAI_API_KEY"
OWN = ("openai.com", "azure.com")  # hosts whose newer models refuse `max_tokens`; elsewhere it is what all know
ONCE = frozenset({"role", "type", "id", "name", "index", "format"})  # of a delta: said once, or again and the same


class OpenAIClient:
    """A model behind chat completions; see `refold.outside.clients.Client`."""

    format: ClassVar[Wire] = "openai-chat"

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
            import openai
        except ImportError:
            raise missing("openai") from None
        key = api_key or os.environ.get(KEY) or ("none" if base_url else "")
        if not key:
            raise keyless(KEY)
        self.model = model
        self.base_url = base_url or ""
        self._options = dict(options or {})
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=CONNECTIONS, max_keepalive_connections=KEPT_ALIVE
        )
        self._sdk = openai.OpenAI(
            api_key=key,
            base_url=base_url,
            timeout=timeout,
            max_retries=0,  # retries are `retrying`'s and the caller's
            http_client=openai.DefaultHttpxClient(limits=limits, timeout=timeout),
        )
        host = urlsplit(str(self._sdk.base_url)).hostname or ""
        self._most = "max_completion_tokens" if host.endswith(OWN) else "max_tokens"

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
        head = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {"model": self.model, "messages": [*head, *messages], **self._options}
        if tools:
            body["tools"] = list(tools)
        if max_tokens is not None:
            body[self._most] = max_tokens
        create: Any = self._sdk.chat.completions.create
        if on_text is None:
            return _whole(create(**body))
        with create(**body, stream=True, stream_options={"include_usage": True}) as chunks:
            return _streamed(chunks, on_text)

    def count(self, messages: Sequence[Any], system: Any = None, tools: Sequence[Any] | None = None) -> int:
        """Return the input tokens of a request, by a real call whose answer may have 16 tokens (V08)."""
        usage = self.complete(messages, system=system, tools=tools, max_tokens=COUNTED_BY).usage
        counted = usage.get("prompt_tokens")
        if not isinstance(counted, int):
            raise BadReply("the server reports no prompt_tokens, so it cannot count", dict(usage))
        return counted

    def close(self) -> None:
        """Close the connections."""
        self._sdk.close()


def _whole(completion: Any) -> Reply:
    if not hasattr(completion, "choices"):
        raise BadReply("the answer is no chat completion: check the base URL (it often ends in /v1)", completion)
    if not completion.choices:
        raise _refused(plain(completion))
    choice = completion.choices[0]
    return _reply(plain(choice.message), plain(completion.usage), choice.finish_reason)


def _streamed(chunks: Iterable[Any], on_text: OnText) -> Reply:
    whole: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    stop: str | None = None
    for chunk in chunks:
        if not hasattr(chunk, "choices"):
            raise BadReply("a piece of the answer is no piece of a chat completion: check the base URL", chunk)
        usage = plain(chunk.usage) or usage
        if not chunk.choices:
            continue
        choice = chunk.choices[0]
        stop = choice.finish_reason or stop
        delta = plain(choice.delta)
        _merge(whole, delta)
        if text := delta.get("content"):
            on_text(text)
    if stop is None:
        raise BadReply("the stream ended before the answer was complete: try again", whole)
    return _reply(whole, usage, stop)


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
    arguments = inner.get("arguments", inner.get("input", ""))
    return ToolCall(call.get("id", ""), inner.get("name", ""), arguments, kind)


def _refused(body: Mapping[str, Any]) -> BadReply:
    error = body.get("error")
    said = error.get("message") if isinstance(error, Mapping) else error
    return BadReply(f"the answer holds no message{f': {said}' if said else ''}", body)
