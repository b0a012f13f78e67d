"""Decoders of JSON that are made when they are first used, by one thread at a time.

msgspec 0.22 ends the process if two threads are the first to read a type at once, as two requests of a gateway that was
just started. To make all decoders at import would take 15 ms of every program's start.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["decoder"]

Value = TypeVar("Value")

_LOCK = Lock()


def decoder(type: type[Value]) -> Callable[[bytes | str], Value]:
    """Return a function that reads a value of a type from JSON; it raises what `msgspec.json.decode` does."""
    decoders: list[Callable[[bytes | str], Any]] = []

    def decode(data: bytes | str) -> Value:
        if not decoders:
            with _LOCK:
                if not decoders:
                    decoders.append(msgspec.json.Decoder(type).decode)
        value: Value = decoders[0](data)
        return value

    return decode
