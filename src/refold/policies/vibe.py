"""Vibe, also called OpenClaw: everything but the system message becomes a summary with the last request in it.

The third and the fourth step are our additions: they fit a last request that is larger than the goal, and what could
not be sent at all.
"""

from refold.core.budget import Exactly, Share
from refold.core.policy import Policy, Step, When
from refold.core.usage_gauges import LastTotal
from refold.stages.close_calls import CloseCalls
from refold.stages.fit import Fit
from refold.stages.recount import Recount
from refold.stages.repair import Repair
from refold.stages.replace_all import ReplaceAll
from refold.stages.truncate_to_goal import TruncateToGoal

REPLACE = ReplaceAll(  # V05, V06
    "vibe_summary",
    heading="[Conversation summary — everything before it was compacted]",
    request="Last request from user was: {request}",
)

POLICY = Policy(
    name="vibe",
    summary="Replaces everything but the system message by a seven-section summary that ends with the last request.",
    gauge=LastTotal(),  # V01
    trigger=Exactly(200_000, inclusive=True),  # V01
    goal=Share(0.50),
    renews_session=True,  # V09
    steps=(
        Step(CloseCalls("Tool no response", acknowledge="Understood."), When.DUE, "clean"),  # V07
        Step(REPLACE, When.DUE, "compact"),
        Step(TruncateToGoal(), When.OVER_GOAL, "truncate to goal"),
        Step(Fit(asks=False), When.OVER_BUDGET, "fit"),
        Step(Repair(), When.DUE, "repair messages"),
        Step(Recount(max_tokens=16), When.DUE, "recount"),  # V08
    ),
)
