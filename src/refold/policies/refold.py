"""refold: pins, pointers for old output, removed tool-call groups, and a digest of what was removed; no model is
called.
"""

from msgspec.structs import replace

from refold.core.budget import Share, WhenItPays
from refold.core.policy import Policy, Step, When
from refold.core.usage_gauges import ReportedPlusTail
from refold.stages.close_calls import CloseCalls
from refold.stages.fit import Fit
from refold.stages.repair import Repair
from refold.stages.supersede import Supersede
from refold.stages.truncate_new import TruncateNew

CUT_IN = "[No result: the user's next message came before one]"

POLICY = Policy(
    name="refold",
    summary="Points to old output, keeps users' words, and says in a digest what left; fits what can be fitted.",
    trigger=WhenItPays(0.8),
    # at equal prices, deeper is cheaper; 60,000 tokens of tools leave room all the same
    goal=Share(0.4, min_message_share=0.35),
    gauge=ReportedPlusTail(doubt=0.6),  # chosen by hand: servers that cut a prompt report far less than was sent
    steps=(
        Step(
            TruncateNew(command_tokens=8_000), When.FIRST, "new output"
        ),  # before it is sent and cached, so this is free
        # before the fit, which then leaves no room unused and breaks nothing
        Step(CloseCalls(unanswered=CUT_IN), When.DUE, "repair"),
        Step(Repair(), When.DUE, "repair messages"),
        Step(Supersede(), When.OVER_GOAL),
        Step(Fit(), When.OVER_GOAL),
        Step(Repair(), When.DUE, "repair the rest"),
    ),
)
POLICY = replace(POLICY, after_overflow=replace(POLICY, goal=Share(0.35, min_message_share=0.3)))
