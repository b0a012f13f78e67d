"""How likely each atom is needed again: a logistic regression over its features, calibrated; its weights are data."""

from __future__ import annotations

from functools import cache, partial
from importlib.resources import files
from math import exp
from operator import getitem, mul
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from refold.errors import RefoldError
from refold.salience.atoms import WEIGHTS, kind_of
from refold.salience.features import COLUMNS, CONTEXT, COUNTS, LASTING, NAMES, lasting, tallied, traits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from refold.core.messages import Message

__all__ = ["Model", "Scorer", "Table", "loaded", "needs", "shipped", "worth"]

EVEN = 0.7  # the power of a likelihood in a choice: evens out, since what is likely is likely in several places
FARTHEST = 30.0  # a score beyond which the logistic function is flat


class Model(Struct, frozen=True):
    """A logistic regression: one weight for each feature by name, a bias, and the calibration of its score."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    slope: float = 1.0
    shift: float = 0.0


class Table(dict[Any, float]):
    """What each value of a column adds to a score: worked out once for a value, and looked up from then on."""

    def __init__(self, score: Callable[[Any], float]) -> None:
        self.score = score

    def __missing__(self, value: Any) -> float:
        found = self[value] = self.score(value)
        return found


@cache
def shipped() -> Model:
    """Return the model that comes with the package."""
    return loaded(files("refold.salience").joinpath("weights.json").read_bytes())


def loaded(data: bytes) -> Model:
    """Return a model read from JSON; raises RefoldError where its features are not those of this release."""
    model = msgspec.json.decode(data, type=Model)
    if set(model.features) != set(NAMES) or len(model.weights) != len(NAMES):
        raise RefoldError("the weights are for other features than this release computes; train them again")
    return model


class Scorer:
    """Tells how likely each atom of a conversation is needed again, as it is asked.

    The same as the regression over the row of `refold.salience.features.features`, but what a value adds to a score is
    worked out once for all atoms that have it.
    """

    def __init__(self, messages: Sequence[Message], model: Model | None = None) -> None:
        model = model or shipped()
        self.tally = tallied(messages)
        weight, total = _weights(model), self.tally.total
        columns = [Table(partial(_column, weight, names, of, total)) for names, of in COLUMNS]
        self.places, counts = columns[:COUNTS], columns[COUNTS:]
        self.counts = Table(lambda note: sum(map(getitem, counts, note)))
        self.itself = Table(lambda itself: _dot(weight, LASTING, lasting(*itself)))
        self.context = [weight[name] for name in CONTEXT]
        self.base = model.slope * model.bias + model.shift + weight["density"] * self.tally.density

    def __call__(self, atom: str) -> float:
        """Return the likelihood of need, 0 to 1; 0 where the atom was never mentioned."""
        note = self.tally.notes.get(atom)
        if note is None:
            return 0.0
        of = traits(atom)
        score = self.base + self.itself[of[:3]] + self.counts[tuple(note[COUNTS:])]
        score += sum(map(getitem, self.places, note))
        score += sum(map(mul, self.context, self.tally.context(of)))
        return 1 / (1 + exp(-max(-FARTHEST, min(FARTHEST, score))))


def needs(messages: Sequence[Message], model: Model | None = None) -> dict[str, float]:
    """Return the likelihood of need for every atom of messages, given oldest first."""
    scorer = Scorer(messages, model)
    return {atom: scorer(atom) for atom in scorer.tally.notes}


def _weights(model: Model) -> dict[str, float]:
    return dict(zip(model.features, (each * model.slope for each in model.weights), strict=True))


def _column(
    weight: Mapping[str, float], names: Sequence[str], of: Callable[[int, int], Sequence[float]], total: int, value: int
) -> float:
    return _dot(weight, names, of(value, total))


def _dot(weight: Mapping[str, float], names: Sequence[str], values: Sequence[float]) -> float:
    return sum(weight[name] * value for name, value in zip(names, values, strict=True))


def worth(atom: str, chance: float) -> float:
    """Return what an atom is worth in a choice: its likelihood of need, evened out, times the weight of its kind."""
    return float(chance**EVEN * WEIGHTS[kind_of(atom)]) if chance else 0.0
