"""Search in messages that a store holds encrypted: each is opened and looked through, as long as there is time."""

from __future__ import annotations

import json
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from refold import formats
from refold.errors import SessionNotFound, StoreCorrupt, UnknownFormat
from refold.sessions._entries import Appended
from refold.sessions._message_json import searchable_text
from refold.sessions._stores.protocol import Hit
from refold.sessions._stores.search_terms import terms, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from refold.core.messages import MessageId
    from refold.sessions._stores.protocol import Head, Store

__all__ = ["is_encrypted", "newest_texts", "search_encrypted"]

SECONDS = 2.0  # in which some 20,000 messages are opened; a viewer waits for them
LOOKED_AT = 20  # sessions of which one message tells whether a store is encrypted
READ = 200  # messages of a session that are read at a time, the newest first


def search_encrypted(
    store: Store,
    opened: Callable[[object], Any],
    query: str,
    sessions: Sequence[str] = (),
    limit: int = 20,
    owner: str | None = None,
) -> tuple[tuple[Hit, ...], bool]:
    """Return encrypted messages that contain all words of a query, and whether all were looked at.

    Those of the sessions used last are first, in some sessions, or all (of an owner). `opened` returns what a value
    was before it was encrypted. The text of a hit is as it was received.

    Raises:
        StoreCorrupt: the first encrypted message was encrypted with another secret.
    """
    phrases = [f" {' '.join(run)} " for run in terms(query)]
    if not phrases:
        return (), True
    end, hits, proven = monotonic() + SECONDS, dict[str, Hit](), False
    for head in store.sessions(owner):
        if sessions and head.id not in sessions:
            continue
        for id, text in _newest_first(store, head):
            if monotonic() > end:
                return tuple(hits.values()), False
            if not is_encrypted(text) or id in hits:
                continue
            try:
                native = opened(json.loads(text))
            except (StoreCorrupt, ValueError):
                if not proven:
                    raise
                continue  # one that is damaged
            proven = True
            if _contains(native, id, head.format, phrases):
                hits[id] = Hit(id, head.id, json.dumps(native))
                if len(hits) >= limit:
                    return tuple(hits.values()), True
    return tuple(hits.values()), True


def is_encrypted(text: str) -> bool:
    """Tell whether the text of a stored message is that of one that was encrypted: else it is an object."""
    return text.startswith('"')


def newest_texts(store: Store) -> Iterator[str]:
    """Yield the text of the newest message of each of the sessions used last."""
    for head in store.sessions()[:LOOKED_AT]:
        for _, text in _newest_first(store, head):
            yield text
            break


def _newest_first(store: Store, head: Head) -> Iterator[tuple[MessageId, str]]:
    with suppress(SessionNotFound, StoreCorrupt):  # it was deleted meanwhile, or its log is damaged
        entries = store.entries(head.id, ("appended",))
        ids = [id for each in entries if isinstance(each.entry, Appended) for id in each.entry.ids]
        for stop in range(len(ids), 0, -READ):
            some = store.natives(ids[max(stop - READ, 0) : stop], head.owner)
            yield from reversed(some.items())


def _contains(native: object, id: MessageId, format: str, phrases: list[str]) -> bool:
    if not isinstance(native, dict):
        return False
    try:
        message = formats.find(format).read(native, id)
    except UnknownFormat:
        return False
    line = f" {' '.join(words_of(searchable_text(message)))} "
    return all(phrase in line for phrase in phrases)
