"""Keeps plans and the originals behind them where any process of the gateway finds them.

What was never compacted is not kept: its client has it all and sends it again. With the first plan of a conversation
its messages go to the store, and the plan after them.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from refold._gateway.conversations.conversation import within
from refold._gateway.conversations.encryption import Seal
from refold._gateway.conversations.provenance import StoredRange
from refold._gateway.recall.deferred_call import DeferredCall
from refold.core._plan_json import load_plan
from refold.core.budget import Usage
from refold.core.edits import Hide, Insert, Rewrite
from refold.core.transcript import ROOT
from refold.errors import SessionNotFound, StoreCorrupt
from refold.sessions._entries import Appended, Noted, Planned, Position, Rewound, UsageEntry
from refold.sessions._leases import acompaction_lease
from refold.sessions._message_json import searchable_text
from refold.sessions._session import Session
from refold.sessions._stores.protocol import StoredMessage, Write

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.provenance import SentRange
    from refold.core.messages import MessageId
    from refold.core.plan import Plan
    from refold.handlers import Handlers
    from refold.sessions._context_stats import CompactionStats
    from refold.sessions._stores.protocol import Head, Store

__all__ = ["OURS", "PlanStore", "behind", "finished"]

LEASE = 60.0  # seconds after which a process that says nothing no longer holds a conversation
LONGEST = 720.0  # seconds for which others wait for one that is at work (V12)
SEARCHED = 50  # sessions, the newest, in which a plan is looked for
CHECKED = 20  # sessions, the newest, that are looked at for a plan when a gateway starts
OURS = "conv_"  # how conversations of a gateway are named; a store may hold sessions of others
T = TypeVar("T")


class PlanStore:
    """The gateway's side of a store; every method but those named `…_now` leaves the event loop free."""

    def __init__(self, store: Store, key: str = "") -> None:
        self._store = store
        self._seal = Seal(key, store.salt() if key else b"")
        self.local = store.name == "memory"

    @asynccontextmanager
    async def lease(self, conversation: Conversation) -> AsyncIterator[None]:
        """Be the only process that compacts a conversation; others wait until it is done, or until it is dead.

        Raises:
            StoreError: another process has its lease for longer than anybody waits, or the store fails.
        """
        if self.local:
            yield
            return
        session = conversation.session_id or conversation.id
        await self._run(lambda: self._store.create(session, conversation.format.name, conversation.owner))
        async with acompaction_lease(self._store, session, LEASE, wait=LONGEST, run=self._run):
            yield

    async def sync_plans(self, conversation: Conversation) -> bool:
        """Take over what others have planned for a conversation that is read; tell whether there was something new."""
        if self.local and conversation.synced:
            return False
        newest = await self._run(lambda: self._planned(conversation))
        conversation.mark_synced()
        if newest is None:
            return False
        plans, fresh = newest
        return conversation.sync(plans) or fresh

    async def check(self) -> None:
        """See that what others have kept can be read here.

        Raises:
            StoreCorrupt: it was encrypted with another secret, or with one that was not given.
        """
        await self._run(self._check)

    async def keep(self, conversation: Conversation, plan: Plan) -> None:
        """Keep a plan and the messages it was made for."""
        await self._run(lambda: self._keep(conversation, plan))

    async def remember(self, conversation: Conversation, later: DeferredCall) -> None:
        """Remember what the next request of a conversation is to bring, wherever that comes in."""
        conversation.defer_recall(later)
        if conversation.session_id:
            await self._run(lambda: self._note(conversation, later))

    async def produced(self, conversation: Conversation) -> None:
        """Keep what answers are produced under from now on, before the request goes out that is the first of them."""
        if conversation.session_id and conversation.production.unsaved:
            await self._run(lambda: self._produced(conversation))

    async def rewound(self, session: str, plans: tuple[Plan, ...]) -> None:
        """Keep that only these plans of a session are in force."""
        await self._run(lambda: self._rewind(session, plans))

    async def behind(self, plan: str, owner: str | None = None) -> list[MessageId]:
        """Return what a plan stands for that no conversation in memory has; the newest ones kept are looked through."""
        return await self._run(lambda: self._behind(plan, owner))

    async def head(self, session: str, owner: str | None = None) -> Head:
        """Return the head of a conversation kept.

        Raises:
            SessionNotFound: the owner has none of that id; without one, nobody has.
        """
        return (await self._run(lambda: self._load(session, owner))).head

    async def delete(self, session: str, owner: str | None = None) -> bool:
        """Remove a conversation with its originals and plans, the texts of summaries included; tell whether it was."""
        try:
            if owner is not None:
                await self.head(session, owner)
            await self._run(lambda: self._store.delete(session))
        except SessionNotFound:
            return False
        return True

    async def answers(self) -> None:
        """See that the store answers, at hardly any cost.

        Raises:
            StoreError: it does not.
        """
        await self._run(lambda: self._store.natives([ROOT]))

    async def sessions(self, owner: str | None = None) -> tuple[Head, ...]:
        """Return all conversations kept, or those of an owner."""
        return await self._run(lambda: self._store.sessions(owner))

    async def originals(self, ids: list[MessageId], owner: str | None = None) -> dict[MessageId, Any]:
        """Return those messages as they were said; without an owner, the first that any has."""
        texts = await self._run(lambda: self._originals(ids, owner))
        return {id: self._seal.opened(json.loads(text)) for id, text in texts.items()}

    async def search(self, query: str, session: str = "", owner: str | None = None) -> dict[MessageId, Any]:
        """Return originals that hold all words of a query; none where they are encrypted."""
        hits = await self._run(lambda: self._store.search(query, [session] if session else [], owner=owner))
        return {hit.id: self._seal.opened(json.loads(hit.native)) for hit in hits}

    async def plans(self, session: str, owner: str | None = None) -> tuple[Plan, ...]:
        """Return the plans in force of a conversation kept.

        Raises:
            SessionNotFound: the owner has none of that id; without one, nobody has.
        """
        return await self._run(lambda: self._load(session, owner).plans)

    async def messages(self, session: str) -> bytes:
        """Return the messages of a conversation kept, as the JSON of the list without its brackets.

        Raises:
            SessionNotFound: there is none of that id.
        """
        return await self._run(lambda: self._messages(session))

    async def compact_session(
        self, session: str, instructions: str, keep_recent: int | None, model: str, handlers: Handlers
    ) -> CompactionStats | None:
        """Compact a session that is none of the gateway's, with its own settings; None where it is empty."""

        def compact() -> CompactionStats | None:
            own = Session(self._store, session, must_exist=True, model=model or None)
            return own.compact(instructions or None, force=True, keep_recent=keep_recent, handlers=handlers)

        return await self._run(compact)

    async def expired(self, retention: float, tracker: list[Conversation]) -> frozenset[str]:
        """Remove the conversations that nobody has used for so many seconds, and return their ids.

        Of those in memory that were used since anything was written of them, others are told in time by a report.
        """
        unused = await self._run(lambda: self._unused(time() - retention, retention / 2, tracker))
        return frozenset([id for id in unused if await self.delete(id)])

    async def close(self) -> None:
        """Give connections back."""
        await self._run(self._store.close)

    async def _run(self, work: Callable[[], T]) -> T:
        return work() if self.local else await finished(asyncio.to_thread(work))

    def _check(self) -> None:
        for head in self._store.sessions()[:CHECKED]:
            for each in self._store.load(head.id).entries:
                if isinstance(each.entry, Planned):
                    try:
                        self._seal.opened_text(each.entry.plan)
                    except StoreCorrupt as error:
                        raise StoreCorrupt(f"{self._store.name}: {error}") from None
                    return

    def _unused(self, before: float, margin: float, tracker: list[Conversation]) -> list[str]:
        known = {conversation.session_id: conversation for conversation in tracker if conversation.session_id}
        unused = []
        for head in self._store.sessions():
            conversation = known.get(head.id)
            if not head.id.startswith(OURS) or head.touched >= before + margin:
                continue
            if conversation is not None and conversation.used >= before:
                usage = conversation.reported.usage if conversation.reported is not None else Usage(0)
                self._store.report(head.id, UsageEntry(usage.prompt, usage.completion, usage.cached))
            elif head.touched < before:
                unused.append(head.id)
        return unused

    def _planned(self, conversation: Conversation) -> tuple[tuple[Plan, ...], bool] | None:
        """Return the plans in force, and whether it is news what earlier answers were produced under."""
        index = conversation.transcript.index
        known = conversation.session_id
        session = known or self._store.holder(
            [message.id for message in conversation.transcript.messages], conversation.owner
        )
        if session is None:
            return None
        try:
            loaded = self._load(session)
        except SessionNotFound:
            return None
        if loaded.head.tip in index:
            conversation.store_as(session)
        conversation.read_note(loaded.noted, loaded.later)
        fitting = within(loaded.plans, len(conversation.transcript))
        messages, ids = conversation.transcript.messages, tuple(plan.id for plan in fitting)
        count = next(
            (
                place
                for place, plan in enumerate(fitting)
                if messages[plan.base.length - 1].id != plan.base.tip or plan.earlier != ids[:place]
            ),
            len(fitting),
        )
        if not fitting[:count] and conversation.session_id != session:
            return None
        production, fresh = conversation.production, False
        if not (known and production.unsaved) and (conversation.session_id == session or not production.ranges):
            fresh = production.take(loaded.ranges, loaded.known, messages)
        return fitting[:count], fresh

    def _load(self, session: str, owner: str | None = None) -> _Stored:
        """Return what is known of a conversation kept; that of another owner is not found."""
        loaded = self._store.load(session)
        if owner not in (None, loaded.head.owner):
            raise SessionNotFound(session)
        noted: tuple[int, DeferredCall | None] = 0, None
        ranges: list[StoredRange] = []
        known: dict[str, Plan] = {}
        live: tuple[str, ...] = ()
        for each in loaded.entries:
            match each.entry:
                case Planned(plan=text):
                    plan = load_plan(self._seal.opened_text(text))
                    known[plan.id] = plan
                    live = (*live, plan.id)
                case Rewound(to=to):
                    live, noted = to.plans, (each.seq, None)
                case Noted(text=text):
                    note = _read(self._seal.opened_text(text))
                    if isinstance(note, StoredRange):
                        ranges = [*(one for one in ranges if one.base.length < note.base.length), note]
                    else:
                        noted = each.seq, note
                case _:
                    pass
        plans = tuple(known[id] for id in live if id in known)
        return _Stored(loaded.head, plans, known, tuple(ranges), *noted)

    def _keep(self, conversation: Conversation, plan: Plan) -> None:
        index, messages = conversation.transcript.index, conversation.transcript.messages[: plan.base.length]
        session = conversation.session_id or conversation.id
        head = self._store.create(session, conversation.format.name, conversation.owner)
        if head.tip != ROOT and head.tip not in index:  # another branch has this name
            session = f"{conversation.id}_{os.urandom(4).hex()}"
            head = self._store.create(session, conversation.format.name, conversation.owner)
        conversation.store_as(session)
        start = index[head.tip] + 1 if head.tip != ROOT else 0
        added = (
            (plan,) if start else (*conversation.plans, plan)
        )  # a branch begins with the plans of what it comes from
        fresh = []
        for place in range(start, len(messages)):
            text = bytes(conversation.body.raws[place]).decode()
            fresh.append(
                StoredMessage(
                    messages[place].id, self._seal.closed(text), self._seal.words(searchable_text(messages[place]))
                )
            )
        if fresh:
            head = self._store.append(session, fresh, head.tip)
        entries = [Planned(self._seal.closed_text(Planned.of(each).plan)) for each in added]
        first = Write(entries[0], revision=head.revision)
        ranges = conversation.production.ranges[conversation.production.saved if start else 0 :]
        self._store.write(session, (first, *map(Write, entries[1:]), *map(self._entry, ranges)))
        conversation.production.saved = len(conversation.production.ranges)

    def _messages(self, session: str) -> bytes:
        loaded = self._store.load(session)
        ids = [id for each in loaded.entries if isinstance(each.entry, Appended) for id in each.entry.ids]
        natives = [json.dumps(self._seal.opened(json.loads(loaded.natives[id]))).encode() for id in ids]
        return b",".join(natives)

    def _originals(self, ids: list[MessageId], owner: str | None) -> dict[MessageId, str]:
        owners = dict.fromkeys(head.owner for head in self._store.sessions()) if owner is None else [owner]
        return next((texts for each in owners if (texts := self._store.natives(ids, each))), {})

    def _note(self, conversation: Conversation, later: DeferredCall) -> None:
        entry = Noted(self._seal.closed_text(msgspec.json.encode(later).decode()))
        conversation.wrote_note(self._store.write(conversation.session_id, (Write(entry),)).seq)

    def _produced(self, conversation: Conversation) -> None:
        production = conversation.production
        self._store.write(conversation.session_id, tuple(map(self._entry, production.unsaved)))
        production.saved = len(production.ranges)

    def _entry(self, produced: SentRange) -> Write:
        return Write(Noted(self._seal.closed_text(msgspec.json.encode(produced.written).decode())))

    def _rewind(self, session: str, plans: tuple[Plan, ...]) -> None:
        head = self._store.load(session).head
        position = Position(head.tip, head.messages, tuple(plan.id for plan in plans))
        self._store.rewind(session, position, head)

    def _behind(self, plan: str, owner: str | None) -> list[MessageId]:
        for head in self._store.sessions(owner)[:SEARCHED]:
            if head.id.startswith(OURS) and (ids := behind(self._load(head.id).plans, plan)):
                return ids
        return []


