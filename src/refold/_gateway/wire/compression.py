"""Decompresses bodies: those of requests as a whole, those of responses piece by piece."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READABLE", "TooLong", "Unreadable", "decompressor", "whole"]

MAX_PIECE = 64 * 1024 * 1024  # bytes of one decompressed piece
STEP = 1024 * 1024  # bytes that are decompressed in one call, after which other threads may run
FREE = 16 * 1024 * 1024  # bytes to which any body may grow; text of so many is more than any model reads
MOST_TIMES = 20  # times its compressed size to which a longer one may; text grows tenfold, images hardly
ZSTD = ("compression.zstd", "backports.zstd")  # the first one is part of Python from 3.14 on


class Unreadable(Exception):  # the response is relayed unread
    """A body that cannot be decompressed."""


class TooLong(Exception):
    """A decompressed body that is longer than a limit, of so many bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class Decompressor(Protocol):
    """A decompressor of one body, with the interface of zlib's."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def decompressor(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a function that decompresses the next piece of a response; None for an unknown encoding.

    Raises (the function): Unreadable for a piece that is damaged.
    """
    name = encoding.lower().strip()
    if name in ("", "identity"):
        return lambda piece: piece
    decompress: Callable[[bytes], bytes]
    if name == "deflate":
        decompress = _Deflate()
    elif (codec := _decompressor(name)) is not None:
        decompress = _Frames(name, codec) if name == "zstd" else lambda piece: codec.decompress(piece, MAX_PIECE)
    else:
        return None

    def guarded(piece: bytes) -> bytes:
        try:
            return decompress(piece)
        except Exception as error:  # each package raises its own
            raise Unreadable(type(error).__name__) from error

    return guarded


def whole(compressed: bytes, encoding: str, limit: int) -> bytes:
    """Return a whole body, decompressed.

    Nothing is decompressed for long in vain: not what begins with a megabyte of blanks, nor what grows out of all
    proportion.

    Raises:
        Unreadable: it is damaged or no JSON, or its encoding is unknown.
        TooLong: it becomes longer than the limit, or than any body that was compressed to this.
    """
    name = encoding.lower().strip()
    if name in ("", "identity"):
        return compressed
    codec = _Zlib(47) if name == "deflate" else _decompressor(name)
    if codec is None:
        raise Unreadable(name)
    pieces, size, is_blank = list[bytes](), 0, True
    limit = min(limit, max(FREE, MOST_TIMES * len(compressed)))
    for start in range(0, len(compressed), STEP):
        data = compressed[start : start + STEP]
        while data or not codec.eof:
            if codec.eof:
                raise Unreadable("followed by something else")
            try:
                piece = codec.decompress(data, STEP)
            except Exception as error:
                raise Unreadable(type(error).__name__) from error
            pieces.append(piece)
            size += len(piece)
            is_blank = is_blank and not piece.strip()
            if size > limit:
                raise TooLong(limit)
            if is_blank and size > STEP:
                raise Unreadable("blank")
            if not piece and codec.needs_input:  # Brotli's wants none as soon as it has begun on its last piece
                break
            data = b""
    if not codec.eof or codec.unused_data:
        raise Unreadable("cut, or followed by something else")
    return b"".join(pieces)


class _Deflate:
    """Decompresses what servers call deflate: with zlib's header, as the standard says, or without."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj()
        self._begun: bytes | None = b""

    def __call__(self, piece: bytes) -> bytes:
        if self._begun is not None:
            self._begun += piece
            try:
                out = self._decompressor.decompress(piece, MAX_PIECE)
            except zlib.error:
                self._decompressor, piece, self._begun = zlib.decompressobj(-zlib.MAX_WBITS), self._begun, None
                return self._decompressor.decompress(piece, MAX_PIECE)
            if len(self._begun) >= 2:
                self._begun = None
            return out
        return self._decompressor.decompress(piece, MAX_PIECE)


class _Frames:
    """Decompresses consecutive frames: some servers end one with everything they send."""

    def __init__(self, name: str, decompressor: Decompressor) -> None:
        self._name = name
        self._decompressor: Decompressor | None = decompressor

    def __call__(self, piece: bytes) -> bytes:
        out = b""
        while piece:
            decompressor = self._decompressor or _decompressor(self._name)
            assert decompressor is not None
            out += decompressor.decompress(piece, MAX_PIECE - len(out))
            piece = decompressor.unused_data
            self._decompressor = None if decompressor.eof else decompressor
        return out


class _Zlib:
    """A decompressor of zlib's that takes no more input where there is output left, like those of newer packages."""

    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        out = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


class _Brotli:
    """Google's brotli with the interface of zlib's decompressors."""

    unused_data = b""

    def __init__(self, package: Any) -> None:
        self._inner = package.Decompressor()

    @property
    def eof(self) -> bool:
        done: bool = self._inner.is_finished()
        return done

    @property
    def needs_input(self) -> bool:
        empty: bool = self._inner.can_accept_more_data()
        return empty

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        out: bytes = self._inner.process(data, output_buffer_limit=max_length)
        return out


def _decompressor(name: str) -> Decompressor | None:
    match name:
        case "gzip" | "x-gzip":
            return _Zlib(31)
        case "br" if (package := _first(("brotli",))) is not None:
            return _Brotli(package)
        case "zstd" if (package := _first(ZSTD)) is not None:
            zstd: Decompressor = package.ZstdDecompressor()
            return zstd
        case _:
            return None


def _first(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


# what upstream may use, where the client accepts it
READABLE = ("gzip", "deflate", *(name for name in ("br", "zstd") if _decompressor(name) is not None))
