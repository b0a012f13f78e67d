"""NeuroLink: prune, deduplicate, summarize, truncate; each only if those before did not suffice.

It stops at 60 % of the input budget, well under its trigger, so that one run is not followed by the next at once. The
last four steps before the repair are our additions: they fit what the four leave in place, such as four enormous
messages, and the last of them what could not be sent at all.
After an overflow the goal is 70 %, and a run that the estimate finds nothing to do for slides all the same.
"""

from msgspec.structs import replace

from refold.core.budget import Share, TableReserve
from refold.core.counting import CharCounter
from refold.core.policy import Policy, Step, When
from refold.stages.clear import Clear
from refold.stages.close_calls import CloseCalls
from refold.stages.deduplicate import DeduplicateReads
from refold.stages.fit import Fit
from refold.stages.repair import Repair
from refold.stages.selectors import KeepRatio
from refold.stages.slide import Slide
from refold.stages.summarize import Summarize
from refold.stages.truncate_to_goal import TruncateToGoal

MARKER = "[Earlier conversation history was truncated to fit within context limits]"  # N06
PRUNE = Clear("[Tool result cleared]", never=frozenset({"skill"}), protect=40_000, saving=20_000)  # N03
SUMMARIZE = Summarize(
    KeepRatio(0.3, at_least=4),  # N05
    prompt="neurolink_summary",
    update="neurolink_merge",
    heading="Previous conversation summary:",
    role="system",
    keeps_request=True,
)

POLICY = Policy(
    name="neurolink",
    summary="Clears old tool results, drops repeated file reads, summarizes in nine sections, then slides the window.",
    counter=CharCounter(4, margin=1.15, per_message=4, per_conversation=24, image=1_024, by_provider=True),  # N09
    trigger=Share(0.80, inclusive=True),  # N01
    reserve=TableReserve(table="neurolink"),  # N10
    goal=Share(0.60),
    steps=(
        Step(PRUNE, When.OVER_GOAL, "prune"),
        Step(DeduplicateReads(saving=0.30), When.OVER_GOAL, "deduplicate"),  # N04
        Step(SUMMARIZE, When.OVER_GOAL, "summarize"),  # N05
        Step(Slide(MARKER, share=0.5), When.OVER_GOAL, "truncate"),  # N06
        Step(TruncateToGoal(), When.OVER_GOAL, "truncate to goal"),
        Step(Slide(MARKER, share=0, skip_at=2, to_goal=True), When.OVER_GOAL, "truncate further"),
        Step(Slide(MARKER, share=0, first=0, skip_at=2, to_goal=True), When.OVER_GOAL, "truncate the first pair"),
        Step(CloseCalls(), When.DUE, "repair"),  # N16
        Step(Fit(asks=False), When.OVER_BUDGET, "fit"),  # after the results that a repair adds
        Step(Repair(), When.DUE, "repair messages"),
    ),
)

FORCED = Step(Slide(MARKER, share=0.5, skip_if_met=True), When.DUE, "truncate")
POLICY = replace(
    POLICY,
    after_overflow=replace(POLICY, goal=Share(0.70), steps=(*POLICY.steps[:3], FORCED, *POLICY.steps[4:])),  # N13
)
