"""What the writers share: the compaction that is written, and times and ids of new entries."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from msgspec import Struct

from refold.core._json import Json

__all__ = ["WrittenCompaction", "canonical", "new_uuid", "timestamp"]

_NAMESPACE = UUID("6f3c6c0e-6a55-5d0c-9d0b-2f1f3c1c6f10")


class WrittenCompaction(Struct, frozen=True):
    """A compaction as a session file names it: the plan's id, the sizes in tokens, and the time."""

    plan: str
    before: int
    after: int
    at: datetime


def timestamp(compaction: WrittenCompaction, number: int = 0) -> str:
    """Return the time of a new entry, each a millisecond after the one before, as JavaScript writes it."""
    then = compaction.at.astimezone(UTC) + timedelta(milliseconds=number)
    return then.strftime("%Y-%m-%dT%H:%M:%S.") + f"{then.microsecond // 1000:03}Z"


def new_uuid(compaction: WrittenCompaction, *names: object) -> str:
    """Return an id that no other entry has; the same compaction of the same file gets the same ids."""
    return str(uuid5(_NAMESPACE, "/".join(map(str, (compaction.plan, *names)))))


def canonical(value: Json) -> str:
    """Return JSON text that is equal for equal values."""
    return json.dumps(value, sort_keys=True)
