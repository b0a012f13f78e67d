"""How a digest ends: the request that the work is for, and a mark.

The digest stands near the beginning of the view. The newest request may be far below it, with many calls behind it, or
above it. So it is restated after all else, word for word, unless it is the last message or the next one below. The
mark is the last line: some formats join the digest with the turn of the user behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.digest.previous import CURRENT, END, entry, own_text
from refold._condense.digest.turns import turn_numbers
from refold._text.graphemes import grapheme_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message, MessageId
    from refold.core.view import View

__all__ = ["closing"]

REQUEST_SHARE = 0.12  # of a digest that the restated request may take
ABOVE_SHARE = 0.05  # where it stands right above the digest
LEAST = 40  # tokens of a beginning that is worth to be restated
SMALL = 600  # tokens of a digest that ends with the bare mark


def closing(view: View, staying: Sequence[Message], before: MessageId | None, limit: int) -> str:
    """Return the end mark of a digest, and before it the current request where that is not seen at once.

    The digest stands before the message `before`, or before what stays of those behind it.
    """
    request = next((each for each in reversed(view.transcript.messages) if _asks(each)), None)
    if request is None or limit < SMALL:
        return f"{END}]"
    turn = turn_numbers(view.transcript).get(request.id)
    named = f"user turn {turn}" if turn else "a copy of a user turn"
    if not staying:
        return f"{END}. The current request of the user is {named}.]"
    position = next((at for at, each in enumerate(staying) if each.id == request.id), -1)
    if position == len(staying) - 1:
        return f"{END}. Messages in full or shortened follow; the last of them is the current request, {named}.]"
    index = view.transcript.index
    place = index.get(before, 0) if before else 0
    below = next((at for at, each in enumerate(staying) if index.get(each.id, -1) >= place), len(staying))
    if position == below:
        return f"{END}. The current request, {named}, stands below, and the work on it after it.]"
    above = position < below
    where = "it stands above" if above else "it stands below, too, with the work on it after it"
    follows = (
        "The work on it follows" if above else "Messages from before it, the request itself and the work on it follow"
    )
    room = int(limit * (ABOVE_SHARE if above else REQUEST_SHARE))
    restated = _restated(view, own_text(request).strip(), f"## {CURRENT} ({named}; {where})", room)
    if not restated:
        return f"{END}. The current request is {named}: {where}.]"
    return "\n".join((*restated, "", f"{END}. {follows}, in full or shortened.]"))


def _asks(message: Message) -> bool:
    own = message.note is None or message.note.kind == "request"
    return message.role == "user" and own and bool(own_text(message).strip())


def _restated(view: View, text: str, heading: str, room: int) -> tuple[str, ...]:
    """Return a request under its heading, word for word: whole or its beginning, as there is room."""
    size = view.counter.text(text)
    if size <= room:
        return heading, entry(f'"{text}"')
    if room < LEAST:
        return ()
    beginning = grapheme_prefix(text, len(text) * room // size)
    return heading, entry(f'"{beginning}" […] (its beginning)')
