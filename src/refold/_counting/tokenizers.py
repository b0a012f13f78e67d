"""Counts tokens with the model's own vocabulary, or with a near one times a measured factor."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from math import ceil

import msgspec
from msgspec import Struct

from refold._counting.content_kind import kind_of
from refold._counting.image_tokens import file_tokens, image_tokens
from refold._counting.memo import remembered
from refold._counting.token_slices import tokens
from refold.core._decoders import decoder
from refold.core.messages import (
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.models._names import USUAL_PROVIDERS, provider_key, split

__all__ = ["ExactCounter", "Family", "counter_for", "families"]

UNKNOWN = 3  # characters a token of parts this release cannot read: most are JSON


class Framing(Struct, frozen=True):
    """Tokens around the words: per message, conversation, call and result, and once where there are tools.

    A token of encrypted thinking is `seal_chars` characters of base64, after `seal_frame` that hold none.
    """

    per_message: int = 3
    per_conversation: int = 3
    per_call: int = 8
    per_result: int = 4
    per_tools: int = 12
    seal_chars: float = 4.0
    seal_frame: int = 0


class Factors(Struct, frozen=True):
    """Tokens of a model per token of the vocabulary used in its place, by sort of text."""

    prose: float = 1.0
    latin: float = 1.0
    code: float = 1.0
    json: float = 1.0
    log: float = 1.0
    base64: float = 1.0
    cjk: float = 1.0
    other: float = 1.0


class ExactCounter(Struct, frozen=True):
    """A counter by vocabulary: plain data, so it compares, pickles and prints; vocabularies load on first use.

    `exact` says that the vocabulary is the model's own; then words are exact and only framing and pictures are by
    published rules. Otherwise `factors` scale the count. `scale` is a last factor.
    """

    encoding: str = "o200k_base"
    exact: bool = True
    framing: Framing = Framing()
    factors: Factors | None = None
    images: str = "tile-85-170"
    scale: float = 1.0
    family: str = ""

    @property
    def per_conversation(self) -> int:
        """Tokens that frame the list as a whole."""
        return self.framing.per_conversation

    def text(self, text: str) -> int:
        """Count one text."""
        count = tokens(self.encoding, text)
        if self.factors is None and self.scale == 1.0:
            return count
        factor: float = getattr(self.factors, remembered("kind", text, kind_of)) if self.factors else 1.0
        return ceil(count * factor * self.scale)

    def tools(self, schema: str) -> int:
        """Count tool definitions, given as JSON text, and what tells the model how to call them."""
        return self.framing.per_tools + self.text(schema) if schema else 0

    def message(self, message: Message) -> int:
        """Count one message with everything in it: calls, arguments, reasoning, pictures."""
        return self.framing.per_message + sum(map(self._part, message.parts))

    def _sealed(self, size: int) -> int:
        """Return the tokens behind a seal: what is readable beside it may be all of the thinking, or its summary."""
        return ceil(max(0, size - self.framing.seal_frame) / self.framing.seal_chars * self.scale)

    def _part(self, part: Part) -> int:
        match part:
            case Text(text=text):
                return self.text(text)
            case ToolResult(content=content):
                return self.framing.per_result + sum(map(self._part, content))
            case ToolCall(name=name, arguments=arguments):
                return self.framing.per_call + self.text(name) + self.text(arguments)
            case Reasoning(text=text, size=size):
                return max(self.text(text), self._sealed(size))
            case Image():
                return image_tokens(part, self.images)
            case File(text=text):
                return self.text(text) if text else file_tokens(part, self.images)
            case Opaque(text=text, size=size):
                return self.text(text) if text else ceil(size / UNKNOWN)


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """Models that are counted alike: which vocabulary, framing and rule for pictures; `model` is a pattern of ids."""

    name: str
    model: str
    encoding: str
    framing: str
    images: str
    exact: bool = False
    factors: str = ""
    provider: str = ""


class _EncodingTable(Struct, frozen=True, forbid_unknown_fields=True):
    framings: dict[str, Framing]
    factors: dict[str, Factors]
    families: tuple[Family, ...]


@lru_cache(512)  # a server is asked for whatever names its clients invent
def counter_for(model: str | None, provider: str | None = None, format: str | None = None) -> ExactCounter:
    """Return the counter of a model, by its family in `encodings.json`; o200k where nothing tells one.

    A model that is not named, or that no row knows, is taken for the newest of its maker: of the provider that is named
    or stands in the path of its id, else of the one that the format of the messages belongs to. Bedrock and Vertex
    serve models of several makers and do not tell one.
    """
    name = split(model or "")
    bare = name.model
    table = _table()
    family = next((row for row in table.families if row.model and re.search(row.model, bare)), None) if bare else None
    if family is None:
        makers = filter(None, (provider_key(provider), name.provider, USUAL_PROVIDERS.get(format or "", "")))
        of_makers = (row for maker in makers for row in table.families if row.provider == maker)
        family = next(of_makers, table.families[-1])
        if bare:  # a model of this maker that no row knows: another vocabulary perhaps
            family = msgspec.structs.replace(family, exact=False)
    factors = table.factors[family.factors] if family.factors else None
    return ExactCounter(
        family.encoding, family.exact, table.framings[family.framing], factors, family.images, family=family.name
    )


def families() -> tuple[Family, ...]:
    """Return every family, in the order they are looked up."""
    return _table().families


_decode = decoder(_EncodingTable)


@cache
def _table() -> _EncodingTable:
    return _decode(files(__package__).joinpath("encodings.json").read_bytes())
