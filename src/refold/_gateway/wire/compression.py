"""Content encodings: request bodies are decompressed whole, responses piece by piece."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READABLE", "TooLong", "Unreadable", "unpacker", "whole"]

MOST = 64 * 1024 * 1024  # bytes that one piece becomes at most
ZSTD = ("compression.zstd", "backports.zstd")  # the first one comes with Python 3.14


class Unreadable(Exception):  # the answer goes to the client as it is
    """A piece of an answer that cannot be unpacked."""


class TooLong(Exception):
    """What was packed is longer than the limit."""


class Machine(Protocol):
    """Unpacks one body; zlib's objects are such."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpacker(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a function that unpacks the next piece of an answer; None for an encoding that nothing here reads.

    Raises (the function): Unreadable for a piece that is damaged.
    """
    name = encoding.lower().strip()
    if name in ("", "identity"):
        return lambda piece: piece
    unpack: Callable[[bytes], bytes]
    if name == "deflate":
        unpack = _Deflate()
    elif (machine := _machine(name)) is not None:
        unpack = _Frames(name, machine) if name == "zstd" else lambda piece: machine.decompress(piece, MOST)
    else:
        return None

    def guarded(piece: bytes) -> bytes:
        try:
            return unpack(piece)
        except Exception as error:  # every package has its own
            raise Unreadable(type(error).__name__) from error

    return guarded


def whole(packed: bytes, encoding: str, limit: int) -> bytes:
    """Return a whole body as it was before it was compressed.

    Raises:
        Unreadable: it is damaged, or of an encoding that nothing here reads.
        TooLong: it becomes longer than the limit.
    """
    name = encoding.lower().strip()
    if name in ("", "identity"):
        return packed
    machine = zlib.decompressobj(47) if name == "deflate" else _machine(name)
    if machine is None:
        raise Unreadable(name)
    try:
        plain = machine.decompress(packed, limit + 1)
    except Exception as error:
        raise Unreadable(type(error).__name__) from error
    if len(plain) > limit:
        raise TooLong
    if not machine.eof or machine.unused_data:
        raise Unreadable("cut, or followed by something else")
    return plain


class _Deflate:
    """Takes what servers call deflate: with zlib's head, as it should be, or bare."""

    def __init__(self) -> None:
        self._machine = zlib.decompressobj()
        self._begun: bytes | None = b""

    def __call__(self, piece: bytes) -> bytes:
        if self._begun is not None:
            self._begun += piece
            try:
                out = self._machine.decompress(piece, MOST)
            except zlib.error:
                self._machine, piece, self._begun = zlib.decompressobj(-zlib.MAX_WBITS), self._begun, None
                return self._machine.decompress(piece, MOST)
            if len(self._begun) >= 2:
                self._begun = None
            return out
        return self._machine.decompress(piece, MOST)


class _Frames:
    """Takes frames that follow one another: some servers end one whenever they send something."""

    def __init__(self, name: str, machine: Machine) -> None:
        self._name = name
        self._machine: Machine | None = machine

    def __call__(self, piece: bytes) -> bytes:
        out = b""
        while piece:
            machine = self._machine or _machine(self._name)
            assert machine is not None
            out += machine.decompress(piece, MOST - len(out))
            piece = machine.unused_data
            self._machine = None if machine.eof else machine
        return out


class _Brotli:
    """Google's brotli behind the names of the others."""

    unused_data = b""

    def __init__(self, package: Any) -> None:
        self._inner = package.Decompressor()

    @property
    def eof(self) -> bool:
        done: bool = self._inner.is_finished()
        return done

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        out: bytes = self._inner.process(data, output_buffer_limit=max_length)
        return out


def _machine(name: str) -> Machine | None:
    match name:
        case "gzip" | "x-gzip":
            return zlib.decompressobj(31)
        case "br" if (package := _first(("brotli",))) is not None:
            return _Brotli(package)
        case "zstd" if (package := _first(ZSTD)) is not None:
            machine: Machine = package.ZstdDecompressor()
            return machine
        case _:
            return None


def _first(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


# what upstream is asked for, where the client takes it
READABLE = ("gzip", "deflate", *(name for name in ("br", "zstd") if _machine(name) is not None))
