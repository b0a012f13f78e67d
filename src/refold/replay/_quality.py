"""What a policy's view still holds, judged at the same places of a recording for every policy."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.replay import _judge as judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.replay._timeline import Timeline

__all__ = ["HORIZON", "CutPoint", "Quality", "cuts_of", "judged"]

CUTS = 12  # places of a recording that are judged
HORIZON = 80  # messages after a cut that say what was needed


class CutPoint(Struct, frozen=True, dict=True):
    """A place to judge: before which call, the messages before it, and what the rest needed of them."""

    call: int
    history: tuple[Message, ...]
    needed: dict[str, float]
    anchors: tuple[str, ...]

    @classmethod
    def at(cls, messages: Sequence[Message], length: int, call: int = 0) -> CutPoint:
        """Return the cut after a number of messages."""
        history, future = tuple(messages[:length]), messages[length : length + HORIZON]
        return cls(call, history, judge.needed_atoms(history, future), judge.edit_anchors(history, future))

    @cached_property
    def ages(self) -> dict[str, int]:
        """In which tenth of the history each atom was last mentioned."""
        return judge.ages_of(self.history)


class Quality(Struct, frozen=True, array_like=True):
    """Figures at one cut: shares from 0 to 1, but for `density`; None where nothing was asked for.

    `recall` of what the rest needed, `recoverable`: that, and half of what a pointer leads to, `lost` without one,
    `anchors`: lines that later edits quote, `trail` and `trail_precision`: files that were changed, `constraints` kept
    word for word, `copied`: atoms that are not invented, `valid`: 1 where no provider's rule was broken, `age`: how
    far the ages of what was kept are from those of what was needed, `repeated`: runs of lines that stand there twice,
    `density`: weight of what was needed in a thousand tokens.
    """

    call: int
    recall: float
    lost: float
    anchors: float | None
    trail: float
    trail_precision: float
    constraints: float
    copied: float
    recoverable: float = 1.0
    valid: float = 1.0
    age: float = 0.0
    repeated: float = 0.0
    density: float = 0.0


def cuts_of(line: Timeline) -> tuple[CutPoint, ...]:
    """Return the places to judge: spread over the calls, those after which something was needed."""
    step = max(len(line.beats) // CUTS, 1)
    calls = range(step, len(line.beats), step)
    cuts = [CutPoint.at(line.transcript.messages, line.beats[call].covers, call) for call in calls]
    return tuple(cut for cut in cuts if cut.needed)


def judged(cut: CutPoint, view: Sequence[Message], tokens: int, broken: int = 0) -> Quality:
    """Judge a view of the messages before a cut, of a number of tokens, that breaks a number of provider's rules."""
    recalled = judge.recall(cut.needed, cut.history, view)
    precision, trail = judge.artifact_trail(cut.history, view)
    figures = (
        *(trail, precision, judge.constraints_kept(cut.history, view), judge.copy_precision(cut.history, view)),
        *(recalled.recoverable, float(not broken), judge.age_gap(cut.needed, cut.ages, view), judge.repeated(view)),
        1_000 * recalled.present * sum(cut.needed.values()) / max(tokens, 1),
    )
    anchors = round(judge.lines_kept(cut.anchors, view), 4) if cut.anchors else None
    return Quality(
        cut.call, round(recalled.present, 4), round(recalled.lost, 4), anchors, *(round(each, 4) for each in figures)
    )
