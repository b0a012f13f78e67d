"""How likely each atom is needed again: a logistic regression over its features, calibrated; its weights are data.

Theory of operation. An atom (identifier, path, number) has a row of features: how often, how lately and by whom it was
mentioned, what kind of word it is, and what stands near the end of the conversation (`features`). Its score is the sum
of weight times feature, and the logistic function of slope times score plus shift its likelihood. Weights, slope and
shift are in `weights.json`; `tools/train_salience.py` makes them from recorded sessions (docs/salience.md).

The sum is not computed feature by feature. Most features depend on one small number (a count, a position), which many
atoms share, so the weighted sum of all features of that number is computed once and looked up (`LazyTable`). A score
is then a few additions. A test compares it with the plain regression.
"""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files
from math import exp
from operator import getitem, mul
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._salience.atoms import WEIGHTS
from refold._salience.features import (
    COLUMNS,
    CONTEXT,
    FAR,
    LASTING,
    LIFE,
    NAMES,
    PLACES,
    counted,
    lasting,
    tallied,
    traits,
)
from refold._salience.lazy_table import LazyTable
from refold.core._decoders import decoder
from refold.errors import RefoldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from refold._salience.features import Context, Itself, Mentioned, Noted
    from refold.core.messages import Message

__all__ = ["Model", "Scorer", "loaded", "shipped"]

# Chosen by hand; benchmarks/recall.py measures the choice that comes of it (docs/salience.md).
EVEN = 0.7  # the power of a likelihood in a choice: evens out, since what is likely is likely in several places
UNKNOWN = "", 0.0, 0.0  # what is judged of an atom that was never mentioned
FARTHEST = 30.0  # a score beyond which the logistic function is flat


Judged = tuple[str, float, float]  # kind, likelihood of need, worth in a choice


class Model(Struct, frozen=True):
    """A logistic regression: one weight for each feature by name, a bias, and the calibration of its score."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    slope: float = 1.0
    shift: float = 0.0


_decode = decoder(Model)


@cache
def shipped() -> Model:
    """Return the model that comes with the package."""
    return loaded(files("refold._salience").joinpath("weights.json").read_bytes())


def loaded(data: bytes) -> Model:
    """Return a model read from JSON; raises RefoldError where its features are not those of this release."""
    model = _decode(data)
    if set(model.features) != set(NAMES) or len(model.weights) != len(NAMES):
        raise RefoldError("the weights are for other features than this release computes; train them again")
    return model


class Scorer:
    """Tells how likely each atom of a conversation is needed again, as it is asked.

    The same as the regression over the row of `refold._salience.features.features`, but what a value adds to a score is
    worked out once for all atoms that have it.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        model: Model | None = None,
        noted: Noted | None = None,
    ) -> None:
        model = model or shipped()
        self.tally = tallied(messages, noted)
        weight, total = _weights(model), self.tally.total
        columns = [LazyTable(partial(_column, [weight[name] for name in names], of, total)) for names, of in COLUMNS]
        self.positions, counts = columns[:PLACES], columns[PLACES:]
        self.brief = LazyTable(lambda note: sum(map(getitem, counts, counted(note, lived=False))))
        self.lived = LazyTable(lambda note: sum(map(getitem, counts, counted(note, lived=True))))
        base = model.slope * model.bias + model.shift + weight["density"] * self.tally.density
        own, near = [weight[name] for name in LASTING], [weight[name] for name in CONTEXT]
        self.itself = LazyTable(lambda itself: base + sum(map(mul, own, lasting(*itself))))
        self.context = LazyTable(lambda context: sum(map(mul, near, context)))
        self.judged: dict[tuple[Mentioned, Itself, Context], Judged] = {}

    def __call__(self, atom: str) -> float:
        """Return the likelihood of need, 0 to 1; 0 where the atom was never mentioned."""
        return next(self.likelihoods((atom,)))[1]

    def worths(self, atoms: Iterable[str]) -> list[float]:
        """Return what each of some atoms is worth in a choice: its likelihood, evened out, times its kind's weight."""
        return [worth for _, _, worth in self._judged(atoms)]

    def likelihoods(self, atoms: Iterable[str]) -> Iterator[tuple[str, float]]:
        """Yield kind and likelihood of need of each of some atoms; no kind and 0 where one was never mentioned."""
        return ((kind, chance) for kind, chance, _ in self._judged(atoms))

    def _judged(self, atoms: Iterable[str]) -> list[Judged]:
        """Return kind, likelihood and worth of each of some atoms: looked up by all that its score depends on."""
        tally, judged = self.tally, self.judged
        notes, bases, lately, context_of = tally.notes, tally.bases, tally.lately, tally.context
        every: list[Judged] = []
        for atom in atoms:
            note = notes.get(atom)
            if note is None:
                every.append(UNKNOWN)
                continue
            of = traits[atom]
            far = of.base not in bases and lately.isdisjoint(of.parts)  # holds for most
            key = note, of.itself, FAR if far else context_of(of.parts, of.base)
            known = judged.get(key)
            if known is None:
                known = judged[key] = self._judge(*key)
            every.append(known)
        return every

    def _judge(self, note: Mentioned, itself: Itself, context: Context) -> Judged:
        """Return kind, likelihood and worth of an atom with this history, that is this, in this context."""
        first, last, own, called, counts = note
        of_counts = (self.lived if last - first > LIFE else self.brief)[counts]
        of_first, of_last, of_own, of_called = self.positions
        of_positions = of_first[first] + of_last[last] + of_own[own] + of_called[called]
        score: float = self.itself[itself] + of_counts + of_positions + self.context[context]
        if not -FARTHEST < score < FARTHEST:
            score = FARTHEST if score > 0 else -FARTHEST
        chance = 1 / (1 + exp(-score))
        return itself[0], chance, chance**EVEN * WEIGHTS[itself[0]]


def _weights(model: Model) -> dict[str, float]:
    return dict(zip(model.features, (each * model.slope for each in model.weights), strict=True))


def _column(weights: Sequence[float], of: Callable[[int, int], Sequence[float]], total: int, value: int) -> float:
    return float(sum(map(mul, weights, of(value, total))))
