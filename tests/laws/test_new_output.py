"""What holds when new output is cut before it is sent: sent bytes stay, the rest is untouched, nothing is cut twice."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from refold._rules.pairing import GroupPairing
from refold.core._engine import planning
from refold.core.budget import Never, Share
from refold.core.counting import Counter
from refold.core.edits import fold
from refold.core.plan import Plan
from refold.core.policy import Policy, Step, When
from refold.core.token_units import ReportedTokens
from refold.core.transcript import Transcript
from refold.core.view import Cause, View
from refold.stages.truncate_new import TruncateNew
from refold.testing import view_of
from tests.depth import deep
from tests.laws.test_refold import COUNTERS, conversations

STAGE = TruncateNew(tokens=600)
POLICY = Policy("door", (Step(STAGE, When.EVERY_CALL),), trigger=Never())


def before_call(transcript: Transcript, counter: Counter, plans: list[Plan]) -> View:
    start = fold(transcript.messages, [plan.edits for plan in plans], [plan.base.tip for plan in plans])
    view = view_of(
        transcript, window=10**6, goal=Share(0.4), counter=counter, rules=(GroupPairing(),), cause=Cause.THRESHOLD
    )
    view = replace(view, start=start)
    return replace(view, measured=ReportedTokens(view.estimated))


def planned(view: View) -> Plan:
    try:
        next(planning(POLICY, view))
    except StopIteration as done:
        made: Plan = done.value.plan
        return made
    raise AssertionError("it asked for something from outside")


@settings(max_examples=deep(25, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations(), COUNTERS)
def test_what_was_sent_stays_the_beginning_of_what_is_sent_next(transcript: Transcript, counter: Counter) -> None:
    messages = transcript.messages
    calls = [place for place, message in enumerate(messages) if message.role == "assistant" and place]
    plans: list[Plan] = []
    sent: tuple[object, ...] = ()
    for stop in (*calls, len(messages)):
        grown = Transcript(messages[:stop])
        view = before_call(grown, counter, plans)
        plan = planned(view)
        assert plan == planned(before_call(grown, counter, plans))
        plans.append(plan)
        now = before_call(grown, counter, plans)
        assert planned(now).empty
        assert now.messages[: len(sent)] == sent
        assert not GroupPairing().broken(now.messages)
        assert now.estimated <= view.estimated
        for message, said in zip(now.messages, grown.messages, strict=True):
            assert message is said or any(counter.text(result.text) > 600 for result in said.results)
            fits = [counter.text(result.text) <= 600 for result in message.results]
            assert all(fits) or message is said
        sent = tuple(now.messages)
