"""Generic clients over the official SDKs: the shared part, and one short driver each for sync and async calls."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from refold._text.surrogates import repair_surrogates_in_json
from refold.clients._protocol import BadReply
from refold.errors import UsageError
from refold.formats._streaming.accumulate import accumulator
from refold.models._usage_report import reported

if TYPE_CHECKING:
    from types import ModuleType

    from refold.clients._protocol import OnText, Reply, Wire
    from refold.core._json import Json
    from refold.formats._streaming.accumulate import Accumulator

__all__ = ["AsyncSDKClient", "SDKClient", "Speech", "plain"]

CUT = "the stream ended before the answer was complete: try again"
KEPT_ALIVE, CONNECTIONS = 5, 10  # V12
COUNTED_BY = 16  # tokens that the answer of a call made for its count may have, V08


class Speech(Protocol):
    """How one SDK is spoken to, for one model: what is sent, by which method, and how answers are read."""

    @property
    def package(self) -> str:
        """The SDK's package."""

    @property
    def sdk(self) -> str:
        """Its class of clients; the asynchronous one has Async before it."""

    @property
    def key(self) -> str:
        """The environment variable that holds a key."""

    @property
    def wire(self) -> Wire:
        """The format of the messages."""

    @property
    def model(self) -> str:
        """The id that is sent."""

    def body(
        self, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None, max_tokens: int | None
    ) -> dict[str, Any]:
        """Return the arguments of a call."""

    def create(self, sdk: Any, body: Mapping[str, Any]) -> Any:
        """Make a call and return the SDK's answer, or what is awaited for it."""

    def stream(self, sdk: Any, body: Mapping[str, Any]) -> Any:
        """Begin a streamed call and return the SDK's stream, or what is awaited for it."""

    def count(self, sdk: Any, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None) -> Any:
        """Ask the counting endpoint; None where the provider has none."""

    def read(self, answer: Any) -> Reply:
        """Return the SDK's answer in our shape."""

    def event(self, event: Any) -> Json:
        """Return one of the SDK's events as the provider sent it."""

    def reply(self, body: Json) -> Reply:
        """Return the body of an answer in our shape, as it was sent or as the events of a stream add up to it."""


class _KnownClient:
    """What a client of either kind knows; `sdk` is the SDK's own client."""

    def __init__(self, speech: Speech, base_url: str | None, api_key: str | None, timeout: float) -> None:
        self.base_url = base_url or ""
        self._speech = speech
        package = _package(speech.package)
        self._absent: type[Exception] = package.NotFoundError
        key = api_key or os.environ.get(speech.key) or ("none" if base_url else "")
        if not key:
            raise UsageError(f"no key for the provider: pass api_key, or set {speech.key}")
        self.sdk = self._opened(package, base_url, key, timeout)

    @property
    def model(self) -> str:
        """The id that is sent."""
        return self._speech.model

    @property
    def format(self) -> Wire:
        """The format of the messages."""
        return self._speech.wire

    def _whole(self, total: Accumulator) -> Reply:
        if total.stop is None:
            raise BadReply(CUT, total.body())
        return self._speech.reply(total.body())

    def _opened(self, package: ModuleType, base_url: str | None, key: str, timeout: float) -> Any:
        kind = "Async" if isinstance(self, AsyncSDKClient) else ""
        limits = type(package.DEFAULT_CONNECTION_LIMITS)(
            max_connections=CONNECTIONS, max_keepalive_connections=KEPT_ALIVE
        )
        connections = getattr(package, f"Default{kind}HttpxClient")(limits=limits, timeout=timeout)
        return getattr(package, kind + self._speech.sdk)(
            api_key=key,
            base_url=base_url,
            timeout=timeout,
            max_retries=0,  # retries are `retrying`'s and the caller's
            http_client=connections,
        )


