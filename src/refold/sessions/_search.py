"""Recall of originals: by id, by the plan or summary that replaced them, or by text.

A search by words reads whole sessions and ranks their texts as the recall tool does (`refold._recall`). Where all of a
store is searched, its index only tells which sessions to read; what is encrypted is in no index, and is opened as long
as there is time.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold import formats
from refold._recall.ranking import terms_of
from refold._recall.search import Ranking, line_of, texts_in
from refold.core.edits import Hide, Rewrite
from refold.core.messages import MessageId
from refold.core.plan import PlanId
from refold.errors import BadMessages, SessionNotFound, StoreCorrupt, UnknownFormat, UsageError
from refold.sessions._context_stats import Recalled
from refold.sessions._entries import Appended
from refold.sessions._state import inserted_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from refold._recall.search import RecordedText
    from refold.core.messages import Message
    from refold.core.plan import Plan
    from refold.sessions._log import Log
    from refold.sessions._state import SessionState
    from refold.sessions._stores.protocol import Head, Store

__all__ = [
    "FoundMessage",
    "behind",
    "is_encrypted",
    "newest_texts",
    "recall",
    "resolve_id",
    "search",
    "search_all",
    "sessions_with",
]

MOST_HITS = 200  # messages that the index of a store is asked for
MOST_WORDS = 6  # of a query that are looked for one by one, the longest
OPENED = 24  # sessions that a search of a whole store reads
MOST_READ = 16_000_000  # characters of their messages
SECONDS = 2.0  # in which some 20,000 messages are decrypted; a viewer waits for them
LOOKED_AT = 20  # sessions of which one message tells whether a store is encrypted


class FoundMessage(Struct, frozen=True):
    """A message that fits a search: as it was received, a session that contains it, and the line that fits best."""

    message: Message
    native: Any
    session: str
    excerpt: str


def recall(log: Log, what: str, limit: int) -> tuple[Recalled, ...]:
    """Return the message of an id, the messages that a plan or summary replaced, or those that contain the words."""
    state = log.state
    if what in log.natives:
        return _by_id(log, (MessageId(what),))
    if what in state.plans:
        return _by_id(log, behind(state, state.plans[PlanId(what)]))
    maker = next((plan for plan in state.plans.values() if what in inserted_ids(plan)), None)
    if maker is not None:
        return _by_id(log, behind(state, maker))
    return search(log.store, what, log.lineage, limit)


def search(store: Store, query: str, sessions: tuple[str, ...] = (), limit: int = 20) -> tuple[Recalled, ...]:
    """Return up to `limit` originals that fit a query, the best first; in some sessions, or in all."""
    results, _ = search_all(store, query, sessions, limit)
    return tuple(Recalled(each.message.id, each.native, each.session, each.excerpt) for each in results)


def search_all(
    store: Store,
    query: str,
    sessions: Sequence[str] = (),
    limit: int = 20,
    *,
    owner: str | None = None,
    opened: Callable[[object], Any] | None = None,
) -> tuple[list[FoundMessage], bool]:
    """Return originals that fit a query, the best first, and whether all encrypted ones were looked at.

    They are of some sessions, or of all (of an owner). `opened` returns what a value was before it was encrypted;
    without it such messages are left out.

    Raises:
        StoreCorrupt: the first encrypted message was encrypted with another secret.
    """
    if not terms_of(query):
        return [], True
    reader = _Reader(store, opened)
    known = {head.id: head for head in store.sessions(owner)}
    for id in sessions or sessions_with(store, query, owner):
        if id in known:
            reader.read(known[id])
    if not sessions and opened is not None and any(map(is_encrypted, newest_texts(store))):
        for head in known.values():  # the last used first
            reader.read(head, having=query)
    texts = [text for session in reversed(reader.sessions) for text in session]  # of equal ones the newest is first
    results: dict[str, FoundMessage] = {}
    for text, line in Ranking(texts).best(query):
        if text.id not in results and len(results) < limit:
            message, native, session = reader.messages[text.id]
            results[text.id] = FoundMessage(message, native, session, line_of(text.searched, line, query))
    return list(results.values()), reader.whole


def sessions_with(store: Store, query: str, owner: str | None = None) -> list[str]:
    """Return the sessions with messages that contain all words of a query, or else some, those with the most first."""
    counts = Counter(hit.session for hit in store.search(query, (), MOST_HITS, owner))
    if not counts:
        for word in sorted(set(terms_of(query)), key=lambda word: (len(word), word))[-MOST_WORDS:]:
            counts.update({hit.session for hit in store.search(word, (), MOST_HITS, owner)})
    return [session for session, _ in counts.most_common(OPENED)]


def is_encrypted(text: str) -> bool:
    """Tell whether the text of a stored message is that of one that was encrypted: else it is an object."""
    return text.startswith('"')


def newest_texts(store: Store) -> Iterator[str]:
    """Yield the text of the newest message of each of the sessions used last."""
    for head in store.sessions()[:LOOKED_AT]:
        yield from store.natives([MessageId(head.tip)], head.owner).values()


class _Reader:
    """Reads sessions, each message once, as far as there are room and time."""

    def __init__(self, store: Store, opened: Callable[[object], Any] | None) -> None:
        self.sessions: list[list[RecordedText]] = []
        self.messages: dict[str, tuple[Message, Any, str]] = {}
        self.whole = True
        self._store = store
        self._opened = opened
        self._end: float | None = None  # of the time for what is encrypted, which begins with the first of it
        self._left = MOST_READ
        self._proven = False  # that the secret is the right one
        self._seen: set[str] = set()

    def read(self, head: Head, having: str = "") -> None:
        """Read a session, unless it was read; with a query, only one that is encrypted and has a word of it.

        Raises:
            StoreCorrupt: the first encrypted message was encrypted with another secret.
        """
        if head.id in self._seen or self._left <= 0 or not self.whole:
            return
        if having and self._late():
            return
        self._seen.add(head.id)
        natives: dict[MessageId, str] = {}
        with suppress(SessionNotFound, StoreCorrupt):  # it was deleted meanwhile, or its log is damaged
            entries = self._store.entries(head.id, ("appended",))
            ids = [id for each in entries if isinstance(each.entry, Appended) for id in each.entry.ids]
            natives = self._store.natives(ids, head.owner)
        if having and not any(map(is_encrypted, natives.values())):
            return
        messages: list[Message] = []
        for id, text in reversed(natives.items()):  # the newest first, where the time is not enough for all
            native = self._native(text)
            if id not in self.messages and isinstance(native, dict):
                with suppress(BadMessages, UnknownFormat):
                    message = formats.find(head.format).read(native, id)
                    self.messages[id] = message, native, head.id
                    messages.append(message)
        texts = list(texts_in(messages[::-1]))
        if having and not any(
            term in f"{text.name} {text.searched}".lower() for term in terms_of(having) for text in texts
        ):
            return
        self._left -= sum(map(len, natives.values()))
        self.sessions.append(texts)

    def _native(self, text: str) -> Any:
        """Return the message of a text; None where it cannot be read or there is no time to decrypt it."""
        if not is_encrypted(text):
            with suppress(ValueError):
                return json.loads(text)
            return None
        if self._opened is None:
            return None
        self._end = self._end or monotonic() + SECONDS
        if self._late():
            return None
        try:
            native = self._opened(json.loads(text))
        except (StoreCorrupt, ValueError):
            if not self._proven:
                raise
            return None  # one that is damaged
        self._proven = True
        return native

    def _late(self) -> bool:
        """Tell whether the time for what is encrypted is over."""
        if self._end is not None and monotonic() > self._end:
            self.whole = False
        return not self.whole


def behind(state: SessionState, plan: Plan) -> tuple[MessageId, ...]:
    """Return the originals that a plan hid or shortened, in order; for hidden summaries, the originals behind them."""
    touched: set[str] = set()
    seen: set[str] = set()
    waiting = [plan]
    while waiting:
        for edit in waiting.pop().edits:
            if isinstance(edit, Hide):
                touched.update(edit.messages)
            elif isinstance(edit, Rewrite):
                touched.add(edit.message)
        inner = [other for other in state.plans.values() if other.id not in seen and inserted_ids(other) & touched]
        seen.update(other.id for other in inner)
        waiting += [other for other in inner if other.id != plan.id]
    return tuple(id for id in state.parents if id in touched)


def resolve_id(state: SessionState, what: str) -> PlanId | MessageId:
    """Return the plan or message id that an id, a unique prefix of one, or a summary's id stands for.

    Raises:
        UsageError: there is none, or the prefix is not unique.
    """
    known: set[str] = {*state.plans, *state.parents}
    if what in known:
        return MessageId(what)
    maker = next((plan.id for plan in state.plans.values() if what in inserted_ids(plan)), None)
    if maker is not None:
        return maker
    like = [id for id in known if what and (id.startswith(what) or id.partition(":")[2].startswith(what))]
    if len(like) != 1:
        many = f"{len(like):,} ids start with it, give more characters" if like else "give an id that the session lists"
        raise UsageError(f"there is no plan or message {what!r}: {many}")
    return MessageId(like[0])


def _by_id(log: Log, ids: tuple[MessageId, ...]) -> tuple[Recalled, ...]:
    return tuple(Recalled(id, log.natives[id], log.session) for id in ids)
