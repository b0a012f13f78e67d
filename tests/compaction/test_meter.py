import copy

from msgspec.structs import replace

import refold
from refold._counting import counter_for
from tests.test_api import MESSAGES, SYSTEM, TOOL


class Counting:
    """A counter that remembers what it was asked to count."""

    def __init__(self):
        self.inner = counter_for("gpt-4o")
        self.messages = []
        self.per_conversation = self.inner.per_conversation

    @property
    def counted(self):
        return len(self.messages)

    def text(self, text):
        return self.inner.text(text)

    def tools(self, schema):
        return self.inner.tools(schema)

    def message(self, message):
        self.messages.append(message)
        return self.inner.message(message)


def meter(**options):
    counter = Counting()
    return refold.Meter(window=50_000, counter=counter, **options), counter


def same(check, messages, **options):
    whole = refold.check(messages, window=50_000, counter=counter_for("gpt-4o"), **options)
    return (check.tokens, check.limit, check.due) == (whole.tokens, whole.limit, whole.due)


def test_a_growing_list_is_measured_as_a_whole_one_is_and_counted_once():
    measured, counter = meter(tools=[TOOL])
    for end in range(1, len(MESSAGES) + 1):
        assert same(measured.check(MESSAGES[:end]), MESSAGES[:end], tools=[TOOL])
    assert counter.counted == len(MESSAGES)


def test_a_replaced_message_is_noticed_and_only_what_follows_is_counted_again():
    measured, counter = meter()
    measured.check(MESSAGES)
    changed = [*MESSAGES[:-1], {"role": "user", "content": "Another question altogether?"}]
    before = counter.counted
    assert same(measured.check(changed), changed)
    assert counter.counted == before + 1


def test_a_shorter_list_is_measured_right():
    measured, _ = meter()
    measured.check(MESSAGES)
    assert same(measured.check(MESSAGES[:5]), MESSAGES[:5])
    assert same(measured.check(MESSAGES), MESSAGES)


def test_another_conversation_is_measured_right():
    measured, _ = meter()
    measured.check(MESSAGES)
    other = [SYSTEM, {"role": "user", "content": "Something else"}]
    assert same(measured.check(other), other)


def test_equal_messages_that_are_other_objects_cost_nothing_new():
    measured, counter = meter()
    measured.check(MESSAGES)
    before = counter.counted
    measured.check(copy.deepcopy(MESSAGES))
    assert counter.counted == before


def test_a_usage_report_is_heeded():
    measured, _ = meter()
    usage = {"prompt_tokens": 30_000, "completion_tokens": 10}
    assert same(measured.check(MESSAGES, usage=usage), MESSAGES, usage=usage)


def test_a_compaction_with_a_meter_is_the_compaction_without_and_counts_nothing_old_again():
    measured, counter = meter()
    measured.check(MESSAGES)
    options = {"window": 50_000, "goal": 2_000, "force": True}
    before = counter.counted
    with_meter = refold.compact(MESSAGES, meter=measured, **options)
    fresh = counter.messages[before:]
    without = refold.compact(MESSAGES, counter=Counting(), **options)
    assert with_meter.messages == without.messages
    assert fresh  # what the plan changed or wrote
    assert not [message for message in fresh if message.note is None and not message.patches]


def test_from_half_of_the_limit_on_a_pass_finds_the_identifiers_of_messages_read():
    exchange = [
        {"role": "user", "content": "Look at src/pay.py once more. " * 20},
        {"role": "assistant", "content": "It is total_sum."},
    ]
    messages = exchange * 40
    small, large = refold.Meter(budget=1_000_000), refold.Meter(budget=12_000)
    for measured in (small, large):
        for _ in range(len(messages)):
            assert measured.check(messages).tokens > 6_000

    def read(measured):
        request = measured.request(messages, replace(measured._options, budget=12_000))
        return sum(any("mentions" in key for key in message.__dict__) for message in request.view.transcript.messages)

    assert read(small) == 0
    assert read(large) == len(messages)
