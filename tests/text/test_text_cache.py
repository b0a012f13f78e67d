"""A cache of what texts give holds few long ones."""

import gc
import tracemalloc
import weakref

import pytest

import refold
from refold._text.text_cache import FEW, LONG, LONGEST_WORD, MANY, SHORT, text_cache, word_cache, words_cache


class Found:
    """What can be seen to leave."""


@pytest.fixture
def cache():
    asked = []

    @text_cache
    def found(text, more=0):
        asked.append((len(text), more))
        return Found()

    return found, asked


def test_a_text_is_looked_at_once(cache):
    found, asked = cache
    assert found("a" * 50) is found("a" * 50)
    assert found("a" * 50, 1) is not found("a" * 50)
    assert asked == [(50, 0), (50, 1)]


def test_long_texts_leave_with_what_was_found(cache):
    found, _ = cache
    first = weakref.ref(found("b" * (LONG + 1)))
    for number in range(FEW):
        assert first() is not None
        found(f"{number}" * (LONG + 1))
    assert first() is None


@pytest.mark.parametrize("size", [SHORT, LONG, LONG + 1])
def test_a_text_that_is_asked_for_beside_many_short_ones_stays(cache, size):
    found, asked = cache
    for number in range(MANY // 2):
        found("c" * size)
        found(f"short {number}")
    assert asked.count((size, 0)) == 1


@pytest.fixture
def words_seen():
    return []


def test_a_word_is_looked_at_once_and_a_very_long_one_is_not_kept(words_seen):
    @word_cache(8)
    def found(word, lead=""):
        words_seen.append(word)
        return Found()

    assert found("a", "-") is found("a", "-")
    assert found("a", "-") is not found("a", "+")
    long = weakref.ref(found("b" * (LONGEST_WORD + 1)))
    assert long() is None


def test_the_words_of_a_text_are_each_looked_at_once_and_very_long_ones_are_not_kept(words_seen):
    @words_cache(8)
    def found(word):
        words_seen.append(len(word))
        return Found()

    long = "c" * (LONGEST_WORD + 1)
    one, other = found("a b", ["a", "b"])
    again, gone = found(f"a {long}", ["a", long])
    assert again is one is not other
    assert words_seen == [1, 1, LONGEST_WORD + 1]
    gone = weakref.ref(gone)
    assert gone() is None


def planned(outputs, size):
    """Plan a compaction of outputs that are one word each, as encoded data is."""
    messages = [{"role": "user", "content": "Read them."}]
    for number in range(outputs):
        read = {"name": "read", "arguments": f'{{"path": "{number}.bin"}}'}
        messages += [
            {"role": "assistant", "tool_calls": [{"id": f"call_{number}", "type": "function", "function": read}]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number:04}Q7f" * (size // 7)},
        ]
    refold.plan(messages, format="openai-chat", window=8_000, force=True)


def test_long_words_do_not_stay_in_memory_after_a_compaction():
    planned(4, 70)  # what a first compaction loads stays
    gc.collect()
    tracemalloc.start()
    planned(20, 20_000)
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < 1_000_000
