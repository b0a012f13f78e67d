"""An error about one message names its position in the list that was given, counted from 0."""

import pytest

import refold
from refold.errors import BadMessages, UnknownFormat
from refold.sessions import MemoryStore, Session

SAID = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "gone"}] * 20


@pytest.mark.parametrize("odd", [5, None, "words", [], {"parts": 1, "role": 3}, {"key": "value"}])
def test_what_tells_no_format_is_named_by_its_place(odd):
    with pytest.raises(UnknownFormat, match=r"told from message 2, an entry .*: name one of"):
        refold.count([*SAID[:2], odd])


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"])
def test_what_is_no_message_of_a_named_format_is_named_by_its_place(format):
    with pytest.raises(BadMessages, match=f"message 3 is an entry of type int, which {format} does not have"):
        refold.check([*SAID[:3], 7], format=format, window=1_000)


def test_the_place_is_that_of_the_list_given_also_under_plans_in_force():
    plans = refold.compact(SAID, budget=150, force=True).plans
    with pytest.raises(BadMessages, match="message 40 is"):
        refold.compact([*SAID, 7], format="openai-chat", budget=150, plans=plans)


def test_a_session_names_the_place_in_what_is_appended_and_keeps_nothing():
    session = Session(MemoryStore(), window=10_000)
    session.append(SAID)
    with pytest.raises(BadMessages, match="message 1 is"):
        session.append([SAID[0], {"key": "value"}])
    assert session.messages == SAID
