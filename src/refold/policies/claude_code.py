"""learn-claude-code v5: old tool results are cleared on every call; near the limit everything becomes a summary.

The steps "truncate to goal" and "fit" are our additions: they fit an unfinished request that is larger than the goal,
and what could not be sent at all.
"""

from refold.core.budget import Reserve, Share
from refold.core.counting import CharCounter
from refold.core.policy import Policy, Step, When
from refold.stages.archive import Archive
from refold.stages.clear import Clear
from refold.stages.close_calls import CloseCalls
from refold.stages.fit import Fit
from refold.stages.repair import Repair
from refold.stages.replace_all import ReplaceAll
from refold.stages.restore import Restore
from refold.stages.truncate_to_goal import TruncateToGoal

ACTS = frozenset({"read", "write", "search", "run"})  # what the 8 tools of L02 do, whatever an agent calls its own
MICRO = Clear(
    "[Old tool result content cleared]", acts=ACTS, keep=3, larger_than=1_000, saving=20_000, net=False
)  # L02
REPLACE = ReplaceAll(
    "claude_code_summary",
    heading="[Conversation compressed]",
    acknowledgement="Understood. I have the summary of the conversation so far and go on from it.",
    max_tokens=2_000,  # L04
)

POLICY = Policy(
    name="claude-code",
    summary="Clears old tool results on every call; near the limit, a summary, an acknowledgement and recent files.",
    counter=CharCounter(4, floor=True),  # L11
    trigger=Share(1.0, minus=13_000, floor=0.25),  # L01, L03; the floor is ours: 13,000 may be a whole window
    goal=Share(0.50),
    reserve=Reserve(cap=20_000, given_cap=20_000),  # L01
    steps=(
        Step(MICRO, When.EVERY_CALL, "microcompact"),
        Step(Archive(), When.DUE, "archive"),
        Step(REPLACE, When.DUE, "auto-compact"),
        Step(Restore(files=5, each=5_000, total=50_000), When.DUE, "restore"),  # L05
        Step(TruncateToGoal(), When.OVER_GOAL, "truncate to goal"),
        Step(CloseCalls(), When.DUE, "repair"),
        Step(Fit(asks=False), When.OVER_BUDGET, "fit"),  # after the results that a repair adds
        Step(Repair(), When.DUE, "repair messages"),
    ),
)
