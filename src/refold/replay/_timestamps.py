"""The time of each call, from the file's own timestamps; needed to tell whether a cache entry had expired."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold.core._json import Json, mapping, string_of
from refold.errors import UsageError
from refold.models._usage_report import reported
from refold.transcripts._source import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.transcripts import RecordedConversation

__all__ = ["Stamp", "stamps"]


class Stamp(Struct, frozen=True):
    """When a call was answered, in seconds; the model that answered; whether it paid for the longer life."""

    seconds: float | None = None
    model: str = ""
    long: bool = False


def stamps(recorded: RecordedConversation, source: str | bytes) -> list[Stamp]:
    """Return one stamp for each usage report of a conversation, an empty one where the file does not tell.

    `source` is the file it was read from. Reports are recognized by their figures, in order.
    """
    known: dict[tuple[int, int, int], deque[Stamp]] = defaultdict(deque)
    for key, stamp in _stamps_in(load(source, lenient=True).values):
        known[key].append(stamp)
    out: list[Stamp] = []
    for report in recorded.usage:
        waiting = known.get((report.prompt, report.cache_read, report.cache_write))
        # one answer may be reported on several lines: all but the last of a figure belong to the first report with it
        out.append((waiting.popleft() if len(waiting) > 1 else waiting[0]) if waiting else Stamp())
    return out


def _stamps_in(values: list[Any]) -> Iterator[tuple[tuple[int, int, int], Stamp]]:
    seen: set[str] = set()
    for row in _rows(values):
        holder, usage = _usage(row)
        id = holder.get("id")
        if usage is None or (isinstance(id, str) and id in seen):
            continue
        if isinstance(id, str):
            seen.add(id)
        try:
            report = reported(usage)
        except UsageError:
            continue
        long = usage.get("cache_creation")
        paid = isinstance(long, Mapping) and bool(long.get("ephemeral_1h_input_tokens"))
        model = holder.get("model") or holder.get("modelID") or ""
        stamp = Stamp(_seconds(row, holder), string_of(model), paid)
        yield (report.prompt, report.cached_read, report.cache_write), stamp


def _rows(values: list[Any]) -> Iterator[Json]:
    for value in values:
        rows = value.get("messages") or value.get("loglines") if isinstance(value, dict) else value
        if isinstance(rows, list):
            yield from (row for row in rows if isinstance(row, dict))
        if isinstance(value, dict):
            yield value


def _usage(row: Json) -> tuple[Json, Json | None]:
    """Return the object that holds a usage report, and the report: of a message, an event, or an answer's info."""
    for name in ("message", "payload", "info"):
        holder = row.get(name)
        if not isinstance(holder, dict):
            continue
        counts = mapping(holder.get("info")).get("last_token_usage")
        usage = holder.get("usage") or counts or holder.get("tokens")
        if isinstance(usage, dict):
            return holder, usage
    return {}, None


def _seconds(row: Json, holder: Json) -> float | None:
    created = mapping(holder.get("time")).get("created")
    if isinstance(created, int | float):
        return created / 1000
    value = row.get("timestamp")
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None
