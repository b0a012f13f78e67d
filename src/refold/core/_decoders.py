"""Reads values of a type, which one thread at a time is the first to do.

msgspec 0.22 ends the process if two threads are the first to read a type at once, as two requests of a gateway that was
just started. To make all decoders at import would take 15 ms of every program's start.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["convert", "decoder"]

Value = TypeVar("Value")

_LOCK = Lock()


def convert(value: object, type: Any) -> Any:
    """Return a value of a type from plain ones; it raises what `msgspec.convert` does."""
    with _LOCK:
        return msgspec.convert(value, type)


def decoder(type: type[Value], *, strict: bool = True) -> Callable[[bytes | str], Value]:
    """Return a function that reads a value of a type from JSON; it raises what `msgspec.json.decode` does."""
    decoders: list[Callable[[bytes | str], Any]] = []

    def decode(data: bytes | str) -> Value:
        if not decoders:
            with _LOCK:
                if not decoders:
                    decoders.append(msgspec.json.Decoder(type, strict=strict).decode)
        value: Value = decoders[0](data)
        return value

    return decode
