"""What a policy's view still holds, judged at the same places of a recording for every policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold.replay import judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.replay.timeline import Timeline

__all__ = ["Cut", "Quality", "cuts_of", "judged"]

CUTS = 12  # places of a recording that are judged
HORIZON = 80  # messages after a cut that say what was needed


class Cut(Struct, frozen=True):
    """A place to judge: before which call, how many messages came before, and what the rest needed of them."""

    call: int
    length: int
    needed: dict[str, float]
    anchors: tuple[str, ...]


class Quality(Struct, frozen=True, array_like=True):
    """Shares from 0 to 1 at one cut.

    `recall` of what the rest needed, `lost` without a pointer, `anchors`: lines that later edits quote, `trail` and
    `trail_precision`: files that were changed, `constraints` kept word for word, `copied`: atoms that are not invented.
    """

    call: int
    recall: float
    lost: float
    anchors: float | None
    trail: float
    trail_precision: float
    constraints: float
    copied: float


def cuts_of(line: Timeline) -> tuple[Cut, ...]:
    """Return the places to judge: spread over the calls, those after which something was needed."""
    messages = line.transcript.messages
    step = max(len(line.beats) // CUTS, 1)
    found: list[Cut] = []
    for call in range(step, len(line.beats), step):
        length = line.beats[call].covers
        history, future = messages[:length], messages[length : length + HORIZON]
        needed = judge.needed_atoms(history, future)
        if needed:
            found.append(Cut(call, length, needed, judge.edit_anchors(history, future)))
    return tuple(found)


def judged(cut: Cut, history: Sequence[Message], view: Sequence[Message]) -> Quality:
    """Judge a view of the messages before a cut."""
    kept = judge.recall(cut.needed, history, view)
    precision, trail = judge.artifact_trail(history, view)
    return Quality(
        cut.call,
        round(kept.present, 4),
        round(kept.lost, 4),
        round(judge.lines_kept(cut.anchors, view), 4) if cut.anchors else None,
        round(trail, 4),
        round(precision, 4),
        round(judge.constraints_kept(history, view), 4),
        round(judge.copy_precision(history, view), 4),
    )
