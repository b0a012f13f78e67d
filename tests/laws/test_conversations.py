"""The laws of the whole: every format under every policy, through the public verbs."""

import asyncio
import copy

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import refold
from refold import formats, policies
from refold.errors import BadBudget, CannotFit, SummaryRefused
from tests.laws.strategies import natives

over_formats = pytest.mark.parametrize("format", formats.names())
shares = st.sampled_from([0.15, 0.25, 0.5, 0.75, 0.9])


def each_policy():
    """Every policy, named in what a failure prints; all get the conversation that was drawn, since that takes longest."""
    for policy in policies.names():
        note(policy)
        yield policy


def summary(need):
    return f"GOAL: go on. {len(need.messages)} messages were here."


def failing(need):
    raise RuntimeError("the model is not there")


summarizers = st.sampled_from([None, summary, failing])


def size(messages, format):
    return refold.count(messages, format=format)


def compacted(messages, format, policy, share, summarize=None, **options):
    """Return the result, or None where the policy rightly says that it cannot."""
    budget = max(int(size(messages, format) * share), 1)
    try:
        return refold.compact(
            messages, format=format, policy=policy, budget=budget, summarize=summarize, force=True, **options
        )
    except (CannotFit, BadBudget, SummaryRefused) as error:
        note(f"{type(error).__name__}: {error}")
        return None


@over_formats
@given(data=st.data())
def test_what_is_written_fits_is_valid_and_can_be_taken_back(format, data):
    messages = data.draw(natives(format))
    share, summarize = data.draw(shares), data.draw(summarizers)
    before = copy.deepcopy(messages)
    for policy in each_policy():
        result = compacted(messages, format, policy, share, summarize)
        assert messages == before
        if result is None:
            continue
        assert size(result.messages, format) <= max(int(size(messages, format) * share), 1)
        assert refold.violations(result.messages, format=format) == ()
        back = refold.rewind(result)
        assert all(new is old for new, old in zip(back, messages, strict=True))


ON_EVERY_CALL = {"claude-code": ("microcompact",)}  # L02 demands it


@over_formats
@given(data=st.data())
def test_what_is_not_due_comes_back_untouched(format, data):
    messages = data.draw(natives(format))
    window = 4 * max(size(messages, format), 1_000) * data.draw(st.sampled_from([1, 2, 50]))
    for policy in each_policy():
        if refold.check(messages, format=format, policy=policy, window=window).due:
            continue
        result = refold.compact(messages, format=format, policy=policy, window=window, summarize=summary)
        if result.plan.stages_used:
            assert result.plan.stages_used == ON_EVERY_CALL[policy]
            continue
        assert result.plan.empty
        assert all(new is old for new, old in zip(result.messages, messages, strict=True))


@over_formats
@given(data=st.data())
def test_untouched_messages_are_the_same_objects_in_the_same_order(format, data):
    messages = data.draw(natives(format))
    share = data.draw(shares)
    for policy in each_policy():
        result = compacted(messages, format, policy, share)
        if result is None:
            continue
        touched = {edit.message for edit in result.plan.edits if hasattr(edit, "at")}
        hidden = {id for edit in result.plan.edits for id in getattr(edit, "messages", ())}
        read = formats.read(formats.find(format), messages).messages
        untouched = [message.native for message in read if message.id not in touched | hidden]
        if formats.find(format).traits.alternates:  # neighbours of what was edited may be joined with it
            continue
        places = {id(native): place for place, native in enumerate(result.messages)}
        found = [places.get(id(native), -1) for native in untouched]
        assert -1 not in found
        assert found == sorted(found)


@over_formats
@given(data=st.data())
def test_a_plan_is_deterministic_survives_json_and_gives_the_same_messages(format, data):
    messages = data.draw(natives(format))
    share = data.draw(shares)
    for policy in each_policy():
        result = compacted(messages, format, policy, share, summary)
        if result is None:
            continue
        again = compacted(copy.deepcopy(messages), format, policy, result.sizes.limit / size(messages, format), summary)
        assert again is None or again.plan.base == result.plan.base
        stored = refold.load_plan(refold.dump_plan(result.plan))
        assert stored == result.plan
        assert refold.apply(stored, messages, format=format).messages == result.messages


@over_formats
@given(data=st.data())
def test_the_asynchronous_way_is_the_synchronous_way(format, data):
    messages = data.draw(natives(format))
    budget = max(size(messages, format) // 2, 1)

    async def later(need):
        return summary(need)

    for policy in each_policy():
        options = {"format": format, "policy": policy, "budget": budget, "force": True}
        try:
            result = refold.compact(messages, summarize=summary, **options)
        except (CannotFit, BadBudget) as error:
            with pytest.raises(type(error)):
                asyncio.run(refold.acompact(messages, summarize=later, **options))
            continue
        assert asyncio.run(refold.acompact(messages, summarize=later, **options)).messages == result.messages


@over_formats
@given(data=st.data())
def test_a_grown_conversation_folds_to_the_same_prefix(format, data):
    messages = data.draw(natives(format, min_turns=2))
    share, more = data.draw(shares), data.draw(natives(format, max_turns=1))
    for policy in each_policy():
        result = compacted(messages, format, policy, share)
        if result is None:
            continue
        out = refold.apply(result.plan, [*messages, *more], format=format).messages
        last = max(len(result.messages) - 1, 0)  # the last may be joined with what follows where roles alternate
        assert out[:last] == result.messages[:last]


@over_formats
@given(data=st.data())
def test_nothing_is_planned_below_the_trigger(format, data):
    messages = data.draw(natives(format))
    for policy in each_policy():
        plan = refold.plan(messages, format=format, policy=policy, budget=refold.Budget(10_000_000))
        assert plan.empty
        out = refold.apply(plan, messages, format=format).messages
        assert all(new is old for new, old in zip(out, messages, strict=True))


@over_formats
@given(data=st.data())
def test_compacting_again_what_fits_changes_nothing(format, data):
    messages = data.draw(natives(format))
    share = data.draw(shares)
    for policy in each_policy():
        result = compacted(messages, format, policy, share)
        if result is None:
            continue
        again = refold.plan(result.messages, format=format, policy=policy, budget=result.sizes.limit)
        assert again.empty


@over_formats
@given(data=st.data())
def test_repair_of_what_was_torn_is_valid_and_can_be_taken_back(format, data):
    messages = data.draw(natives(format))
    gone = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    torn = [message for place, message in enumerate(messages) if place not in gone]
    before = copy.deepcopy(torn)
    result = refold.repair(torn, format=format)
    assert refold.violations(result.messages, format=format) == ()
    assert torn == before
    assert refold.rewind(result) == torn


@over_formats
@given(data=st.data())
def test_a_meter_measures_what_a_check_measures(format, data):
    messages = data.draw(natives(format))
    meter = refold.Meter(format=format, window=100_000)
    for end in data.draw(st.lists(st.integers(0, len(messages)), max_size=4)):
        whole = refold.check(messages[:end], format=format, window=100_000)
        assert meter.check(messages[:end]).tokens == whole.tokens
