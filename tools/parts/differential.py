"""What the policies' pages say of the comparison with their originals: figures, and each difference with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conformance.comparisons import COMPARISONS
from tests.conformance.differential import FIGURES, original
from tools.parts.words import table

__all__ = ["PARTS"]


def _differential(path: Path) -> str:
    policy = path.stem
    recorded, figures = original(policy), json.loads(FIGURES.read_text("utf-8"))[policy]
    kinds, found = figures["decisions"], figures["differences"]
    count, equal = (sum(pair[at] for pair in kinds.values()) for at in (0, 1))
    settings = "".join(f"\n- {setting}" for setting in recorded["settings"])
    back = f" Set back to the text that the policy follows:\n{settings}" if settings else ""
    rows = [(kind, f"{pair[0]:,}", f"{pair[1]:,}", f"{pair[0] - pair[1]:,}") for kind, pair in kinds.items()]
    named = [(name, why, f"{found[name]:,}") for name, why in COMPARISONS[policy].DIFFERENCES.items()]
    return (
        f"`{recorded['original']}` {recorded['version']} ({recorded['licence']}) and this policy were run over "
        f"{figures['histories']} histories made from a seed: {count:,} decisions, {equal:,} equal, {count - equal:,} "
        f"different for a reason below, none without.{back}\n\n"
        f"{table(('decision', 'compared', 'equal', 'different'), rows)}\n\n"
        f"{table(('difference', 'why', 'decisions'), named)}\n\n"
        "A decision may differ for several of them. The originals' decisions are recorded in "
        "[tests/data/originals](../../tests/data/originals/README.md), and `tests/conformance/test_differential.py` "
        "compares them with this policy's on every run of the tests."
    )


PARTS: dict[str, Callable[[Path], str]] = {"differential": _differential}
