import json

import pytest

from refold import transcripts
from refold.errors import UnknownModel, UsageError
from refold.models._cache_rules import rules_for
from refold.replay._timestamps import Stamp, stamps
from refold.replay.cost import explained, simulated
from refold.replay.pricing import CallTokens, UserPrices, tariff_for
from refold.transcripts import RecordedConversation, RecordedUsage
from tests import shared

OPUS = "claude-opus-4-5"
SHARED_SESSIONS = ("data/claude-code/*/s*.jsonl", "data/pi/pi-mono/*.jsonl")
SESSIONS = [
    shared.SESSIONS / "claude-code" / "session.jsonl",
    *(path for pattern in SHARED_SESSIONS for path in sorted(shared.SHARED.glob(pattern))),
]


def recorded(*usage, boundaries=(), model=OPUS):
    messages = [{"role": "user" if place % 2 == 0 else "assistant", "content": f"m{place}"} for place in range(20)]
    return RecordedConversation("plain", "anthropic", messages, model=model, usage=usage, boundaries=boundaries)


def growing(*reads):
    """Calls of 10,000 tokens, each 1,000 more than the last, that read what is given and write the rest."""
    prompts = range(10_000, 10_000 + 1_000 * len(reads), 1_000)
    return [
        RecordedUsage(2 * place + 1, prompt, 100, read, prompt - read)
        for place, (prompt, read) in enumerate(zip(prompts, reads, strict=True))
    ]


def test_a_bill_is_the_sum_of_reads_writes_other_input_and_output():
    found = explained(recorded(RecordedUsage(1, 10_000, 200, 6_000, 3_000)), tariff_for(OPUS))
    assert found.bill.spent.read == pytest.approx(6_000 * 0.50 / 1e6)
    assert found.bill.spent.written == pytest.approx(3_000 * 6.25 / 1e6)
    assert found.bill.spent.fresh == pytest.approx(1_000 * 5 / 1e6)
    assert found.bill.spent.output == pytest.approx(200 * 25 / 1e6)
    assert found.bill.spent.dollars == pytest.approx(0.003 + 0.01875 + 0.005 + 0.005)


def test_calls_that_read_all_that_was_left_break_nothing_and_are_simulated_to_the_cent():
    found = explained(recorded(*growing(0, 10_000, 11_000, 12_000)), tariff_for(OPUS))
    assert found.breaks == ()
    assert found.difference == pytest.approx(0)
    assert found.unbroken == found.simulated == found.bill


def test_a_break_says_how_many_tokens_were_sent_again_and_what_that_cost():
    found = explained(recorded(*growing(0, 10_000, 0, 12_000)), tariff_for(OPUS))
    (gap,) = found.breaks
    assert (gap.call, gap.tokens) == (2, 11_000)
    assert gap.dollars == pytest.approx(11_000 * (6.25 - 0.50) / 1e6)
    assert "nothing was found" in gap.cause
    assert found.difference == pytest.approx(0)
    assert found.unbroken.spent.dollars < found.bill.spent.dollars


@pytest.mark.parametrize(
    ("cause", "times", "models", "boundaries"),
    [
        ("expired after 5 minutes", (0, 60, 500), (OPUS,) * 3, ()),
        ("another model", (0, 60, 120), (OPUS, OPUS, "claude-haiku-4-5"), ()),
        ("compacted itself", (0, 60, 120), (OPUS,) * 3, (4,)),
    ],
)
def test_the_cause_of_a_break_is_told_where_the_file_tells_it(cause, times, models, boundaries):
    told = [Stamp(float(seconds), model) for seconds, model in zip(times, models, strict=True)]
    found = explained(recorded(*growing(0, 10_000, 0), boundaries=boundaries), tariff_for(OPUS), told)
    assert [cause in gap.cause for gap in found.breaks] == [True]


def test_a_prompt_that_became_smaller_is_a_cause_of_its_own():
    usage = [RecordedUsage(1, 40_000, 10, 0, 40_000), RecordedUsage(3, 20_000, 10, 2_000, 18_000)]
    (gap,) = explained(recorded(*usage), tariff_for(OPUS)).breaks
    assert "taken out" in gap.cause


def test_the_simulation_expires_what_was_not_asked_for_in_time_and_pays_for_the_longer_life():
    usage = growing(0, 0, 0)
    short = simulated(recorded(*usage), tariff_for(OPUS), [Stamp(0.0), Stamp(200.0), Stamp(600.0)])
    assert [call.tokens.read for call in short] == [0, 10_000, 0]
    long = simulated(recorded(*usage), tariff_for(OPUS), [Stamp(float(at), long=True) for at in (0, 200, 600)])
    assert [call.tokens.read for call in long] == [0, 10_000, 11_000]
    assert long[0].spent.written == pytest.approx(10_000 * 10 / 1e6)


