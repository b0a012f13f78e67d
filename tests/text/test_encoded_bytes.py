import base64
import json
import random

import pytest

from refold._counting.token_slices import tokens
from refold._text.encoded_bytes import dense_chars
from refold.core.counting import CharCounter

BYTES = random.Random(7).randbytes(12_000)
BASE64 = base64.b64encode(BYTES).decode()
DENSE = {
    "base64": BASE64,
    "data URL": f"data:image/png;base64,{BASE64}",
    "base64 for addresses": base64.urlsafe_b64encode(BYTES).decode(),
    "base64 of JSON": base64.b64encode(
        json.dumps([{"row": n, "name": "a word"} for n in range(900)]).encode()
    ).decode(),
    "base64 in lines": "\n".join(BASE64[at : at + 76] for at in range(0, len(BASE64), 76)),
    "base64 in JSON": json.dumps({"image": {"format": "png", "data": BASE64}}),
    "hex": BYTES.hex(),
    "hex in pairs": BYTES.hex(" "),
    "escapes": "".join(f"\\x{byte:02x}" for byte in BYTES),
    "percent": "".join(f"%{byte:02X}" for byte in BYTES),
    "a buffer": json.dumps({"type": "Buffer", "data": list(BYTES)}),
    "a buffer in lines": json.dumps(list(BYTES), indent=1),
}
WORDS = {
    "prose": "The cache was cold, so the first call took longer than all that came after it. " * 60,
    "paths": "\n".join(
        f"/usr/local/lib/python3.11/site-packages/package_name/submodule/module_{n}.py" for n in range(99)
    ),
    "addresses": "https://example.org/path/to/a/resource?query=words&session=abcdef&source=newsletter\n" * 60,
    "code": "def total(values: list[int]) -> int:\n    return sum(value for value in values if value > 0)\n" * 60,
    "minified code": "function(a,b){return a.concat(b).map(x=>x*2)};var longName=another(thingOne,thingTwo);" * 60,
    "lines of dashes": ("-" * 80 + "\n" + "=" * 80 + "\n") * 60,
    "a log": "2026-11-28 15:16:55.123 INFO [main] shop.Cart - request 12345 took 23 ms\n" * 60,
    "long names": "this_is_a_very_long_name_that_goes_on_and_on_for_more_than_sixty_characters_in_all\n" * 60,
    "Chinese": "缓存是冷的,所以第一次调用花费的时间比后来的都长。" * 60,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in DENSE.items()])
def test_encoded_bytes_cost_about_what_a_tokenizer_gives(text):
    exact = tokens("o200k_base", text)
    assert 0.7 * exact <= CharCounter(4).text(text) <= 1.45 * exact


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in WORDS.items()])
def test_words_code_and_logs_cost_what_they_did(text):
    assert dense_chars(text) == 0
    assert CharCounter(4).text(text) == -(-len(text) // 4)


def test_only_the_bytes_inside_words_are_dear():
    words = "Look at this picture and say what it shows, please. " * 40
    text = f"{words}\n{BASE64}\n{words}"
    assert len(BASE64) - 80 <= dense_chars(text) <= len(BASE64)


def test_a_counter_that_is_dearer_by_itself_stays_as_it_is():
    assert CharCounter(1).text(BASE64) == len(BASE64)
