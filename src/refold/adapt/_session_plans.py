"""Keeps the plans of a track in a session of a store, where a framework adds messages after they were sent."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from refold.adapt._state import TrackState, dump_state
from refold.errors import StalePlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.adapt._track import Track
    from refold.core.plan import Plan, PlanId
    from refold.sessions import Session

__all__ = ["SessionPlans"]


class SessionPlans:
    """The plans of a session as the state of a track.

    A plan is made before a call, with messages that the framework adds to the session later: it waits until they are
    there. Plans for other messages than the session's (those of a nested agent) are not stored.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._configured = False
        self._waiting: tuple[Plan, ...] = ()
        self._known: tuple[list[PlanId], str] = [], ""  # plans, and the state of the track that has them

    @property
    def state(self) -> str:
        """The state of the track for this session."""
        plans = (*self._session.plans, *self._waiting)
        if (ids := _ids(plans)) != self._known[0]:
            self._known = ids, dump_state(TrackState(plans))
        return self._known[1]

    def keep(self, track: Track[Any]) -> None:
        """Store the plans of a track that the session does not have."""
        if not self._configured:  # another process measures the session by these
            self._session.configure(**track.settings)
            self._configured = True
        stored, ids = _ids(self._session.plans), _ids(track.plans)
        if ids[: len(stored)] == stored:
            self._waiting = track.plans[len(stored) :]
            self._known = ids, track.dump()
            self.store()

    def store(self) -> None:
        """Store the plans that wait for messages which are there now."""
        while self._waiting and self._waiting[0].base.length <= len(self._session.ids):
            plan, *later = self._waiting
            self._waiting = tuple(later)
            with suppress(StalePlan):
                self._session.adopt(plan)


def _ids(plans: Sequence[Plan]) -> list[PlanId]:
    """Return the ids of plans, which tell their content."""
    return [plan.id for plan in plans]
