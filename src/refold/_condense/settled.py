"""Finds outputs that later ones settled: a failure that went well later, and an older output of the same command.

Kept without the later one they tell what no longer holds: a closed error reads as open, an old status as the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.call_facts import SUBJECT, is_shell, reads, subject, workdir
from refold._condense.digest.outcomes import answered, failed, passed_since
from refold._condense.digest.targets import targets_of
from refold.core.messages import memoized

if TYPE_CHECKING:
    from refold._condense.digest.targets import Target
    from refold.core.messages import MessageId, Path, ToolCall
    from refold.core.view import View

__all__ = ["settled"]


@memoized
def settled(view: View) -> frozenset[tuple[MessageId, Path]]:
    """Return the places of outputs that a later one settles.

    A failure settles no earlier output that told of success, for what the command shows is known from that.
    """
    places: set[tuple[MessageId, Path]] = set()
    passing: set[object] = set()  # what later calls ask that went well
    later_keys: set[object] = set()  # what later calls ask
    since: list[Target] = []
    for message in reversed(view.transcript.messages):
        for call, result in answered(view, [message]):
            bad, key = failed(call, result), _question_of(call)
            if (key and key in (later_keys if bad else passing)) or (bad and passed_since(call, result, since)):
                places.add((message.id, result.at))
            if key:
                later_keys.add(key)
            if not bad:
                passing.update((key,) if key else ())
                since += targets_of(call)
    return frozenset(places)


def _question_of(call: ToolCall) -> object:
    """Return what an output answers, where the same asked again gets the same or a newer answer; nothing else."""
    command = subject(call)[0]
    if is_shell(call):
        return (command, workdir(call)) if 0 < len(command) < SUBJECT else None
    return (call.name, call.arguments) if reads(call) else None
