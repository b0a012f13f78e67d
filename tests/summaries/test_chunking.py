import asyncio

from refold._condense.transcript_text import serialize
from refold.core.needs import Provided, Refused, SummaryNeed
from refold.handlers import Handlers
from refold.testing import talk

MESSAGES = talk(*(f"u: fact {number} is {number * 7919} " + "and so on " * 40 for number in range(16))).messages
NEED = SummaryNeed(MESSAGES, serialize(MESSAGES), previous="earlier")


class Small:
    """A summarizer that takes a limited number of characters and keeps the facts."""

    def __init__(self, limit):
        self.limit = limit
        self.asked = []

    def __call__(self, need):
        self.asked.append(need)
        if len(need.text) > self.limit:
            raise RuntimeError(f"prompt is too long: {len(need.text)} tokens > {self.limit} maximum")
        return " ".join(word for word in need.text.split() if word.isdigit()) or "no figures"


def test_what_is_too_large_is_summarized_in_parts_and_the_parts_are_merged():
    summarizer = Small(3_000)
    answer = Handlers(summarize=summarizer).answer(NEED)
    assert isinstance(answer, Provided)
    assert all(str(number * 7919) in answer.text for number in range(16))
    assert summarizer.asked[-1].messages == ()


def test_every_message_was_in_a_request_that_was_answered():
    summarizer = Small(3_000)
    Handlers(summarize=summarizer).answer(NEED)
    told = [message.id for need in summarizer.asked if len(need.text) <= 3_000 for message in need.messages]
    assert told == [message.id for message in MESSAGES]


def test_only_the_first_part_carries_the_earlier_summary():
    summarizer = Small(3_000)
    Handlers(summarize=summarizer).answer(NEED)
    answered = [need for need in summarizer.asked if len(need.text) <= 3_000]
    assert [need.previous for need in answered] == ["earlier"] + [None] * (len(answered) - 1)


def test_one_message_larger_than_the_window_is_cut_at_a_line():
    messages = talk("u: HEAD\n" + "a line\n" * 2_000 + "TAIL").messages
    summarizer = Small(5_000)
    answer = Handlers(summarize=summarizer).answer(SummaryNeed(messages, serialize(messages)))
    assert isinstance(answer, Provided | Refused)
    assert any("HEAD" in need.text for need in summarizer.asked if len(need.text) <= 5_000)
    assert any("TAIL" in need.text for need in summarizer.asked if len(need.text) <= 5_000)


def test_a_window_that_takes_nothing_ends_in_a_refusal():
    answer = Handlers(summarize=Small(10)).answer(NEED)
    assert isinstance(answer, Refused)
    assert answer.kind == "overflow"


def test_another_failure_in_a_part_refuses_the_whole():
    calls = []

    def failing(need):
        calls.append(need)
        if len(calls) == 1:
            raise RuntimeError("prompt is too long: 9000 tokens > 4000 maximum")
        raise RuntimeError("connection reset")

    answer = Handlers(summarize=failing).answer(NEED)
    assert answer == Refused("RuntimeError: connection reset")
    assert len(calls) == 2


def test_the_asynchronous_way_asks_for_the_same_parts():
    plain, waiting = Small(3_000), Small(3_000)

    async def summarize(need):
        return waiting(need)

    sync = Handlers(summarize=plain).answer(NEED)
    assert asyncio.run(Handlers(summarize=summarize).answer_async(NEED)) == sync
    assert [need.text for need in waiting.asked] == [need.text for need in plain.asked]
