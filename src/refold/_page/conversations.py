"""The conversations that the page shows: those of a store, and those that a gateway has in memory."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from refold._inspect.titles import OPENING, first_words
from refold._page.acts import StoreActs
from refold._page.cards import Pulse, RunningCard
from refold._page.figures import Figures, figures_of
from refold._page.history import History, LoggedEvent, read_entries
from refold.core._plan_json import load_plan
from refold.core.budget import Usage
from refold.core.messages import MessageId
from refold.errors import RefoldError, SessionNotFound
from refold.sessions._entries import Appended, Configured, Planned, UsageEntry
from refold.sessions._saved_settings import CHOSEN
from refold.sessions._search import search_all
from refold.sessions._state import SessionState
from refold.sessions._stores.head import corrupt_store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from refold._page.acts import Acts
    from refold.core.plan import Plan
    from refold.core.transcript import Transcript
    from refold.sessions import Head, Store
    from refold.sessions._entries import Entry

__all__ = ["Conversations", "Live", "LiveConversation", "Opener", "PlainText", "Row", "SearchHit", "title_of"]

T = TypeVar("T")
REMEMBERED_ROWS = 4_096
REMEMBERED_HISTORIES = 8  # the page of one conversation asks for its history several times
AT_ONCE = 2  # views that are computed at once
DELETED = SessionNotFound.__name__  # what another process has deleted is the problem of no row
NOWHERE = 2**31 - 1  # a number behind that of every entry: of a session the head alone is read


class Opener(Protocol):
    """Opens what a store holds encrypted."""

    @property
    def has_secret(self) -> bool:
        """Whether it can open something."""

    def opened(self, value: object) -> Any:
        """Return a message that was kept."""

    def opened_text(self, text: str) -> str:
        """Return a text that was kept."""


class PlainText:
    """Opens what is not encrypted."""

    has_secret = False

    def opened(self, value: object) -> Any:
        """Return a message as it is."""
        return value

    def opened_text(self, text: str) -> str:
        """Return a text as it is."""
        return text


class LiveConversation(Struct, frozen=True):
    """A conversation in the memory of a gateway.

    `stored` is the session of the store that holds its beginning, if there is one. `raws` are all messages as they
    came, which `read` parses; `transcript` are those that were read so far. `plans` are those that the store may not
    have. `report` is the provider's last one, with the number of messages that it is of; `settings` are those that a
    session saves.
    """

    head: Head
    stored: str
    raws: tuple[Any, ...]
    read: Callable[[Any], Any]
    transcript: Transcript
    plans: tuple[Plan, ...]
    report: tuple[int, Usage] | None
    settings: dict[str, Any]


class Live(Protocol):
    """What a gateway has in memory; called in its event loop."""

    def listed(self, sees: str | None) -> Sequence[Head]:
        """Return the conversations of an owner, or of all; one that the store has too has the id of its session."""

    def by_ids(self, ids: Collection[str], sees: str | None) -> dict[str, LiveConversation]:
        """Return those conversations of an owner that are in memory, each by its id or its session's."""

    def pulse(self, id: str, sees: str | None) -> Pulse | None:
        """Return what a watcher of a conversation in memory sees change."""

    def draining(self) -> bool:
        """Tell whether the process ends, so that nobody may go on watching."""


class Row(Struct, frozen=True):
    """A conversation of the list; `problem` says why it cannot be read."""

    head: Head
    title: str = ""
    figures: Figures | None = None
    live: bool = False
    problem: str = ""


class SearchHit(Struct, frozen=True):
    """A message that holds the words of a search."""

    session: str
    message: MessageId
    role: str
    excerpt: str