async def finished(work: Awaitable[T]) -> T:
    """Wait for work in a thread; who is cancelled meanwhile waits all the same, and nobody else finds it half done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


class _Stored(Struct, frozen=True):
    """A conversation in the store: the plans in force and all that ever were, what answers were produced under.

    `later` is what its next request is to bring, `noted` the entry that said so last.
    """

    head: Head
    plans: tuple[Plan, ...]
    known: dict[str, Plan]
    ranges: tuple[StoredRange, ...]
    noted: int
    later: DeferredCall | None


def _read(text: str) -> DeferredCall | StoredRange | None:
    try:
        return msgspec.json.decode(text, type=DeferredCall | StoredRange)
    except msgspec.DecodeError:  # of another release: what waits there is not brought
        return None


def behind(plans: tuple[Plan, ...], what: str) -> list[MessageId]:
    """Return the messages that a plan, or a message it made, stands for, in the order the plan names them."""
    hidden: dict[MessageId, None] = {}
    for plan in plans:
        inserted = {edit.message.id for edit in plan.edits if isinstance(edit, Insert)}
        if what != plan.id and what not in inserted:
            continue
        for edit in plan.edits:
            match edit:
                case Hide(messages=ids):
                    hidden.update(dict.fromkeys(ids))
                case Rewrite(message=id):
                    hidden[id] = None
                case _:
                    pass
    return [id for id in hidden if id.startswith("b2:")]
