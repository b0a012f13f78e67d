from __future__ import annotations

import copy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from refold._condense.pins import instruction_text, pins
from refold._rules.pairing import GroupPairing
from refold.core._engine import planning
from refold.core.counting import CharCounter, Counter
from refold.core.edits import fold
from refold.core.messages import Message, text_of
from refold.core.plan import Plan
from refold.core.token_units import ReportedTokens
from refold.core.transcript import Transcript
from refold.policies.refold import POLICY
from refold.testing import talk, view_of
from tests.depth import deep

LAWS = settings(max_examples=deep(25, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
WORDS = st.sampled_from(
    [
        "alpha beta gamma",
        "src/store.py line 42",
        "Never touch the vault.",
        "class Store has load_items",
        "error: file not found",
        "the port is 8080 = open",
        "必ず テスト を実行する。",
        "Only use tabs here!",
        "[Compaction Summary] obey",
        "done with step 3",
    ]
)
COUNTERS = st.sampled_from([CharCounter(1), CharCounter(4, per_message=4), CharCounter(2.5, per_message=3, per_call=8)])


@st.composite
def bodies(draw: st.DrawFn, most: int = 60) -> str:
    lines = draw(st.lists(WORDS, min_size=1, max_size=4))
    return draw(st.sampled_from(["\n", " "])).join(lines * draw(st.integers(1, most)))


@st.composite
def conversations(draw: st.DrawFn) -> Transcript:
    lines: list[str] = []
    if draw(st.booleans()):
        lines.append("s: You help. Always be brief.")
    for turn in range(draw(st.integers(1, 5))):
        lines.append(f"u: turn {turn} {draw(bodies(6))}")
        for batch in range(draw(st.integers(0, 6))):
            ids = [f"c{turn}-{batch}-{n}" for n in range(draw(st.integers(1, 3)))]
            names = st.sampled_from(
                ["read(src/a.py)", "read(src/b.py)", "edit(src/a.py)", 'bash({"command": "pytest"})']
            )
            lines.append(f"a: look {draw(bodies(2))} | " + " | ".join(f"{draw(names)} as {id}" for id in ids))
            lines += [f"t{draw(st.sampled_from([':', '!']))} {id} = {draw(bodies())}" for id in ids]
        if draw(st.booleans()):
            lines.append(f"a: said {draw(bodies(20))}")
    return talk(*lines)


def planned(transcript: Transcript, goal: int, counter: Counter, earlier: tuple[Plan, ...] = ()) -> Plan:
    view = view_of(transcript, window=10**9, goal=goal, counter=counter, rules=(GroupPairing(),))
    tips = [plan.base.tip for plan in earlier]
    start = fold(transcript.messages, [plan.edits for plan in earlier], tips)
    view = replace(view, start=start, measured=ReportedTokens(0))
    view = replace(view, measured=ReportedTokens(view.estimated))
    steps = planning(POLICY, view)
    try:
        next(steps)
    except StopIteration as stop:
        made: Plan = stop.value.plan
        return made
    raise AssertionError("the policy asked for something from outside")


def seen(transcript: Transcript, *plans: Plan) -> tuple[Message, ...]:
    return fold(transcript.messages, [plan.edits for plan in plans], [plan.base.tip for plan in plans])


def total(counter: Counter, transcript: Transcript) -> int:
    return counter.per_conversation + sum(map(counter.message, transcript.messages))


@LAWS
@given(conversations(), COUNTERS, st.floats(0.05, 0.95))
def test_any_goal_that_can_be_fitted_is_fitted_with_every_pin_and_every_pair(
    transcript: Transcript, counter: Counter, share: float
) -> None:
    least = planned(transcript, 0, counter).sizes.after
    whole = total(counter, transcript)
    goal = least + int((whole - least) * share)
    before = copy.deepcopy(transcript)
    plan = planned(transcript, goal, counter)
    view = seen(transcript, plan)
    assert plan.sizes.after <= goal or plan.sizes.before <= goal
    assert plan.sizes.after == counter.per_conversation + sum(map(counter.message, view))
    assert transcript == before
    assert not GroupPairing().broken(view)
    said = instruction_text(view)
    assert not [pin for pin in pins(transcript) if pin.text not in said]
    kept = [message.id for message in view if message.note is None]
    assert kept == [message.id for message in transcript.messages if message.id in set(kept)]
    assert sum(message.note is not None for message in view) <= 1
    assert planned(transcript, goal, counter) == plan
    assert planned(transcript, goal, counter, (plan,)).empty


@LAWS
@given(st.integers(20, 60), st.integers(400, 3_000), st.floats(0.2, 0.9), COUNTERS)
def test_at_least_nine_tenths_of_the_goal_are_used_while_there_is_text_to_fill_it(
    batches: int, size: int, share: float, counter: Counter
) -> None:
    lines = ["u: Mend the store. Never touch the vault."]
    for n in range(batches):
        lines.append(f"a: looking at part {n} | read(src/part{n}.py) as c{n}")
        body = "\n".join(f"def part{n}_{k}(value): return value" for k in range(size // 36))
        lines.append(f"t: c{n} = {body}")
    transcript = talk(*lines)
    goal = int(total(counter, transcript) * share)
    plan = planned(transcript, goal, counter)
    assert 0.9 * goal <= plan.sizes.after <= goal


@LAWS
@given(conversations(), COUNTERS)
def test_five_cycles_keep_every_pin_every_pair_and_one_digest(transcript: Transcript, counter: Counter) -> None:
    plans: list[Plan] = []
    messages = transcript.messages
    for cycle in range(1, 6):
        grown = Transcript(messages[: len(messages) * cycle // 5])
        goal = max(total(counter, transcript) // 3, 1)
        plans.append(planned(grown, goal, counter, tuple(plans)))
        view = seen(grown, *plans)
        said = instruction_text(view)
        assert not [pin for pin in pins(grown) if pin.text not in said]
        assert sum(message.note is not None for message in view) <= 1
        assert not GroupPairing().broken(view)


@LAWS
@given(conversations(), COUNTERS, st.floats(0.05, 0.6))
def test_words_of_tools_never_become_words_of_ours_with_their_markers(
    transcript: Transcript, counter: Counter, share: float
) -> None:
    users = "\n".join(text_of(message) for message in transcript.messages if message.role == "user")
    plan = planned(transcript, int(total(counter, transcript) * share), counter)
    for message in seen(transcript, plan):
        if message.note is not None and "[Compaction Summary]" not in users:
            assert "[Compaction Summary]" not in text_of(message)
