"""What a compaction costs and saves, and when one that the window does not force takes place."""

import itertools

import pytest
from msgspec.structs import replace

import refold
from refold import policies
from refold.core.break_even import (
    BreakEven,
    Course,
    CourseCounter,
    PastCompaction,
    TokenPrices,
    break_even,
    course_of,
    reason_to_wait,
)
from refold.core.budget import Share, WhenItPays
from refold.core.messages import Message, Text, ToolCall, ToolResult
from refold.models._cache_rules import token_prices

PRICES = TokenPrices()


def message(role, number, *parts):
    return Message(f"m{number}", role, parts or (Text("words"),))


def turns(*calls):
    """Messages of turns of a user, each with so many calls of a tool."""
    numbers = itertools.count()
    for count in calls:
        yield message("user", next(numbers))
        for _ in range(count):
            yield message("assistant", next(numbers))
            yield message("user", next(numbers), ToolResult("c", content=(Text("output"),)))


def session(calls, words=60):
    """A session in Anthropic's shape: one turn of the user, then calls of a tool with outputs of equal size."""
    messages = [{"role": "user", "content": "Read the parts one after the other."}]
    for number in range(calls):
        use = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"path": f"part_{number}.py"}}
        output = " ".join(f"value_{number}_{word}" for word in range(words))
        messages.append({"role": "assistant", "content": [use]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": output}]}
        )
    return messages


def in_band(calls=40, share=0.9):
    """A session with the window of which it fills that share of the input budget."""
    messages = session(calls)
    tokens = refold.count(messages, model="claude-opus-4-5")
    return messages, {
        "budget": refold.Budget(int(tokens / share)), "model": "claude-opus-4-5", "format": "anthropic",
    }  # fmt: skip


def test_it_costs_the_new_prefix_the_calls_that_read_again_and_the_thinking_that_is_lost():
    economy = break_even(100_000, 40_000, 10_000, PRICES, Course(calls=50), thinking=1_000)
    assert economy.rewriting == round((1.25 - 0.10) * 30_000)
    assert economy.rereading == 3 * (4_000 + 500) + 12_500
    assert economy.thinking == 5_000
    assert economy.saving == 6_000
    assert economy.cost == 34_500 + 26_000 + 5_000
    assert economy.calls == 11
    assert economy.calls_left == 50
    assert economy.pays


def test_what_saves_nothing_never_pays():
    economy = break_even(100, 100, 0, PRICES, Course(calls=9))
    assert economy.calls is None
    assert not economy.pays
    assert "saves nothing" in economy.sentence


def test_no_more_is_read_again_than_left():
    assert break_even(3_000, 1_000, 1_000, PRICES, Course()).rereading == 3 * (100 + 500) + 2_500


def test_a_course_counts_calls_turns_and_the_calls_of_the_open_turn():
    course = course_of(tuple(turns(3, 2)))
    assert (course.calls, course.turns, course.in_turn) == (5, 2, 2)
    assert course.calls_left == 5
    assert course_of(tuple(turns(500))).calls_left == 400


def test_a_course_knows_the_calls_since_each_compaction():
    past = PastCompaction(0, before=1_000, after=400, cost=500, saving=60)
    course = course_of(tuple(turns(10)), [(9, past)])
    assert course.compactions[0].calls == 4
    assert course.since == 6
    assert course.unpaid == 500 - 6 * 60


def test_a_bill_counts_the_reads_of_all_calls_as_if_nothing_had_been_compacted():
    plain = Course(calls=10)
    assert plain.bill(1_000, 0, PRICES) == round(10 * 500 * 0.10 + 1_250)
    compacted = Course(calls=20, compactions=(PastCompaction(10, 1_000, 400, 0, 0),))
    assert compacted.bill(1_400, 0, PRICES) == round((10 * 500 + 10 * (900 + 600)) * 0.10 + 1.25 * 2_000)


def why(economy, course, size=100_000, limit=120_000):
    return reason_to_wait(economy, WhenItPays(), course, PRICES, size=size, fixed=10_000, limit=limit)


def test_a_compaction_waits_for_each_of_three_reasons():
    economy = BreakEven(rewriting=60_000, saving=6_000, calls_left=400)
    assert "would not have paid" in why(economy, Course(calls=10))
    assert "of the bill so far" in why(economy, Course(calls=400))
    assert why(economy, Course(calls=3_000)) == ""
    nearly = Course(calls=3_000, turns=1_001, in_turn=1)
    assert "turn" in why(economy, nearly)
    assert why(economy, nearly, limit=100_001) == ""


def test_what_earlier_compactions_have_saved_pays_for_the_next():
    economy = BreakEven(rewriting=60_000, saving=6_000, calls_left=400)
    past = PastCompaction(300, before=100_000, after=40_000, cost=60_000, saving=6_000)
    assert why(economy, Course(calls=400, compactions=(past,))) == ""


def test_a_caller_who_knows_the_calls_that_are_left_decides():
    economy = BreakEven(rewriting=60_000, saving=6_000)
    assert why(replace(economy, calls_left=10), Course(calls=5, expected=10)) == ""
    assert "9 are expected" in why(replace(economy, calls_left=9), Course(calls=5, expected=9))


@pytest.mark.parametrize(
    ("model", "read", "write"),
    [
        ("claude-opus-4-5", 0.10, 1.25),
        ("claude-opus-5-5", 0.05, 1.25),
        ("claude-fable-5-1", 0.025, 1.25),
        ("gpt-5.1", 0.10, 1.0),
        ("gemini-2.5-pro", 0.10, 1.0),
        ("a model of nobody", 0.10, 1.25),
        (None, 0.10, 1.25),
    ],
)
def test_prices_are_those_of_the_model(model, read, write):
    prices = token_prices(model)
    assert prices.read == pytest.approx(read, abs=0.03)
    assert prices.write == write


def test_a_session_inside_the_window_waits_and_says_why():
    messages, options = in_band()
    check = refold.check(messages, **options)
    assert not check.due
    assert check.waiting.waits
    assert "waiting until it pays" in repr(check)
    plan = refold.plan(messages, **options)
    assert plan.empty
    assert plan.break_even == check.waiting
    result = refold.compact(messages, **options)
    assert all(new is old for new, old in zip(result.messages, messages, strict=True))
    assert refold.load_plan(refold.dump_plan(plan)) == plan


def test_a_meter_decides_as_a_check_does():
    messages, options = in_band()
    meter = refold.Meter(**options)
    for length in range(1, len(messages) + 1, 8):
        meter.check(messages[:length])
    assert meter.check(messages).waiting == refold.check(messages, **options).waiting


def test_above_the_input_budget_it_does_not_wait():
    messages, options = in_band(share=1.05)
    assert refold.check(messages, **options).due
    plan = refold.plan(messages, **options)
    assert not plan.empty
    assert plan.break_even.cost > 0
    assert plan.break_even.calls is not None


@pytest.mark.parametrize("switch", [{"wait": False}, {"expected_calls": 400}, {"force": True}])
def test_a_caller_can_do_without_waiting(switch):
    messages, options = in_band()
    plan = refold.plan(messages, **options, **switch)
    assert not plan.empty
    assert not plan.break_even.waits


@pytest.mark.parametrize("calls", [0, 3, 500])
def test_a_plan_names_the_calls_that_the_caller_knows_of(calls):
    messages, options = in_band()
    plan = refold.plan(messages, **options, wait=False, expected_calls=calls)
    assert plan.break_even.calls_left == calls
    assert f"{calls} more calls are expected" in plan.break_even.sentence


def test_other_triggers_and_other_policies_do_not_wait():
    messages, options = in_band()
    own = replace(policies.find("refold"), trigger=Share(0.8, inclusive=True))
    assert refold.check(messages, **options, policy=own).due
    waiting = [name for name in policies.names() if isinstance(policies.find(name).trigger, WhenItPays)]
    assert waiting == ["refold"]


def calling(path, number):
    return message("assistant", number, ToolCall(f"c{number}", "read", f'{{"path": "{path}"}}'))


def test_what_a_session_reads_again_after_a_compaction_is_what_it_is_expected_to_read_again():
    past = PastCompaction(0, before=1_000, after=400, cost=500, saving=60)
    before = [calling(number, number) if number % 2 else message("user", number) for number in range(60)]
    same = [calling(number % 14, 60 + number) if number % 2 else message("user", 60 + number) for number in range(60)]
    other = [calling(f"b{number}", 60 + number) if number % 2 else message("user", 60 + number) for number in range(60)]
    assert course_of((*before, *same), [(60, past)]).read_again == 7
    assert course_of((*before, *other), [(60, past)]).read_again == 3
    assert course_of((*before, *same[:20]), [(60, past)]).read_again == 3
    cheap, dear = (break_even(100_000, 40_000, 0, PRICES, Course(read_again=count)).rereading for count in (0, 7))
    assert cheap == 0
    assert dear == round(7 * (4_000 + 500) + 1.25 * 23_333)


def test_a_course_that_is_counted_as_it_grows_is_that_of_the_whole():
    past = [(40, PastCompaction(0, 1_000, 400, 500, 60)), (70, PastCompaction(0, 900, 500, 400, 50))]
    messages = [
        calling(number % 24, number) if number % 3 else message("user", number, Text(f"Question {number}"))
        for number in range(140)
    ]
    other = message("user", 500, Text("Another question"))
    counts = (*range(1, 41), *range(43, 140, 7), 60, 61, *range(65, 72), 140)
    steps = [(messages[:count], past[: (count > 35) + (count > 75)]) for count in counts]
    steps += [([*messages[:139], other], past), (messages, past[:1]), (messages, [])]
    counter = CourseCounter()
    for some, compactions in steps:
        assert counter.course(some, compactions) == course_of(some, compactions)


def test_only_new_messages_are_counted():
    class Read(list):
        places = ()

        def __getitem__(self, place):
            self.places = (*self.places, place)
            return super().__getitem__(place)

    messages = Read(turns(3, 2, 4))
    counter = CourseCounter()
    counter.course(messages)
    messages.append(message("user", 99, Text("And now?")))
    messages.places = ()
    assert counter.course(messages).turns == 4
    assert messages.places == (len(messages) - 2, len(messages) - 1)
    compaction = len(messages), PastCompaction(0, 1_000, 400, 500, 60)
    messages.append(message("assistant", 100))
    messages.places = ()
    assert counter.course(messages, [compaction]).compactions[0].calls == 9
    assert messages.places == (len(messages) - 2, len(messages) - 1)
