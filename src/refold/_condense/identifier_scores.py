"""What each identifier of a conversation is worth keeping: predicted once for a transcript, from the originals."""

from __future__ import annotations

import re
from itertools import chain
from math import fsum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._condense.digest.definitions import is_test
from refold._condense.digest.file_log import file_log
from refold._condense.digest.open_items import base_name
from refold._condense.digest.previous import digests_in, earlier_entries
from refold._condense.digest.turns import turns_in_work
from refold._salience.atoms import WEIGHTS, names_of
from refold._salience.features import FIRST, OWN, running_tally
from refold._salience.model import Scorer
from refold.core.messages import Message, ToolResult, memoized
from refold.core.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from refold._condense.digest.identifier_ledger import Atom
    from refold.core.messages import MessageId

__all__ = ["Worths", "likeliest", "likeliest_first", "need_in", "take_down", "uptake", "worth_of"]

IN_EARLIER_DIGEST = 0.2  # worth of an identifier that only an earlier digest tells of
SPLIT = re.compile(r"[\s,`\"'()]+")  # between the words of an entry
OF_PART = 0.7  # an identifier that is known only by the name it ends in is worth less
OF_CODE, MEMBER = ("name", "dotted"), 2.0  # and as much more a member of a variable of another file is to be worth
FRAME, CHARS = 1.5, 5.0  # tokens beside an identifier in a list, and characters a token


class Worths(dict[str, float]):
    """The worth of every atom that was said, shown or asked for, as it is asked; 0 for all others."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    def __missing__(self, atom: str) -> float:
        return self.of((atom,))[0]

    def of(self, atoms: Collection[str]) -> list[float]:
        """Return what each of some atoms is worth; to ask for many together is quickest."""
        worths = self.scorer.worths(atoms)
        self.update(zip(atoms, worths, strict=True))
        return worths


@memoized
def worth_of(transcript: Transcript) -> Worths:
    """Return the worth of every atom of a transcript."""
    return Worths(_scorer(transcript))


def need_in(transcript: Transcript, atoms: Iterable[str] | None = None) -> float:
    """Return the need that is expected of some atoms, or of all there are: likelihoods, weighed by kind."""
    scorer = _scorer(transcript)
    likely = scorer.likelihoods(scorer.tally.notes if atoms is None else atoms)
    return fsum([chance * WEIGHTS[kind] for kind, chance in likely if chance])  # exact, whatever the order of atoms


def uptake(transcript: Transcript, message: Message, of: Iterable[frozenset[str]]) -> float | None:
    """Return the share of the names that a message was the first to show which the assistant wrote later, never 0.

    None where it was the first to show none. Numbers tell nothing: a line number is soon written for another reason.
    `of` are the identifiers that count, in any number of sets.
    """
    at = _spoken_positions(transcript).get(message.id)
    tally = _scorer(transcript).tally
    introduced = tally.introduced[at] if at is not None else None
    new = [tally.notes[name] for name in introduced.intersection(chain.from_iterable(of))] if introduced else ()
    new = [note for note in new if note[FIRST] == at]
    return (sum([note[OWN] > note[FIRST] for note in new]) + 0.5) / (len(new) + 1) if new else None


@memoized
def _spoken_positions(transcript: Transcript) -> dict[MessageId, int]:
    """Return the places of messages as the notes of atoms count them."""
    spoken = (message.id for message in transcript.messages if message.note is None)
    return {id: at for at, id in enumerate(spoken)}


@memoized
def _scorer(transcript: Transcript) -> Scorer:
    noted = running_tally(transcript.messages[0]).noted(transcript) if transcript.messages else None
    spoken = [_with_digests_as_output(message) for message in transcript.messages if message.note is None]
    return Scorer(spoken, noted=noted)


def take_down(transcript: Transcript, length: int) -> None:
    """Take down who mentioned which identifiers in the first messages of a growing conversation."""
    running_tally(transcript.messages[0]).advance(transcript, length, _with_digests_as_output)


def _with_digests_as_output(message: Message) -> Message:
    """Return a message in which digests of ours are output: a client sends them back, and no user said their words."""
    digests = digests_in(message)
    if not digests:
        return message
    own = (part for part in message.parts if part not in digests)
    return replace(message, parts=(*own, ToolResult("", content=digests)))


def likeliest(
    atoms: Sequence[Atom], transcript: Transcript, limit: int, least: float = 0.0, elsewhere: float = 0.0
) -> tuple[Atom, ...]:
    """Return the identifiers of a ledger that are worth most for their length, best first, and at least so much.

    `least` holds for files that the work changes or reads, for names in those that it changes, and for ids, numbers and
    addresses; `elsewhere` for what only tests, other files, commands and words name: of those most are never needed.
    Its own score counts too: it knows words as they stand, where the model knows the atoms in them.
    """
    known = worth_of(transcript)
    known.of([atom.text for atom in atoms if atom.text not in known])
    earlier = _words_before(transcript)

    def value(atom: Atom) -> float:
        own = known[atom.text]
        if not own:
            last = atom.text.rsplit("/", 1)[-1]
            own = OF_PART * (known[last] or known[last.rsplit(".", 1)[-1]]) or IN_EARLIER_DIGEST
            if not earlier.isdisjoint(
                (atom.text, atom.written)
            ):  # what its last part is worth now says little of what it was worth then
                own = max(own, IN_EARLIER_DIGEST)
        return float(own * atom.score**0.5 / (FRAME + len(atom.written or atom.text) / CHARS))

    valued = sorted(((value(atom), atom) for atom in atoms), key=lambda pair: (-pair[0], pair[1].text))
    touched, changed = _files_of_work(transcript)

    def enough(atom: Atom) -> float:
        if atom.kind in OF_CODE:
            of_work = base_name(atom.source) in changed and not is_test(atom.source)
        else:
            of_work = atom.kind != "path" or base_name(atom.text) in touched
        return least if of_work else elsewhere * (MEMBER if atom.kind == "dotted" else 1)

    return tuple(atom for worth, atom in valued[:limit] if worth >= enough(atom))


@memoized
def _files_of_work(transcript: Transcript) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the files that were changed, or read by a turn in work, and of those that were changed."""
    in_work = turns_in_work(transcript)
    records = file_log(transcript)
    changed = frozenset(base_name(each.path) for each in records if each.changed)
    return changed.union(base_name(each.path) for each in records if each.turn in in_work), changed


@memoized
def _words_before(transcript: Transcript) -> frozenset[str]:
    """Return the words of the entries of earlier digests."""
    sections = earlier_entries(transcript).sections.values()
    return frozenset(word for lines in sections for line in lines for word in SPLIT.split(line))


def likeliest_first(lines: Sequence[str], transcript: Transcript) -> tuple[str, ...]:
    """Return lines by the worth of the identifiers in them, the likeliest needed first; else in their order."""
    known = worth_of(transcript)
    return tuple(sorted(lines, key=lambda line: -max((known[atom] for atom in names_of(line)), default=0.0)))
