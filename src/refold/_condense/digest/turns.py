"""Numbers the user's turns, so that every section of a digest names a turn in the same way."""

from __future__ import annotations

from itertools import accumulate, count
from typing import TYPE_CHECKING

from refold._condense.digest.previous import earlier_entries
from refold.core._speakers import is_turn
from refold.core.messages import MessageId, memoized, text_of

if TYPE_CHECKING:
    from refold.core.transcript import Transcript

__all__ = ["turn_ends", "turn_numbers", "turns_at"]


@memoized
def turn_numbers(transcript: Transcript) -> dict[MessageId, int]:
    """Return the numbers of the user's turns, from 1; turns that a digest quotes keep the numbers it gives them."""
    taken = earlier_entries(transcript).turns
    numbers = (number for number in count(1) if number == 1 or number not in taken)
    return {message.id: next(numbers) for message in transcript.messages if is_turn(message)}


@memoized
def turns_at(transcript: Transcript) -> tuple[int, ...]:
    """Return for each message of a transcript the number of the user's turn that it belongs to; 0 before the first."""
    numbers = turn_numbers(transcript)
    return tuple(accumulate((numbers.get(message.id, 0) for message in transcript.messages), max))


@memoized
def turn_ends(transcript: Transcript) -> frozenset[MessageId]:
    """Return the answers that end a turn: no call follows them before the user speaks again."""
    ends: list[MessageId] = []
    ending = True
    for message in reversed(transcript.messages):
        if is_turn(message):
            ending = True
        elif message.role == "assistant":
            if ending and not message.calls and text_of(message).strip():
                ends.append(message.id)
            ending = False
    return frozenset(ends)
