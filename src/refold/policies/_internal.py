"""Policies for refold's own use: repair, and removing media or reasoning after a provider error.

They run on demand only and compact nothing, hence no trigger: what is healthy stays, also before an anchor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core.budget import Never
from refold.core.policy import Policy, Step
from refold.stages.close_calls import CloseCalls
from refold.stages.drop_reasoning import DropReasoning
from refold.stages.repair import Repair
from refold.stages.strip_media import StripMedia

if TYPE_CHECKING:
    from refold.models.provider_errors import ProviderError

__all__ = ["REPAIR", "REPAIR_REQUEST", "STRIP_MEDIA", "drop_reasoning"]


def drop_reasoning(refusal: ProviderError) -> Policy:
    """Return the policy that removes the reasoning a provider has refused, and nothing else."""
    stage = DropReasoning(refusal.position or 0, refusal.provider == "google", refusal.item)
    return Policy("drop-reasoning", (Step(stage, label="drop reasoning"),), trigger=Never())


def _repair(*, pending: bool) -> Policy:
    pairs = Step(
        CloseCalls("[Result unavailable: none was recorded]", "[Call of {tool} was not recorded]", pending=pending),
        label="repair",
    )
    rules = Step(Repair(), label="repair messages")
    return Policy("repair", (pairs, rules, rules, pairs), trigger=Never())  # repaired twice: a call may have two faults


REPAIR = _repair(pending=True)  # of a conversation that may rest on calls which wait for their results
# of a request: a call at its end gets a result as well; should the real one come later, this one gives way to it
REPAIR_REQUEST = _repair(pending=False)
STRIP_MEDIA = Policy("strip-media", (Step(StripMedia(), label="strip media"),), trigger=Never())
