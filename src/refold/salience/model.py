"""How likely each atom is needed again: a logistic regression over its features, calibrated; its weights are data."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from math import exp
from operator import mul
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from refold.errors import RefoldError
from refold.salience.atoms import WEIGHTS, kind_of
from refold.salience.features import NAMES, features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.core.messages import Message

__all__ = ["Model", "coverage", "loaded", "needs", "shipped", "worths"]

EVEN = 0.7  # the power of a likelihood in a choice: evens out, since what is likely is likely in several places
FARTHEST = 30.0  # a score beyond which the logistic function is flat


class Model(Struct, frozen=True):
    """A logistic regression: one weight for each feature by name, a bias, and the calibration of its score."""

    features: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    slope: float = 1.0
    shift: float = 0.0

    def likelihood(self, row: Sequence[float]) -> float:
        """Return the likelihood that an atom with these features is needed again."""
        score = self.slope * (self.bias + sum(map(mul, self.weights, row))) + self.shift
        return 1 / (1 + exp(-max(-FARTHEST, min(FARTHEST, score))))


@cache
def shipped() -> Model:
    """Return the model that comes with the package."""
    return loaded(files("refold.salience").joinpath("weights.json").read_bytes())


def loaded(data: bytes) -> Model:
    """Return a model read from JSON; raises RefoldError where its features are not those of this release."""
    model = msgspec.json.decode(data, type=Model)
    if model.features != NAMES or len(model.weights) != len(NAMES):
        raise RefoldError("the weights are for other features than this release computes; train them again")
    return model


def needs(messages: Sequence[Message], model: Model | None = None) -> dict[str, float]:
    """Return the likelihood of need for every atom of messages, given oldest first."""
    model = model or shipped()
    return {atom: model.likelihood(row) for atom, row in features(messages).items()}


def worths(likely: Mapping[str, float]) -> dict[str, float]:
    """Return what each atom is worth in a choice: its likelihood, evened out, times the weight of its kind."""
    return {atom: chance**EVEN * WEIGHTS[kind_of(atom)] for atom, chance in likely.items()}


def coverage(likely: Mapping[str, float], kept: frozenset[str] | set[str]) -> float:
    """Return the predicted share of what will be needed that is among the kept atoms, weighed by kind, 0 to 1."""
    whole = sum(chance * WEIGHTS[kind_of(atom)] for atom, chance in likely.items())
    held = sum(chance * WEIGHTS[kind_of(atom)] for atom, chance in likely.items() if atom in kept)
    return held / whole if whole else 1.0
