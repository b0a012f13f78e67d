"""A store of refold as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold import formats
from refold._counting import counter_for
from refold._mcp.fill import measured, shares_of
from refold._mcp.record import Fill, Record, SessionRef
from refold._recall.search import Ranking, RecordedTexts, RemovedMessages, texts_in
from refold.core._plan_json import dump_plan
from refold.errors import BadMessages, StoreError, UsageError
from refold.sessions import Session
from refold.sessions._search import sessions_with

if TYPE_CHECKING:
    from refold._recall.search import RecordedText
    from refold.core.messages import Message
    from refold.sessions import Store

__all__ = ["StoredSessions"]


class StoredSessions:
    """The sessions of a store; a session's compactions may be taken off where the store was opened for writing."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def here(self) -> str:
        """Words for what the newest session is the newest of."""
        return self._store.name

    def sessions(self, *, everywhere: bool = False) -> list[SessionRef]:
        """Return all sessions, the last used first: a store knows no working folder; those continued are left out."""
        return [SessionRef(head.id, "store", head.touched) for head in self._store.sessions() if not head.next]

    def record(self, ref: SessionRef) -> Record:
        """Return the texts of a session: those that its plans removed from the view, and the others."""
        session = self._session(ref)
        messages = _messages(session)
        counter = counter_for(None, None, session.format)
        removed = RemovedMessages(messages, session.plans, counter)

        def is_present(text: RecordedText) -> bool:
            return not removed.has_removed(text)

        return Record(ref, removed, RecordedTexts(lambda: removed.ranking, len(messages), counter, is_present))

    def behind(self, ref: SessionRef, what: str) -> RecordedTexts | None:
        """Return the originals behind a compaction, where a text is the id of a plan or of what it inserted."""
        session = self._session(ref)
        if what in session.ids:
            return None
        known = {plan.id for plan in session.plans} | {
            message.id for message in session.view_messages if message.id not in session.ids
        }
        if what not in known:
            return None
        ids = {each.id for each in session.recall(what)}
        messages = _messages(session)
        counter = counter_for(None, None, session.format)
        return RecordedTexts(lambda: Ranking(texts_in(messages)), len(messages), counter, lambda text: text.id in ids)

    def records_with(self, query: str, *, everywhere: bool) -> tuple[list[Record], int]:
        """Return the sessions with messages that contain all words of a query, or else some of them, and their number.

        Raises:
            StoreError: none of them can be read; one of several is left out.
        """
        refs = {ref.id: ref for ref in self.sessions()}
        matching = [refs[id] for id in sessions_with(self._store, query) if id in refs]
        records: list[Record] = []
        damaged: StoreError | None = None
        for ref in matching:
            try:
                records.append(self.record(ref))
            except StoreError as error:
                damaged = error
        if damaged is not None and not records:
            raise damaged
        return records, len(refs)

    def fill(self, ref: SessionRef) -> Fill:
        """Return how full the context of a session is.

        Raises:
            UsageError: it has no messages.
        """
        session = self._session(ref)
        if not session.ids:
            raise UsageError(f"session {ref.id} has no messages")
        shares = shares_of(session.view(), session.format or "", None)
        return measured(session.check(), shares, None, compactions=len(session.plans))

    def plan(self, ref: SessionRef) -> bytes:
        """Return the plans in force as a JSON list, the oldest first."""
        return b"[" + b",".join(map(dump_plan, self._session(ref).plans)) + b"]"

    def undo(self, ref: SessionRef, to: str) -> str:
        """Go back to a plan as the newest one; "last" takes the newest plan off.

        Raises:
            UsageError: there is no such plan, or none at all.
            StoreError: the store was opened for reading alone.
        """
        session = self._session(ref)
        if to == "last" and not session.plans:
            raise UsageError("there is nothing to undo: no compaction is in force")
        if to != "last" and not any(plan.id.startswith(to) for plan in session.plans):  # an id of a message is one, too
            raise UsageError(f"no compaction in force is called {to!r}: `refold_undo` takes the id of a plan, or last")
        session.rewind(-1 if to == "last" else to)
        plans = ", ".join(plan.id for plan in session.plans) or "none"
        return f"{len(session.ids):,} messages; compactions in force: {plans}"

    def _session(self, ref: SessionRef) -> Session:
        try:
            return Session(self._store, ref.id, must_exist=True)
        except BadMessages as error:
            raise StoreError(
                f"session {ref.id} holds no messages that can be read ({error}): a gateway with a store key encrypts "
                "them, and its own recall tool (--recall-tool) reads them"
            ) from error


def _messages(session: Session) -> tuple[Message, ...]:
    if not session.ids:
        return ()
    return tuple(formats.read(formats.find(session.format or ""), session.messages).messages)
