"""Reads sessions of the store as the gateway needs them: decrypted, without messages where plans are all that matters.

Everything here blocks: `PlanStore` runs it beside the event loop.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from refold import policies
from refold._gateway.conversations.encryption import is_sealed
from refold._gateway.conversations.provenance import StoredRange
from refold._gateway.native.items import RecordedItem
from refold._gateway.observability.logs import log_event
from refold._gateway.recall.deferred_call import DeferredCall
from refold.core._decoders import decoder
from refold.core._plan_json import load_plan
from refold.core.edits import Hide, Insert, Rewrite
from refold.core.messages import MessageId
from refold.errors import SessionNotFound, StoreCorrupt, UnreadablePlan
from refold.sessions._entries import Appended, Configured, Noted, Planned, Rewound
from refold.sessions._saved_settings import CHOSEN
from refold.sessions._stores.protocol import GATEWAY_IDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold._gateway.conversations.encryption import Seal
    from refold.core.plan import Plan
    from refold.sessions._stores.protocol import Head, Store

__all__ = ["NO_ENTRIES", "SessionReader", "StoredConversation", "hidden_by", "log_damage"]

SEARCHED = 50  # sessions, the newest, in which a plan is looked for
CHECKED = 20  # sessions, the newest, that are looked at for a plan when a gateway starts
NO_ENTRIES = 2**31 - 1  # a number behind that of every entry: of a session the head alone is read
IN_FORCE = ("planned", "rewound", "noted", "configured")  # entries that tell which plans are in force, and what waits


_note: Callable[[str], DeferredCall | StoredRange | RecordedItem] = decoder(
    DeferredCall | StoredRange | RecordedItem  # type: ignore[arg-type] # a union, which mypy takes for no type
)


class StoredConversation(Struct, frozen=True):
    """A conversation in the store: the plans in force and all that ever were, what answers were produced under.

    `later` is what its next request is to bring, `noted` the entry that said so last. `rewound` is the entry that took
    plans back, if none was made since.
    """

    head: Head
    plans: tuple[Plan, ...]
    known: dict[str, Plan]
    ranges: tuple[StoredRange, ...]
    noted: int
    later: DeferredCall | None
    policy: str = ""
    pinned: tuple[MessageId, ...] = ()
    rewound: int = 0


class SessionReader:
    """Reads what a store has; `seal` opens what is encrypted."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self._store = store
        self._seal = seal

    def check(self) -> None:
        """See that the newest sessions can be read.

        Raises:
            StoreCorrupt: they were encrypted with another secret, or with one that was not given.
        """
        locked: dict[str, StoreCorrupt] = {}  # sessions that the secret does not open: all of them, or damaged ones
        for head in self._store.sessions()[:CHECKED]:
            text = self._first_plan(head.id)
            if text is None:
                continue
            try:
                self._seal.opened_text(text)
            except StoreCorrupt as error:
                locked[head.id] = error
                continue
            if not locked or is_sealed(text):
                break
        else:
            if locked:
                raise StoreCorrupt(f"{self._store.name}: {next(iter(locked.values()))}")
        for session in locked:
            log_damage(session)

    def _first_plan(self, session: str) -> str | None:
        """Return the text of the first plan of a session as it is kept; None without one, or where it is damaged."""
        try:
            entries = [each.entry for each in self._store.entries(session, ("planned",))]
        except StoreCorrupt:
            log_damage(session)
            return None
        return next((entry.plan for entry in entries if isinstance(entry, Planned)), None)

    def head(self, session: str, owner: str | None) -> Head:
        """Return the head of a session.

        Raises:
            SessionNotFound: the owner has none of that id; without one, nobody has.
        """
        head = self._store.load(session, after=NO_ENTRIES).head
        if owner not in (None, head.owner):
            raise SessionNotFound(session)
        return head

    def load(self, session: str, owner: str | None = None) -> StoredConversation:
        """Return what is known of a conversation kept; that of another owner is not found.

        Raises:
            SessionNotFound: there is none.
            StoreCorrupt: it is damaged.
        """
        head = self.head(session, owner)  # before anything is read that may be damaged
        noted: tuple[int, DeferredCall | None] = 0, None
        ranges: list[StoredRange] = []
        known: dict[str, Plan] = {}
        live: tuple[str, ...] = ()
        settings: dict[str, Any] = {}
        rewound = 0
        for each in self._store.entries(session, IN_FORCE, upto=head.seq):  # without the messages
            match each.entry:
                case Planned(plan=text):
                    plan = self._plan(session, text)
                    known[plan.id] = plan
                    live, rewound = (*live, plan.id), 0
                case Rewound(to=to):
                    live, noted, rewound = to.plans, (each.seq, None), each.seq
                case Configured(settings=changed):
                    settings |= changed
                case Noted(text=text):
                    note = _read(self._seal.opened_text(text))
                    if isinstance(note, RecordedItem):
                        continue
                    if isinstance(note, StoredRange):
                        ranges = [*(one for one in ranges if one.base.length < note.base.length), note]
                    else:
                        noted = each.seq, note
                case _:
                    pass
        plans = tuple(known[id] for id in live if id in known)
        policy, pinned = settings.get(CHOSEN), settings.get("pinned")
        return StoredConversation(
            head, plans, known, tuple(ranges), *noted, policy if policy in policies.names() else "",
            tuple(MessageId(str(id)) for id in pinned) if isinstance(pinned, list) else (), rewound,
        )  # fmt: skip

    def _plan(self, session: str, text: str) -> Plan:
        try:
            return load_plan(self._seal.opened_text(text))
        except UnreadablePlan as error:
            raise StoreCorrupt(f"a plan of {session} in {self._store.name} is damaged") from error

    def messages(self, session: str) -> bytes:
        """Return the messages of a session, as the JSON of the list without its brackets.

        Raises:
            SessionNotFound: there is none of that id.
            StoreCorrupt: it is damaged.
        """
        loaded = self._store.load(session)
        ids = [id for each in loaded.entries if isinstance(each.entry, Appended) for id in each.entry.ids]
        try:
            natives = [json.dumps(self._seal.opened(json.loads(loaded.natives[id]))).encode() for id in ids]
        except (KeyError, ValueError) as error:
            raise StoreCorrupt(f"a message of {session} in {self._store.name} is damaged") from error
        return b",".join(natives)

    def opened(self, texts: dict[MessageId, str]) -> dict[MessageId, Any]:
        """Return messages as they were said; those that are damaged are left out."""
        messages: dict[MessageId, Any] = {}
        for id, text in texts.items():
            try:
                messages[id] = self._seal.opened(json.loads(text))
            except (ValueError, StoreCorrupt):
                log_event(logging.WARNING, "damaged message in the store", message=id)
        return messages

    def originals(self, ids: list[MessageId], owner: str | None) -> dict[MessageId, str]:
        """Return the text of those messages as it is kept; without an owner, the first that any has."""
        owners = dict.fromkeys(head.owner for head in self._store.sessions()) if owner is None else [owner]
        return next((texts for each in owners if (texts := self._store.natives(ids, each))), {})

    def recorded_item(self, digest: str, owner: str) -> RecordedItem | None:
        """Return what is kept of an item of a provider; the owner's newest sessions are looked through."""
        for session in self._newest(owner):
            with suppress(SessionNotFound, StoreCorrupt):
                for each in self._store.entries(session, ("noted",)):
                    if isinstance(each.entry, Noted):
                        note = _read(self._seal.opened_text(each.entry.text))
                        if isinstance(note, RecordedItem) and note.digest == digest:
                            return note
        return None

    def behind(self, plan: str, owner: str | None) -> list[MessageId]:
        """Return what a plan stands for; the newest sessions are looked through."""
        for session in self._newest(owner):
            with suppress(SessionNotFound, StoreCorrupt):
                if ids := hidden_by(self.load(session).plans, plan):
                    return ids
        return []

    def _newest(self, owner: str | None) -> list[str]:
        """Return the newest sessions of the gateway in which something is looked for."""
        return [head.id for head in self._store.sessions(owner)[:SEARCHED] if head.id.startswith(GATEWAY_IDS)]


def hidden_by(plans: tuple[Plan, ...], what: str) -> list[MessageId]:
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


def log_damage(session: str) -> None:
    """Log that a session cannot be read."""
    log_event(logging.WARNING, "damaged session in the store: left as it is", session=session)


def _read(text: str) -> DeferredCall | StoredRange | RecordedItem | None:
    try:
        return _note(text)
    except msgspec.DecodeError:  # of another release: what waits there is not brought
        return None
