"""Selects the sentences to preserve of user messages that are too long: those that no other sentence repeats."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from math import log
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from refold._condense.pins import BORDER, may_limit, pins_of
from refold._condense.reductions import Reduction, hide_users, try_change, typed_words
from refold._salience.cover import Cover, Unit
from refold._text.sign_runs import SignRuns
from refold.core.messages import Patch, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold._condense.fit_draft import Draft
    from refold._condense.reduction_order import ReductionLog
    from refold._condense.regions import Regions
    from refold.core.messages import Message

__all__ = ["cut_to_sentences", "show_sentences"]

GAP = "[…]"  # in place of sentences that are left out
MARKER = 2  # tokens of it
# Chosen by hand.
ANSWERS = 0.5  # of the room that is left, for sentences of older answers; the rest is for whole ones, newest first
FEWEST = 3  # answers among which what is common can be told from what is not
WORDS = SignRuns(r"\w")


class UserTurn(NamedTuple):
    """Words of a user's turn as they were said, and the part that holds them now."""

    position: int
    part: Text
    words: str
    sentences: tuple[str, ...]
    ending: str = ""


def cut_to_sentences(draft: Draft, areas: Regions, target: int, share: int, log: ReductionLog) -> None:
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
    chosen = _chosen(draft, turns, size - spare)
    silent = set(older)
    for turn, some in zip(turns, chosen, strict=True):
        if some:
            silent.discard(turn.position)
            moves = try_change(
                draft, turn.position, [Patch(turn.part.at, Text(_joined(turn.sentences, some) + turn.ending))]
            )
            log.moves += [replace(move, words=turn.words, ending=turn.ending) for move in moves]
    log.users += hide_users(draft, areas, 0, silent)


def show_sentences(draft: Draft, log: ReductionLog, room: int) -> None:
    """Show what tells most of hidden answers that are words alone, in half of the room that is left."""
    hidden = [segment[0] for segment in log.segments if len(segment) == 1 and draft.hidden[segment[0]]]
    turns = list(_turns(draft, [position for position in sorted(hidden) if _one_text(draft.messages[position])]))
    if len(turns) < FEWEST:
        return
    chosen = _chosen(draft, turns, int((room - draft.total) * ANSWERS))
    for turn, some in zip(turns, chosen, strict=True):
        if not some:
            continue
        patches = (Patch(turn.part.at, Text(_joined(turn.sentences, some))),)
        saved = draft.change(turn.position, patches)
        draft.show([turn.position])
        if draft.total > room:
            draft.hide([turn.position])
            draft.undo(turn.position, [turn.part.at])
            return
        log.moves.append(Reduction(turn.position, patches, saved, words=turn.words))


def _one_text(message: Message) -> bool:
    return message.role == "assistant" and len(message.parts) == 1 and isinstance(message.parts[0], Text)


def _turns(draft: Draft, positions: Iterable[int]) -> Iterator[UserTurn]:
    for position in positions:
        for part in draft.messages[position].parts:
            if isinstance(part, Text):
                words, ending = typed_words(draft, position, part)
                ends = [0, *(match.end() for match in BORDER.finditer(words)), len(words)]
                sentences = tuple(words[start:stop] for start, stop in pairwise(ends) if stop > start)
                yield UserTurn(position, part, words, sentences, ending)


def _chosen(draft: Draft, turns: Sequence[UserTurn], room: int) -> list[set[int]]:
    """Return which sentences of each turn stay: the pinned, then what tells most, together within the room."""
    words_of = [[frozenset(WORDS(sentence.lower())) for sentence in turn.sentences] for turn in turns]
    common = Counter(word for turn in words_of for word in frozenset().union(*turn))
    worth = {word: log((1 + len(turns)) / number) for word, number in common.items()}
    chosen: list[set[int]] = [set() for _ in turns]
    units: list[Unit] = []
    covered: set[str] = set()
    count = draft.view.counter.text
    for number, turn in enumerate(turns):
        has_pins = may_limit(turn.words)
        for position, sentence in enumerate(turn.sentences):
            cost = count(sentence) + MARKER
            if has_pins and pins_of(sentence):
                chosen[number].add(position)
                covered |= words_of[number][position]
                room -= cost
            else:
                units.append(Unit((number, position), cost, words_of[number][position]))
    for unit in Cover(reversed(units), lambda words: map(worth.__getitem__, words), covered).choose(room):
        number, position = unit.of
        chosen[number].add(position)
    return chosen


def _joined(sentences: Sequence[str], chosen: set[int]) -> str:
    """Return the kept sentences as they stand, with a marker for each gap."""
    gaps = (position not in chosen for position in range(len(sentences)))
    pieces = [
        f"{GAP} " if left_out else "".join(sentences[position] for position in positions)
        for left_out, positions in _runs(gaps)
    ]
    return "".join(pieces).strip()


def _runs(gaps: Iterable[bool]) -> Iterator[tuple[bool, list[int]]]:
    for left_out, run in groupby(enumerate(gaps), key=itemgetter(1)):
        yield left_out, [position for position, _ in run]
