"""Quotes users' messages in a digest: whole where there is room, else by sentence.

A turn of the user becomes one of three things. The first turn is the goal. A turn with pinned sentences (they forbid,
oblige or limit) is quoted whole under the constraints while it is short; of a longer one the pinned sentences are
quoted there, each on its own. Every other turn is a request: quoted whole, or its beginning. A short turn that answers
a question is quoted with it, also where the turn stays and the question leaves; one that only tells to go on is quoted
with the proposal that it agrees to, or not at all. Constraints come in this order: those that stand, those of requests
that were finished before another one began, those that a later turn replaced; the last two are marked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import goes_on
from refold._condense.digest.answers import question_before
from refold._condense.digest.direction import direction
from refold._condense.digest.previous import earlier_entries, own_text, quotations
from refold._condense.digest.turns import turn_numbers
from refold._condense.pins import CONSTRAINTS, pins_in, pins_of, standing_in
from refold._condense.replaced import replacements
from refold.core.messages import memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refold.core.messages import Message, MessageId
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["GOAL", "Quotes", "quotes"]

GOAL = "Goal (the first request)"
PINNED_SHARE = 0.4  # of a digest that pinned turns may have while they are quoted whole; chosen by hand
WHOLE_TURN = 600  # characters up to which a user's turn is quoted whole
PAST = ", of an earlier request"  # behind the turn of a constraint whose request was finished; `previous` reads it
# Words of sentences that hold for what comes, whatever was asked for in their turn.
STANDS = re.compile(
    r"\b(?:always|never|from now on|every|each|any|whenever|all|remember|in general|prefer\w*|as a rule|until|"
    r"immer|niemals|nie|ab jetzt|grundsätzlich|jede[rsnm]?|stets|toujours|jamais|désormais|dorénavant|chaque|"
    r"siempre|nunca|jamás|de ahora en adelante|cada|sempre|de agora em diante|mai|d['’]ora in poi|ogni|"
    r"всегда|никогда|впредь|кажд\w+)\b|常に|必ず|決して|今後|毎回|总是|总要|永远|始终|从现在|以后|每次|항상|절대|앞으로|매번",
    re.I,
)


class Quotes(Struct, frozen=True):
    """What users said, as lines: the first request, the others newest first, and what must survive word for word.

    `answers` are short answers that stay while the questions that they answer leave, newest first.
    """

    goal: tuple[str, ...]
    requests: tuple[str, ...]
    pinned: tuple[str, ...]
    answers: tuple[str, ...] = ()


def quotes(view: View, messages: Sequence[Message], staying: Sequence[Message], limit: int) -> Quotes:
    """Return what users said in messages that leave: turns whole where they take a fair part of the limit."""
    whole = _quoted(view, messages, staying, WHOLE_TURN)
    if view.counter.text("\n".join(whole.pinned)) > limit * PINNED_SHARE:
        return _quoted(view, messages, staying, 0)
    return whole


def _quoted(view: View, messages: Sequence[Message], staying: Sequence[Message], whole: int) -> Quotes:
    """Return quotations of turns: those of up to `whole` characters in full, of longer ones beginning and pins."""
    turn_of = turn_numbers(view.transcript)
    earlier = earlier_entries(view.transcript)
    finished = _finished(view.transcript)
    pinned = list(_pinned_before(earlier.lines(CONSTRAINTS), whole))
    speaking = (message for message in staying if message.role in ("user", "system"))
    quoted = {sentence for message in speaking for sentence in standing_in(message)}
    quoted.update(sentence for _, text in quotations(pinned) for sentence in pins_of(text))
    first: tuple[str, ...] = ()
    requests: list[str] = []
    replaced: dict[MessageId, dict[str, int]] = {}
    for each in replacements(view.transcript):
        replaced.setdefault(each.message, {})[each.sentence] = each.turn
    for message in messages:
        if message.id not in turn_of:
            continue
        text, turn = own_text(message).strip(), turn_of[message.id]
        short = len(text) <= whole
        later = replaced.get(message.id, {})
        sentences = [sentence for sentence in pins_in(message) if sentence not in quoted]
        quoted.update(sentences)
        past = "" if message.id not in finished or any(map(STANDS.search, sentences)) else PAST
        place = f"user turn {turn}{past if sentences else ''}{_replaced(text, later)}"
        question, _ = question_before(view.transcript, message)
        quote = (
            f'answer "{text}" to: "{question}" (user turn {turn})'
            if question
            else f'"{text}" ({place})'
            if short
            else f'"{one_line(text, WHOLE_TURN)}" (user turn {turn}{_replaced(text, later)}, beginning)'
        )
        if sentences and short:
            pinned.append(quote)
            continue
        for sentence in sentences:
            past = "" if message.id not in finished or STANDS.search(sentence) else PAST
            pinned.append(f'"{sentence}" (user turn {turn}{past}{_replaced(sentence, later)})')
        if goes_on(message) and not question:
            continue
        if text and turn == 1:
            first = (quote,)
        elif text:
            requests.append(quote)
    goal = earlier.lines(GOAL) or (*first, *direction(view.transcript))
    if not goal and not staying:
        goal = _beginning_of_first_turn(view, messages, turn_of)
    answers = tuple(_answers_below(view, staying, turn_of))
    return Quotes(goal, tuple(reversed(requests)), tuple(sorted(pinned, key=_standing_first)), answers)


def _standing_first(line: str) -> int:
    """Return where a constraint comes: those that stand before those of finished requests and those replaced."""
    place = line[line.rfind('" (') :]
    return 2 if ", replaced in" in place else 1 if PAST in place else 0


@memoized
def _finished(transcript: Transcript) -> frozenset[MessageId]:
    """Return the turns that an answer ended before another request began, but the first and those that replace some."""
    numbers = turn_numbers(transcript)
    standing = {1, *(each.turn for each in replacements(transcript))}
    finished: set[MessageId] = set()
    ended = another = closes = False
    for message in reversed(transcript.messages):
        if message.id in numbers:
            if ended and another and numbers[message.id] not in standing:
                finished.add(message.id)
            another = another or not (goes_on(message) or question_before(transcript, message)[0])
            ended = False
            closes = True
        elif message.role == "assistant":
            ended = ended or (closes and not message.calls and bool(text_of(message).strip()))
            closes = False
    return frozenset(finished)


def _replaced(text: str, later: Mapping[str, int]) -> str:
    """Return the words that say in a quotation that a later turn replaced it, or a part of it."""
    if text in later:
        return f", replaced in user turn {later[text]}"
    return (
        f", partly replaced in user turn {max(later.values())}" if later and any(map(text.__contains__, later)) else ""
    )


def _answers_below(view: View, staying: Sequence[Message], turn_of: Mapping[MessageId, int]) -> Iterator[str]:
    """Yield short answers that stay, with their questions, which do not, newest first.

    They are not written as quotations, whose turns are known to have left.
    """
    there = {message.id for message in staying}
    for message in reversed(staying):
        if message.id in turn_of:
            question, asking = question_before(view.transcript, message)
            if question and asking and asking.id not in there:
                what = "goes on with" if goes_on(message) else "answers"
                yield f'"{one_line(own_text(message))}" in user turn {turn_of[message.id]} {what}: "{question}"'


def _pinned_before(lines: Sequence[str], whole: int) -> tuple[str, ...]:
    """Return the constraints that earlier digests quote: turns as they are, or sentence by sentence."""
    if whole:
        return tuple(lines)
    sentences: dict[str, None] = {}
    for line in lines:
        past = PAST if _standing_first(line) == 1 else ""
        for turn, text in quotations((line,)):
            sentences.update((f'"{sentence}" (user turn {turn}{past})', None) for sentence in pins_of(text))
    return tuple(sentences)


def _beginning_of_first_turn(
    view: View, messages: Sequence[Message], turn_of: Mapping[MessageId, int]
) -> tuple[str, ...]:
    """Return the beginning of the first turn as the goal where that turn is not among the messages that leave."""
    turns = [turn_of[message.id] for message in messages if message.id in turn_of]
    opening = next((message for message in view.transcript.messages if message.id in turn_of), None)
    if opening is None or turns[:1] == [1]:
        return ()
    return (f'"{one_line(own_text(opening), 200)}" (user turn 1, beginning)',)
