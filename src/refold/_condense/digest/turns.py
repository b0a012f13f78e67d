"""Numbers the user's turns, so that every section of a digest names a turn in the same way, and tells which ended.

A turn ends with an answer. Where the user speaks again while the agent works, what the agent said last is none: it says
what is done next. The work then goes on in the next turn (`turns_in_work`).
"""

from __future__ import annotations

import re
from itertools import accumulate, chain, count
from typing import TYPE_CHECKING

from refold._condense.digest.announcements import SENTENCE
from refold._condense.digest.previous import earlier_entries, turns_before
from refold._condense.text_calls import text_call
from refold.core._speakers import is_commentary, is_turn
from refold.core.messages import MessageId, memoized, text_of

if TYPE_CHECKING:
    from refold.core.messages import Message
    from refold.core.transcript import Transcript

__all__ = ["goes_on_at_once", "turn_ends", "turn_numbers", "turns_at", "turns_in_work"]

LOOKED_AT = 400  # characters at the end of an answer that say whether more was to come
# How the last sentence of an answer says that the work goes on at once.
GOES_ON = re.compile(
    r"\b(?:let me (?!know\b)|let['’]s (?:now |first )?\w+|now (?:I|let)\b|I['’]m (?:now |also |still |currently )?"
    r"(?!waiting|ready|happy|assuming|hoping|thinking)[a-z]+ing\b|I am (?:now |also |still )?(?!waiting)[a-z]+ing\b|"
    r"I(?:['’]ll| will| need to| have to) (?!wait|be |need|let you|leave|stop|stay|hold|continue when)|"
    r"ich (?:werde|prüfe|schaue|lese) (?:jetzt|nun)|je vais|voy a|vou)|接下来我|现在我|让我|次に",
    re.I,
)
# One of these stands in what it finds in ASCII, in small letters: most sentences have none, and need no search.
GOING_ON = ("let", "now ", "i'm ", "i am ", "i'll ", "i will ", "i need", "i have", "ich ", "je ", "voy ", "vou")
WAITS = re.compile(  # that it waits for the user
    r"\b(?:if you|when you|once you|whenever|until you|unless you|just say|say the word|wenn (?:du|sie)|si (?:vous|tu|"
    r"quieres|lo)|se você|tell me)\b|如果|要是|よければ|"
    r"^\W*(?:say|give|pick|choose|confirm|send|share|reply|answer|approve|paste|point|name|show|gib|sag|nenne|dites|"
    r"donne|dime|elige)\b.*\band\b",
    re.I,
)


@memoized
def turn_numbers(transcript: Transcript) -> dict[MessageId, int]:
    """Return the numbers of the user's turns, from 1; turns keep the numbers that an earlier digest gives them."""
    taken, standing = earlier_entries(transcript).turns, turns_before(transcript)
    new = count(max((*standing, *taken)) + 1) if standing else (n for n in count(1) if n == 1 or n not in taken)
    numbers = chain(standing, new)
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
    by_words = not any(message.calls for message in transcript.messages)  # a command in an answer is a call
    for message in reversed(transcript.messages):
        if is_turn(message):
            ending = True
        elif message.role == "assistant":
            acts = message.calls or (by_words and text_call(message) is not None)
            if ending and not acts and text_of(message).strip() and not goes_on_at_once(message):
                ends.append(message.id)
            ending = False
    return frozenset(ends)


@memoized
def goes_on_at_once(message: Message) -> bool:
    """Tell whether an answer was said on the way: the provider says so, or its last sentence says what is done next."""
    if is_commentary(message):
        return True
    text = text_of(message)[-LOOKED_AT:].rstrip()
    if text.isascii() and not any(map(text.lower().__contains__, GOING_ON)):
        return False
    last = next((each for each in reversed(SENTENCE.split(text)) if each.strip(" -*#>`_|")), "")
    asks = last.rstrip(" *_`").endswith(("?", "？"))
    return not asks and GOES_ON.search(last) is not None and WAITS.search(last) is None


@memoized
def turns_in_work(transcript: Transcript) -> frozenset[int]:
    """Return the numbers of the newest turn and of those right before it that no answer has ended."""
    turns, ends = turns_at(transcript), turn_ends(transcript)
    if not turns:
        return frozenset()
    ended = {turn for message, turn in zip(transcript.messages, turns, strict=True) if message.id in ends}
    open_turns = {turns[-1]}
    for turn in sorted(set(turns) - {turns[-1]}, reverse=True):
        if turn in ended or turn == 0:
            break
        open_turns.add(turn)
    return frozenset(open_turns)
