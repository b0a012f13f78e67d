"""A conversation that outlives a process: it grows, is measured, compacted, rewound and searched.

How it works. A session is an append-only log of entries in a store: messages that were appended, plans that came into
force, rewinds, usage reports, settings. Nothing is ever changed or removed; everything else is a fold of the log:

    store ──load──▶ Log ──fold──▶ SessionState (message ids, active plans, positions to return to, last usage)
                                     │
             MessageCache ◀──────────┤  the native messages that are not rewound, as they were appended
                                     ▼
             ViewCache: the active plans folded over those messages = what the model is sent

- A plan is *active* from the entry that records it until a rewind or `untag` leaves it out. Its edits name messages by
  their chained ids, so the originals stay where they are and every plan can be taken off again.
- A rewind is an entry too: it names a `Position` (last message, number of messages, active plans), and the fold moves
  there. `forward` moves back along the positions that were left.
- A write states what the writer believes (the newest message, or the entry by which plans last changed); the store
  refuses it with WriteConflict when another process wrote first, and then nothing of it is stored.
- A compaction holds the lease of the session while a summarizer works, outside of any transaction. Messages that are
  appended meanwhile do not disturb it: its plan names the messages it was made for, and later ones follow it.
- `in_flight` plans are folded like active ones but never written.

The caches make a turn cost what is new: native objects that stay are the same objects from call to call, so meters
count each of them once.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec.structs import asdict, replace

from refold import aio, api, formats
from refold._compaction.options import check_names, refuse_blocking
from refold._compaction.request import budget_for
from refold.core._preserved_thinking import bound_parts
from refold.core.break_even import Course, CourseCounter
from refold.core.budget import Budget, Usage
from refold.core.events import CompactionApplied, CompactionFailed, notify
from refold.core.messages import MessageId
from refold.core.plan import past_compactions, remaining_plans
from refold.core.policy import When
from refold.core.token_units import UNKNOWN_RATIO, Ratio
from refold.core.transcript import ROOT
from refold.errors import SessionNotFound, StoreError, UsageError
from refold.models._thinking import binds_thinking
from refold.policies._internal import REPAIR
from refold.sessions._context_stats import Compacted, CompactionStats, ContextStats, SessionUsageReported
from refold.sessions._entries import Position, UsageEntry
from refold.sessions._leases import acompaction_lease, compaction_lease, run_in_thread
from refold.sessions._log import Log
from refold.sessions._manual_plans import MARKER, condense_plan, truncate_plan, view_to_tag
from refold.sessions._message_json import has_late_results, native_and_json, stored_messages
from refold.sessions._provenance import Provenance, digest_of_settings
from refold.sessions._saved_settings import resolve_settings, settings_to_save
from refold.sessions._search import recall, resolve_id, search
from refold.sessions._session_options import (
    CompactSessionOptions,
    SessionRunOptions,
    SessionSettings,
    handlers_of,
    with_figures,
    with_keep_recent,
)
from refold.sessions._state import Billed, without_dangling_edits
from refold.sessions._stores.head import new_id
from refold.sessions._view_cache import MessageCache, SessionMeters, ViewCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from refold._compaction.options import PlanOptions
    from refold._compaction.result import Check
    from refold.core._native import SystemPrompt, ToolDefinitions
    from refold.core.messages import Message
    from refold.core.plan import Plan, PlanId, Tag
    from refold.core.policy import Policy
    from refold.core.view import View
    from refold.formats import Format
    from refold.sessions._context_stats import Recalled
    from refold.sessions._stores.protocol import Head, Store

__all__ = ["Session", "compact_session", "get_context_stats", "needs_compaction"]

T = TypeVar("T")


class Session:
    """One conversation in a store: messages and plans are only ever added, and what the model sees is their fold.

    Native messages go in and come out; those that no plan touched are the very objects that were appended. Another
    process may work on the same session: `refresh` loads what it wrote, and a write that conflicts with another one
    raises WriteConflict and stores nothing. Not for use by several threads at once. Code in an event loop uses the
    coroutines `aopen`, `aappend`, `areport`, `arefresh`, `arewind`, `aplan` and `acompact`, through which tasks of one
    loop may share a session.

    Args:
        store: where the session is stored; see `open_store`.
        id: the id of a stored session, or of a new one; generated by default.
        format: the messages' format; by default it is detected, from the first messages that can only be of one.
        must_exist: raise SessionNotFound unless the session is in the store.
        in_flight: hold plans in this object only, so that a reload starts from the full content.
        actor: who acts through this object; recorded with its plans, rewinds and settings.
        observers: called with each event of compactions and usage reports; an observer that raises breaks nothing.

    The other settings are those of `refold.compact`, with the same defaults. They are saved in the session's log: a
    process that opens the session later need not pass them, and what it passes wins and is saved instead.

    Raises:
        UsageError: there is no such setting, policy or format.
        SessionNotFound: `must_exist`, and the session is not in the store.
        StoreError: the store could not be read.

    Added in 0.1.0.
    """

    def __init__(
        self,
        store: Store,
        id: str | None = None,
        *,
        format: str | None = None,
        must_exist: bool = False,
        in_flight: bool = False,
        actor: str = "",
        observers: Sequence[Callable[[Any], object]] = (),
        **settings: Unpack[SessionSettings],
    ) -> None:
        check_names("Session", settings, SessionSettings)
        self.store = store
        self.in_flight = in_flight
        self._observers = tuple(observers)
        self._thread_lock = Lock()  # one store access of this object at a time, in whichever thread
        self._format = format
        self._log = Log(store, id or new_id(), actor=actor)
        if must_exist and self._log.head is None:
            raise SessionNotFound(f"there is no session {id!r} in {store.name}: name one of those that it lists")
        self._explicit_settings: dict[str, Any] = {n: value for n, value in settings.items() if value is not None}
        self._saved_settings = self._log.state.settings
        self._options = resolve_settings(self._saved_settings, self._explicit_settings, format)
        self._unsaved_settings = settings_to_save(self._explicit_settings, self._saved_settings)
        self._originals = MessageCache()
        self._course_counter = CourseCounter()
        self._view_cache = ViewCache()
        self._meters = SessionMeters(self._options, self.format)
        self._in_flight_plans: tuple[Plan, ...] = ()
        self._former_in_flight_plans: tuple[Plan, ...] = ()  # those that were taken off included
        self._stale_usage: UsageEntry | None = None  # the report that an in-flight plan made out of date
        self._view_length: int | None = None  # messages of the view that was sent last, None when it is out of date
        self._answering: tuple[int, tuple[PlanId, ...]] = (0, ())  # originals and plans behind the last view
        self._request_settings: tuple[Any, Any] | None = None  # system prompt and tools of the last view alone
        self._settings_digest_memo: tuple[Any, Any, str] | None = None
        with suppress(StoreError):  # else they are saved with the next message
            self._save_settings()
        self._sync()

    def __repr__(self) -> str:
        """Return the id, the counts and the policy, without text of the conversation."""
        counts = f"messages={len(self.ids)}, plans={len(self.plans)}, format={self.format!r}"
        return f"<Session {self.id!r}: {counts}, policy={self.policy.name!r}>"

    # What the session holds

    @property
    def id(self) -> str:
        """The session's id; a policy that renews sessions changes it."""
        return self._log.session

    @property
    def head(self) -> Head | None:
        """The head of the session in the store; None until something was appended."""
        return self._log.head

    @property
    def lineage(self) -> tuple[str, ...]:
        """This session and those that it continues, the newest first."""
        return self._log.lineage

    @property
    def format(self) -> str | None:
        """The format of its messages, once that is known."""
        return self._log.head.format if self._log.head else self._format

    @property
    def messages(self) -> list[Any]:
        """The native messages that are not rewound, as they were appended, whatever plans did to them."""
        return list(self._originals.natives)

    @property
    def ids(self) -> tuple[MessageId, ...]:
        """The ids of those messages."""
        return tuple(self._log.state.ids)

    @property
    def view_messages(self) -> tuple[Message, ...]:
        """The messages of `view` as format-neutral values, with ids and notes."""
        self._view_natives()
        return tuple(self._view_cache.messages)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The active plans, oldest first."""
        return (*self._log.state.active_plans, *self._in_flight_plans)

    @property
    def policy(self) -> Policy:
        """The policy by which it is compacted."""
        assert not isinstance(self._options.policy, str)
        return self._options.policy

    @property
    def context_window(self) -> int:
        """The whole context window, in tokens."""
        return budget_for(self.policy, self._options).window

    @property
    def billed(self) -> Billed:
        """What all calls were billed together, in tokens."""
        return self._log.state.billed

    # Settings and other writers

    def configure(
        self, *, remember: bool = True, format: str | None = None, **settings: Unpack[SessionSettings]
    ) -> None:
        """Change settings from now on: policy, model, window, budget, goal, system, tools, max_output, counter.

        None removes a setting. With `remember` they are saved in the log, for the process that opens the session next.

        Raises:
            UsageError: there is no such setting, or another format.
        """
        if format not in (None, self.format):
            raise UsageError(f"the format of a session cannot change: this one has {self.format}")
        check_names("Session.configure", settings, SessionSettings)
        if settings.get("window") is not None:
            settings = {"budget": None, **settings}
        self._explicit_settings |= settings
        if remember:
            self._unsaved_settings |= settings_to_save(settings, self._log.state.settings)
            self._save_settings()
        self._apply_settings()

    def refresh(self) -> None:
        """Load what other processes wrote since."""
        self._log.refresh()
        self._sync()

    # A turn

    def append(self, messages: Sequence[Any]) -> tuple[MessageId, ...]:
        """Append native messages (objects, or their JSON text, which is stored as it is) and return their ids.

        A late result, of a call that a plan has hidden or answered meanwhile, would be rejected by the provider: then a
        plan of the policy `repair` becomes active that inserts a marked call before it.

        Raises:
            BadMessages: one of them is no message of the format, or cannot be JSON.
            WriteConflict: another process appended or rewound first; nothing was stored.
        """
        natives, written = native_and_json(messages)
        if not natives:
            return ()
        known, every = len(self._originals.natives), [*self._originals.natives, *natives]
        format = self._format_of(every, known)
        longer = formats.read(format, every, self._originals.transcript, known)
        fresh = longer.messages[known:]
        self._log.begin(format.name)
        self._save_settings()
        bound_to = self._settings_digest(format) if any(map(bound_parts, fresh)) else ""
        self._log.append(
            stored_messages(fresh, written), natives, self._originals.transcript.tip,
            under=self._plans_answered(), settings=bound_to, format=format.name if format.name != self.format else "",
        )  # fmt: skip
        self._read_as(format.name)
        self._originals.extend(self._log, longer, natives)
        if self.plans and has_late_results(longer.messages, known):
            self._repair_late_results()
        return tuple(message.id for message in fresh)

    def view(self, *, system: SystemPrompt | None = None, tools: ToolDefinitions | None = None) -> list[Any]:
        """Return the native messages to send now.

        `system` and `tools` replace those of the session for this one request; thinking that is bound to the system
        prompt and tools it was produced under is then left out.
        """
        self._request_settings = (system, tools) if system is not None or tools is not None else None
        natives = self._view_natives()
        self._view_length = len(natives)
        self._answering = len(self._originals.natives), tuple(plan.id for plan in self.plans)
        return list(natives)

    def report(self, usage: Usage | Mapping[str, Any] | Any) -> Billed:
        """Store a provider's usage report on the view that was sent last; return what all calls were billed, in tokens.

        `usage` is a mapping, or a usage or response object of the openai, anthropic or google-genai SDK, or botocore's.

        Raises:
            UsageError: it is not a usage report.
            SessionNotFound: nothing was appended yet.
        """
        from refold.models._usage_report import as_json, reported

        raw = None if isinstance(usage, Usage) else as_json(usage)
        value = usage if isinstance(usage, Usage) else reported(usage).usage(self._view_length)
        entry = UsageEntry(value.prompt, value.completion, value.cached, value.covers, raw)
        if self._in_flight_plans:
            ratio = self._meters.vocabulary_by(self._view_natives(), value)
            entry = replace(entry, vocabulary=ratio.value if ratio.known else 0.0)
        self._log.existing_head  # noqa: B018 # raises for a session that is not there
        self._log.report(entry)
        self._sync()
        billed = self._log.state.billed
        window = self.context_window
        notify(self._observers, SessionUsageReported(self.id, value.prompt, value.completion, billed, window))  # type: ignore[arg-type]
        return billed

    def bill(self, usage: Usage) -> Billed:  # V04
        """Store the usage of a call that was not of the conversation, such as a summary's: only the bill changes.

        Raises:
            SessionNotFound: nothing was appended yet.
        """
        self._log.existing_head  # noqa: B018 # raises for a session that is not there
        self._log.report(UsageEntry(usage.prompt, usage.completion, usage.cached, aside=True))
        self._sync()
        return self._log.state.billed

    # Measuring

    def check(self) -> Check:
        """Measure the request that `view` would be, at a cost that grows with what is new."""
        natives, usage = self._view_natives(), self._usage() or self._usage_after_plan()
        return self._meters.view_meter.check_in(natives, usage, self._course)

    def _course(self) -> Course:
        """Return the course of the whole session, of which the view is a part."""
        return self._course_counter.course(self._originals.transcript.messages, past_compactions(self.plans))

    def needs_compaction(self) -> bool:
        """Tell whether compaction is due, or new output too large for the policy; False for an empty session."""
        if not self._originals.natives:
            return False
        check = self.check()
        wakes = self.policy.wakes(Budget(check.limit), When.FIRST if check.waiting else When.EVERY_CALL)
        return check.due or bool(wakes and self._meters.view_meter.largest_new(wakes))

    def get_context_stats(self) -> ContextStats | None:
        """Return how full the context is; None for a session without messages."""
        if not self._originals.natives:
            return None
        check = self.check()
        return ContextStats(
            estimated_input_tokens=check.tokens, available_input_tokens=check.limit, usage_ratio=check.ratio,
            should_compact=check.due, message_count=len(self._view_natives()), context_window=self.context_window,
            context_tokens=check.expected, billed=self.billed,
        )  # fmt: skip

    # Compaction

    def compact(
        self,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> CompactionStats | None:
        """Compact if it is due (or forced), and store the plan; None for a session without messages.

        The summary is written outside of any transaction: messages that are appended meanwhile, here or elsewhere,
        follow it. One process at a time compacts a session.

        Args:
            instructions: what a summary should pay attention to.
            force: compact although it is not due.
            cause: as in `refold.compact`.
            keep_recent: tokens of newest messages to keep, instead of the policy's own rule.
            summarize: writes summaries; see `refold.compact`.
            handlers: as in `refold.compact`.
            redact: as in `refold.compact`.

        Raises:
            WriteConflict: another process is compacting it, or changed its plans meanwhile.
            UsageError: the summarizer is a coroutine function and an event loop runs, which this would block: use
                `acompact`.
            RefoldError: what `refold.compact` raises.
        """
        check_names("Session.compact", options, SessionRunOptions)
        refuse_blocking(handlers_of(options), "await session.acompact(…)")
        self.refresh()
        if not self._originals.natives:
            return None
        with compaction_lease(self.store, self.id):
            self.refresh()
            expect = self._log.existing_head.revision
            request, begun = self._request(instructions, options), monotonic()
            result = api.compact(self._originals.natives, **request, observers=(self._forward_event,))
            return self._persist(result.plan, expect, monotonic() - begun)

    def plan(
        self,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> Plan:
        """Return what `compact` would do, without doing it; the arguments are the same."""
        check_names("Session.plan", options, SessionRunOptions)
        refuse_blocking(handlers_of(options), "await session.aplan(…)")
        return api.plan(self._originals.natives, **self._request(instructions, options))

    def adopt(self, plan: Plan) -> CompactionStats:
        """Activate a plan that was made elsewhere for this conversation, for instance by `refold.recovering`.

        Raises:
            StalePlan: it was made for other messages.
            BrokenConversation: the view under it would violate a rule of the provider.
            WriteConflict: another process changed the plans first.
        """
        expect = self._log.existing_head.revision
        self._require_valid(plan)
        return self._persist(plan, expect)

    def condense(self, first: MessageId, last: MessageId, summary: str) -> Plan:
        """Replace the messages of the view from `first` to `last` by a summary of your own; return the plan.

        Raises:
            UsageError: the two ids are not a range of the view.
        """
        return self._record_manual(condense_plan(self._view_to_tag(), first, last, summary, self.format or ""))

    def truncate(self, first: MessageId, last: MessageId, marker: str = MARKER) -> Plan:
        """Replace the messages of the view from `first` to `last` by a marker; return the plan.

        Raises:
            UsageError: the two ids are not a range of the view.
        """
        return self._record_manual(truncate_plan(self._view_to_tag(), first, last, marker, self.format or ""))

    def untag(self, what: str) -> None:
        """Deactivate one plan, by its id or that of its summary or marker; the others stay active.

        Raises:
            UsageError: no active plan has that id.
        """
        plan = resolve_id(self._log.state, what)
        if plan not in self._log.state.active:
            raise UsageError(f"{what} is not an active plan, nor a message of one")
        self._rewind_to(self._log.state.without(plan))  # type: ignore[arg-type]

    @property
    def pinned(self) -> tuple[MessageId, ...]:
        """The messages that every compaction leaves as they are."""
        return tuple(self._options.pinned)

    def pin(self, what: str) -> None:
        """Have every later compaction leave a message as it is, by its id or the beginning of one.

        What it calls or answers stays too, shortened perhaps. A message that a plan has left out already comes back
        when that plan is taken back.

        Raises:
            UsageError: there is no such message.

        Added in 0.1.0.
        """
        id = resolve_id(self._log.state, what)
        if id not in self._log.state.parents:
            raise UsageError(f"{what} is a plan: name a message")
        self._set_pinned((*self.pinned, MessageId(id)))

    def unpin(self, what: str) -> None:
        """Let compactions change a message again, by its id or the beginning of one.

        Raises:
            UsageError: there is no such message.

        Added in 0.1.0.
        """
        id = resolve_id(self._log.state, what)
        self._set_pinned(tuple(each for each in self.pinned if each != id))

    def _set_pinned(self, ids: Sequence[MessageId]) -> None:
        self._log.configure({"pinned": list(dict.fromkeys(ids)) or None})
        self._apply_settings()

    def tags(self) -> dict[MessageId, Tag]:
        """Return how each message is condensed or truncated by the active plans."""
        return self._log.state.tags()

    # Rewinding

    def rewind(self, to: str | int = -1) -> None:
        """Go back without deleting: to a plan as the newest one, to a message as the last one, or to a number of plans.

        `to` is an id (or the beginning of one), or how many plans stay, negative from the end. An id may be of a plan
        or message that was rewound before. Messages stay when plans are deactivated.

        Raises:
            UsageError: there is no such plan or message, or there are not so many plans.
            WriteConflict: another process wrote first.
        """
        state = self._log.state
        if isinstance(to, int):
            remaining = remaining_plans(len(self.plans), to)
            if remaining < len(self.plans):
                self._forget_usage()
            self._in_flight_plans = self._in_flight_plans[: max(remaining - len(state.active), 0)]
            if remaining < len(state.active):
                self._rewind_to(state.before(remaining))
            self._view_length = None
            return
        id = resolve_id(state, to)
        self._rewind_to(state.at_plan(id) if id in state.plans else state.at_message(id))  # type: ignore[arg-type]

    def rewind_messages(self, to: int = -1) -> None:
        """Go back without deleting to fewer messages: `to` is how many stay, negative from the end, 0 for none.

        Plans that were made with messages that go are deactivated.

        Raises:
            UsageError: there are not so many messages.
            WriteConflict: another process wrote first.
        """
        ids = self._log.state.ids
        count = to if to >= 0 else len(ids) + to
        if not 0 <= count <= len(ids):
            raise UsageError(f"session {self.id} has {len(ids):,} messages, and rewind_messages({to}) asks for more")
        if count < len(ids):
            self._rewind_to(self._log.state.at_message(ids[count - 1]) if count else Position(ROOT, 0, ()))

    def forward(self) -> None:
        """Undo the last rewind.

        Raises:
            UsageError: nothing was rewound since the last message or plan.
        """
        if not self._log.state.undone:
            raise UsageError(f"session {self.id} was not rewound since the last message or plan")
        self._rewind_to(self._log.state.undone[-1], forward=True)

    # Originals

    def recall(self, what: str, limit: int = 20) -> tuple[Recalled, ...]:
        """Return originals by a message's id, by the id of the plan or summary that replaced them, or by words."""
        return recall(self._log, what, limit)

    def search(self, query: str, limit: int = 20) -> tuple[Recalled, ...]:
        """Return the originals of this conversation that fit a query, the best first, as the recall tool finds them."""
        return search(self.store, query, self.lineage, limit)

    # Coroutines

    @classmethod
    async def aopen(
        cls,
        store: Store,
        id: str | None = None,
        *,
        format: str | None = None,
        must_exist: bool = False,
        in_flight: bool = False,
        actor: str = "",
        observers: Sequence[Callable[[Any], object]] = (),
        **settings: Unpack[SessionSettings],
    ) -> Self:
        """Return `Session(store, id, …)`, which loads from the store, without blocking the event loop."""
        return await run_in_thread(
            lambda: cls(
                store,
                id,
                format=format,
                must_exist=must_exist,
                in_flight=in_flight,
                actor=actor,
                observers=observers,
                **settings,
            )
        )

    async def aappend(self, messages: Sequence[Any]) -> tuple[MessageId, ...]:
        """Append messages without blocking the event loop; see `append`."""
        return await self._in_thread(partial(self.append, messages))

    async def areport(self, usage: Usage | Mapping[str, Any] | Any) -> Billed:
        """Store a usage report without blocking the event loop; see `report`."""
        return await self._in_thread(partial(self.report, usage))

    async def arefresh(self) -> None:
        """Load what other processes wrote, without blocking the event loop."""
        await self._in_thread(self.refresh)

    async def arewind(self, to: str | int = -1) -> None:
        """Go back without blocking the event loop; see `rewind`."""
        await self._in_thread(partial(self.rewind, to))

    async def acompact(
        self,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> CompactionStats | None:
        """Compact as `compact` does, awaiting the summarizer; messages appended meanwhile follow the summary."""
        check_names("Session.acompact", options, SessionRunOptions)
        await self.arefresh()
        if not self.messages:
            return None
        async with acompaction_lease(self.store, self.id):
            await self.arefresh()
            expect = self._log.existing_head.revision
            request, begun = self._request(instructions, options), monotonic()
            result = await aio.acompact(self.messages, **request, observers=(self._forward_event,))
            seconds = monotonic() - begun
            previous, before = self.id, len(self._view_natives())
            with self._report_failure():
                await self._in_thread(
                    partial(self._record, result.plan, expect, self._successor_id(result.plan), seconds)
                )
            return self._report_compaction(result.plan, previous, before)

    async def aplan(
        self,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> Plan:
        """Plan as `plan` does, awaiting the summarizer."""
        check_names("Session.aplan", options, SessionRunOptions)
        return await aio.aplan(self.messages, **self._request(instructions, options))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do work in a thread, after what this object's other tasks do there."""

        def locked() -> T:
            with self._thread_lock:
                return work()

        return await run_in_thread(locked)

    # Internals

    def _view_natives(self) -> list[Any]:
        if not self._originals.natives:
            return []
        format = formats.find(self.format or "")
        binds = binds_thinking(format.name, self._options.model)
        self._meters.sync(self._originals.transcript)
        return self._view_cache.sync(
            format, self._originals.transcript, self.plans, self._provenance(format) if binds else None
        )

    def _provenance(self, format: Format) -> Provenance:
        plans = self._log.state.plans | {plan.id: plan for plan in self._former_in_flight_plans}
        return Provenance(self._log.state.under, plans, self._settings_digest(format))

    def _settings_digest(self, format: Format) -> str:
        """Return a digest of system prompt and tools, computed once for each pair of them."""
        system, tools = self._request_settings or (None, None)
        now = (
            self._options.system if system is None else system,
            self._options.tools if tools is None else tools,
        )
        memo = self._settings_digest_memo
        if memo is None or memo[0] is not now[0] or memo[1] is not now[1]:
            memo = self._settings_digest_memo = (*now, digest_of_settings(format, *now))
        return memo[2]

    def _plans_answered(self) -> tuple[PlanId, ...] | None:
        """Return the plans of the view that is answered now, None where they are those active in the store."""
        length, sent_under = self._answering
        plans = sent_under if length == len(self._originals.natives) else tuple(plan.id for plan in self.plans)
        return None if plans == self._log.state.active else plans

    def _usage(self) -> Usage | None:
        """Return the last report on the view, in its native messages."""
        last = self._log.state.usage
        if last is None or last is self._stale_usage:
            return None
        return Usage(last.prompt, last.completion, last.cached, last.covers)

    def _forget_usage(self) -> None:
        """Leave out the last report, on a view that is not sent again, but remember how the provider counts."""
        if usage := self._usage():
            self._meters.vocabulary = self._meters.vocabulary_by(self._view_natives(), usage)
            self._stale_usage = self._log.state.usage

    def _usage_after_plan(self) -> Usage | None:
        """Return the size that the newest plan left, as a report on the view; None where it was not calibrated."""
        if not self.plans:
            return None
        plan, natives = self.plans[-1], len(self._view_natives())
        later = len(self._originals.natives) - plan.base.length
        return Usage(plan.sizes.after, covers=max(natives - later, 0)) if plan.sizes.calibrated else None

    def _save_settings(self) -> None:
        """Save the settings that differ from the log's; those of a session without messages wait for the first."""
        head = self._log.head
        if head is None or head.next:
            return
        known = self._log.state.settings
        fresh = {name: value for name, value in self._unsaved_settings.items() if value != known.get(name)}
        if fresh:
            self._log.configure(fresh)
        self._unsaved_settings = {}

    def _apply_settings(self) -> None:
        """Use the settings as they are now; token counts made under others are dropped."""
        self._saved_settings = self._log.state.settings
        options = resolve_settings(self._saved_settings, self._explicit_settings, self._format)
        if options != self._options:
            vocabulary = self._meters.vocabulary if options.model == self._options.model else UNKNOWN_RATIO
            self._options = options
            self._meters = SessionMeters(options, self.format)
            self._meters.vocabulary = vocabulary

    def _format_of(self, natives: Sequence[Any], known: int) -> Format:
        """Return the format of the messages with those that are appended now; what is stored keeps its ids in it."""
        if self.format is None:
            return formats.detect(natives)
        format = formats.find(self.format)
        other = format if self._format is not None else formats.detect_again(format, natives, known)
        same = other is format or formats.read(other, natives[:known]).tip == self._originals.transcript.tip
        return other if same else format

    def _read_as(self, format: str) -> None:
        """Measure and write the messages in a format from now on; earlier ratios are of another counter."""
        if format != self._meters.format:
            self._meters, self._view_cache = SessionMeters(self._options, format), ViewCache()
            self._originals = MessageCache()

    def _sync(self) -> None:
        if self._log.state.settings is not self._saved_settings:
            self._apply_settings()
        if self._log.head is not None:
            self._read_as(self._log.head.format)
        self._originals.sync(self._log)
        last = self._log.state.usage
        if last and last.vocabulary is not None and not self._in_flight_plans and last is not self._stale_usage:
            self._meters.vocabulary = Ratio(last.vocabulary or 1.0, known=last.vocabulary > 0)
            self._stale_usage = last
        self._in_flight_plans = tuple(
            plan for plan in self._in_flight_plans if plan.base.length <= len(self._originals.natives)
        )

    def _foldable_plans(self) -> tuple[Plan, ...]:
        return without_dangling_edits(self.plans, self._log.state.ids)

    def _view_to_tag(self) -> View:
        options = replace(self._options, format=self.format, plans=self._foldable_plans())
        return view_to_tag(self._originals.natives, self._originals.transcript, options)

    def _request(self, instructions: str | None, options: SessionRunOptions) -> PlanOptions:
        """Return the options of a compaction of what is there now."""
        keep_recent = options.get("keep_recent")
        settings = with_figures(self._options, options)
        if keep_recent is not None:
            settings = with_keep_recent(settings, keep_recent)
        plans = self._foldable_plans()
        natives, usage = len(self._view_natives()), self._usage()
        if usage is not None and usage.covers is not None:  # neighbours of one role may be one native message
            usage = replace(usage, covers=max(usage.covers + len(self._view_cache.messages) - natives, 0))
        return {
            **asdict(settings),  # type: ignore[typeddict-item] # the fields of Options are options of `plan`
            "format": self.format, "usage": usage, "plans": plans, "instructions": instructions,
            "cause": options.get("cause"), "force": options.get("force", False),
            "meter": self._meters.original_meter(self._view_cache.messages, planned=bool(plans)),
            "summarize": options.get("summarize"), "handlers": options.get("handlers"),
            "redact": options.get("redact", True),
        }  # fmt: skip

    def _record_manual(self, plan: Plan) -> Plan:
        self._require_valid(plan)
        self._record(plan, self._log.existing_head.revision, "")
        return plan

    def _require_valid(self, plan: Plan) -> None:
        api.apply(plan, self._originals.natives, format=self.format, plans=self._foldable_plans())

    def _repair_late_results(self) -> None:
        plan = api.plan(
            self._originals.natives, format=self.format, model=self._options.model, policy=REPAIR,
            budget=Budget(10**12), counter="policy", force=True, plans=self._foldable_plans(),
        )  # fmt: skip
        if not plan.empty:
            self._record(plan, self._log.existing_head.revision, "")

    def _rewind_to(self, to: Position, *, forward: bool = False) -> None:
        self._forget_usage()
        self._log.rewind(to, forward=forward)
        self._view_length, self._in_flight_plans = None, ()
        self._sync()

    def _persist(self, plan: Plan, expect: int, seconds: float = 0.0) -> CompactionStats:
        previous, before = self.id, len(self._view_natives())
        with self._report_failure():
            self._record(plan, expect, self._successor_id(plan), seconds)
        return self._report_compaction(plan, previous, before)

    def _successor_id(self, plan: Plan) -> str:
        """Return the id of the session that continues this one after a plan; empty where its id stays."""
        return new_id() if self.policy.renews_session and not self.in_flight and not plan.empty else ""

    @contextmanager
    def _report_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            notify(self._observers, CompactionFailed(f"{type(error).__name__}: {error}"))
            raise

    def _report_compaction(self, plan: Plan, previous: str, before: int) -> CompactionStats:
        """Return the statistics of a plan that was stored, and notify the observers."""
        done = CompactionStats(
            compacted=not plan.empty, stages_used=plan.stages_used, tokens_before=plan.sizes.before,
            tokens_after=plan.sizes.after, messages_before=before, messages_after=len(self._view_natives()),
            context_window=self.context_window, session=self.id, plan=plan,
            previous=previous if previous != self.id else "",
        )  # fmt: skip
        if not plan.empty:
            notify(self._observers, CompactionApplied(plan))
            notify(self._observers, Compacted(done))  # type: ignore[arg-type]
        return done

    def _record(self, plan: Plan, expect: int, renew: str, seconds: float = 0.0) -> None:
        if plan.empty:
            return
        if self.in_flight:
            self._in_flight_plans = (*self._in_flight_plans, plan)
            self._former_in_flight_plans = (*self._former_in_flight_plans, plan)
            self._stale_usage = self._log.state.usage
        else:
            self._log = self._log.record(plan, expect, renew, round(seconds, 3))
        self._view_length = None  # the last report is of a context that is no longer sent (O03)
        self._sync()

    def _forward_event(self, event: Any) -> None:
        if not isinstance(event, CompactionApplied):  # which is sent when the plan is stored
            notify(self._observers, event)


def get_context_stats(store: Store, session: str, **settings: Unpack[SessionSettings]) -> ContextStats | None:
    """Return how full a session's context is; None where it is unknown or empty. Takes the settings of `Session`."""
    return Session(store, session, **settings).get_context_stats()


def needs_compaction(store: Store, session: str, **settings: Unpack[SessionSettings]) -> bool:
    """Tell whether a session's compaction is due; False where it is unknown or empty."""
    return Session(store, session, **settings).needs_compaction()


def compact_session(
    store: Store, session: str, instructions: str | None = None, **options: Unpack[CompactSessionOptions]
) -> CompactionStats | None:
    """Compact a session now, even if it is not due, and store the plan; None where it is unknown or empty.

    The options are settings of `Session` and options of `Session.compact`, figures of the policy among them.

    Raises:
        UsageError: a name that is no option, or a figure that cannot be.
        WriteConflict: another process is compacting it.
        RefoldError: what `refold.compact` raises.
    """
    check_names("compact_session", options, CompactSessionOptions)
    settings: dict[str, Any] = {
        name: value for name, value in options.items() if name in SessionSettings.__optional_keys__
    }
    run: dict[str, Any] = {"force": True} | {name: value for name, value in options.items() if name not in settings}
    return Session(store, session, **settings).compact(instructions, **run)
