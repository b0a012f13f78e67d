"""Reads the width and height of an image from its header; the image itself is not decoded."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["base64_image_size", "image_size"]

Reader: TypeAlias = "Callable[[int, int], bytes]"  # offset, length -> at most that many bytes
Size: TypeAlias = "tuple[int, int]"

MAX_SEGMENTS = 256  # a JPEG with more segments before its frame header is not one we can vouch for
SAMPLE = 512  # how much of a base64 text is looked at for line breaks
MAX_UNWRAPPED = 262_144  # how much of a base64 text with line breaks is joined


def image_size(data: bytes) -> Size | None:
    """Return width and height of a PNG, JPEG, GIF or WebP; None for anything else or a damaged header."""
    return _size(lambda at, length: data[at : at + length])


def base64_image_size(text: str) -> Size | None:
    """Return width and height of a picture in base64, with or without a `data:` prefix; None when it cannot be told."""
    start = text.find(",", 0, SAMPLE) + 1 if text.startswith("data:") else 0
    if any(mark in text[start : start + SAMPLE] for mark in "\r\n \t"):
        text, start = "".join(text[start : start + MAX_UNWRAPPED].split()), 0

    def read(at: int, length: int) -> bytes:
        first, skip = divmod(at, 3)
        quads = text[start + first * 4 : start + ((at + length + 2) // 3) * 4]
        if "-" in quads or "_" in quads:
            quads = quads.replace("-", "+").replace("_", "/")
        unpadded = quads.rstrip("=")
        return binascii.a2b_base64(unpadded + "=" * (-len(unpadded) % 4))[skip : skip + length]

    try:
        return _size(read)
    except ValueError:  # binascii.Error, and characters outside ASCII
        return None


def _size(read: Reader) -> Size | None:
    head = read(0, 32)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR" and len(head) >= 24:
        size = _big(head[16:20]), _big(head[20:24])
    elif head[:6] in {b"GIF87a", b"GIF89a"} and len(head) >= 10:
        size = _little(head[6:8]), _little(head[8:10])
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        size = _webp(head)
    elif head.startswith(b"\xff\xd8"):
        size = _jpeg(read)
    else:
        return None
    return size if size[0] > 0 and size[1] > 0 else None


def _webp(head: bytes) -> Size:
    match head[12:16]:
        case b"VP8X":  # canvas size less one, 24 bits each
            return (_little(head[24:27]) + 1, _little(head[27:30]) + 1) if len(head) >= 30 else (0, 0)
        case b"VP8L" if head[20:21] == b"\x2f" and len(head) >= 25:  # two sizes less one, 14 bits each
            bits = _little(head[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if head[23:26] == b"\x9d\x01\x2a" and len(head) >= 30:  # the upper two bits of each are a scale
            return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
        case _:
            return 0, 0


def _jpeg(read: Reader) -> Size:
    at = 2
    for _ in range(MAX_SEGMENTS):
        segment = read(at, 9)
        if len(segment) < 4 or segment[0] != 0xFF:
            break
        marker = segment[1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:  # a frame header: height before width
            return (_big(segment[7:9]), _big(segment[5:7])) if len(segment) == 9 else (0, 0)
        elif marker == 0xDA:  # the picture itself begins without a frame header
            break
        else:
            at += 2 + _big(segment[2:4])
    return 0, 0


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
