"""The append-only list of all messages, with chained content ids.

An id is a hash of the message and of its parent's id: the same conversation has the same ids
everywhere, a shared prefix is a shared chain, and a client that sends everything again is recognised.
"""

from __future__ import annotations

import json
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from refold.core.messages import Message, MessageId

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ROOT", "Transcript", "canonical", "chain", "turns"]

ROOT = MessageId("b2:root")
_encode = msgspec.json.Encoder(order="sorted").encode


class Transcript(Struct, frozen=True, dict=True):
    """A conversation as it was said; only ever extended, never changed."""

    messages: tuple[Message, ...] = ()

    @property
    def tip(self) -> MessageId:
        """The id of the newest message, or the root's."""
        return self.messages[-1].id if self.messages else ROOT

    @cached_property
    def index(self) -> dict[MessageId, int]:
        """Where each message stands."""
        return {message.id: position for position, message in enumerate(self.messages)}

    def __len__(self) -> int:
        return len(self.messages)


def canonical(native: object, volatile: frozenset[str] = frozenset()) -> bytes:
    """Return the bytes that identify a native message: sorted keys, without the volatile ones.

    Volatile keys move between calls without changing what was said (`cache_control`).
    """
    try:
        encoded = _encode(native)
    except (UnicodeEncodeError, TypeError, ValueError):  # lone surrogates; numbers beyond 64 bits
        encoded = json.dumps(native, sort_keys=True, default=repr).encode("utf-8", "backslashreplace")
    if any(f'"{key}"'.encode() in encoded for key in volatile):
        return canonical(_without(native, volatile))
    return encoded


def chain(parent: MessageId, identity: bytes) -> MessageId:
    """Return the id of a message with this canonical form after that parent."""
    return MessageId("b2:" + blake2b(identity, digest_size=12, key=parent.encode()).hexdigest())


def turns(messages: tuple[Message, ...]) -> Iterator[range]:
    """Yield each turn as positions: a user message and all until the next; what precedes the first is none."""
    starts = [position for position, message in enumerate(messages) if message.role == "user" and message.note is None]
    yield from (range(start, stop) for start, stop in zip(starts, [*starts[1:], len(messages)], strict=False))


def _without(native: object, volatile: frozenset[str]) -> Any:
    match native:
        case dict():
            return {key: _without(value, volatile) for key, value in native.items() if key not in volatile}
        case list() | tuple():
            return [_without(value, volatile) for value in native]
        case _:
            return native
