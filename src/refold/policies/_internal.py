"""Policies that refold itself runs: repair, and stripping media after a refusal."""

from __future__ import annotations

from refold.core.policy import Policy, Step
from refold.stages.close_calls import CloseCalls
from refold.stages.mend import Mend
from refold.stages.strip_media import StripMedia

__all__ = ["REPAIR", "REPAIR_REQUEST", "STRIP_MEDIA"]


def _repair(*, pending: bool) -> Policy:
    pairs = Step(
        CloseCalls("[Result unavailable: none was recorded]", "[Call of {tool} was not recorded]", pending=pending),
        label="repair",
    )
    mend = Step(Mend(), label="mend")
    return Policy("repair", (pairs, mend, mend, pairs))  # mend twice: a call may have two faults


REPAIR = _repair(pending=True)  # of a conversation that may rest on calls which wait for their results
# of a request: a call at its end gets a result as well; should the real one come later, this one gives way to it
REPAIR_REQUEST = _repair(pending=False)
STRIP_MEDIA = Policy("strip-media", (Step(StripMedia(), label="strip media"),))
