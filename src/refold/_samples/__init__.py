"""Sample conversations for `refold demo`: a long coding session, a small chat, and a task over many e-mails.

`python -m tools.sample_sessions` writes the files from a seed.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

__all__ = ["SampleConversation", "conversations"]

NAMES = ("long-session", "small", "mail")


class SampleConversation(Struct, frozen=True, omit_defaults=True):
    """A conversation with its format, and system prompt and tools where they stand apart."""

    name: str
    title: str
    format: str
    messages: list[dict[str, Any]]
    system: Any = None
    tools: list[dict[str, Any]] | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The conversation as a request body."""
        apart = {"system": self.system} if self.system is not None else {}
        return apart | ({"tools": self.tools} if self.tools else {}) | {"messages": self.messages}


_decode = msgspec.json.Decoder(SampleConversation).decode


@cache
def conversations() -> tuple[SampleConversation, ...]:
    """Return all sample conversations: long-session, small, mail. They are shared: do not change them."""
    return tuple(_read(name) for name in NAMES)


def _read(name: str) -> SampleConversation:
    packed = files("refold._samples").joinpath(f"{name}.json.gz").read_bytes()
    return _decode(gzip.decompress(packed))
