"""Divides a view by age: what is protected, which messages are removed together, and which are the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.view_positions import loop_start
from refold._rules.reasoning import SealedReasoning
from refold.core._speakers import STANDING, is_recap, is_turn, speech
from refold.core.messages import ToolCall, ToolResult, text_of

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["Regions", "opens_turn", "regions"]


class Regions(Struct, frozen=True):
    """Positions in a view.

    `segments` are ranges that can leave whole, in order, covering the view. `inner` are ranges of a tool loop that can
    leave while the answer that opened the loop, with the reasoning that the loop stands on, stays. `tail` is where the
    protected newest part begins, `users` are the turns' own messages, `fresh` is the newest turn's message with the
    results that no answer has followed yet, and their calls. `loop` is where the newest tool loop began: words beside
    results are a turn of the user's, but the loop goes on; -1 where there is none. `standing` are the messages in which
    a harness gives instructions for the last time, word for word: they never leave. `answers` are the messages with the
    assistant's last words before each next turn of the user and before the end: what the user read.
    `whole` is the newest turn's message where it has to stay whole, however long it is.
    """

    segments: tuple[range, ...]
    inner: tuple[range, ...]
    tail: int
    users: tuple[int, ...]
    fresh: frozenset[int]
    loop: int
    standing: frozenset[int] = frozenset()
    answers: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()


def regions(view: View, protected: int) -> Regions:
    """Return the regions of a view whose newest part is protected up to a number of tokens."""
    messages = view.messages
    segments = _segments(messages, view.cuts)
    fine = _fine(view, segments)
    starts = {segment.start for segment in segments}
    inner = tuple(part for part in fine if part.start not in starts)
    users = tuple(position for position, message in enumerate(messages) if opens_turn(message))
    standing = _standing(messages)
    fresh = _fresh(messages, fine, users) | (_unseen(messages) - standing)
    answers = _answers(messages, frozenset(users))
    tail = min(_tail(view, fine, protected), _newest_step(messages, fine, users))
    return Regions(segments, inner, tail, users, fresh, loop_start(messages), standing, answers)


def opens_turn(message: Message) -> bool:
    """Tell whether a message is a user's turn, our copy of one, or the summary of an earlier context."""
    return is_turn(message) or is_recap(message) or (message.note is not None and message.note.kind == "request")


def _answers(messages: Sequence[Message], users: frozenset[int]) -> tuple[int, ...]:
    """Return the messages with the assistant's last words before each turn of a user and before the end, in order."""
    answers: list[int] = []
    closes = True
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if position in users:
            closes = True
        elif closes and message.role == "assistant" and message.note is None and text_of(message).strip():
            answers.append(position)
            closes = False
    return tuple(reversed(answers))


def _fine(view: View, segments: tuple[range, ...]) -> tuple[range, ...]:
    """Cut also the tool loops that only a rule on reasoning holds together."""
    others = [rule for rule in view.rules if not isinstance(rule, SealedReasoning)]
    if len(others) == len(view.rules) or not any(len(segment) > 2 for segment in segments):
        return segments
    cuts = set(range(len(view.messages) + 1)).intersection(*(rule.cuts(view.messages) for rule in others))
    return _segments(view.messages, cuts)


def _segments(messages: Sequence[Message], cuts: Container[int]) -> tuple[range, ...]:
    """Cut at every place given that parts no call from its result."""
    reach = list(range(len(messages)))  # for each message: the last one that answers a call of it
    callers: dict[str, int] = {}
    for position, message in enumerate(messages):
        for call in message.calls:
            callers[call.call_id or call.name] = position
        for result in message.results:
            start = callers.get(result.call_id or result.name)
            if start is not None:
                reach[start] = position
        if position and _is_observation(message) and messages[position - 1].role == "assistant":
            reach[position - 1] = position
    segments: list[range] = []
    start = end = 0
    for position in range(len(messages)):
        end = max(end, reach[position])
        if end <= position and (position + 1 in cuts or position + 1 == len(messages)):
            segments.append(range(start, position + 1))
            start = position + 1
    return tuple(segments)


def _tail(view: View, segments: Sequence[range], protected: int) -> int:
    spent = 0
    tail = len(view.messages)
    for segment in reversed(segments):
        spent += sum(view.sizes[position] for position in segment)
        if spent > protected and tail < len(view.messages):
            break
        tail = segment.start
    return tail


def _newest_step(messages: Sequence[Message], segments: Sequence[range], users: Sequence[int]) -> int:
    """Return where the calls begin that only a user's words follow: no older step stays in place of the newest."""
    before = next((segment for segment in reversed(segments) if segment.start not in users), range(0))
    return before.start if _works(messages, before) else len(messages)


def _fresh(messages: Sequence[Message], segments: Sequence[range], users: Sequence[int]) -> frozenset[int]:
    last = segments[-1] if segments else range(0)
    waiting = (
        set(last) if len(messages) and messages[-1].role in ("tool", "assistant") and _works(messages, last) else ()
    )
    return frozenset({*users[-1:], *waiting})


def _is_observation(message: Message) -> bool:
    """Tell whether a message is the output of what the assistant wrote before it, where that is no call."""
    return message.role == "user" and not is_turn(message) and speech(message).kinds == {"output"}


def _standing(messages: Sequence[Message]) -> frozenset[int]:
    """Return the messages with instructions of a harness that none after them repeats word for word."""
    later: set[str] = set()
    standing: list[int] = []
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "user" and not speech(message).kinds.isdisjoint(STANDING):
            texts = {one.text.text for one in speech(message).harness}
            if not texts <= later:
                standing.append(position)
            later |= texts
    return frozenset(standing)


def _unseen(messages: Sequence[Message]) -> frozenset[int]:
    """Return the messages of a harness that no answer has followed yet."""
    unseen: list[int] = []
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "assistant":
            return frozenset([*unseen, position] if unseen and _is_observation(messages[-1]) else unseen)
        if message.role == "user" and message.note is None and not is_turn(message):
            unseen.append(position)
    return frozenset(unseen)


def _works(messages: Sequence[Message], positions: range) -> bool:
    """Tell whether these are a batch: calls, with or without results yet."""
    return any(isinstance(part, ToolCall | ToolResult) for position in positions for part in messages[position].parts)
