"""The shared part of the wire protocols: the errors a provider sends, one turn to send, and text in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from refold.core._json import Json, mapping, objects
from refold.testing.provider._cache import Cached
from refold.testing.provider._script import ReceivedRequest, ScriptedReply

if TYPE_CHECKING:
    from refold.core.view import Violation
    from refold.testing.provider._cache import PromptCache
    from refold.testing.provider._request_counter import Prompt

__all__ = [
    "CREATED", "ReasoningFault", "RefusalKind", "Wire", "WireError", "WireTurn", "arguments", "dumped", "offered",
    "pieces",
]  # fmt: skip

RefusalKind: TypeAlias = Literal[
    "overflow", "invalid", "auth", "model", "path", "too_large", "rate_limit", "server_error", "overloaded", "encrypted"
]
ReasoningFault: TypeAlias = Literal["reasoning_invalid", "reasoning_missing"]
Event: TypeAlias = tuple[str, Json]
CREATED = 1_767_225_600  # every answer is of one moment, so that runs compare equal
PIECE = re.compile(r"\s*\S+(?:\s+\S+){0,3}\s*|\s+")  # four words a piece
_encode = msgspec.json.Encoder().encode


class WireError(Struct, frozen=True):
    """A request that is refused: what for, in the provider's words, and the field it blames."""

    kind: RefusalKind
    message: str
    param: str | None = None
    retry_after: float | None = None


class WireTurn(Struct, frozen=True):
    """One answered request with all that its wire tells about it; `prompt` contains what the cache gave and took."""

    received: ReceivedRequest
    answer: ScriptedReply
    prompt: int
    completion: int
    cached: Cached = Cached()
    dropped_thinking: int = 0


class Wire(Protocol):
    """One provider's protocol: where requests come in, what is checked, and how answers and errors look."""

    @property
    def format(self) -> str:
        """The name of the format of its messages."""

    @property
    def path(self) -> str:
        """Where requests are posted."""

    @property
    def closing(self) -> str:
        """The line of data that ends a stream, empty where an event does."""

    def misshapen(self, body: Json, *, counting: bool = False) -> WireError | None:
        """Return what is wrong with a body before its messages are read; `counting` asks for less than answering."""

    def violation(self, violation: Violation) -> WireError:
        """Return a broken rule in the provider's words."""

    def thinking(self, body: Json, headers: Mapping[str, str]) -> WireError | int:
        """Return what is wrong with the thinking of a request, or how many blocks of it the provider drops itself."""

    def overflow(self, prompt: Prompt, max_output: int | None, window: int) -> WireError:
        """Return the refusal of a request that does not fit."""

    def reasoning(self, fault: ReasoningFault, body: Json) -> WireError:
        """Return the refusal of reasoning that a body holds, or of a body without it."""

    def cached(self, cache: PromptCache, prompt: Prompt, body: Json) -> Cached:
        """Return what the prompt cache gives and takes."""

    def status(self, refusal: WireError) -> int:
        """Return the HTTP status of a refusal."""

    def error(self, refusal: WireError, number: int) -> Json:
        """Return the body of a refusal."""

    def reply(self, turn: WireTurn) -> Json:
        """Return an answer as one body."""

    def events(self, turn: WireTurn) -> Iterator[Event]:
        """Yield an answer as the events of a stream: name (empty where the wire names none) and data."""


def dumped(value: object) -> str:
    """Return a value as compact JSON."""
    return _encode(value).decode()


def arguments(value: object) -> str:
    """Return the arguments of a call as text."""
    return value if isinstance(value, str) else dumped(value)


def offered(body: Json) -> Iterator[tuple[str, Json]]:
    """Yield the tools of a request, each with the name of the namespace that it is in.

    Clients of OpenAI's Responses also send tools as items of the input, as Codex does.
    """
    items = [item for item in objects(body.get("input")) if item.get("type") == "additional_tools"]
    for definition in [tool for place in (body, *items) for tool in objects(place.get("tools"))]:
        if definition.get("type") == "namespace":
            yield from ((str(definition.get("name")), tool) for tool in objects(definition.get("tools")))
        else:
            single = mapping(definition.get("function")) or definition
            yield from (("", tool) for tool in objects(definition.get("functionDeclarations")) or [single])


def pieces(text: str) -> list[str]:
    """Return a text in pieces of four words, as a stream brings it."""
    return PIECE.findall(text)
