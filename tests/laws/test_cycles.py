"""What holds when a policy runs again and again over one conversation: nothing nests, nothing is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from refold._rules.pairing import GroupPairing
from refold.core.edits import fold
from refold.core.messages import text_of
from refold.core.needs import Answer, Need, Provided, Refused, SummaryNeed
from refold.core.token_units import ReportedTokens
from refold.policies import find
from refold.testing import talk, view_of
from tests.conformance.drive import drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.view import View

POLICIES = ["wolffish", "neurolink", "opal", "claude-code", "vibe"]
HEADINGS = (
    "[Compaction Summary]",
    "Previous conversation summary:",
    "[Conversation summary — older messages were compacted]",
    "[Conversation compressed]",
    "Last request from user was:",
    "The last request of the user, word for word:",
    "<read-files>",
    "[Compacted ",
)


def lines(turns: int, calls: int) -> list[str]:
    found: list[str] = ["s: be brief"]
    for turn in range(turns):
        found.append(f"u: wish {turn}: " + "please " * 20)
        for call in range(calls):
            found += [f"a: step {call} | read(f{turn}-{call}.py) as c{turn}-{call}"]
            found += [f"t: c{turn}-{call} = " + "x" * 1_500]
    return found


def cycled(name: str, said: list[str], stops: list[int], answer: Callable[[Need], Answer]) -> list[View]:
    """Run a policy each time the conversation has grown to a stop; every run stands on the plans before it."""
    policy = find(name)
    plans, tips, views = [], [], []
    for stop in stops:
        transcript = talk(*said[:stop])
        start = fold(transcript.messages, [plan.edits for plan in plans], tips)
        view = view_of(transcript, window=16_000, goal=policy.goal, rules=(GroupPairing(),))
        view = replace(view, start=start)
        view = replace(view, measured=ReportedTokens(view.estimated))
        plan = drive(policy, view, answer)
        plans.append(plan)
        tips.append(start[-1].id)
        views.append(view.after(plan.edits))
    return views


def summarized(need: Need) -> Answer:
    return Provided("what happened so far " * 5) if isinstance(need, SummaryNeed) else Refused("nobody", "absent")


def absent(need: Need) -> Answer:
    return Refused("nobody was given to ask", "absent")


@pytest.mark.parametrize("answer", [summarized, absent])
@pytest.mark.parametrize("name", POLICIES)
def test_no_summary_holds_another_and_none_grows_from_run_to_run(name: str, answer: Callable[[Need], Answer]) -> None:
    said = lines(8, 4)
    for view in cycled(name, said, [19, 37, 55, len(said)], answer):
        words = "\n".join(text_of(message) for message in view.messages)
        for heading in HEADINGS:
            assert words.count(heading) <= 1, heading
        assert GroupPairing().broken(view.messages) == ()
        if name != "wolffish":
            assert view.over_goal <= 0


@pytest.mark.parametrize("answer", [summarized, absent])
@pytest.mark.parametrize("name", POLICIES)
def test_the_request_of_one_long_turn_outlives_every_run(name: str, answer: Callable[[Need], Answer]) -> None:
    said = lines(1, 32)
    for view in cycled(name, said, [18, 34, 50, len(said)], answer):
        words = "\n".join(text_of(message) for message in view.messages)
        assert 1 <= words.count("wish 0: please") <= 2  # a digest quotes the goal too


@pytest.mark.parametrize("name", ["opal", "claude-code", "vibe", "neurolink"])
def test_an_earlier_summary_reaches_the_next_one_apart_from_the_record(name: str) -> None:
    asked: list[SummaryNeed] = []

    def answer(need: Need) -> Answer:
        if isinstance(need, SummaryNeed):
            asked.append(need)
            return Provided(f"facts of run {len(asked)}")
        return Refused("nobody", "absent")

    cycled(name, lines(6, 4), [19, 37], answer)
    later = [need for need in asked if need.previous]
    assert later
    assert "facts of run 1" in (later[0].previous or "")
    assert all("facts of run" not in need.text for need in asked)
