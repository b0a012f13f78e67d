"""Answers that come compressed, unpacked piece by piece to be read beside their way to the client."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READABLE", "Unreadable", "unpacker"]

READABLE = (b"gzip", b"deflate")  # what upstream is asked for: the standard library unpacks it
MOST = 64 * 1024 * 1024  # bytes that one piece becomes at most
BROTLI = ("brotli", "brotlicffi")
ZSTD = ("compression.zstd", "backports.zstd", "pyzstd")


class Unreadable(Exception):  # the answer goes to the client as it is
    """A piece of an answer that cannot be unpacked."""


def unpacker(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a function that unpacks the next piece of an answer; None for an encoding that nothing here reads.

    What upstream sends without being asked for it (br, zstd) is read where a package for it is installed.

    Raises (the function): Unreadable for a piece that is damaged.
    """
    match encoding.lower().strip():
        case "" | "identity":
            return lambda piece: piece
        case "gzip" | "x-gzip":
            return _guarded(_inflated(zlib.decompressobj(31)))
        case "deflate":
            return _guarded(_Deflate())
        case "br":
            package = _first(BROTLI)
            return None if package is None else _guarded(_brotli(package))
        case "zstd":
            package = _first(ZSTD)
            return None if package is None else _guarded(package.ZstdDecompressor().decompress)
        case _:
            return None


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


def _inflated(machine: Any) -> Callable[[bytes], bytes]:
    return lambda piece: machine.decompress(piece, MOST)


def _brotli(package: Any) -> Callable[[bytes], bytes]:
    machine = package.Decompressor()
    process: Callable[[bytes], bytes] = getattr(machine, "process", None) or machine.decompress
    return process


def _guarded(unpack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def guarded(piece: bytes) -> bytes:
        try:
            return unpack(piece)
        except Exception as error:  # every package has its own
            raise Unreadable(type(error).__name__) from error

    return guarded


def _first(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None
