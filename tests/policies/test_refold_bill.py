"""What compaction makes of a bill: what it costs is soon earned back, at every price of a cached token."""

import pytest
from msgspec.structs import replace

from refold._compaction.options import Options
from refold.core.budget import Exactly, LeastCost
from refold.core.policy import Step, When
from refold.policies.refold import POLICY
from refold.replay._run import replayed
from refold.replay._timeline import timeline
from refold.replay.pricing import UserPrices, tariff_for
from refold.stages.supersede_warm import SupersedeWarm
from refold.transcripts import RecordedConversation

MODEL = "claude-opus-4-5"
INPUT = tariff_for(MODEL).input
WORST = 0.01


def session(calls, lines, again=0):
    """A coding session; every `again`th call reads the first file once more."""
    messages = [{"role": "user", "content": "Mend the parts, one after the other. Never push."}]
    for n in range(calls):
        number = 0 if again and n % again == 0 else n
        shown = "\n".join(f"line {line} of part_{number} calls helper_{number}_{line}(value)" for line in range(lines))
        used = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": f"src/part_{number}.py"}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Part {number} is next."}, used]})
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": shown}
        messages.append({"role": "user", "content": [result]})
    return timeline(
        RecordedConversation("plain", "anthropic", [*messages, {"role": "assistant", "content": "Done."}], model=MODEL)
    )


def change(line, policy, read, window=40_000):
    """The bill against doing nothing, as long as that fits into the window at all."""
    tariff = tariff_for(MODEL, UserPrices(cache_read=INPUT * read))
    options = Options(window=window, model=MODEL, max_output=4_000)
    base, made = (replayed(line, each, tariff, options) for each in (None, policy))
    return made.bill / base.bill - 1, base.over, len(made.compactions)


def by_cost(read, kept=8_000):
    trigger = LeastCost(read=read, compacted_size=kept, growth=400, refetch_tokens=2_000)
    return replace(POLICY, trigger=trigger, goal=Exactly(kept, messages_only=True))


@pytest.fixture(scope="module")
def long_session():
    return session(400, 16)


@pytest.mark.parametrize(("read", "most"), [(0.1, -0.55), (0.05, -0.5)])
def test_a_long_session_costs_less_than_half(long_session, read, most):
    changed, _, compactions = change(long_session, POLICY, read)
    assert compactions > 3
    assert changed < most


@pytest.mark.parametrize("read", [0.1, 0.05])
def test_the_size_of_least_cost_costs_less_than_a_late_trigger(long_session, read):
    late, early = (change(long_session, policy, read)[0] for policy in (POLICY, by_cost(read)))
    assert early < late


@pytest.mark.parametrize(("read", "calls"), [(0.25, 2), (0.1, 10), (0.05, 42)])
def test_a_compaction_has_earned_back_what_it_cost_after_few_calls(long_session, read, calls):
    tariff = tariff_for(MODEL, UserPrices(cache_read=INPUT * read))
    options = Options(window=40_000, model=MODEL, max_output=4_000)
    base, made = (replayed(long_session, each, tariff, options) for each in (None, POLICY))
    first = made.compactions[0].call
    dearer = [
        number
        for number, (with_it, without) in enumerate(zip(made.dollars, base.dollars, strict=True))
        if with_it > without * (1 + WORST)
    ]
    assert max(dearer, default=first) - first <= calls
    assert not [number for number in dearer if number < first]


def test_an_early_look_at_what_is_superseded_costs_nothing():
    line = session(120, 12, again=4)
    early = replace(POLICY, steps=(Step(SupersedeWarm(), When.EVERY_CALL), *POLICY.steps))
    plain, looked = (change(line, policy, 0.1, window=100_000)[0] for policy in (POLICY, early))
    assert looked <= plain + WORST
