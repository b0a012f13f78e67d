"""Values that grow by deltas: texts follow each other, objects grow by their fields, lists by their entries.

These are the rules of the accumulators in the official SDKs, also for unknown fields. They differ
where servers other than the provider's own repeat themselves: what names or types something is taken once, and a number
is replaced where OpenAI's SDK would add it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from refold._text.surrogates import repair_surrogates
from refold.core._json import Json, is_whole

__all__ = ["GrowingText", "grow", "growing", "index_of", "settled"]

ONCE = frozenset({"id", "type", "role", "object", "format", "index", "name"})  # `name` may also come in pieces


class GrowingText:
    """A text that is not complete: its pieces are joined only once."""

    __slots__ = ("pieces",)

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)

    def __str__(self) -> str:
        return repair_surrogates("".join(self.pieces))


def index_of(entry: Mapping[str, object], name: str = "index") -> int | None:
    """Return the number under a name, None where there is none."""
    return value if is_whole(value := entry.get(name)) else None


def grow(target: Json, delta: Mapping[str, object]) -> None:
    """Add the fields of a delta to an object of ours; nulls say nothing."""
    for key, value in delta.items():
        if value is not None:
            target[key] = _sum(key, target.get(key), value)


def growing(value: object) -> Any:
    """Return a value that may grow, as a copy: events are never changed."""
    match value:
        case str():
            return GrowingText(value)
        case dict():
            return {key: inner if key in ONCE else growing(inner) for key, inner in value.items()}
        case list():
            return [growing(inner) for inner in value]
        case _:
            return value


def settled(value: object) -> Any:
    """Return a value as JSON, with its texts joined and halves of surrogate pairs in them made whole."""
    match value:
        case GrowingText():
            return str(value)
        case str():
            return repair_surrogates(value)
        case dict():
            return {key: settled(inner) for key, inner in value.items()}
        case list():
            return [settled(inner) for inner in value]
        case _:
            return value


def _sum(key: str, old: object, new: object) -> Any:
    match old, new:
        case str(), str() if key == "name" and old != new:
            return old + new
        case _ if key in ONCE:
            return old or new
        case GrowingText(), str():
            old.pieces.append(new)
        case dict(), dict():
            grow(old, new)
        case list(), list():
            _extend(old, new)
        case None, list():
            _extend(old := [], new)
        case GrowingText(), list():
            return [*([{"type": "text", "text": old}] if any(old.pieces) else []), *growing(new)]
        case list(), str():
            _extend(old, [{"type": "text", "text": new}] if new else [])
        case _:
            return growing(new)
    return old


def _extend(entries: list[Any], more: Iterable[Any]) -> None:
    """Add to a list: an entry that has the index of one in it continues that one, unless it is another thing."""
    for entry in more:
        index = index_of(entry) if isinstance(entry, dict) else None
        same = [old for old in entries if index is not None and isinstance(old, dict) and old.get("index") == index]
        if same and all(same[-1].get(key) in (entry.get(key), None) or not entry.get(key) for key in ("id", "type")):
            grow(same[-1], entry)
        else:
            entries.append(growing(entry))
