"""The settings of a batch, and their hash: results under other settings are not of the same batch."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from refold import policies
from refold.replay._equal_size import SIZES
from refold.replay._parallel import ReplaySettings
from refold.replay._run import NONE
from refold.replay.pricing import UserPrices

__all__ = ["BatchSettings", "described", "digest_of"]


class BatchSettings(Struct, frozen=True):
    """What holds for every transcript of a batch.

    `policies` are the policies to replay, by name or by the path of a file; doing nothing (`none`) is always
    replayed too. `model`, `window` (tokens), `goal` (tokens, or a share of the input budget) and `prices` win over
    those of the file. `sizes` are the budgets at which policies are compared, in tokens or as shares of the
    history; `judge=False` leaves out everything but costs. `kind`, `format`, `lenient` and `select` say how files
    are read, as `--kind`, `--format`, `--lenient` and `--select` do on the command line; by default only the first
    conversation of a file is taken.
    """

    policies: tuple[str, ...] = ("refold",)
    model: str | None = None
    window: int | None = None
    goal: int | float | None = None
    prices: UserPrices = UserPrices()
    sizes: tuple[int | float, ...] = SIZES
    judge: bool = True
    kind: str | None = None
    format: str | None = None
    lenient: bool = False
    select: str | None = None

    @property
    def replay(self) -> ReplaySettings:
        """The part that a single replay takes."""
        return ReplaySettings(
            model=self.model, window=self.window, goal=self.goal, prices=self.prices, sizes=self.sizes,
            judge=self.judge,
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The policies to replay, doing nothing first, each once."""
        return (NONE, *(name for name in dict.fromkeys(self.policies) if name != NONE))


def described(settings: BatchSettings) -> dict[str, Any]:
    """Return settings as JSON values; a policy stands there with the fingerprint of its steps.

    Raises:
        UnknownPolicy: a policy that is not there.
    """
    fingerprints = {name: policies.find(name).fingerprint for name in settings.names if name != NONE}
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(settings))
    return values | {"policies": fingerprints}


def digest_of(described_settings: dict[str, Any]) -> str:
    """Return a hash of what `described` returned."""
    return blake2b(msgspec.json.encode(described_settings, order="sorted"), digest_size=8).hexdigest()
