"""Opal: everything before the last quarter of a window becomes one summary, whole turns where that is possible.

The steps to the goal, the slide and "fit" are our additions: they fit a kept part that is larger than the quarter it
may have, and what could not be sent at all.
"""

from msgspec.structs import replace

from refold.core.budget import Share, ShareReserve
from refold.core.counting import CharCounter
from refold.core.policy import Policy, Step, When
from refold.core.usage_gauges import ReportedPlusTail
from refold.stages.close_calls import CloseCalls
from refold.stages.fit import Fit
from refold.stages.repair import Repair
from refold.stages.selectors import KeepTokens
from refold.stages.slide import Slide
from refold.stages.summarize import Summarize
from refold.stages.truncate_to_goal import TruncateToGoal

SUMMARIZE = Summarize(
    KeepTokens(share=0.25),  # O03: window / 4
    prompt="opal_summary",
    update="opal_update",  # O09
    split="opal_prefix",
    split_from=5,  # O05
    files=True,  # O11
    otherwise="outline",  # O07
)
FIT = (
    Step(TruncateToGoal(), When.OVER_GOAL, "truncate to goal"),
    Step(
        Slide("[Older messages were left out to make room]", 0, first=0, skip_at=2, to_goal=True),
        When.OVER_GOAL,
        "slide",
    ),
    Step(CloseCalls(), When.DUE, "repair"),
    Step(Fit(asks=False), When.OVER_BUDGET, "fit"),  # after the results that a repair adds
    Step(Repair(), When.DUE, "repair messages"),
)

POLICY = Policy(
    name="opal",
    summary="Summarizes all but the newest quarter of the window at a turn's border, and updates that summary later.",
    counter=CharCounter(4, floor=True),  # O02
    gauge=ReportedPlusTail(),  # O02
    trigger=Share(0.80, of_window=True, inclusive=True),  # O02
    reserve=ShareReserve(share=0.20),  # O02: what the trigger leaves of the window
    goal=Share(0.50, of_window=True),
    steps=(Step(SUMMARIZE, When.DUE, "summarize"), *FIT),
)

FIFTH = Step(replace(SUMMARIZE, cut=KeepTokens(share=0.20)), When.DUE, "summarize")  # O12: window / 5
POLICY = replace(POLICY, after_overflow=replace(POLICY, steps=(FIFTH, *FIT)))
