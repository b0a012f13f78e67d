"""Where no model is named, messages are counted as the newest models of their format's maker count."""

import pytest

import refold
from refold._counting import counter_for
from refold.adapt import Track
from refold.sessions import MemoryStore, Session

WINDOW = 20_000
CODE = "def total(order):\n    return sum(line.price * line.count for line in order.lines)\n" * 20


def anthropic(steps):
    messages = [{"role": "user", "content": "Find out why orders are charged twice."}]
    for number in range(steps):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"path": f"shop/{number}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"# {number}\n{CODE}"}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return messages


def gemini(steps):
    messages = [{"role": "user", "parts": [{"text": "Find out why orders are charged twice."}]}]
    for number in range(steps):
        call = {"functionCall": {"name": "read", "args": {"path": f"shop/{number}.py"}}}
        result = {"functionResponse": {"name": "read", "response": {"result": f"# {number}\n{CODE}"}}}
        messages += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    return messages


FORMATS = {"anthropic": (anthropic, "claude-fable-5-1"), "gemini": (gemini, "gemini-3-pro-preview")}


@pytest.mark.parametrize("format", FORMATS)
def test_a_window_alone_holds_what_the_makers_newest_model_counts(format):
    made, newest = FORMATS[format]
    result = refold.compact(made(16), window=8_000, max_output=1_000)
    left = refold.count(result.messages, model=newest)
    assert result.plan.edits
    assert left <= 7_000
    assert result.sizes.after == pytest.approx(left, rel=0.02)


@pytest.mark.parametrize("format", FORMATS)
def test_every_door_counts_alike_without_a_model(format):
    made, newest = FORMATS[format]
    messages = made(8)
    expected = refold.count(messages, model=newest)
    session = Session(MemoryStore(), window=WINDOW)
    session.append(messages)
    assert refold.count(messages) == expected
    assert refold.check(messages, window=WINDOW).tokens == expected
    assert refold.Meter(window=WINDOW).check(messages).tokens == expected
    assert session.get_context_stats().context_tokens == expected
    assert refold.plan(messages, window=WINDOW, force=True).sizes.before == expected
    track = Track(window=expected)
    track.fold(messages)
    assert track.plans[0].sizes.before == expected


def test_a_model_that_is_named_decides_whatever_the_format():
    messages = anthropic(8)
    for model in ("gpt-5", "claude-opus-4-5", "deepseek-chat"):
        counted = refold.check(messages, window=WINDOW, model=model)
        assert (counted.tokens, counted.counter) == (refold.count(messages, model=model), counter_for(model).family)


def test_a_model_that_no_row_knows_is_counted_as_the_formats_newest():
    messages = anthropic(8)
    unknown = refold.check(messages, window=WINDOW, model="our-own-alias")
    assert unknown.tokens == refold.check(messages, window=WINDOW).tokens


def test_a_provider_that_is_named_decides_before_the_format():
    assert refold.check(anthropic(2), window=WINDOW, provider="deepseek").counter == "deepseek"
    assert refold.check(anthropic(2), window=WINDOW, provider="bedrock").counter == "claude-4.7"


def test_openai_and_local_shapes_are_counted_as_before():
    chat = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": CODE}]
    assert refold.check(chat, window=WINDOW).counter == "unknown"
    assert refold.count(chat) == refold.count(chat, model="a-local-model")


def test_a_check_names_the_counter_of_its_policy():
    chat = [{"role": "user", "content": "Hello"}]
    assert refold.check(chat, window=WINDOW, policy="claude-code").counter == "characters / 4"
    assert refold.check(chat, window=WINDOW, counter="exact", model="gpt-4o").counter == "gpt-4o"


LATE = [
    {"role": "user", "content": f"Please read this. {CODE}"},
    {"role": "assistant", "content": "Read. What is next?"},
    *anthropic(6),
]  # only the fourth message can be nobody's but Anthropic's


def test_a_meter_counts_everything_anew_once_a_later_message_shows_the_format():
    meter = refold.Meter(window=WINDOW, system="You work on a shop.")
    for end in range(1, len(LATE) + 1):
        known, whole = meter.check(LATE[:end]), refold.check(LATE[:end], window=WINDOW, system="You work on a shop.")
        assert (known.tokens, known.counter) == (whole.tokens, whole.counter)
    assert meter.check(LATE[:3]).counter == "claude-4.7"
    assert meter.check(LATE).tokens == whole.tokens


def test_a_meter_that_learned_the_format_late_plans_as_a_new_one_does():
    meter = refold.Meter(window=8_000)
    for end in range(1, len(LATE) + 1):
        meter.check(LATE[:end])
    warm = refold.compact(LATE, window=8_000, meter=meter, force=True)
    cold = refold.compact(LATE, window=8_000, force=True)
    assert warm.plan == cold.plan
    assert warm.messages == cold.messages


def test_a_session_that_learned_the_format_late_measures_as_one_that_is_loaded():
    store = MemoryStore()
    session = Session(store, "s", window=WINDOW)
    for message in LATE:
        session.append([message])
        session.get_context_stats()
    expected = refold.check(LATE, window=WINDOW).tokens
    assert session.get_context_stats().context_tokens == expected
    assert Session(store, "s", window=WINDOW).get_context_stats().context_tokens == expected


def test_a_track_that_learned_the_format_late_plans_as_a_new_one_does():
    track = Track(window=5_000)
    track.fold(LATE[:3])
    track.fold(LATE)
    whole = Track(window=5_000)
    whole.fold(LATE)
    assert track.plans
    assert [plan.sizes for plan in track.plans] == [plan.sizes for plan in whole.plans]
