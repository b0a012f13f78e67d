import pytest

from refold._counting.image_tokens import file_tokens, image_tokens
from refold.core.messages import File, Image

CASES = [
    ("tile-85-170", 1_024, 1_024, "high", 765),
    ("tile-85-170", 2_048, 4_096, "high", 1_105),
    ("tile-85-170", 4_096, 8_192, "low", 85),
    ("tile-85-170", 400, 300, "", 255),
    ("tile-2833-5667", 1_024, 1_024, "auto", 25_501),
    ("patch-1.62", 1_024, 1_024, "", 1_659),
    ("patch-1", 1_800, 2_400, "", 1_452),
    ("patch-2.46", 8_000, 8_000, "", 3_742),
    ("patch-1.2-10000-2500", 4_032, 3_024, "auto", 11_868),
    ("patch-1.2-10000-2500", 4_032, 3_024, "high", 2_942),
    ("anthropic", 1_092, 1_092, "", 1_521),
    ("anthropic", 200, 200, "", 64),
    ("anthropic", 8_000, 8_000, "", 1_568),
    ("anthropic", 3_136, 1_000, "", 1_008),
    ("anthropic-large", 8_000, 8_000, "", 4_784),
    ("gemini", 384, 384, "", 258),
    ("gemini", 960, 540, "", 1_548),
    ("gemini-3", 960, 540, "", 1_120),
    ("gemini-3", 960, 540, "low", 280),
    ("gemini-3", 960, 540, "ultra_high", 2_240),
    ("grok", 448, 448, "", 512),
    ("grok", 9_000, 9_000, "", 1_792),
    ("qwen", 280, 280, "", 100),
    ("flat-256", 9_000, 9_000, "", 256),
]


@pytest.mark.parametrize(("rule", "width", "height", "detail", "tokens"), CASES)
def test_a_picture_costs_what_its_provider_publishes(
    rule: str, width: int, height: int, detail: str, tokens: int
) -> None:
    assert image_tokens(Image(width=width, height=height, detail=detail), rule) == tokens


@pytest.mark.parametrize("rule", sorted({rule for rule, *_ in CASES} | {"flat", "pixtral"}))
def test_a_picture_of_unknown_size_costs_that_of_a_screenshot(rule: str) -> None:
    assert image_tokens(Image(bytes=40_000), rule) == image_tokens(Image(width=1_440, height=900), rule)
    assert image_tokens(Image(), rule) >= 200


def test_files_cost_by_page_or_second() -> None:
    assert file_tokens(File("document", "application/pdf", 120_000), "anthropic") == 3 * 2_250
    assert file_tokens(File("document", "application/pdf", 120_000), "gemini") == 3 * 258
    assert file_tokens(File("audio", "audio/wav", 480_000), "gemini") == 320
    assert file_tokens(File("audio", "audio/mp3", 160_000), "tile-85-170") == 100
    assert file_tokens(File("video", "video/mp4", 2_500_000), "gemini") == 2_630
    assert file_tokens(File(), "flat") == 1_000  # one page where the size is unknown
