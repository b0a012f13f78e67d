"""refold: pins, pointers for old output, batches that leave, and a digest of what left; no model is asked."""

from msgspec.structs import replace

from refold.core.budget import Share
from refold.core.gauge import ReportedPlusTail
from refold.core.policy import Policy, Step, When
from refold.stages.fit import Fit
from refold.stages.supersede import Supersede

POLICY = Policy(
    name="refold",
    summary="The default: fits any goal that can be fitted, without a model, and says where the rest is.",
    trigger=Share(0.8, inclusive=True),
    goal=Share(0.5),
    gauge=ReportedPlusTail(doubt=0.6),
    steps=(
        Step(Supersede(), When.OVER_GOAL),
        Step(Fit(), When.OVER_GOAL),
    ),
)
POLICY = replace(POLICY, after_overflow=replace(POLICY, goal=Share(0.35), trigger=Share(0.0, inclusive=True)))
