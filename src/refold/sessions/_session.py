"""A conversation that outlives a process: it grows, is measured, compacted, rewound and searched."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from refold import api, formats
from refold._compaction.options import check_names, refuse_blocking
from refold.core._preserved_thinking import bound_parts
from refold.core.budget import Budget, Usage
from refold.core.events import CompactionApplied, CompactionFailed, notify
from refold.errors import UsageError
from refold.policies._internal import REPAIR
from refold.sessions._context_stats import Compacted, CompactionStats, SessionUsageReported
from refold.sessions._coroutines import LEASE, SessionCoroutines
from refold.sessions._entries import UsageEntry
from refold.sessions._keep_recent import retaining
from refold.sessions._manual_plans import MARKER, condensing, truncating, view_to_tag
from refold.sessions._message_json import answers_late, given, received
from refold.sessions._saved_settings import to_remember
from refold.sessions._search import named, recall, search
from refold.sessions._session_options import SessionRunOptions, SessionSettings, handlers_of
from refold.sessions._standing import Standing
from refold.sessions._state import Billed
from refold.sessions._stores.leases import leasing, new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from refold._compaction.options import PlanOptions
    from refold.core._native import SystemPrompt, ToolDefinitions
    from refold.core.messages import MessageId
    from refold.core.plan import Plan, Tag
    from refold.core.view import View
    from refold.sessions._context_stats import Recalled
    from refold.sessions._stores.protocol import Store

__all__ = ["Session"]


class Session(SessionCoroutines, Standing):
    """One conversation in a store: messages and plans are only ever added, and what the model sees is their fold.

    Native messages go in and come out; those that no plan touched are the very objects that were appended. Another
    process may work on the same session: `refresh` loads what it wrote, and a write that crosses another one raises
    WriteConflict and keeps nothing. Not for use by several threads at once; inside an event loop, what waits for the
    store or a summarizer has a coroutine beside it: `aopen`, `aappend`, `areport`, `arefresh`, `arewind`, `aplan` and
    `acompact`.

    Args:
        store: where it is kept; see `open_store`.
        id: an id of a session that is there, or of one to be; a new one by default.
        format: the messages' format; told from the first messages when left out.
        must_exist: raise SessionNotFound unless the session is in the store.
        in_flight: keep plans in this object only, so that a reload starts from the full content (W18).
        observers: functions that are told of compactions and usage reports; one that raises breaks nothing.

    The other settings are those of `refold.compact`, with the same defaults. They are remembered in the session's log:
    a process that opens the session later needs to give none, and what it gives wins and is remembered instead.

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
        observers: Sequence[Callable[[Any], object]] = (),
        **settings: Unpack[SessionSettings],
    ) -> None:
        check_names("Session", settings, SessionSettings)
        self.in_flight = in_flight
        self._observers = tuple(observers)
        SessionCoroutines.__init__(self)
        Standing.__init__(self, store, id, settings, format=format, must_exist=must_exist)

    def configure(
        self, *, remember: bool = True, format: str | None = None, **settings: Unpack[SessionSettings]
    ) -> None:
        """Change settings from now on: policy, model, window, budget, goal, system, tools, max_output, counter.

        None takes a setting away. With `remember` they are written into the log, for the process that opens the session
        next.

        Raises:
            UsageError: there is no such setting, or another format.
        """
        if format not in (None, self.format):
            raise UsageError(f"the format of a session stays: this one has {self.format}")
        check_names("Session.configure", settings, SessionSettings)
        if settings.get("window") is not None:
            settings = {"budget": None, **settings}
        self._given |= settings
        if remember:
            self._to_remember |= to_remember(settings, self._log.state.settings)
            self._remember()
        self._settle()

    def refresh(self) -> None:
        """Load what others wrote since."""
        self._log.refresh()
        self._follow()

    # A turn

    def append(self, messages: Sequence[Any]) -> tuple[MessageId, ...]:
        """Append native messages (objects, or their JSON text, which is kept as it is) and return their ids.

        An answer that comes late, to a call which a plan has hidden or answered meanwhile, would be refused by the
        provider: a plan of the policy `repair` comes into force then, which puts a marked call before it.

        Raises:
            BadMessages: one of them is no message of the format, or cannot be JSON.
            WriteConflict: somebody else appended or rewound first; nothing was kept.
        """
        natives, written = given(messages)
        if not natives:
            return ()
        format = formats.find(self.format) if self.format else formats.detect(natives)
        known = len(self._held.natives)
        longer = formats.read(format, [*self._held.natives, *natives], self._held.transcript, known)
        fresh = longer.messages[known:]
        self._log.begin(format.name)
        self._remember()
        self._log.append(
            received(fresh, written), natives, self._held.transcript.tip,
            under=self._answered_under(), settings=self._settings(format) if any(map(bound_parts, fresh)) else "",
        )  # fmt: skip
        self._held.grow(self._log, longer, natives)
        if self.plans and answers_late(longer.messages, known):
            self._repair()
        return tuple(message.id for message in fresh)

    def view(self, *, system: SystemPrompt | None = None, tools: ToolDefinitions | None = None) -> list[Any]:
        """Return the native messages to send now (N08's effective history).

        `system` and `tools` are those of this one request where they are others than the session's; thinking that is
        bound to what it was produced behind is left out then.
        """
        self._sending = (system, tools) if system is not None or tools is not None else None
        natives = self._seen()
        self._sent = len(natives)
        self._viewed = len(self._held.natives), tuple(plan.id for plan in self.plans)
        return list(natives)

    def report(self, usage: Usage | Mapping[str, Any] | Any) -> Billed:
        """Keep a provider's usage report on the view that was sent last; return what all calls were billed.

        `usage` is a mapping, or a usage or response object of the openai, anthropic or google-genai SDK, or botocore's.

        Raises:
            UsageError: no report.
        """
        from refold.models._usage_report import as_json, reported

        raw = None if isinstance(usage, Usage) else as_json(usage)
        value = usage if isinstance(usage, Usage) else reported(usage).usage(self._sent)
        entry = UsageEntry(value.prompt, value.completion, value.cached, value.covers, raw)
        self._log.known  # noqa: B018 # raises for a session that is not there
        self._log.report(entry)
        self._follow()
        billed = self._log.state.billed
        window = self.context_window
        notify(self._observers, SessionUsageReported(self.id, value.prompt, value.completion, billed, window))  # type: ignore[arg-type]
        return billed

    # Compaction

    def compact(
        self,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> CompactionStats | None:
        """Compact what is due (or is forced), and keep the plan; None for a session without messages.

        The summary is written outside of any transaction: what is appended meanwhile, here or elsewhere, stays and
        follows it. One process at a time compacts a session.

        Args:
            instructions: what a summary should heed.
            force: compact although it is not due.
            cause: as in `refold.compact`.
            keep_recent: tokens of newest messages to keep, instead of what the policy says (O17).
            summarize: writes summaries; see `refold.compact`.
            handlers: as in `refold.compact`.
            redact: as in `refold.compact`.

        Raises:
            WriteConflict: somebody else is compacting it, or changed its plans meanwhile.
            UsageError: a coroutine function as summarizer, inside an event loop that this would block: use `acompact`.
            RefoldError: what `refold.compact` raises.
        """
        check_names("Session.compact", options, SessionRunOptions)
        refuse_blocking(handlers_of(options), "await session.acompact(…)")
        self.refresh()
        if not self._held.natives:
            return None
        with leasing(self.store, self.id, LEASE):
            self.refresh()
            expect = self._log.known.revision
            request = self._request(instructions, options)
            result = api.compact(self._held.natives, **request, observers=(self._early,))
            return self._kept(result.plan, expect)

    def plan(
        self,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> Plan:
        """Return what `compact` would do, without doing it; the arguments are the same."""
        check_names("Session.plan", options, SessionRunOptions)
        refuse_blocking(handlers_of(options), "await session.aplan(…)")
        return api.plan(self._held.natives, **self._request(instructions, options))

    def adopt(self, plan: Plan) -> CompactionStats:
        """Put a plan in force that was made elsewhere for this conversation, by `refold.recovery._run` perhaps.

        Raises:
            StalePlan: it was made for other messages.
            BrokenConversation: under it a rule of the provider would not hold.
            WriteConflict: somebody else changed the plans first.
        """
        expect = self._log.known.revision
        self._proven(plan)
        return self._kept(plan, expect)

    def condense(self, first: MessageId, last: MessageId, summary: str) -> Plan:
        """Put a summary of your own in place of the messages of the view from one to another (N08)."""
        return self._tagged(condensing(self._view(), first, last, summary, self.format or ""))

    def truncate(self, first: MessageId, last: MessageId, marker: str = MARKER) -> Plan:
        """Put a marker in place of the messages of the view from one to another (N08)."""
        return self._tagged(truncating(self._view(), first, last, marker, self.format or ""))

    def untag(self, what: str) -> None:
        """Take one plan off, by its id or that of its summary or marker, and leave the others in force (N08)."""
        plan = named(self._log.state, what)
        if plan not in self._log.state.live:
            raise UsageError(f"{what} is no plan in force, nor made by one")
        self._go(self._log.state.without(plan))  # type: ignore[arg-type]

    def tags(self) -> dict[MessageId, Tag]:
        """Return how each message is condensed or truncated by the plans in force (N07)."""
        return self._log.state.tags()

    # Back and forth

    def rewind(self, to: str | int = -1) -> None:
        """Go back, deleting nothing: to a plan as the newest one, to a message as the last, or to a number of plans.

        `to` is an id (or the beginning of one), or how many plans stay, negative from the end. An id may be of a plan
        or message that was rewound before. Messages stay when plans are taken off.

        Raises:
            UsageError: no such plan or message.
            WriteConflict: somebody else wrote first.
        """
        state = self._log.state
        if isinstance(to, int):
            kept = max(len(self.plans) + to, 0) if to < 0 else to
            self._flying = self._flying[: max(kept - len(state.live), 0)]
            if kept < len(state.live):
                self._go(state.before(kept))
            self._sent = None
            return
        id = named(state, to)
        self._go(state.at_plan(id) if id in state.plans else state.at_message(id))  # type: ignore[arg-type]

    def forward(self) -> None:
        """Take the last rewind back.

        Raises:
            UsageError: nothing was rewound since the last message or plan.
        """
        if not self._log.state.undone:
            raise UsageError(f"session {self.id} was not rewound since the last message or plan")
        self._go(self._log.state.undone[-1], forward=True)

    # Originals

    def recall(self, what: str, limit: int = 20) -> tuple[Recalled, ...]:
        """Return originals: of a message's id, behind a plan's or a summary's id, or with the words of a query."""
        return recall(self._log, what, limit)

    def search(self, query: str, limit: int = 20) -> tuple[Recalled, ...]:
        """Return the originals of this conversation that hold all words of a query, newest first."""
        return search(self.store, query, self.lineage, limit)

    def _view(self) -> View:
        options = replace(self._options, format=self.format, plans=self._plans_for_request())
        return view_to_tag(self._held.natives, self._held.transcript, options)

    def _request(self, instructions: str | None, options: SessionRunOptions) -> PlanOptions:
        """Return the options of a compaction of what is there now."""
        keep_recent = options.get("keep_recent")
        settings = self._options if keep_recent is None else retaining(self._options, keep_recent)
        plans = self._plans_for_request()
        self._seen()
        return {
            **asdict(settings),  # type: ignore[typeddict-item] # the fields of Options are options of `plan`
            "format": self.format, "usage": self._usage(), "plans": plans, "instructions": instructions,
            "cause": options.get("cause"), "force": options.get("force", False),
            "meter": self._measures.originals(self._shown.messages, planned=bool(plans)),
            "summarize": options.get("summarize"), "handlers": options.get("handlers"),
            "redact": options.get("redact", True),
        }  # fmt: skip

    def _tagged(self, plan: Plan) -> Plan:
        self._proven(plan)
        self._record(plan, self._log.known.revision, "")
        return plan

    def _proven(self, plan: Plan) -> None:
        api.apply(plan, self._held.natives, format=self.format, plans=self._plans_for_request())

    def _repair(self) -> None:
        plan = api.plan(
            self._held.natives, format=self.format, model=self._options.model, policy=REPAIR, budget=Budget(10**12),
            counter="policy", force=True, plans=self._plans_for_request(),
        )  # fmt: skip
        if not plan.empty:
            self._record(plan, self._log.known.revision, "")

    def _go(self, to: Any, *, forward: bool = False) -> None:
        self._log.rewind(to, forward=forward)
        self._sent, self._flying = None, ()
        self._follow()

    def _kept(self, plan: Plan, expect: int) -> CompactionStats:
        previous, before = self.id, len(self._seen())
        with self._telling_failure():
            self._record(plan, expect, self._renewal(plan))
        return self._done(plan, previous, before)

    def _renewal(self, plan: Plan) -> str:
        """Return the id under which the conversation goes on after a plan; nothing where it keeps its own."""
        return new_id() if self.policy.renews_session and not self.in_flight and not plan.empty else ""

    @contextmanager
    def _telling_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            notify(self._observers, CompactionFailed(f"{type(error).__name__}: {error}"))
            raise

    def _done(self, plan: Plan, previous: str, before: int) -> CompactionStats:
        """Return what a plan did that was kept, and tell it."""
        done = CompactionStats(
            compacted=not plan.empty, stages_used=plan.stages_used, tokens_before=plan.sizes.before,
            tokens_after=plan.sizes.after, messages_before=before, messages_after=len(self._seen()),
            context_window=self.context_window, session=self.id, plan=plan,
            previous=previous if previous != self.id else "",
        )  # fmt: skip
        if not plan.empty:
            notify(self._observers, CompactionApplied(plan))
            notify(self._observers, Compacted(done))  # type: ignore[arg-type]
        return done

    def _record(self, plan: Plan, expect: int, renew: str) -> None:
        if plan.empty:
            return
        if self.in_flight:
            self._flying = (*self._flying, plan)
            self._flown = (*self._flown, plan)
            self._stale = self._log.state.usage
        else:
            self._log = self._log.record(plan, expect, renew)
        self._sent = None  # the last report is of a context that is no more (O03)
        self._follow()

    def _early(self, event: Any) -> None:
        if not isinstance(event, CompactionApplied):  # which is told when the plan is kept
            notify(self._observers, event)
