"""How a digest ends: the request that the work is for, and a mark.

The digest stands near the beginning of the view. The newest request may be far below it, with many calls behind it, or
above it. So it is restated after all else, word for word, unless it is the last message or the next one below. A
newest turn that only says to go on asks for nothing itself: the request that it goes on with stands there too, and the
proposal that it agrees to. The mark is the last line: some formats join the digest with the turn of the user behind it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import goes_on
from refold._condense.digest.answers import question_before, with_lead
from refold._condense.digest.endings import rejects
from refold._condense.digest.previous import CURRENT, END, entry, own_text
from refold._condense.digest.turns import turn_ends, turn_numbers
from refold._condense.directives import shortened
from refold.core.messages import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message, MessageId
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["closing"]

REQUEST_SHARE = 0.2  # of a digest that the restated request may take
ABOVE_SHARE = 0.05  # where it stands right above the digest
MOST = 500  # tokens of it: it stands in the view as well
LEAST = 40  # tokens of a part that is worth to be restated
UNFINISHED, BEFORE = 3, 160  # turns that lead to the request, and tokens of one that is told whole
BEGINNING = 300  # characters of a longer one
LONG_ADDRESS = re.compile(r"(https?://\S{40})\S{40,}")
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
    text, room = own_text(request).strip(), min(int(limit * REQUEST_SHARE), MOST)
    continued = _continued(view, request, room)
    position = next((at for at, each in enumerate(staying) if each.id == request.id), -1)
    last = position == len(staying) - 1  # or nothing stays
    mark = "Messages in full or shortened follow" if staying else f"The current request of the user is {named}"
    if last and continued:
        heading = f"## {CURRENT} ({named}; it is the last message)" if staying else f"## {CURRENT} ({named})"
        words = _restated(view, text, heading, room, whole=False) or (heading,)
        return "\n".join((*words, *continued, "", f"{END}. {mark}.]"))
    if last:
        return f"{END}. {mark}{f'; the last of them is the current request, {named}' if staying else ''}.]"
    index = view.transcript.index
    place = index.get(before, 0) if before else 0
    below = next((at for at, each in enumerate(staying) if index.get(each.id, -1) >= place), len(staying))
    if position == below and not continued:
        return f"{END}. The current request, {named}, stands below, and the work on it after it.]"
    above = position < below
    where = "it stands above" if above else "it stands below, too, with the work on it after it"
    follows = (
        "The work on it follows" if above else "Messages from before it, the request itself and the work on it follow"
    )
    room = min(int(limit * ABOVE_SHARE), MOST) if above else room
    seen = above and view.counter.text(text) <= MOST  # a longer one, with what was pasted into it, begins far above
    answered = ", which the last message answers" if _answered(view.transcript, request) else ""
    heading = f"## {CURRENT} ({named}{answered}; {where})"
    stays_whole = position >= 0 and text in text_of(staying[position])
    if stays_whole and not seen and view.counter.text(text) > room:
        restated: tuple[str, ...] = (heading, entry(f'"{one_line(text, BEGINNING)}" (how it begins)'))
    else:
        restated = _restated(view, text, heading, room, whole=seen)
    if not restated:
        return f"{END}. The current request is {named}: {where}.]"
    return "\n".join((*restated, *continued, "", f"{END}. {follows}, in full or shortened.]"))


def _answered(transcript: Transcript, request: Message) -> bool:
    """Tell whether the transcript ends with the answer to a request."""
    last = transcript.messages[-1]
    return last.id in turn_ends(transcript) and transcript.index.get(request.id, -1) < transcript.index[last.id]


def _continued(view: View, request: Message, room: int) -> tuple[str, ...]:
    """Return what a turn that only says to go on agrees to, and the request that it goes on with."""
    transcript = view.transcript
    question, speaker = question_before(transcript, request)
    in_words = with_lead(question, speaker) if speaker else question
    if not goes_on(request):
        answers = (entry(f'it answers the assistant: "{in_words}"'),) if in_words else ()
        return (*answers, *_leading_to(view, request))
    turns = turn_numbers(transcript)
    lines: list[str] = []
    if in_words:
        lines.append(entry(f'it agrees to what the assistant said: "{in_words}"'))
    before = transcript.messages[: transcript.index.get(request.id, 0)]
    asking = (each for each in reversed(before) if each.id in turns and not goes_on(each))
    earlier = next((each for each in asking if not question_before(transcript, each)[0]), None)
    if earlier is not None:
        heading = f"it goes on with user turn {turns[earlier.id]}"
        words = _restated(view, own_text(earlier).strip(), "", room, whole=False)
        lines.append(entry(f"{heading}: {words[1].removeprefix(entry(''))}" if words else heading))
    return tuple(lines)


def _leading_to(view: View, request: Message) -> Iterator[str]:
    """Yield the turns before a request that no answer ended, and the one that it corrects, the oldest first."""
    transcript, count = view.transcript, view.counter.text
    turns, ends = turn_numbers(transcript), turn_ends(transcript)
    earlier: list[Message] = []
    ended = False
    for message in reversed(transcript.messages[: transcript.index.get(request.id, 0)]):
        ended = ended or message.id in ends
        if message.id in turns and not goes_on(message):
            corrected = rejects(earlier[-1] if earlier else request)
            if (ended and not corrected) or len(earlier) == UNFINISHED:
                break
            earlier.append(message)
            ended = False
    for message in reversed(earlier):
        text = LONG_ADDRESS.sub(r"\1…", own_text(message).strip())
        words = one_line(text, BEGINNING) if count(text) > BEFORE else text
        yield entry(f'it follows on user turn {turns[message.id]}: "{words}"')


def _asks(message: Message) -> bool:
    own = message.note is None or message.note.kind == "request"
    return message.role == "user" and own and bool(own_text(message).strip())


def _restated(view: View, text: str, heading: str, room: int, *, whole: bool) -> tuple[str, ...]:
    """Return a request under its heading, word for word: as there is room whole, or what of it is to be done first.

    With `whole` it is restated whole or not at all: it stands right above.
    """
    count = view.counter.text
    if count(text) <= room:
        return heading, entry(f'"{text}"')
    if whole or room < LEAST or count(short := shortened(text, room, count, "request")) > room:
        return ()
    return heading, entry(f'"{short}" (in part)')
