"""Quotes users' messages in a digest: whole where there is room, else by sentence.

A turn of the user becomes one of three things. The first turn is the goal. A turn with pinned sentences (they forbid,
oblige or limit) is quoted whole under the constraints while it is short; of a longer one the pinned sentences are
quoted there, each on its own. Every other turn is a request: quoted whole, or its beginning. A short turn that answers
a question is quoted with it, also where the turn stays and the question leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_outline import one_line
from refold._condense.digest.answers import question_before
from refold._condense.digest.previous import earlier_entries, own_text, quotations
from refold._condense.digest.turns import turn_numbers
from refold._condense.pins import CONSTRAINTS, pins_in, pins_of, standing_in
from refold._condense.replaced import replacements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refold.core.messages import Message, MessageId
    from refold.core.view import View

__all__ = ["GOAL", "Quotes", "quotes"]

GOAL = "Goal (the first request)"
PINNED_SHARE = 0.4  # of a digest that pinned turns may have while they are quoted whole; chosen by hand
WHOLE_TURN = 600  # characters up to which a user's turn is quoted whole


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
    pinned = list(_pinned_before(earlier.lines(CONSTRAINTS), whole))
    speaking = (message for message in staying if message.role in ("user", "system"))
    quoted = {sentence for message in speaking for sentence in standing_in(message)}
    quoted.update(sentence for _, text in quotations(pinned) for sentence in pins_of(text))
    first: tuple[str, ...] = ()
    requests: list[str] = []
    replaced = {(each.message, each.sentence): each.turn for each in replacements(view.transcript)}
    for message in messages:
        if message.id not in turn_of:
            continue
        text, turn = own_text(message).strip(), turn_of[message.id]
        short = len(text) <= whole
        later = {sentence: turn for (id, sentence), turn in replaced.items() if id == message.id}
        place = f"user turn {turn}{_replaced(text, later)}"
        question, _ = question_before(view.transcript, message)
        quote = (
            f'answer "{text}" to: "{question}" (user turn {turn})'
            if question
            else f'"{text}" ({place})'
            if short
            else f'"{one_line(text, WHOLE_TURN)}" ({place}, beginning)'
        )
        sentences = [sentence for sentence in pins_in(message) if sentence not in quoted]
        quoted.update(sentences)
        if sentences and short:
            pinned.append(quote)
            continue
        pinned += [f'"{sentence}" (user turn {turn}{_replaced(sentence, later)})' for sentence in sentences]
        if text and turn == 1:
            first = (quote,)
        elif text:
            requests.append(quote)
    goal = earlier.lines(GOAL)[:1] or first
    if not goal and not staying:
        goal = _beginning_of_first_turn(view, messages, turn_of)
    answers = tuple(_answers_below(view, staying, turn_of))
    return Quotes(goal, tuple(reversed(requests)), tuple(pinned), answers)


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
                yield f'"{one_line(own_text(message))}" in user turn {turn_of[message.id]} answers: "{question}"'


def _pinned_before(lines: Sequence[str], whole: int) -> tuple[str, ...]:
    """Return the constraints that earlier digests quote: turns as they are, or sentence by sentence."""
    if whole:
        return tuple(lines)
    sentences = ((turn, sentence) for turn, text in quotations(lines) for sentence in pins_of(text))
    return tuple(dict.fromkeys(f'"{sentence}" (user turn {turn})' for turn, sentence in sentences))


def _beginning_of_first_turn(
    view: View, messages: Sequence[Message], turn_of: Mapping[MessageId, int]
) -> tuple[str, ...]:
    """Return the beginning of the first turn as the goal where that turn is not among the messages that leave."""
    turns = [turn_of[message.id] for message in messages if message.id in turn_of]
    opening = next((message for message in view.transcript.messages if message.id in turn_of), None)
    if opening is None or turns[:1] == [1]:
        return ()
    return (f'"{one_line(own_text(opening), 200)}" (user turn 1, beginning)',)
