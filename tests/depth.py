"""How much a run tests: the usual one thins what multiplies, and one with REFOLD_DEEP=1 (`make test-deep`) does not.

The rule: a thinned test still meets every policy, every format, every model, every file and every kind of case, but not
every combination of them, and it meets sizes and numbers of examples that show a fault in a second and not in ten.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest

DEEP = os.environ.get("REFOLD_DEEP", "") not in ("", "0")


def deep(usual: int, full: int) -> int:
    """Return the size or the number of a usual run, and that of a deep one in a deep one."""
    return full if DEEP else usual


def combined(*axes: Iterable[Any]) -> Sequence[Any]:
    """Return parameter sets over the axes: each value of each axis at least once; in a deep run each combination."""
    values = [list(axis) for axis in axes]
    if DEEP:
        return [pytest.param(*each) for each in product(*values)]
    return [pytest.param(*(axis[number % len(axis)] for axis in values)) for number in range(max(map(len, values)))]
