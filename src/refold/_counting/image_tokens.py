"""Token counts of images, documents and recordings by the provider's published rule; base64 is not counted as text.

Sources: OpenAI's guide on images and vision (tiles of 512 pixels, patches of 32; from GPT-5.5 on 1.2 tokens a patch, as
huggingface.co/datasets/JOHNISKING/image-token-cost measured); Anthropic's vision page (patches of 28 pixels after
scaling to an edge of 1,568 and 1,568 tokens; 2,576 and 4,784 from Opus 4.7 on); Google's page on tokens (258 a tile of
768, 1,120 a picture from Gemini 3 on, 32 tokens a second of sound, 263 of film); xAI's page on image understanding
(tiles of 448, 256 tokens each and once more); Qwen-VL's and Pixtral's cards (patches of 28, 16).
"""

from __future__ import annotations

from math import ceil, floor, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.messages import File, Image

__all__ = ["file_tokens", "image_tokens"]

# A screenshot of 1,440 x 900 stands for pictures whose header could not be read.
USUAL = (1_440, 900)
PAGE_BYTES = 50_000  # of a document whose pages are not counted
PAGE_TOKENS = {"anthropic": 2_250, "anthropic-large": 2_250, "gemini": 258, "gemini-3": 560}
BYTES_A_SECOND = {"audio/wav": 48_000, "audio/x-wav": 48_000, "audio/pcm": 48_000, "audio/flac": 60_000}
SOUND_BYTES, FILM_BYTES = 16_000, 250_000  # a second of MP3 at 128 kbit/s, of film at 2 Mbit/s
SOUND = {"gemini": 32, "gemini-3": 32}
SOUND_TOKENS, FILM_TOKENS = 10, 263


def image_tokens(image: Image, rule: str) -> int:
    """Return the tokens of a picture under a rule of `encodings.json`; one of usual size where its own is unknown."""
    width, height = image.width, image.height
    if width <= 0 or height <= 0:
        width, height = USUAL
    name, _, rest = rule.partition("-")
    numbers = [float(part) for part in rest.split("-") if part.replace(".", "").isdigit()]
    detail = image.detail.lower()
    match name:
        case "tile":
            return _tiles(width, height, detail, int(numbers[0]), int(numbers[1]))
        case "patch":
            return _patches(width, height, detail, *numbers)
        case "flat" if numbers:
            return int(numbers[0])
        case "gemini" if numbers:
            return {"low": 280, "medium": 560, "ultra_high": 2_240}.get(detail, 1_120)
        case _:
            return _BY_AREA.get(rule, _flat)(width, height)


def file_tokens(file: File, rule: str) -> int:
    """Return the tokens of a document, recording or film from its size in bytes; its text is counted elsewhere.

    A document whose size is not known, by its address or the id of an upload, has one page.
    """
    size = max(0, file.bytes)
    match file.kind:
        case "audio":
            seconds = size / BYTES_A_SECOND.get(file.media_type, SOUND_BYTES)
            return ceil(seconds * SOUND.get(rule, SOUND_TOKENS))
        case "video":
            return ceil(size / FILM_BYTES * FILM_TOKENS)
        case _:
            return max(ceil(size / PAGE_BYTES), 1) * PAGE_TOKENS.get(rule, 1_000)


def _tiles(width: int, height: int, detail: str, base: int, tile: int) -> int:
    if detail == "low":
        return base
    scale = min(1.0, 2_048 / max(width, height))
    scale = min(scale, 768 / (min(width, height)))  # the shorter side to 768, never upwards
    return base + tile * ceil(round(width * scale) / 512) * ceil(round(height * scale) / 512)


def _patches(
    width: int, height: int, detail: str, factor: float, most: float = 1_536, most_high: float | None = None
) -> int:
    """Return the tokens of patches of 32 pixels, the picture scaled down until there are `most` of them.

    Where `high` is no longer the finest detail, `most_high` is the limit under it.
    """
    limit = most_high if most_high is not None and detail == "high" else most
    across, down = width / 32, height / 32
    if ceil(across) * ceil(down) > limit:
        scale = sqrt(limit / (across * down))
        across, down = across * scale, down * scale
        fit = min(max(1, floor(across)) / across, max(1, floor(down)) / down)  # whole patches on the tighter side
        across, down = across * fit, down * fit
    return ceil(round(ceil(round(across, 6)) * ceil(round(down, 6)) * factor, 6))


def _squares_within(pixels: int, edge: int, most: int) -> Callable[[int, int], int]:
    """Return a rule that counts squares, the picture scaled down to an edge and to `most` of them."""

    def tokens(width: int, height: int) -> int:
        scale = min(1.0, edge / max(width, height))
        across, down = width * scale / pixels, height * scale / pixels
        if ceil(across) * ceil(down) <= most:
            return max(1, ceil(across) * ceil(down))
        return min(most, ceil(across * sqrt(most / (across * down))) * ceil(down * sqrt(most / (across * down))))

    return tokens


def _gemini(width: int, height: int) -> int:
    if max(width, height) <= 384:
        return 258
    unit = min(768, max(256, min(width, height) * 2 // 3))
    return 258 * ceil(width / unit) * ceil(height / unit)


def _grok(width: int, height: int) -> int:
    return 256 * (min(6, ceil(width / 448) * ceil(height / 448)) + 1)


def _squares(pixels: int, most: int) -> Callable[[int, int], int]:
    return lambda width, height: min(most, ceil(width / pixels) * ceil(height / pixels))


_flat = _squares_within(28, 1_568, 1_568)
_BY_AREA: dict[str, Callable[[int, int], int]] = {
    "anthropic": _flat,
    "anthropic-large": _squares_within(28, 2_576, 4_784),
    "gemini": _gemini,
    "grok": _grok,
    "qwen": _squares(28, 16_384),
    "pixtral": _squares(16, 4_096),
}
