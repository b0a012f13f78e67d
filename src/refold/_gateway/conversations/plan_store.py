"""Keeps plans and the originals behind them where any process of the gateway finds them.

What was never compacted is not kept: its client has it all and sends it again. With the first plan of a conversation
its messages go to the store, and the plan after them. Where the store fails, plans hold all the same: they stay with
their conversation in memory, and are written in their order once the store works again. A plan is recorded only on the
revision of the session that it was made for, so a process that was paused never writes over what another did. A
session that cannot be read any more is left as it is: its conversation goes on as another one, and all others are read.
"""

from __future__ import annotations

import logging
import os
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from refold._gateway.conversations.conversation import within
from refold._gateway.conversations.encryption import Seal
from refold._gateway.conversations.failed import ConversationDeleted
from refold._gateway.conversations.session_reader import SessionReader, log_damage
from refold._gateway.conversations.store_access import AT_ONCE, StoreAccess
from refold._gateway.native.items import RecordedItem
from refold._gateway.observability.logs import log_event
from refold._gateway.recall.deferred_call import DeferredCall
from refold.core.budget import Usage
from refold.core.messages import MessageId
from refold.core.transcript import ROOT
from refold.errors import SessionNotFound, StoreCorrupt, StoreError, WriteConflict
from refold.sessions._entries import Configured, Noted, Planned, Position, Rewound, UsageEntry
from refold.sessions._leases import LEASE, acompaction_lease
from refold.sessions._message_json import searchable_text
from refold.sessions._search import search_all
from refold.sessions._session import Session
from refold.sessions._stores.protocol import GATEWAY_IDS, StoredMessage, Write

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from refold._gateway.conversations.conversation import Conversation
    from refold._gateway.conversations.provenance import SentRange
    from refold._gateway.observability.metrics import Metrics
    from refold.core.plan import Plan, PlanId
    from refold.handlers import Handlers
    from refold.sessions._context_stats import CompactionStats
    from refold.sessions._stores.protocol import Head, Store

__all__ = ["PlanStore"]

MOST_HITS = 20  # originals that a search returns at most
LONGEST = 720.0  # seconds for which others wait for one that is at work (V12)


