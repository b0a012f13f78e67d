"""What the docs say of values and of data: errors, events, needs, parts, gauges, refusals, transcripts, models."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from refold import errors, transcripts
from refold._counting import tokenizers
from refold.batch import _schema as batch_schema
from refold.core import (
    counting,
    events,
    messages,
    needs,
    usage_gauges,
    view,
)
from refold.models import _catalog as catalog
from refold.models import provider_errors
from refold.replay._legend import MEANINGS
from refold.replay._tables import COST, NAMES
from refold.transcripts import _readers as readers
from tests.counting.documented import ROWS
from tools.parts.words import (
    cut,
    joined,
    options,
    prose,
    sentence,
    table,
)

__all__ = ["PARTS"]

TYPES = dict.fromkeys(("sizes", "limits"), "list of structs")  # of columns that are neither text nor numbers


def _errors(path: Path) -> str:
    tree = (errors.__doc__ or "").split("\n\n")[1]
    rows = [(f"`{name}`", sentence(getattr(errors, name))) for name in errors.__all__]
    return f"```text\n{tree}\n```\n\n{table(('error', 'what it says'), rows)}"


def _batch_columns(path: Path) -> str:
    rows = [
        (f"`{column.name}`", TYPES.get(column.type, column.type), column.meaning) for column in batch_schema.COLUMNS
    ]
    return table(("column", "type", "meaning"), rows)


def _refusals(path: Path) -> str:
    rows = [
        (
            f"`{row.kind}`",
            row.provider or "many",
            row.name,
            f"`{cut(row.sample, 110).replace('`', chr(39))}`",
            row.source.replace("_", "\\_"),
        )
        for row in sorted(provider_errors.rows(), key=lambda row: row.kind)
    ]
    return table(("kind", "wording of", "row", "sample", "source"), rows)


def _kinds(path: Path) -> str:
    rows = []
    for kind in transcripts.kinds():
        module = import_module(f"{readers.__name__}.{kind.replace('-', '_')}")
        rows.append((f"`{kind}`", joined(module.__doc__ or "")))
    return table(("kind", "what it reads"), rows)


def _families(path: Path) -> str:
    rows = []
    for family in tokenizers.families():
        how = "the model's own" if family.exact else "a near one, calibrated" if family.factors else "a near one"
        rows.append((family.name, f"`{family.encoding}`", how, f"`{family.images}`"))
    return table(("family", "vocabulary", "it is", "rule for images"), rows)


def _documented(path: Path) -> str:
    rows = [
        (
            row.what,
            f"`{row.model}`",
            f"{row.tokens:,}",
            f"{row.counted:,}",
            f"{row.error:+.1%}" if row.tokens else f"{row.counted:+d}",
            f"[{row.source.partition('://')[2].partition('/')[0]}]({row.source})",
        )
        for row in sorted(ROWS, key=lambda row: row.kind)
    ]
    return table(("what", "model", "documented", "counted", "error", "source"), rows)


def _models(path: Path) -> str:
    known = catalog.table()
    hosts = sum(map(len, known.hosts.values()))
    sources = " and ".join(f"{package} {version}" for package, version in sorted(known.sources.items()))
    return (
        f"The table is dated {known.dated}: {len(known.models):,} models, and {hosts:,} rows of hosts whose "
        f"own figures differ, from {sources}."
    )


def _events(path: Path) -> str:
    return table(("event", "what happened"), [(f"`{each.__name__}`", sentence(each)) for each in _union(events.Event)])


def _needs(path: Path) -> str:
    return table(("need", "what is asked for"), [(f"`{each.__name__}`", sentence(each)) for each in _union(needs.Need)])


def _values(path: Path) -> str:
    parts = [(f"`{each.__name__}`", prose(each)) for each in _union(messages.Part)]
    return table(("part", "what it is"), parts)


def _gauges(path: Path) -> str:
    return table(("gauge", "the size it reports"), [(f"`{e.__name__}`", prose(e)) for e in _union(usage_gauges.Gauge)])


def _causes(path: Path) -> str:
    words = {
        view.Cause.THRESHOLD: "the trigger was reached (the default)",
        view.Cause.OVERFLOW: "the provider refused the request for its size; the policy's `after_overflow` runs",
        view.Cause.SILENT_OVERFLOW: "the provider reported more input than the window holds; `after_overflow` runs",
        view.Cause.MANUAL: "the caller forced it (`force=True`, `--force`)",
    }
    return table(("cause", "why a run started"), [(f"`{cause}`", words[cause]) for cause in view.Cause])


def _counter(path: Path) -> str:
    rows = [(f"`{name}`", f"`{kind}`", default) for name, kind, default in options(counting.CharCounter)]
    return f"{prose(counting.CharCounter)}\n\n{table(('option', 'type', 'default'), rows)}"


def _union(union: Any) -> tuple[type, ...]:
    members: tuple[type, ...] = union.__args__
    return members


def _replay_costs(path: Path) -> str:
    return table(("line", "meaning"), [(each.name, MEANINGS[each.name]) for each in COST])


def _replay_quality(path: Path) -> str:
    return table(("line", "meaning"), [(name, MEANINGS[name]) for name, _ in NAMES.values()])


PARTS: dict[str, Callable[[Path], str]] = {
    "batch-columns": _batch_columns,
    "causes": _causes,
    "char-counter": _counter,
    "errors": _errors,
    "events": _events,
    "families": _families,
    "documented": _documented,
    "gauges": _gauges,
    "kinds": _kinds,
    "models": _models,
    "needs": _needs,
    "parts": _values,
    "replay-costs": _replay_costs,
    "replay-quality": _replay_quality,
    "refusals": _refusals,
}
