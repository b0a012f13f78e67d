"""Wolffish: removes images, shortens the largest results to head and tail, appends one summary of the originals.

Its protections hold in every step but the three that fit, which run only when the request could not be sent at all.
These and the second truncation are our additions, for what is protected or shrinks less than expected.
After an overflow at least half of the present size must go, whatever the estimate says.
"""

from msgspec.structs import replace

from refold.core.budget import Share, TableReserve
from refold.core.counting import CharCounter
from refold.core.policy import Policy, Step, When
from refold.core.usage_gauges import HigherOf
from refold.stages.append_summary import AppendSummary
from refold.stages.close_calls import CloseCalls
from refold.stages.fit import Fit
from refold.stages.repair import Repair
from refold.stages.selectors import LargestThenOldest
from refold.stages.slide import Slide
from refold.stages.strip_media import StripImages
from refold.stages.truncate import Truncate
from refold.stages.truncate_to_goal import TruncateToGoal

LEFT_OUT = "[Older messages were left out here so that the request could be sent]"
SUMMARY = AppendSummary("wolffish_summary", nudge="wolffish_nudge", notice="wolffish_notice")  # W09, W10

POLICY = Policy(
    name="wolffish",
    summary="Cuts the largest old tool results to head and tail, and appends a summary of the originals.",
    counter=CharCounter(1.5),  # W02
    gauge=HigherOf(),  # W03
    trigger=Share(0.75),  # W02
    goal=Share(0.50),  # W02
    reserve=TableReserve(table="wolffish"),  # W14
    steps=(
        Step(StripImages(), When.DUE, "strip images"),
        Step(Truncate(), When.DUE, "truncate"),
        Step(Truncate(), When.OVER_GOAL, "truncate further"),
        Step(SUMMARY, When.DUE, "summary"),
        Step(TruncateToGoal(enough=0.75), When.OVER_BUDGET, "truncate to fit"),
        Step(Slide(LEFT_OUT, share=0, first=1, skip_at=2, to_goal=True), When.OVER_BUDGET, "leave out to fit"),
        Step(CloseCalls(), When.DUE, "repair"),
        Step(Fit(asks=False), When.OVER_BUDGET, "fit"),  # after the results that a repair adds
        Step(Repair(), When.DUE, "repair messages"),
    ),
)

HALVED = Step(Truncate(LargestThenOldest(at_least=0.5)), When.DUE, "truncate")  # W04
POLICY = replace(POLICY, after_overflow=replace(POLICY, steps=(POLICY.steps[0], HALVED, *POLICY.steps[2:])))
