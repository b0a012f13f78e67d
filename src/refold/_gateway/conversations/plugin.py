"""Interface between the planner and a plug-in that adds a plan of its own to a request.

The planner decides when a conversation is compacted. A plug-in has something else that must become a plan before the
next request is sent; deferred recall is the one there is. The planner calls the two methods of `RequestPlugin`, and a
plug-in calls back only through `PlanActions`: neither imports the other, and `None` in place of a plug-in is valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from refold._gateway.conversations.budgets import Bound
    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.wire.routes import Dialect
    from refold.core.policy import Policy

__all__ = ["CompactionTarget", "PlanActions", "RequestPlugin"]


class CompactionTarget(Struct, frozen=True):
    """A conversation with its limits and the model that a request names; `actor` is who acts on it by hand."""

    conversation: Conversation
    dialect: Dialect
    bound: Bound
    model: str
    actor: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What the session of the conversation saves."""
        return self.bound.settings(self.model)


class PlanActions(Protocol):
    """What a plug-in may do with a conversation; the caller holds the conversation's lock."""

    async def read(self, target: CompactionTarget) -> None:
        """Read and count the messages that are new."""

    async def sync_plans(self, target: CompactionTarget) -> bool:
        """Take over plans that other processes made; return whether there were any."""

    async def force(self, target: CompactionTarget, policy: Policy) -> None:
        """Make a plan by a policy and activate it, whatever the size of the conversation.

        Raises:
            CompactionAborted: no plan was made.
        """


class RequestPlugin(Protocol):
    """What may add a plan of its own before a request is sent."""

    async def apply_pending(self, target: CompactionTarget, actions: PlanActions, *, patient: bool = False) -> bool:
        """Activate a plan for this request; return whether there was one. Never raises.

        With `patient`, a compaction is about to begin in the background: what has no room waits for it.
        """

    def has_pending(self, conversation: Conversation) -> bool:
        """Return whether something still waits for this very request."""