class Conversations:
    """Reads conversations for a viewer. What another owner has is answered like what does not exist.

    `stopping` tells whether the server of the page stops.
    """

    def __init__(
        self, store: Store, opener: Opener | None = None, live: Live | None = None, acts: Acts | None = None,
        stopping: Callable[[], bool] = bool,
    ) -> None:  # fmt: skip
        self.acts: Acts = StoreActs(store, sealed=opener is not None) if acts is None else acts
        self.store = store
        self._stopping = stopping
        self._opener = PlainText() if opener is None else opener
        self._live = live
        self._threads = ThreadPoolExecutor(AT_ONCE, "page")
        self._plan = lru_cache(1_024)(load_plan)
        self._rows: _Remembered[Row] = _Remembered(REMEMBERED_ROWS)
        self._histories: _Remembered[History] = _Remembered(REMEMBERED_HISTORIES)

    async def rows(self, sees: str | None, start: int, count: int) -> tuple[list[Row], int]:
        """Return some conversations, the last used first, and how many there are."""
        live = {head.id: head for head in self._live.listed(sees)} if self._live is not None else {}
        sessions = await self.run(lambda: self.store.sessions(sees))
        known = {head.id: head for head in sessions if not head.next} | live
        order = sorted(known.values(), key=lambda head: (-head.touched, head.id))
        chosen = order[start : start + count]
        in_memory = self._in_memory([head.id for head in chosen if head.id in live], sees)
        rows = await self.run(lambda: [self._row(head, in_memory.get(head.id)) for head in chosen])
        return [row for row in rows if row.problem != DELETED], len(order)

    async def history(self, id: str, sees: str | None) -> History:
        """Return the history of a conversation.

        Raises:
            SessionNotFound: the viewer has none of that id.
            StoreError: it cannot be read.
        """
        live = self._in_memory([id], sees).get(id)
        return await self.run(lambda: self._history(id, sees, live))

    @property
    def draining(self) -> bool:
        """Whether the process ends."""
        return self._stopping() or (self._live is not None and self._live.draining())

    async def pulse(self, id: str, sees: str | None) -> Pulse:
        """Return what a watcher of a conversation sees change, at hardly any cost.

        Raises:
            SessionNotFound: the viewer has none of that id.
        """
        live = self._live.pulse(id, sees) if self._live is not None else None
        if live is not None:
            return live

        def read() -> Pulse:
            head = self.store.load(id, after=NOWHERE).head
            if sees not in (None, head.owner):
                raise SessionNotFound(id)
            running = RunningCard() if self.store.leased(id) else None
            return Pulse(running, (str(head.revision),))

        return await self.run(read)

    async def search(self, query: str, sees: str | None, limit: int) -> tuple[list[SearchHit], bool]:
        """Return originals that fit a query, the best first; and whether all encrypted ones were looked at.

        Where the store is encrypted its messages are opened one after another, as far as that takes no long time.
        """
        return await self.run(lambda: self._search(query, sees, limit))

    async def run(self, work: Callable[[], T]) -> T:
        """Do work on the store in a thread; few at once, since requests of agents go through the same process."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _in_memory(self, ids: Collection[str], sees: str | None) -> dict[str, LiveConversation]:
        return self._live.by_ids(ids, sees) if self._live is not None else {}

    def _row(self, head: Head, live: LiveConversation | None) -> Row:
        now = _version(head) if live is None else (len(live.raws), *(plan.id for plan in live.plans), live.report)
        if (row := self._rows.get((head.id, now))) is not None:
            return replace(row, head=head)
        try:
            history = self._stored(head) if live is None else self._history(head.id, head.owner, live)
            row = Row(head, title_of(history), figures_of(history), live is not None)
        except RefoldError as error:
            row = Row(head, live=live is not None, problem=type(error).__name__)
        self._rows[head.id, now] = row
        return row

    def _history(self, id: str, sees: str | None, live: LiveConversation | None) -> History:
        if live is not None and not live.stored:
            return _continued(live, None)
        session = id if live is None else live.stored
        head = self.store.load(session, after=NOWHERE).head
        if sees not in (None, head.owner):
            raise SessionNotFound(session)
        stored = self._stored(head)
        return stored if live is None else _continued(live, stored)

    def _stored(self, head: Head) -> History:
        stored = self._histories.get((head.id, _version(head)))
        if stored is None:
            events, sizes = read_entries(self.store, head, self._opener.opened_text, self._plan)
            stored = History(head, events, sizes, lambda ids: self._natives(ids, head.owner))
            self._histories[head.id, _version(head)] = stored
        return stored

    def _natives(self, ids: Sequence[MessageId], owner: str) -> dict[MessageId, Any]:
        return {id: self._opened(text) for id, text in self.store.natives(ids, owner).items()}

    def _opened(self, text: str) -> Any:
        """Return a message of the store.

        Raises:
            StoreCorrupt: it is no JSON object, or encrypted with another secret.
        """
        try:
            native = self._opener.opened(json.loads(text))
        except ValueError as error:
            raise corrupt_store(self.store.name, "a message is not JSON") from error
        if not isinstance(native, dict):
            raise corrupt_store(self.store.name, "a message is no object")
        return native

    def _search(self, query: str, sees: str | None, limit: int) -> tuple[list[SearchHit], bool]:
        opened = self._opener.opened if self._opener.has_secret else None
        results, whole = search_all(self.store, query, (), limit, owner=sees, opened=opened)
        return [SearchHit(each.session, each.message.id, each.message.role, each.excerpt) for each in results], whole


def title_of(history: History) -> str:
    """Return the first words of the user."""
    return first_words(history.messages(history.state.ids[:OPENING]).values())


def _version(head: Head) -> object:
    """Return what changes with a session: its id may be used again, by another owner too, after it was deleted."""
    return head.owner, head.created, head.seq


class _Remembered(OrderedDict[tuple[str, object], T]):
    """The values that were found last, by conversation and what it was found in; for threads."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._lock = Lock()

    def __setitem__(self, key: tuple[str, object], value: T) -> None:
        with self._lock:
            super().__setitem__(key, value)
            if len(self) > self._most:
                self.popitem(last=False)


