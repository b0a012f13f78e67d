"""What stays of users' turns where not all of their words can: the sentences that say what no other one says."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby, pairwise
from math import log
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from refold._condense.pins import ENDS, pins_of
from refold._condense.reductions import Move, hide_users, original_words, tried
from refold._salience.cover import Cover, Unit
from refold.core.messages import Patch, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold._condense.fit_draft import Draft
    from refold._condense.reduction_order import Trail
    from refold._condense.regions import Regions
    from refold.core.messages import Message

__all__ = ["cut_to_sentences", "show_sentences"]

GAP = "[…]"  # in place of sentences that are left out
MARKER = 2  # tokens of it
ANSWERS = 0.5  # of the room that is left, for sentences of older answers; the rest is for whole ones, newest first
FEWEST = 3  # answers among which what is common can be told from what is not
WORD = re.compile(r"\w+")


class UserTurn(NamedTuple):
    """Words of a user's turn as they were said, and the part that holds them now."""

    position: int
    part: Text
    words: str
    sentences: tuple[str, ...]


def cut_to_sentences(draft: Draft, areas: Regions, target: int, share: int, trail: Trail) -> None:
    """Where the target is not met, leave of older users' turns what tells most for its size, within their share.

    The room that makes is for older answers, and for the same turns again. A sentence is worth the words in it that
    few turns have and that no chosen sentence has, so a phrase that comes again and again stays once. Pinned sentences
    always stay. Turns that keep none leave; the first turn is not touched.
    """
    older = [position for position in areas.users[1:-1] if not draft.hidden[position]]
    size = draft.size(older)
    spare = size + draft.size(areas.users[:1]) - share
    if spare <= 0 or not older or draft.total <= target:
        return
    turns = list(_turns(draft, older))
    kept = _chosen(draft, [turn.sentences for turn in turns], size - spare)
    silent = set(older)
    for turn, some in zip(turns, kept, strict=True):
        if some:
            silent.discard(turn.position)
            moves = tried(draft, turn.position, [Patch(turn.part.at, Text(_joined(turn.sentences, some)))])
            trail.moves += [replace(move, words=turn.words) for move in moves]
    trail.users += hide_users(draft, areas, 0, silent)


def show_sentences(draft: Draft, trail: Trail, room: int) -> None:
    """Show what tells most of hidden answers that are words alone, in half of the room that is left."""
    hidden = [segment[0] for segment in trail.segments if len(segment) == 1 and draft.hidden[segment[0]]]
    turns = list(_turns(draft, [position for position in sorted(hidden) if _one_text(draft.messages[position])]))
    if len(turns) < FEWEST:
        return
    kept = _chosen(draft, [turn.sentences for turn in turns], int((room - draft.total) * ANSWERS))
    for turn, some in zip(turns, kept, strict=True):
        if not some:
            continue
        patches = (Patch(turn.part.at, Text(_joined(turn.sentences, some))),)
        saved = draft.change(turn.position, patches)
        draft.show([turn.position])
        if draft.total > room:
            draft.hide([turn.position])
            draft.undo(turn.position, [turn.part.at])
            return
        trail.moves.append(Move(turn.position, patches, saved, words=turn.words))


def _one_text(message: Message) -> bool:
    return message.role == "assistant" and len(message.parts) == 1 and isinstance(message.parts[0], Text)


def _turns(draft: Draft, positions: Iterable[int]) -> Iterator[UserTurn]:
    for position in positions:
        for part in draft.messages[position].parts:
            if isinstance(part, Text):
                words = original_words(draft, position, part)
                yield UserTurn(position, part, words, _sentences(words))


def _sentences(text: str) -> tuple[str, ...]:
    """Return a text in pieces, each with the blanks and line ends that follow it."""
    ends = [0, *(found.end() for found in ENDS.finditer(text)), len(text)]
    return tuple(text[start:stop] for start, stop in pairwise(ends) if stop > start)


def _chosen(draft: Draft, turns: Sequence[Sequence[str]], room: int) -> list[set[int]]:
    """Return which sentences of each turn stay: the pinned, then what tells most, together within the room."""
    held = [[frozenset(WORD.findall(sentence.lower())) for sentence in turn] for turn in turns]
    common = Counter(word for turn in held for word in frozenset().union(*turn))
    worth = {word: log((1 + len(turns)) / number) for word, number in common.items()}
    kept: list[set[int]] = [set() for _ in turns]
    units: list[Unit] = []
    covered: set[str] = set()
    for number, turn in enumerate(turns):
        for position, sentence in enumerate(turn):
            cost = draft.view.counter.text(sentence) + MARKER
            if pins_of(sentence):
                kept[number].add(position)
                covered |= held[number][position]
                room -= cost
            else:
                units.append(Unit((number, position), cost, held[number][position]))
    for unit in Cover(reversed(units), lambda words: map(worth.__getitem__, words), covered).choose(room):
        number, position = unit.of
        kept[number].add(position)
    return kept


def _joined(sentences: Sequence[str], kept: set[int]) -> str:
    """Return the kept sentences as they stand, with a marker for each gap."""
    gaps = (position not in kept for position in range(len(sentences)))
    made = [
        f"{GAP} " if gone else "".join(sentences[position] for position in positions) for gone, positions in _runs(gaps)
    ]
    return "".join(made).strip()


def _runs(gaps: Iterable[bool]) -> Iterator[tuple[bool, list[int]]]:
    for gone, run in groupby(enumerate(gaps), key=itemgetter(1)):
        yield gone, [position for position, _ in run]
