"""How a write changes the head of a session, and when it is rejected: the same for every store."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.errors import SessionNotFound, StoreCorrupt, WriteConflict
from refold.sessions._entries import Appended, Planned, Renewed, Rewound, SessionOpened

if TYPE_CHECKING:
    from refold.sessions._stores.protocol import Head, Write

__all__ = [
    "DAMAGED",
    "check_deletable",
    "corrupt_store",
    "new_id",
    "next_head",
    "session_not_found",
    "successor",
]

DAMAGED = "is damaged or not a store, and was left as it is: restore a copy, or name another file"


def corrupt_store(store: str, what: str) -> StoreCorrupt:
    """Return the error about a damaged store."""
    return StoreCorrupt(f"{store} {DAMAGED} ({what})")


def next_head(head: Head, write: Write, now: float) -> Head:
    """Return the head after a write.

    Raises:
        WriteConflict: the head is not the one that the writer expects.
    """
    if head.next:
        raise WriteConflict(f"session {head.id} continues as {head.next}: open that one and write there")
    if write.tip is not None and write.tip != head.tip:
        raise WriteConflict(
            f"session {head.id} ends in {head.tip} and not in {write.tip}, so another process wrote to it: "
            "refresh, and write again if it still applies"
        )
    if write.revision is not None and write.revision != head.revision:
        raise WriteConflict(
            f"the plans of session {head.id} changed at entry {head.revision}, after entry {write.revision} that is "
            "loaded here: refresh, and compact again if it is still due"
        )
    seq = head.seq + 1
    moved = replace(head, seq=seq, touched=now)
    match write.entry:
        case Appended(ids=ids, format=format):
            return replace(moved, tip=ids[-1], messages=head.messages + len(ids), format=format or head.format)
        case Planned():
            return replace(moved, revision=seq)
        case Rewound(to=to):
            return replace(moved, revision=seq, tip=to.tip, messages=to.length)
        case Renewed(session=session):
            return replace(moved, next=session)
        case _:
            return moved


def successor(head: Head, session: str, now: float) -> tuple[Head, SessionOpened]:
    """Return head and first entry of the session that continues another, which stands at `head`."""
    opened = SessionOpened(head.format, head.id, head.seq)
    return replace(head, id=session, parent=head.id, next="", created=now, touched=now, seq=1, revision=1), opened


def session_not_found(session: str, store: str) -> SessionNotFound:
    """Return the error about a session that is not in a store."""
    return SessionNotFound(f"there is no session {session!r} in {store}: name one of those that it lists")


def check_deletable(head: Head) -> None:
    """Refuse to delete a session that another one continues.

    Raises:
        WriteConflict: another one continues it.
    """
    if head.next:
        raise WriteConflict(f"session {head.id} continues as {head.next}, which needs it: delete that one first")


def new_id() -> str:
    """Return an id for a session that sorts by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(4).hex()}"
