"""A session's log as this process knows it: read from the store entry by entry, and written to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from refold.errors import SessionNotFound, UnreadablePlan
from refold.sessions._entries import Appended, Configured, Planned, Rewound, SessionOpened
from refold.sessions._state import SessionState
from refold.sessions._stores.head import corrupt_store
from refold.sessions._stores.protocol import Head, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import MessageId
    from refold.core.plan import Plan, PlanId
    from refold.sessions._entries import Entry, Position, UsageEntry
    from refold.sessions._stores.protocol import Loaded, Store, StoredMessage

__all__ = ["Log"]


class Log:
    """The fold of a session's entries, and of those it continues; loads only what is new.

    `natives` are all messages the session ever contained. A session that is not stored yet has the head None. `actor`
    is recorded with plans, rewinds and settings.
    """

    def __init__(
        self, store: Store, session: str, natives: dict[MessageId, Any] | None = None, actor: str = ""
    ) -> None:
        self.store = store
        self.actor = actor
        self.session = session
        self.natives: dict[MessageId, Any] = {} if natives is None else natives
        self.state = SessionState()
        self.head: Head | None = None
        self.lineage: tuple[str, ...] = (session,)
        self._seq = 0
        self.refresh()

    @property
    def existing_head(self) -> Head:
        """The head of the session in the store.

        Raises:
            SessionNotFound: the session is not stored yet.
        """
        if self.head is None:
            raise SessionNotFound(f"session {self.session!r} is not in {self.store.name} yet: append to it first")
        return self.head

    def refresh(self) -> None:
        """Load what was written since the last load."""
        try:
            loaded = self.store.load(self.session, self._seq)
        except SessionNotFound:
            return
        self._apply_loaded(loaded)

    def begin(self, format: str) -> None:
        """Create the session, if it is not stored yet."""
        if self.head is None:
            self.store.create(self.session, format)
            self.refresh()

    def append(
        self,
        messages: Sequence[StoredMessage],
        natives: Sequence[object],
        after: MessageId,
        *,
        under: tuple[PlanId, ...] | None = None,
        settings: str = "",
        format: str = "",
    ) -> None:
        """Append messages that follow the one with the id `after`; `natives` are their native objects."""
        head = self.store.append(self.session, messages, after, under=under, settings=settings, format=format)
        self.natives.update(zip((message.id for message in messages), natives, strict=True))
        self._apply_write(head, Appended(tuple(message.id for message in messages), under, settings, format))

    def record(self, plan: Plan, expect: int, renew: str = "", seconds: float = 0.0) -> Log:
        """Activate a plan that took so long to make.

        Return the log to continue with, which is another session's where `renew` names one.
        """
        self.store.write(self.session, (Write(Planned.of(plan, self.actor, seconds), revision=expect),), renew)
        if renew:
            return Log(self.store, renew, self.natives, self.actor)
        self.refresh()
        return self

    def rewind(self, to: Position, *, forward: bool = False) -> None:
        """Go to a position."""
        head = self.existing_head
        entry = Rewound(to, forward, self.actor)
        self.store.write(self.session, (Write(entry, tip=head.tip, revision=head.revision),))
        self.refresh()

    def report(self, report: UsageEntry) -> None:
        """Store a usage report."""
        self._apply_write(self.store.report(self.session, report), report)

    def configure(self, settings: dict[str, Any]) -> None:
        """Save settings, by name."""
        entry = Configured(settings, self.actor)
        self._apply_write(self.store.write(self.session, (Write(entry),)), entry)

    def _apply_write(self, head: Head, entry: Entry) -> None:
        if head.seq != self._seq + 1:  # another process wrote an entry in between that does not conflict with this one
            self.refresh()
            return
        self.state.apply(entry)
        self.head, self._seq = head, head.seq

    def _apply_loaded(self, loaded: Loaded) -> None:
        try:
            first = loaded.entries[0].entry if loaded.entries else None
            if self._seq == 0 and isinstance(first, SessionOpened) and first.parent:
                self._inherit(first)
            self._fold(loaded)
        except (KeyError, IndexError, ValueError, UnreadablePlan) as error:
            what = f"session {self.session}: {type(error).__name__}: {error}"
            raise corrupt_store(self.store.name, what) from error
        self.head = loaded.head
        self._seq = loaded.head.seq
        self._check_complete(loaded.head)

    def _inherit(self, opened: SessionOpened) -> None:
        """Fold the sessions before this one, the first of them first, each up to the entry that counts."""
        above: list[Loaded] = []
        while opened.parent:
            before = self.store.load(opened.parent, 0, opened.at)
            self.lineage = (*self.lineage, opened.parent)
            above.append(before)
            first = before.entries[0].entry
            opened = first if isinstance(first, SessionOpened) else SessionOpened("")
        for loaded in reversed(above):
            self._fold(loaded)

    def _fold(self, loaded: Loaded) -> None:
        for recorded in loaded.entries:
            self.state.apply(recorded.entry)
        for id, text in loaded.natives.items():
            if id not in self.natives:
                self.natives[id] = json.loads(text)

    def _check_complete(self, head: Head) -> None:
        if (self.state.tip, len(self.state.ids)) != (head.tip, head.messages):
            what = (
                f"session {self.session} should end in {head.tip} after {head.messages:,} messages, and its log ends "
                f"in {self.state.tip} after {len(self.state.ids):,}"
            )
            raise corrupt_store(self.store.name, what)
        missing = next((id for id in self.state.ids if id not in self.natives), None)
        if missing is not None:
            raise corrupt_store(self.store.name, f"session {self.session}: message {missing} is missing")
