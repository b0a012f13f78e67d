"""The state of a track as a string, for the state store of a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold.core._plan_json import dump_plan, load_plan
from refold.core.plan import Plan, PlanId, remaining_plans
from refold.errors import UnreadablePlan

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Phase", "TrackState", "dump_state", "load_state", "rewind_state"]

VERSION = 1


class Phase(Struct, frozen=True, array_like=True):
    """What the answers from one native message on were produced under: active plans, and a digest of the settings."""

    start: int
    plans: tuple[PlanId, ...]
    settings: str = ""


class TrackState(Struct, frozen=True):
    """What a track has to remember besides the messages, which the framework stores.

    `plans` are the active ones, oldest first. `former` are plans that were taken back, and `phases` the order in which
    plans were active: both only for a model that binds thinking to what stands before it. `window` is the context
    window in tokens that a refusal has told, where it is smaller than the one configured.
    """

    plans: tuple[Plan, ...] = ()
    former: tuple[Plan, ...] = ()
    phases: tuple[Phase, ...] = ()
    window: int | None = None


class _StateFile(Struct, frozen=True, omit_defaults=True):
    refold_track: int
    plans: tuple[msgspec.Raw, ...] = ()
    former: tuple[msgspec.Raw, ...] = ()
    phases: tuple[Phase, ...] = ()
    window: int | None = None


def dump_state(state: TrackState) -> str:
    """Return a state as JSON text; empty where there is nothing to remember."""
    if state == TrackState():
        return ""
    stored = _StateFile(VERSION, _raw(state.plans), _raw(state.former), state.phases, state.window)
    return msgspec.json.encode(stored).decode()


def load_state(text: str) -> TrackState:
    """Return the state that JSON text has.

    Raises:
        UnreadablePlan: it is not the state of a track, is damaged, or was written by a later version.
    """
    if not text:
        return TrackState()
    try:
        stored = msgspec.json.decode(text, type=_StateFile)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise UnreadablePlan(f"this is not the state of a track: {error}") from error
    if stored.refold_track > VERSION:
        raise UnreadablePlan(
            f"this state has version {stored.refold_track}, this release reads up to {VERSION}: install a newer refold"
        )
    plans, former = (tuple(load_plan(bytes(raw)) for raw in raws) for raws in (stored.plans, stored.former))
    return TrackState(plans, former, stored.phases, stored.window)


def rewind_state(state: str, to: int = -1) -> str:
    """Return the state of a track with fewer plans, so that the next request has the originals again.

    `to` is how many plans stay, 0 for none; negative counts from the end, so the default takes back the newest. The
    next call plans anew where the policy finds that due: give it a larger window to see the originals.

    Raises:
        UnreadablePlan: it is not the state of a track.
        UsageError: there are not so many plans.

    Added in 0.1.0.
    """
    return dump_state(rewound_state(load_state(state), to))


def rewound_state(state: TrackState, to: int) -> TrackState:
    """Return a state with fewer active plans; those that were taken back are remembered where phases name them.

    Raises:
        UsageError: there are not so many plans.
    """
    count = remaining_plans(len(state.plans), to)
    named = {id for phase in state.phases for id in phase.plans}
    former = (*state.former, *(plan for plan in state.plans[count:] if plan.id in named))
    return replace(state, plans=state.plans[:count], former=former)


def _raw(plans: Sequence[Plan]) -> tuple[msgspec.Raw, ...]:
    return tuple(msgspec.Raw(dump_plan(plan)) for plan in plans)