def test_nothing_shorter_than_the_minimum_is_read_and_whole_steps_only():
    usage = [RecordedUsage(1, 3_000, 10), RecordedUsage(3, 5_000, 10), RecordedUsage(5, 6_000, 10)]
    assert [call.tokens.read for call in simulated(recorded(*usage), tariff_for(OPUS))] == [0, 0, 5_000]
    assert [call.tokens.read for call in simulated(recorded(*usage), tariff_for("gpt-5.5"))] == [0, 2_944, 4_992]


def test_a_file_without_any_cache_has_no_breaks():
    found = explained(recorded(*[RecordedUsage(1 + 2 * n, 9_000 + n, 10) for n in range(3)]), tariff_for(OPUS))
    assert (found.breaks, found.difference) == ((), 0)


def test_a_prompt_above_the_step_of_a_tariff_costs_more():
    tariff = tariff_for("gpt-5.5")
    below, above = tariff.spent(CallTokens(272_000, output=1)), tariff.spent(CallTokens(272_001, output=1))
    assert above.fresh / below.fresh == pytest.approx(2, rel=1e-4)
    assert above.output / below.output == pytest.approx(1.5)


def test_an_unknown_price_is_asked_for_and_never_guessed():
    with pytest.raises(UnknownModel, match="--price-input"):
        tariff_for("a-model-nobody-knows")
    with pytest.raises(UnknownModel, match="--price-output"):
        tariff_for("a-model-nobody-knows", UserPrices(input=2.0))
    with pytest.raises(UnknownModel, match="--price-cache-read"):
        tariff_for("a-model-nobody-knows", UserPrices(input=2.0, output=4.0))
    with pytest.raises(UnknownModel, match="names no model"):
        tariff_for(None)
    named = tariff_for("a-model-nobody-knows", UserPrices(input=2.0, output=4.0, cache_read=0.2))
    assert (named.input, named.output, named.cache_read, named.cache_write) == (2.0, 4.0, 0.2, 2.0)


def test_a_price_named_by_the_user_wins_and_the_rules_follow_it():
    tariff = tariff_for(OPUS, UserPrices(input=10.0))
    assert (tariff.cache_read, tariff.cache_write, tariff.output) == (1.0, 12.5, 25.0)


@pytest.mark.parametrize(
    ("model", "read", "write", "least"),
    [
        ("claude-opus-4-5-20251101", 0.1, 1.25, 4_096),
        ("anthropic/claude-sonnet-4.5", 0.1, 1.25, 1_024),
        ("claude-sonnet-5.5", 0.05, 1.25, 1_024),
        ("claude-fable-5.1", 0.025, 1.25, 512),
        ("gpt-5.3-codex", 0.1, 1.0, 1_024),
        ("gpt-5.6", 0.1, 1.25, 1_024),
        ("gpt-4o-2024-08-06", 0.5, 1.0, 1_024),
        ("google/gemini-3-pro-preview", 0.1, 1.0, 4_096),
        ("deepseek-v4-pro", 0.033, 1.0, 64),
    ],
)
def test_the_rules_of_a_model_are_found_by_any_spelling(model, read, write, least):
    rules = rules_for(model)
    assert (rules.read, rules.write, rules.least) == (read, write, least)


def test_a_file_without_usage_says_what_estimates_instead():
    with pytest.raises(UsageError, match="refold replay"):
        explained(recorded(), tariff_for(OPUS))


def row(number, second, usage):
    message = {"id": f"a{number}", "role": "assistant", "content": [{"type": "text", "text": f"{number}"}]}
    at = f"2026-01-01T00:00:{second:02}Z"
    asked = {"type": "user", "message": {"role": "user", "content": f"q{number}"}, "timestamp": at}
    return [asked, {"type": "assistant", "message": message | {"model": OPUS, "usage": usage}, "timestamp": at}]


def test_calls_have_the_times_of_their_lines_and_the_life_they_paid_for():
    hour = {"ephemeral_1h_input_tokens": 50}
    first = {"input_tokens": 1, "cache_creation_input_tokens": 50, "output_tokens": 9, "cache_creation": hour}
    lines = row(1, 5, first) + row(2, 25, {"input_tokens": 9, "cache_read_input_tokens": 50, "output_tokens": 9})
    raw = "\n".join(map(json.dumps, lines)).encode()
    found = transcripts.read(raw)[0]
    one, two = stamps(found, raw)
    assert two.seconds - one.seconds == 20
    assert (one.model, one.long, two.long) == (OPUS, True, False)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: "/".join(path.parts[-2:]))
def test_the_bill_of_a_real_session_is_met_within_two_percent(path):
    found = transcripts.read(path, lenient=True)[0]
    told = explained(found, tariff_for(found.model), stamps(found, str(path)))
    assert abs(told.difference) < 0.02
