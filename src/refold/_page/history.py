"""The history of one conversation: the fold of its log at any step, without reading a message.

A conversation of any length opens in a time that depends on its log alone; the messages that are shown are read by
`read`. Steps are numbered from 0 across the sessions that a conversation has been renewed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import formats
from refold._compaction.result import fold_plans
from refold.core.edits import Hide, Insert, Rewrite, patched
from refold.core.messages import Message, Patch
from refold.core.transcript import Transcript
from refold.sessions._entries import Appended, Configured, Planned, Rewound, SessionOpened, UsageEntry
from refold.sessions._state import SessionState, without_dangling_edits
from refold.sessions._stores.protocol import GATEWAY_IDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from refold.core.messages import MessageId
    from refold.core.plan import Plan, PlanId
    from refold.sessions import Head, Store
    from refold.sessions._entries import Entry
    from refold.sessions._stores.protocol import StoredEntry

__all__ = ["History", "LoggedEvent", "ViewRow", "read_entries"]

KINDS = ("opened", "appended", "planned", "rewound", "reported", "configured", "renewed")


class LoggedEvent(Struct, frozen=True):
    """One entry of the log: when it was written, and the plan that it made active, if it did."""

    at: float
    entry: Entry
    plan: Plan | None = None


class ViewRow(Struct, frozen=True):
    """One place of the conversation as the model sees it: a message, or one that is left out.

    `message` has the changes of the plans as patches, and no parts of its own unless a plan made it; `by` are the steps
    that touched it, each with the number of its plan.
    """

    message: Message
    hidden: bool
    inserted: bool
    by: tuple[tuple[int, str], ...] = ()


class History:
    """The log of a conversation, and the state that it leaves at the end and at any step before."""

    def __init__(
        self,
        head: Head,
        events: Sequence[LoggedEvent],
        sizes: Mapping[MessageId, int],
        read: Callable[[Sequence[MessageId]], Mapping[MessageId, Any]],
    ) -> None:
        self.head = head
        self.events = tuple(events)
        self.sizes = sizes
        self._read = read
        self.resent = head.id.startswith(GATEWAY_IDS)  # its client sends all messages again: none of them can leave
        self.state = self.at(len(self.events))
        self._view_now: list[ViewRow] | None = None

    def at(self, step: int) -> SessionState:
        """Return the state after the first so many events."""
        state = SessionState()
        for event in self.events[:step]:
            apply(state, event)
        return state

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The active plans, oldest first."""
        return self.state.active_plans

    @property
    def numbers(self) -> dict[PlanId, int]:
        """The number of each plan that there ever was, from 1."""
        return {id: number for number, id in enumerate(self.state.plans, 1)}

    def natives(self, ids: Sequence[MessageId]) -> Mapping[MessageId, Any]:
        """Read those originals of this conversation, as they were received."""
        return self._read([id for id in ids if id in self.sizes])

    def messages(self, ids: Sequence[MessageId]) -> dict[MessageId, Message]:
        """Read those originals."""
        format = formats.find(self.head.format)
        return {id: format.read(native, id) for id, native in self.natives(ids).items()}

    def sent(self, id: MessageId) -> Message | None:
        """Return a message as the plans in force have it sent, be it left out; one that a plan ever inserted, too."""
        message = self.messages([id]).get(id)
        if message is None:
            edits_ever = (edit for plan in self.state.plans.values() for edit in plan.edits)
            inserted = (edit.message for edit in edits_ever if isinstance(edit, Insert))
            message = next((each for each in inserted if each.id == id), None)
        edits = [edit for plan in self.plans for edit in plan.edits if isinstance(edit, Rewrite) and edit.message == id]
        if message is None or not edits:
            return message
        return patched(message, [Patch(edit.at, edit.to) for edit in edits])

    def view(self, state: SessionState) -> list[ViewRow]:
        """Return the places of the conversation at a state, in order, those left out included."""
        if state is not self.state:
            return self._view_at(state)
        if self._view_now is None:  # asked for by every page of messages
            self._view_now = self._view_at(state)
        return self._view_now

    def _view_at(self, state: SessionState) -> list[ViewRow]:
        plans = without_dangling_edits(state.active_plans, state.ids)
        hidden = {id for plan in plans for edit in plan.edits if isinstance(edit, Hide) for id in edit.messages}
        numbers = self.numbers
        reasons: dict[MessageId, dict[tuple[int, str], None]] = {}
        for plan in plans:
            for id, label in _touched(plan):
                reasons.setdefault(id, {})[numbers[plan.id], label] = None
        visible = [replace(p, edits=tuple(e for e in p.edits if not isinstance(e, Hide)), steps=()) for p in plans]
        own = set(state.ids)
        transcript = Transcript(tuple(Message(id, "user") for id in state.ids))
        return [
            ViewRow(message, message.id in hidden, message.id not in own, tuple(reasons.get(message.id, ())))
            for message in fold_plans(transcript, visible)
            if message.id in own or message.id not in hidden
        ]


def apply(state: SessionState, event: LoggedEvent) -> None:
    """Fold in an event, whose plan is read already."""
    if event.plan is None:
        state.apply(event.entry)
    else:
        state.activate(event.plan)


def read_entries(
    store: Store, head: Head, opened: Callable[[str], str], load: Callable[[str], Plan]
) -> tuple[list[LoggedEvent], dict[MessageId, int]]:
    """Return the events of a session and of those that it continues, and the sizes of their messages."""
    session, upto = head.id, None
    parts: list[tuple[StoredEntry, ...]] = []
    sizes: dict[MessageId, int] = {}
    while session:
        entries = store.entries(session, KINDS, upto=upto)
        parts.append(entries)
        sizes |= store.sizes(session)
        begun = entries[0].entry if entries else None
        session, upto = (begun.parent, begun.at) if isinstance(begun, SessionOpened) else ("", None)
    events: list[LoggedEvent] = []
    for each in (entry for entries in reversed(parts) for entry in entries):
        match each.entry:
            case Planned(plan=text):
                events.append(LoggedEvent(each.at, each.entry, load(opened(text))))
            case Appended() | Rewound() | UsageEntry() | Configured():
                events.append(LoggedEvent(each.at, each.entry))
            case _:
                pass
    return events, sizes


def _touched(plan: Plan) -> list[tuple[MessageId, str]]:
    """Return the messages that a plan touches, each with the step that did it."""
    labels = [""] * len(plan.edits)
    for step in plan.steps:
        labels[step.start : step.stop] = [step.label] * (step.stop - step.start)
    touched: list[tuple[MessageId, str]] = []
    for edit, label in zip(plan.edits, labels, strict=True):
        match edit:
            case Rewrite(message=id):
                touched.append((id, label))
            case Insert(message=message):
                touched.append((message.id, label))
            case Hide(messages=ids):
                touched += [(id, label) for id in ids]
    return touched