class PlanStore:
    """The gateway's side of a store; no method blocks the event loop."""

    def __init__(self, store: Store, metrics: Metrics, key: str = "") -> None:
        self._store = store
        self._metrics = metrics
        self.seal = Seal(key, store.salt() if key else b"")
        self._reader = SessionReader(store, self.seal)
        self._access = StoreAccess(store, metrics, self._save_all)
        self._run = self._access.run
        self._unsaved: dict[str, Conversation] = {}  # in the order in which the store failed for them
        self.on_delete: Callable[[str], None] = lambda session: None
        self.local = self._access.local

    @asynccontextmanager
    async def lease(self, conversation: Conversation) -> AsyncIterator[None]:
        """Be the only process that compacts a conversation; others wait until it is done, or until it is dead.

        Where the store fails there is no lease: the revision tells at the write who was first.

        Raises:
            WriteConflict: another process has its lease for longer than anybody waits, or has deleted it.
        """
        if self.local:
            yield
            return
        if await self.is_deleted(conversation):
            raise WriteConflict("another process has deleted this conversation")
        session = conversation.session_id or conversation.id
        async with AsyncExitStack() as stack:
            try:
                await self._run(lambda: self._store.create(session, conversation.format.name, conversation.owner))
                lease = acompaction_lease(self._store, session, LEASE, wait=LONGEST, run=self._run)
                await stack.enter_async_context(lease)
            except WriteConflict:
                raise
            except StoreError:  # counted and logged where it was raised
                pass
            yield

    async def sync_plans(self, conversation: Conversation) -> bool:
        """Take over what others have planned for a conversation that is read; tell whether there was something new.

        Where the store fails there is not: the plans that are known here hold.
        """
        if self.local and conversation.synced:
            return False
        try:
            if conversation.unsaved:
                await self._save(conversation)
            newest = await self._run(lambda: self._planned(conversation))
        except StoreError:
            return False
        conversation.mark_synced()
        if newest is None:
            return False
        plans, fresh = newest
        return conversation.sync(plans) or fresh

    async def is_behind(self, conversation: Conversation) -> bool:
        """Tell whether another process has written of a conversation since all of it was taken over here.

        Where the store fails nobody knows.

        Raises:
            ConversationDeleted: another process has deleted it.
        """
        if conversation.unsaved:
            return False
        try:
            version = await self._version(conversation)
        except StoreError:
            return False
        return conversation.check_store(conversation.session_id or conversation.id, version)

    async def is_deleted(self, conversation: Conversation) -> bool:
        """Tell whether another process has deleted a conversation since it was stored; False where the store fails."""
        if self.local or conversation.unsaved or not conversation.session_id:
            return False
        try:
            await self._version(conversation)
        except ConversationDeleted:
            return True
        except StoreError:
            pass
        return False

    async def _version(self, conversation: Conversation) -> tuple[float, int] | None:
        """Return the version that the store has of a conversation, None of one that was never stored.

        Raises:
            ConversationDeleted: another process has deleted it.
            StoreError: the store fails.
        """
        session = conversation.session_id or conversation.id
        version = await self._access.version(session)
        if version is None and conversation.session_id:
            self.on_delete(session)
            raise ConversationDeleted(session)
        return version

    async def check(self) -> None:
        """See that what others have kept can be read here.

        Raises:
            StoreCorrupt: it was encrypted with another secret, or with one that was not given.
        """
        await self._run(self._reader.check)

    async def keep(
        self, conversation: Conversation, plan: Plan, settings: dict[str, Any] | None = None, actor: str = "",
        seconds: float = 0.0,
    ) -> None:  # fmt: skip
        """Keep a plan after those in force, and the messages it was made for; in memory where the store fails.

        `settings` are those of the session from here on, `actor` is who has made the plan by hand, in so many
        `seconds`.

        Raises:
            WriteConflict: another process has changed the plans meanwhile.
        """
        plans = (*conversation.plans, plan)
        try:
            await self._run(
                lambda: self._keep(conversation, plans, settings=settings, actor=actor, seconds=seconds),
                len(conversation.body.body),
            )
        except WriteConflict:
            raise
        except StoreError:
            self._hold(conversation)

    async def keep_history(self, conversation: Conversation) -> None:
        """Keep all messages of a conversation that is read, whether or not a plan was made for them.

        Where the store fails, the conversation in memory has them, and the next call tries again.
        """
        with suppress(StoreError):  # counted and logged where it was raised
            await self._run(lambda: self._keep(conversation, conversation.plans, count=len(conversation.transcript)))

    async def note_item(self, conversation: Conversation, item: RecordedItem) -> None:
        """Keep what history stands behind an item that a provider made."""
        entry = Write(Noted(self.seal.closed_text(msgspec.json.encode(item).decode())))
        await self._run(lambda: self._store.write(conversation.session_id, (entry,)))

    async def recorded_item(self, digest: str, owner: str) -> RecordedItem | None:
        """Return what is kept of an item of a provider; the owner's newest conversations are looked through."""
        return await self._run(lambda: self._reader.recorded_item(digest, owner))

    async def remember(self, conversation: Conversation, later: DeferredCall) -> None:
        """Remember what the next request of a conversation is to bring, wherever that comes in."""
        conversation.defer_recall(later)
        if conversation.session_id:
            try:
                await self._run(lambda: self._note(conversation, later))
            except StoreError:
                self._hold(conversation)

    async def produced(self, conversation: Conversation) -> None:
        """Keep what answers are produced under from now on, before the request goes out that is the first of them."""
        if conversation.session_id and conversation.production.unsaved:
            try:
                await self._run(lambda: self._produced(conversation))
            except StoreError:
                self._hold(conversation)

    async def rewound(self, session: str, plans: Sequence[PlanId], actor: str = "", *, forward: bool = False) -> int:
        """Keep that only these plans of a session are in force; return the revision that this is."""
        return await self._run(lambda: self._rewind(session, tuple(plans), actor, forward=forward))

    async def known_plans(self, session: str, ids: Sequence[str]) -> tuple[Plan, ...]:
        """Return plans of a session by their ids, those that were taken back included.

        Raises:
            SessionNotFound: there is none of that id.
            StoreCorrupt: it is damaged.
        """
        known = (await self._run(lambda: self._reader.load(session))).known
        return tuple(known[id] for id in ids if id in known)

    async def configure(self, conversation: Conversation, settings: dict[str, Any], actor: str) -> None:
        """Keep settings of a conversation that is read, with all its messages; see `Conversation.configure`.

        Raises:
            StoreError: the store has failed.
        """

        def write() -> None:
            self._keep(conversation, conversation.plans, count=len(conversation.transcript))
            self._store.write(conversation.session_id, (Write(Configured(settings, actor)),))

        await self._run(write)

    def forget(self, conversation: Conversation) -> None:
        """Let go of what is held of a conversation that leaves the memory."""
        if self._unsaved.pop(conversation.id, None) is not None and not conversation.deleted:
            log_event(logging.WARNING, "plans dropped before the store worked again", conversation=conversation.id)
        self._metrics.unsaved.set(len(self._unsaved))

    async def behind(self, plan: str, owner: str | None = None) -> list[MessageId]:
        """Return what a plan stands for that no conversation in memory has; the newest ones kept are looked through."""
        return await self._run(lambda: self._reader.behind(plan, owner))

    async def head(self, session: str, owner: str | None = None) -> Head:
        """Return the head of a conversation kept.

        Raises:
            SessionNotFound: the owner has none of that id; without one, nobody has.
        """
        return await self._run(lambda: self._reader.head(session, owner))

    async def delete(self, session: str, owner: str | None = None) -> bool:
        """Remove a conversation with its originals and plans, the texts of summaries included; tell whether it was."""
        try:
            if owner is not None:
                await self.head(session, owner)
            await self._run(lambda: self._store.delete(session))
        except SessionNotFound:
            return False
        self.on_delete(session)
        return True

    async def claim(self, keys: list[str], owner: str) -> None:
        """Record whose hashed ids of a provider are; the first owner stays.

        Raises:
            StoreError: the store has failed.
        """
        await self._run(lambda: self._store.claim(keys, owner))

    async def owners(self, keys: list[str]) -> dict[str, str]:
        """Return whose those of the hashed ids are that are recorded.

        Raises:
            StoreError: the store has failed.
        """
        return await self._run(lambda: self._store.owners(keys))

    async def drop_claims(self, before: float) -> None:
        """Forget hashed ids that were not used since a time of the store's clock.

        Raises:
            StoreError: the store has failed.
        """
        await self._run(lambda: self._store.drop_claims(before))

    async def check_write(self) -> None:
        """See that the store can be written.

        Raises:
            StoreError: it cannot.
        """
        await self._access.check()

    async def now(self) -> float:
        """Return the time that all processes of the store share, in seconds since 1970."""
        return await self._run(self._store.now)

    async def sessions(self, owner: str | None = None) -> tuple[Head, ...]:
        """Return all conversations kept, or those of an owner."""
        return await self._run(lambda: self._store.sessions(owner))

    async def originals(self, ids: list[MessageId], owner: str | None = None) -> dict[MessageId, Any]:
        """Return those messages as they were said; without an owner, the first that any has."""
        return self._reader.opened(await self._run(lambda: self._reader.originals(ids, owner)))

    async def search(self, query: str, session: str = "", owner: str | None = None) -> dict[MessageId, Any]:
        """Return originals that fit a query, the best first; encrypted ones are opened as far as there is time."""
        named, opened = [session] if session else [], self.seal.opened if self.seal.has_secret else None
        results, _ = await self._run(
            lambda: search_all(self._store, query, named, MOST_HITS, owner=owner, opened=opened), AT_ONCE
        )
        return {each.message.id: each.native for each in results}

    async def plans(self, session: str, owner: str | None = None) -> tuple[Plan, ...]:
        """Return the plans in force of a conversation kept.

        Raises:
            SessionNotFound: the owner has none of that id; without one, nobody has.
            StoreCorrupt: it is damaged.
        """
        return await self._run(lambda: self._reader.load(session, owner).plans)

    async def messages(self, session: str) -> bytes:
        """Return the messages of a conversation kept, as the JSON of the list without its brackets.

        Raises:
            SessionNotFound: there is none of that id.
            StoreCorrupt: it is damaged.
        """
        return await self._run(lambda: self._reader.messages(session))

    async def compact_session(
        self, session: str, instructions: str, keep_recent: int | None, model: str, handlers: Handlers
    ) -> CompactionStats | None:
        """Compact a session that is none of the gateway's, with its own settings; None where it is empty."""

        def compact() -> CompactionStats | None:
            own = Session(self._store, session, must_exist=True, model=model or None)
            return own.compact(instructions or None, force=True, keep_recent=keep_recent, handlers=handlers)

        return await self._run(compact)

    async def expired(self, before: float, retention: float, used: Sequence[Conversation]) -> frozenset[str]:
        """Remove the conversations that nobody has used since a time of the store's clock, and return their ids.

        Of those that were `used` here since anything was written of them, others are told in time by a report.
        """
        removed: set[str] = set()
        for id in await self._run(lambda: self._unused(before, retention / 2, used)):
            with suppress(WriteConflict):  # another session continues it, which a program has begun
                removed |= {id} if await self.delete(id) else set()
        return frozenset(removed)

    async def close(self) -> None:
        """Write what is held, as far as the store works, and give connections back."""
        if self._unsaved and not (await self._access.works() and await self._save_all()):
            log_event(logging.ERROR, "ends with plans that the store did not take", conversations=len(self._unsaved))
        await self._access.close()

    def _hold(self, conversation: Conversation) -> None:
        """Hold what the store did not take with its conversation, until the store works."""
        conversation.hold_unsaved()
        self._unsaved[conversation.id] = conversation
        self._metrics.unsaved.set(len(self._unsaved))
        self._access.retry()

    async def _save_all(self) -> bool:
        """Write what is held, one conversation after another; return whether nothing is left."""
        for conversation in list(self._unsaved.values()):
            if not conversation.lock.locked():  # what is at work now is written later
                async with conversation.lock:
                    try:
                        await self._save(conversation)
                    except StoreError:
                        if self._access.down:
                            return False  # and else it fails for this conversation alone
        return not self._unsaved

    async def _save(self, conversation: Conversation) -> None:
        """Write what is held of a conversation, whose lock the caller holds.

        Where another process has gone on from the same beginning meanwhile, it becomes a session of its own.
        """
        if not conversation.deleted:
            try:
                await self._run(lambda: self._write_unsaved(conversation))
            except (SessionNotFound, WriteConflict):
                conversation.store_as("", 0, 0)
                await self._run(lambda: self._write_unsaved(conversation, new=True))
        conversation.mark_saved()
        self._unsaved.pop(conversation.id, None)
        self._metrics.unsaved.set(len(self._unsaved))

    def _write_unsaved(self, conversation: Conversation, *, new: bool = False) -> None:
        plans, later = conversation.plans, conversation.pending_recall
        if plans and len(plans) > conversation.stored_plans:
            self._keep(conversation, plans, new=new)
        if conversation.session_id and conversation.production.unsaved:
            self._produced(conversation)
        if conversation.session_id and later is not None:
            self._note(conversation, later)

    def _unused(self, before: float, margin: float, used: Sequence[Conversation]) -> list[str]:
        known = {conversation.session_id: conversation for conversation in used if conversation.session_id}
        unused = []
        for head in self._store.sessions():
            conversation = known.get(head.id)
            if not head.id.startswith(GATEWAY_IDS) or head.touched >= before + margin:
                continue
            if conversation is not None:
                usage = conversation.reported.usage if conversation.reported is not None else Usage(0)
                self._store.report(head.id, UsageEntry(usage.prompt, usage.completion, usage.cached))
            elif head.touched < before:
                unused.append(head.id)
        return unused

    def _planned(self, conversation: Conversation) -> tuple[tuple[Plan, ...], bool] | None:
        """Return the plans in force, and whether it is news what earlier answers were produced under."""
        index = conversation.transcript.index
        known = conversation.session_id
        if known and self._is_current(conversation):
            return None
        session = known or self._store.holder(
            [message.id for message in conversation.transcript.messages], conversation.owner
        )
        if session is None:
            return None
        try:
            loaded = self._reader.load(session)
        except SessionNotFound:
            return None
        except StoreCorrupt:
            self._set_apart(conversation, session)
            return None
        is_here = loaded.head.tip in index
        if is_here:
            conversation.store_as(session, loaded.head.revision, 0)
        conversation.read_note(loaded.noted, loaded.later)
        if is_here:
            conversation.configure(loaded.policy, loaded.pinned)
            conversation.read_rewind(loaded.rewound)
        messages = conversation.transcript.messages
        fitting = within(loaded.plans, len(messages))
        ids = tuple(plan.id for plan in fitting)
        bases = [plan.base for plan in loaded.plans] + [each.base for each in loaded.ranges]
        longer = any(base.length > len(messages) for base in bases)
        count = next(
            (
                place
                for place, plan in enumerate(fitting)
                if messages[plan.base.length - 1].id != plan.base.tip or plan.earlier != ids[:place]
            ),
            len(fitting),
        )
        if is_here:
            conversation.store_as(session, loaded.head.revision, count)
        if longer:
            conversation.mark_shorter()
        elif is_here:
            version = loaded.head.created, loaded.head.seq
            conversation.mark_version(session, version, has_all=count == len(loaded.plans))
        if not fitting[:count] and conversation.session_id != session:
            return None
        production, fresh = conversation.production, False
        if not (known and production.unsaved) and (conversation.session_id == session or not production.ranges):
            fresh = production.take(loaded.ranges, loaded.known, messages)
        return fitting[:count], fresh

    def _is_current(self, conversation: Conversation) -> bool:
        """Tell whether nothing was written of a conversation since all of it was taken over: by its version alone."""
        session, *known = conversation.known_version
        return (
            conversation.has_all and session == conversation.session_id and self._store.version(session) == tuple(known)
        )

    def _is_news(self, conversation: Conversation, head: Head) -> bool:
        """Tell whether another process has written of a session since a request here asked for its version.

        What stands in it then may be a longer history of the same conversation, not a branch.
        """
        return not self.local and conversation.known_version != (head.id, head.created, head.seq)

    def _wrote(self, conversation: Conversation, before: Head | None, head: Head, entries: int) -> None:
        """Record what this process has written of a conversation, unless there is more that was not taken over.

        `before` is the head before its `entries`, None where that is as it was when all was taken over.
        """
        session, created, seq = conversation.known_version
        known = seq if session == head.id and created == head.created else 1  # a session begins with one entry
        if (before is None or before.seq == known) and head.seq == known + entries:
            conversation.mark_version(head.id, (head.created, head.seq))

    def _set_apart(self, conversation: Conversation, damaged: str) -> None:
        """Let a conversation whose session is damaged go on as another, with the plans that are known here."""
        self._metrics.store_failed()
        log_damage(damaged)
        if not damaged.startswith(conversation.id):  # that of another one, which begins with the same messages
            return
        session = _another(conversation)
        self._store.create(session, conversation.format.name, conversation.owner)
        conversation.store_as(session, 0, 0)
        conversation.production.saved = 0
        if conversation.plans:  # with all messages, so that this one is found by them, and not the damaged one
            self._keep(conversation, conversation.plans, count=len(conversation.transcript))

    def _keep(
        self, conversation: Conversation, plans: tuple[Plan, ...], *, new: bool = False, count: int | None = None,
        settings: dict[str, Any] | None = None, actor: str = "", seconds: float = 0.0,
    ) -> None:  # fmt: skip
        """Write those of the plans that the store has not, and their messages; `new` as a session of its own.

        `actor` is who has made the newest by hand.

        `count` is how many messages are written, where those of the plans are not enough.

        Raises:
            WriteConflict: another process has deleted the conversation since it was stored, or has gone on with it.
        """
        if conversation.session_id and not new and self._store.version(conversation.session_id) is None:
            raise WriteConflict("another process has deleted this conversation")
        count = plans[-1].base.length if count is None else count
        index, messages = conversation.transcript.index, conversation.transcript.messages[:count]
        session, revision = conversation.session_id or conversation.id, conversation.revision
        head = self._store.create(session, conversation.format.name, conversation.owner)
        elsewhere = head.tip != ROOT and head.tip not in index
        if elsewhere and not new and len(plans) > conversation.stored_plans and self._is_news(conversation, head):
            raise WriteConflict("another process has gone on with this conversation")
        if new or elsewhere:  # another branch has this name
            session, revision = _another(conversation), 0
            head = self._store.create(session, conversation.format.name, conversation.owner)
        before, start = head, index[head.tip] + 1 if head.tip != ROOT else 0
        # a branch begins with the plans of what it comes from
        added = plans[conversation.stored_plans if start else 0 :]
        fresh = []
        for place in range(start, len(messages)):
            text = bytes(conversation.body.raws[place]).decode()
            fresh.append(
                StoredMessage(
                    messages[place].id, self.seal.closed(text), self.seal.words(searchable_text(messages[place]))
                )
            )
        if fresh:
            head = self._store.append(session, fresh, head.tip)
        entries = [Planned(self.seal.closed_text(Planned.of(each).plan)) for each in added]
        if entries:  # the newest is last
            entries[-1] = replace(entries[-1], by=actor, seconds=seconds)
        ranges = conversation.production.ranges[conversation.production.saved if start else 0 :]
        first = [Write(entries[0], revision=revision)] if entries else []
        saved = [Write(Configured(settings))] if settings else []
        if writes := (*first, *map(Write, entries[1:]), *saved, *map(self._entry, ranges)):
            head = self._store.write(session, writes)
        self._wrote(conversation, before, head, len(writes) + bool(fresh))
        conversation.store_as(session, head.revision if entries else revision, len(plans))
        conversation.production.saved = len(conversation.production.ranges)

    def _note(self, conversation: Conversation, later: DeferredCall) -> None:
        entry = Noted(self.seal.closed_text(msgspec.json.encode(later).decode()))
        head = self._store.write(conversation.session_id, (Write(entry),))
        conversation.wrote_note(head.seq)
        self._wrote(conversation, None, head, 1)

    def _produced(self, conversation: Conversation) -> None:
        production = conversation.production
        writes = tuple(map(self._entry, production.unsaved))
        self._wrote(conversation, None, self._store.write(conversation.session_id, writes), len(writes))
        production.saved = len(production.ranges)

    def _entry(self, produced: SentRange) -> Write:
        return Write(Noted(self.seal.closed_text(msgspec.json.encode(produced.written).decode())))

    def _rewind(self, session: str, plans: tuple[PlanId, ...], actor: str, *, forward: bool) -> int:
        head = self._reader.head(session, None)
        entry = Rewound(Position(head.tip, head.messages, plans), forward, actor)
        return self._store.write(session, (Write(entry, tip=head.tip, revision=head.revision),)).revision


def _another(conversation: Conversation) -> str:
    """Return an id for another session of a conversation."""
    return f"{conversation.id}_{os.urandom(4).hex()}"
