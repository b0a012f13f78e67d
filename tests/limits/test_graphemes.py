from hypothesis import given
from hypothesis import strategies as st

from refold.limits.graphemes import whole_after, whole_before

CHARS = ["a", "é", "e\u0301", "漢", "😀", "👍🏽", "👨‍👩‍👧", "🇩🇪", "\r\n", "❤️"]


@given(st.lists(st.sampled_from(CHARS), max_size=30), st.integers(0, 90))
def test_a_cut_falls_between_whole_characters(chars: list[str], at: int) -> None:
    text = "".join(chars)
    places = {sum(map(len, chars[:count])) for count in range(len(chars) + 1)}
    before, after = whole_before(text, at), whole_after(text, at)
    assert before in places
    assert after in places
    assert before <= min(at, len(text)) <= after or after == len(text)


def test_noise_without_an_end_is_cut_anyway() -> None:
    noise = "a" + "\u0301" * 10_000
    assert whole_before(noise, 5_000) == 5_000
    assert whole_after(noise, 5_000) == 5_000
