"""Says at the end of a digest which turns of the user begin a message, and how much left between them, by turn.

A digest names turns by number, and the messages behind it have none. What stays of a long turn stands side by side in
the view, and nothing shows that messages are missing between two of them: they read as if one followed the other.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from refold._condense.digest.previous import END, own_text, turns_standing
from refold._condense.digest.render import SMALL_GOAL, share_of
from refold._condense.digest.turns import turn_numbers, turns_at
from refold._condense.speaker_marks import becomes_one

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from refold.core.messages import Message, MessageId
    from refold.core.view import View

__all__ = ["room_for_count", "with_count"]

# (room for the transcript as a share of its size, share of the goal for the count), and tokens that it may take. At a
# tenth it has what is left over: there a line of an answer is worth more.
SHARES, MOST_TOKENS = ((0.1, 0.0), (0.25, 0.0025), (0.5, 0.0025)), 56
# Tokens of the shortest count, and the goal in tokens of which that is a quarter of a percent: from there it is kept
# whatever the share, since a system prompt may take most of a goal and leave the transcript little.
SHORTEST, SHORTEST_GOAL = 32, 12_800
# Tokens kept for the turns that stand: for each, the share of the goal that is the most, and the goal from which any
# are. Where they take more, they have what is left over.
TURN_TOKENS, TURNS_SHARE, TURNS_GOAL = 3, 0.008, 8_000
BORDERS = 4  # tokens more that a text may have with the count in it
FEWEST = 3  # missing messages that are worth a word
MANY = 24  # turns from which they are counted in runs


def room_for_count(view: View) -> int:
    """Return the tokens that are kept for turns and count; none where little has room at all."""
    if view.goal_tokens < SMALL_GOAL:
        return 0
    least = SHORTEST if view.goal_tokens >= SHORTEST_GOAL else 0
    count = min(max(int(view.goal_tokens * share_of(view, SHARES)), least), MOST_TOKENS)
    turns = TURN_TOKENS * (len(turn_numbers(view.transcript)) - 1) if view.goal_tokens >= TURNS_GOAL else 0
    return count + max(min(turns, int(view.goal_tokens * TURNS_SHARE)), 0)


def with_count(view: View, digest: str, staying: Sequence[Message], room: int, before: MessageId | None = None) -> str:
    """Return the text of a digest with what stands and left of turns among the messages that stay, if there is room.

    The digest stands before the message `before`. What left is counted turn by turn; where that takes too much, turns
    in a row of which most is missing are one, or all.
    """
    numbers = _standing(view, staying, before) if view.goal_tokens >= SMALL_GOAL else []
    if numbers and len(numbers) < max(turn_numbers(view.transcript).values()):  # else they count up from one
        sentence = f". {turns_standing(numbers)}"
        if (size := view.counter.text(sentence) + BORDERS) <= room:
            digest, room = _ended(digest, sentence), room - size
    whole, left = _counted(view, {message.id for message in staying})
    each = [[turn] for turn in whole]
    runs = [[*run] for _, run in groupby(whole, key=lambda turn: 2 * left[turn] >= whole[turn])]
    for spans in (each, runs, [[*whole]]) if len(each) < MANY else (runs, [[*whole]]):
        if words := ", ".join(_words(spans, whole, left)):
            count = f". Left out in between, in messages by user turn: {words}"
            if view.counter.text(count) + BORDERS <= room:
                return _ended(digest, count)
    return digest


def _ended(digest: str, words: str) -> str:
    """Return a digest with words at the beginning of its end mark."""
    before, _, behind = digest.rpartition(END)
    return f"{before}{END}{words}{behind}"


def _standing(view: View, staying: Sequence[Message], before: MessageId | None) -> list[int]:
    """Return the numbers of the user's turns that stay, in order; of those that become one message that of the first.

    A copy of a turn has its number, too: sent back it is a turn.
    """
    numbers = turn_numbers(view.transcript)
    copied = {own_text(message): numbers[message.id] for message in view.transcript.messages if message.id in numbers}
    standing: list[int] = []
    last: Message | None = None
    counted = False  # whether the message as it will be sent has a turn already
    for message in staying:
        counted = counted and last is not None and becomes_one(view, last, message, apart=message.id == before)
        number = numbers.get(message.id) or copied.get(own_text(message), 0)
        if number and message.role == "user" and not counted:
            standing.append(number)
            counted = True
        last = message
    return standing


def _counted(view: View, staying: AbstractSet[MessageId]) -> tuple[dict[int, int], dict[int, int]]:
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
