"""Marks who speaks in a message that has become one with what stands before it.

Where roles alternate, neighbors of one side are written as one message. If the answer between them has left, the words
of a user follow output of tools, the words of a harness or those of the turn before, and nothing shows where they
begin. A mark of ours stands before them then, with the number of the turn as the digest names it. The newest turn is
marked as the current request. Turns that stood side by side from the start are not marked, but where output before one
was cut: then the output has no end of its own.

In the same way the text of a skill or of a summary, which no tags stand around, would follow a user's words as if it
was said by the user: a mark says that the harness speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.digest.turns import turn_numbers
from refold.core._speakers import is_turn, speech
from refold.core.messages import Note, Text, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold._condense.fit_draft import Draft
    from refold.core.edits import Insert
    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["becomes_one", "is_speaker_mark", "room_for_marks", "speaker_marks"]

# Both are known to core._annotations, where a client sends them back.
OPENINGS = OPENING, HARNESS = "[The user speaks: turn ", "[Not the user: "
SPAN_NAMES = {"command": "the text of a command or skill", "recap": "a summary of the earlier context"}
NEWEST = ", the current request"
SIDE = ("user", "tool")  # the roles that are one where roles alternate
SHARE = 0.015  # of the goal that marks may take; chosen by hand
COST = 16  # tokens of a mark as a message, at most


def is_speaker_mark(message: Message) -> bool:
    """Tell whether a message is such a mark, whether inserted or sent back by a client."""
    return message.note is not None and message.note.kind == "notice" and text_of(message).startswith(OPENINGS)


def room_for_marks(view: View) -> int:
    """Return the tokens that marks may take: none where no neighbors are joined, or where one turn is all."""
    marked = (is_turn(message) or bool(_harness(message)) for message in view.messages[1:])
    return min((sum(marked) if view.traits.alternates else 0) * COST, int(view.goal_tokens * SHARE))


def speaker_marks(draft: Draft, digest: Insert | None, room: int) -> tuple[Insert, ...]:
    """Return the marks for the messages that stay, as many as have room, the newest first."""
    view = draft.view
    marks: list[Insert] = []
    for insert in reversed(list(_marks(draft, digest)) if view.traits.alternates else ()):
        room -= view.counter.message(insert.message)
        if room < 0:
            break
        marks.append(insert)
    return tuple(reversed(marks))


def _marks(draft: Draft, digest: Insert | None) -> Iterator[Insert]:
    view = draft.view
    numbers = turn_numbers(view.transcript)
    newest = max(numbers, key=numbers.__getitem__, default=None)
    before: Message | None = None
    for message, hidden in zip(draft.messages, draft.hidden, strict=True):
        if digest and digest.before == message.id:
            before = digest.message
        if hidden or not message.parts:
            continue
        number = numbers.get(message.id)
        if before and before.role in SIDE and not _is_marked(message) and not is_speaker_mark(before):
            apart = not _side_by_side(view, before, message)
            text = ""
            if number and (apart or (before.results and before.patches)):
                text = f"{OPENING}{number}{NEWEST if message.id == newest else ''}]"
            elif apart and not number and (name := _harness(message)):
                text = f"{HARNESS}{name}]"
            if text:
                yield view.insert("user", text, Note("notice"), before=message.id)
        before = message


def _harness(message: Message) -> str:
    """Return what a harness says without tags around it in a message that is no turn, or nothing."""
    if message.role != "user" or message.note is not None:
        return ""
    untagged = (span for one in speech(message).harness for span in one.spans if not span.opening.startswith("<"))
    return next((SPAN_NAMES[span.kind] for span in untagged if span.kind in SPAN_NAMES), "")


def becomes_one(view: View, first: Message, second: Message, *, apart: bool) -> bool:
    """Tell whether a message that stays becomes one with what stays before it; with `apart` the digest is between."""
    if not (view.traits.alternates and first.role in SIDE and second.role in SIDE):
        return False
    return bool(apart or first.patches or second.patches) or not _side_by_side(view, first, second)


def _side_by_side(view: View, first: Message, second: Message) -> bool:
    index = view.transcript.index
    return first.id in index and second.id in index and index[second.id] - index[first.id] == 1


def _is_marked(message: Message) -> bool:
    return any(isinstance(part, Text) and part.ours and part.text.startswith(OPENINGS) for part in message.parts)