def _continued(live: LiveConversation, stored: History | None) -> History:
    """Return the history of a conversation in memory, which begins with what the store holds of it."""
    known = stored.state if stored is not None else SessionState()
    start, read = len(known.ids), live.transcript.messages
    rest = range(start, len(live.raws))
    ids = [read[place].id if place < len(read) else MessageId(f"live:{place}") for place in rest]
    places = dict(zip(ids, rest, strict=True))
    at, (count, usage) = live.head.touched, live.report or (0, Usage(0))
    sent = max(count - start, 0)
    settings = live.settings
    if stored is not None:  # where another process may have changed the pins and the policy since
        chosen = known.settings.get(CHOSEN)
        settings = {name: value for name, value in settings.items() if name != "pinned"}
        settings |= {"policy": chosen} if chosen else {}
    entries: list[Entry] = [Configured(settings)] if settings else []
    events = [LoggedEvent(at, entry) for entry in (*entries, Appended(tuple(ids[:sent])))]
    events += [LoggedEvent(at, Planned(""), plan) for plan in live.plans if plan.id not in known.active]
    if live.report is not None:
        events.append(LoggedEvent(at, UsageEntry(usage.prompt, usage.completion, usage.cached)))
    events.append(LoggedEvent(at, Appended(tuple(ids[sent:]))))

    def natives(wanted: Sequence[MessageId]) -> Mapping[MessageId, Any]:
        here = {id: live.read(live.raws[places[id]]) for id in wanted if id in places}
        there = [id for id in wanted if id not in here]
        return {**here, **(stored.natives(there) if stored is not None and there else {})}

    sizes = {id: len(live.raws[place]) for id, place in places.items()}
    return History(
        live.head, (*(stored.events if stored is not None else ()), *events),
        {**(stored.sizes if stored is not None else {}), **sizes}, natives,
    )  # fmt: skip
