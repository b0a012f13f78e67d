"""What each identifier of a conversation is worth keeping: predicted once for a transcript, from the originals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core.messages import once
from refold.core.transcript import Transcript
from refold.salience.atoms import WEIGHTS, kind_of
from refold.salience.model import Scorer
from refold.salience.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.stages.ledger import Atom

__all__ = ["likeliest", "need_in", "worth_of"]

TOLD = 0.2  # worth of an identifier that only an earlier digest tells of
OF_PART = 0.7  # an identifier that is known only by the name it ends in is worth less
FRAME, CHARS = 1.5, 5.0  # tokens beside an identifier in a list, and characters a token


@once
def worth_of(transcript: Transcript) -> Table:
    """Return the worth of every atom that was said, shown or asked for, as it is asked; 0 for all others."""
    return Table(_scorer(transcript).worth)


def need_in(transcript: Transcript, atoms: Iterable[str] | None = None) -> float:
    """Return the need that is expected of some atoms, or of all there are: likelihoods, weighed by kind."""
    scorer = _scorer(transcript)
    return sum(scorer(atom) * WEIGHTS[kind_of(atom)] for atom in (scorer.tally.notes if atoms is None else atoms))


@once
def _scorer(transcript: Transcript) -> Scorer:
    return Scorer([message for message in transcript.messages if message.note is None])


def likeliest(atoms: Sequence[Atom], transcript: Transcript, limit: int) -> tuple[Atom, ...]:
    """Return the identifiers of a ledger that are worth most for their length, best first.

    Its own score counts too: it knows words as they stand, where the model knows the atoms in them.
    """
    known = worth_of(transcript)

    def value(atom: Atom) -> float:
        own = known[atom.text]
        if not own:
            last = atom.text.rsplit("/", 1)[-1]
            own = OF_PART * (known[last] or known[last.rsplit(".", 1)[-1]]) or TOLD
        return float(own * atom.score**0.5 / (FRAME + len(atom.text) / CHARS))

    return tuple(sorted(atoms, key=lambda atom: (-value(atom), atom.text))[:limit])