class SDKClient(_KnownClient):
    """A model behind an SDK; see `refold.clients._protocol.Client`."""

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
        body = self._speech.body(*_sendable(messages, system, tools), max_tokens)
        if on_text is None:
            return self._speech.read(self._speech.create(self.sdk, body))
        total = accumulator(self._speech.wire)
        with self._speech.stream(self.sdk, body) as stream:
            for event in stream:
                if text := total.add(self._speech.event(event)):
                    with _of_the_caller():
                        on_text(text)
        return self._whole(total)

    def count(self, messages: Sequence[Any], system: Any = None, tools: Sequence[Any] | None = None) -> int:  # V08
        """Return the input tokens by the counting endpoint; where there is none, by a call of 16 tokens."""
        try:
            counted = self._speech.count(self.sdk, *_sendable(messages, system, tools))
        except self._absent:
            counted = None
        if counted is not None:
            return int(counted.input_tokens)
        return _prompt(self.complete(messages, system=system, tools=tools, max_tokens=COUNTED_BY))

    def close(self) -> None:
        """Close the connections."""
        self.sdk.close()


class AsyncSDKClient(_KnownClient):
    """A model behind an SDK's asynchronous class; see `refold.clients._factory.AsyncClient`."""

    async def complete(
        self,
        messages: Sequence[Any],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Ask for the next message; with `on_text`, a coroutine function perhaps, it is streamed."""
        body = self._speech.body(*_sendable(messages, system, tools), max_tokens)
        if on_text is None:
            return self._speech.read(await self._speech.create(self.sdk, body))
        total = accumulator(self._speech.wire)
        async with await self._speech.stream(self.sdk, body) as stream:
            async for event in stream:
                if text := total.add(self._speech.event(event)):
                    with _of_the_caller():
                        awaitable = on_text(text)
                        if inspect.isawaitable(awaitable):
                            await awaitable
        return self._whole(total)

    async def count(self, messages: Sequence[Any], system: Any = None, tools: Sequence[Any] | None = None) -> int:
        """Return the input tokens by the counting endpoint; where there is none, by a call of 16 tokens."""
        try:
            counting = self._speech.count(self.sdk, *_sendable(messages, system, tools))
            counted = None if counting is None else await counting
        except self._absent:
            counted = None
        if counted is not None:
            return int(counted.input_tokens)
        return _prompt(await self.complete(messages, system=system, tools=tools, max_tokens=COUNTED_BY))

    async def close(self) -> None:
        """Close the connections."""
        await self.sdk.close()


def plain(value: Any) -> dict[str, Any]:
    """Return an SDK's value as the provider's own fields; those that were never sent, and nulls, are left out."""
    if value is None:
        return {}
    fields: dict[str, Any] = value.model_dump(mode="json", exclude_unset=True, exclude_none=True, warnings=False)
    return fields


@contextmanager
def _of_the_caller() -> Iterator[None]:
    """Mark what the caller's own function raises: another request to the model would not help."""
    try:
        yield
    except Exception as error:
        error.is_retryable = False  # type: ignore[attr-defined] # one of `retrying`'s flags
        raise


def _sendable(
    messages: Sequence[Any], system: Any, tools: Sequence[Any] | None
) -> tuple[Sequence[Any], Any, Sequence[Any] | None]:
    """Return the parts of a request as UTF-8 can carry them: the very same, where no half of a surrogate pair is in."""
    parts = (messages, system, tools)
    try:
        msgspec.json.encode(parts, enc_hook=repr)
    except UnicodeEncodeError:
        return repair_surrogates_in_json(messages), repair_surrogates_in_json(system), repair_surrogates_in_json(tools)
    except (ValueError, OverflowError):  # numbers beyond 64 bits, which the SDK can write
        return parts
    return parts


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(f"the {name} package is not installed: pip install 'refold[{name}]'") from None


def _prompt(reply: Reply) -> int:
    try:
        return reported(reply.usage).prompt
    except UsageError:
        raise BadReply("the server reports no usage, so it cannot count", dict(reply.usage)) from None
