"""The state of a track as a string, for the state store of a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold.adapt._plan_records import PlanRecord, Runs, items_of, plan_of, record_of, runs_of
from refold.core._decoders import decoder
from refold.core.plan import Plan, PlanId, remaining_plans
from refold.errors import UnreadablePlan

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Phase",
    "TrackState",
    "appended_lines",
    "dump_state",
    "joined_state",
    "load_state",
    "rewind_state",
    "rewound_state",
]

VERSION = 2
HEAD = f'{{"refold_track":{VERSION}'  # of a state


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


EMPTY = TrackState()


class _Line(Struct, frozen=True, omit_defaults=True):
    """A line of a stored state: what it adds to the lines before it, of which the newest plan is `after`.

    The first line has the version, and what there is. A state of version 1 is one line, without a line break.
    """

    refold_track: int = 0
    after: PlanId = PlanId("")
    plans: tuple[PlanRecord, ...] = ()
    former: tuple[PlanRecord, ...] = ()
    phases: tuple[tuple[int, Runs, str], ...] = ()
    window: int | None = None


_line = decoder(_Line)


def dump_state(state: TrackState, before: TrackState = EMPTY, text: str = "") -> str:
    """Return a state as lines of JSON; empty where there is nothing to remember.

    The lines of the state before it, `text`, stay where it only adds to that, so that what is new is at the end.
    """
    if state == EMPTY:
        return ""
    if not text.startswith(HEAD) or not text.endswith("\n") or not _adds(state, before):
        before, text = EMPTY, ""
    if state == before:
        return text
    count, ids = len(before.plans), [plan.id for plan in state.plans]
    line = _Line(
        refold_track=0 if text else VERSION,
        after=ids[count - 1] if text and count else PlanId(""),
        plans=tuple(record_of(plan, state.plans[:at]) for at, plan in enumerate(state.plans) if at >= count),
        former=tuple(PlanRecord(plan) for plan in state.former[len(before.former) :]),
        phases=tuple(
            (phase.start, runs_of(phase.plans, ids), phase.settings) for phase in state.phases[len(before.phases) :]
        ),
        window=state.window,
    )
    return f"{text}{msgspec.json.encode(line).decode()}\n"


def load_state(text: str) -> TrackState:
    """Return the state that lines of JSON have.

    Lines that do not follow the ones before them are passed over: their plans were made for a history that had more.

    Raises:
        UnreadablePlan: it is not the state of a track, is damaged, or was written by a later version.
    """
    if not text:
        return EMPTY
    try:
        first, *others = [_line(line) for line in text.removesuffix("\n").split("\n")]
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise UnreadablePlan(f"this is not the state of a track: {error}") from error
    if not first.refold_track:
        raise UnreadablePlan("this is not the state of a track: its first line has no `refold_track`")
    if first.refold_track > VERSION:
        raise UnreadablePlan(
            f"this state has version {first.refold_track}, this release reads up to {VERSION}: install a newer refold"
        )
    state = EMPTY
    for line in (first, *others):
        if line.after == (state.plans[-1].id if state.plans else ""):
            state = _added(state, line)
    return state


def appended_lines(state: str, before: str) -> str:
    """Return what to store of a state after the one before it: the new lines, or all where others have changed."""
    return state.removeprefix(before)


def joined_state(pieces: Iterable[str]) -> str:
    """Return the state of which `appended_lines` returned pieces, oldest first."""
    lines: list[str] = []
    for piece in pieces:
        if not piece or piece.startswith('{"refold_track"'):  # all of a state
            lines = [piece]
        elif lines:
            lines.append(piece)
    return "".join(lines)


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


def _adds(state: TrackState, before: TrackState) -> bool:
    """Tell whether a state has all that the one before it had, and perhaps more."""
    pairs: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = [
        (state.plans, before.plans), (state.former, before.former), (state.phases, before.phases)
    ]  # fmt: skip
    return all(new[: len(old)] == old for new, old in pairs) and not (before.window and not state.window)


def _added(state: TrackState, line: _Line) -> TrackState:
    plans = list(state.plans)
    for record in line.plans:
        plans.append(plan_of(record, plans))
    ids = [plan.id for plan in plans]
    phases = (Phase(start, tuple(map(PlanId, items_of(runs, ids))), settings) for start, runs, settings in line.phases)
    former = (plan_of(record, ()) for record in line.former)
    return TrackState(
        tuple(plans), (*state.former, *former), (*state.phases, *phases), line.window or state.window
    )  # fmt: skip
