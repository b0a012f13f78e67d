"""Says at the end of a digest how much left between the messages behind it, by turn of the user.

What stays of a long turn stands side by side in the view, and nothing shows that messages are missing between two of
them: they read as if one followed the other.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from refold._condense.digest.previous import END
from refold._condense.digest.render import SMALL_GOAL, share_of
from refold._condense.digest.turns import turns_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from refold.core.messages import MessageId
    from refold.core.view import View

__all__ = ["room_for_count", "with_count"]

# (room for the transcript as a share of its size, share of the goal for the count), and tokens that it may take. At a
# tenth it has what is left over: there a line of an answer is worth more.
SHARES, MOST_TOKENS = ((0.1, 0.0), (0.25, 0.0025), (0.5, 0.0025)), 56
# Tokens of the shortest count, and the goal in tokens of which that is a quarter of a percent: from there it is kept
# whatever the share, since a system prompt may take most of a goal and leave the transcript little.
SHORTEST, SHORTEST_GOAL = 32, 12_800
BORDERS = 4  # tokens more that a text may have with the count in it
FEWEST = 3  # missing messages that are worth a word
MANY = 24  # turns from which they are counted in runs


def room_for_count(view: View) -> int:
    """Return the tokens that are kept for the count; none where little has room at all."""
    if view.goal_tokens < SMALL_GOAL:
        return 0
    least = SHORTEST if view.goal_tokens >= SHORTEST_GOAL else 0
    return min(max(int(view.goal_tokens * share_of(view, SHARES)), least), MOST_TOKENS)


def with_count(view: View, digest: str, staying: Iterable[MessageId], room: int) -> str:
    """Return the text of a digest with what left between the messages that stay, as far as there is room.

    Turns are counted one by one; where that takes too much, turns in a row of which most is missing are one, or all.
    """
    whole, left = _counted(view, frozenset(staying))
    each = [[turn] for turn in whole]
    runs = [[*run] for _, run in groupby(whole, key=lambda turn: 2 * left[turn] >= whole[turn])]
    before, _, behind = digest.rpartition(END)
    for spans in (each, runs, [[*whole]]) if len(each) < MANY else (runs, [[*whole]]):
        if words := ", ".join(_words(spans, whole, left)):
            count = f". Left out in between, in messages by user turn: {words}"
            if view.counter.text(count) + BORDERS <= room:
                return f"{before}{END}{count}{behind}"
    return digest


def _counted(view: View, staying: frozenset[MessageId]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the messages of each turn, and how many of them left."""
    whole: dict[int, int] = {}
    left: dict[int, int] = {}
    for message, turn in zip(view.transcript.messages, turns_at(view.transcript), strict=True):
        if message.note is None and message.role != "system":
            whole[turn] = whole.get(turn, 0) + 1
            left[turn] = left.get(turn, 0) + (message.id not in staying)
    return whole, left


def _words(spans: Sequence[Sequence[int]], whole: Mapping[int, int], left: Mapping[int, int]) -> Iterator[str]:
    """Yield what is missing of each turn or run of turns of which some messages are."""
    for span in spans:
        missing, number = sum(left[turn] for turn in span), sum(whole[turn] for turn in span)
        if missing >= FEWEST:
            first = span[0] or "before 1"
            yield f"{first}{f' to {span[-1]}' if len(span) > 1 else ''} ({missing} of {number})"
