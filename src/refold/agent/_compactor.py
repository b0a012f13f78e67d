"""Measures a session before each call, and compacts it where that is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import formats, policies
from refold._compaction.meter import Meter
from refold.agent._compaction_log import Decision
from refold.agent.cards import DoneCard, FailedCard, StartedCard, done_card, targets_of
from refold.agent.events import SessionRenewed
from refold.core.budget import Budget, Never
from refold.core.events import CompactionApplied, CompactionFailed, CompactionStarted
from refold.core.policy import When
from refold.core.view import Cause
from refold.errors import CannotFit, RefoldError

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.agent.events import AgentEvent
    from refold.core.events import Event
    from refold.core.messages import Message
    from refold.core.plan import Plan
    from refold.core.policy import Policy
    from refold.handlers import Handlers
    from refold.sessions import CompactionStats, Session

__all__ = ["Compactor", "RequestSpec"]

LAST_RESORT = "refold"  # needs no model, so it works where a summary was refused
GROWTH = 0.05  # of the input budget, before the next attempt
ROOM = 0.5  # of what is left of it, where the last attempt left the conversation above the trigger
DOUBT = 0.5  # of the new tokens it takes: a report may have shown meanwhile that the view is smaller than estimated
NOTHING = "there is nothing that could be made smaller"
PLACEHOLDER = "[A summary will stand here.]"  # only to learn, for the first card, which messages will be touched


class RequestSpec(Struct, frozen=True):
    """What a request consists of apart from the messages; names and meanings are those of `refold.compact`."""

    policy: Policy
    budget: Budget
    model: str | None = None
    system: Any = None
    tools: Any = None
    max_output: int | None = None
    provider: str | None = None

    def as_options(self) -> dict[str, Any]:
        """Return it as keyword arguments."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Compactor:
    """Keeps one session within one budget."""

    def __init__(
        self,
        session: Session,
        request: RequestSpec,
        handlers: Handlers,
        notify: Callable[[AgentEvent], None],
        clock: Callable[[], float],
    ) -> None:
        self.session, self.handlers = session, handlers
        self._notify, self._clock = notify, clock
        self._tried_at = -1  # how many messages there were when a compaction was last tried
        self._tried_with = 0  # and how many tokens it left
        self._looked_with = 0  # how many tokens there were when the policy was last run
        self.last_known: int | None = None
        self._recovery_began: float | None = None  # when a compaction after a provider error began
        self._recovery_card: DoneCard | None = None
        self.set(request, remember=True)

    def set(self, request: RequestSpec, *, remember: bool = False) -> None:
        """Measure and compact by these from now on; they are remembered where they hold for more than this call."""
        self.request = request
        self.session.configure(**request.as_options(), window=None, remember=remember)
        self._estimates = Meter(**request.as_options(), format=self.session.format)

    def decide(self, *, force: bool = False) -> Decision:
        """Measure what would be sent, at the price of what is new."""
        view = self.session.view()
        estimate, check = self._estimates.check(view), self.session.check()
        system = self.request.system
        return Decision(
            estimate=estimate.tokens,
            last_known=self.last_known,
            effective=check.tokens,
            budget=check.limit,
            threshold=self.threshold,
            messages=len(view),
            system_chars=len(formats.system_text(system)) if system else 0,
            system_tokens=check.breakdown.system,
            tools=len(self.request.tools or ()),
            force=force,
            due=check.due,
            waits=check.waiting is not None,
        )

    @property
    def threshold(self) -> int:
        """From how many tokens on compaction is due; the input budget where no trigger is set."""
        trigger, budget = self.request.policy.trigger, self.request.budget
        return budget.input if isinstance(trigger, Never) else min(trigger.tokens(budget), budget.input)

    def prepare(self, decision: Decision, cause: Cause) -> DoneCard | None:
        """Compact where the decision says so; return the card if that changed anything.

        Without a new message no second attempt is made for the same reason, and while all fits none before the view
        has grown by a twentieth of the budget, or by half of what is left of it where the last attempt did not bring it
        below the trigger: what could not be made smaller would only cost again. Where the policy
        cannot compact and what it has would not fit either, the default policy does, which needs nobody else.

        Raises:
            RefoldError: neither could.
        """
        forced, length = cause is not Cause.THRESHOLD, len(self.session.ids)
        due = decision.due or forced
        if not forced and (self._would_repeat(decision, length) if due else self._has_grown_too_little(decision)):
            return None
        self._looked_with = decision.effective
        if due:
            self._tried_at, self._tried_with = length, decision.effective
        try:
            card = self.compact(cause, loud=due or decision.waits)
            if card is not None:
                self._tried_with = self._looked_with = self.session.check().tokens
            return card
        except RefoldError:
            if cause in (Cause.THRESHOLD, Cause.MANUAL) and decision.effective <= decision.budget:
                return None
        try:
            card = self._by_last_resort(cause)
            self._tried_with = self.session.check().tokens
            return card
        except CannotFit:
            if decision.estimate > decision.budget:
                raise
            self.last_known = None  # only by the last report is it too large, and the report may be wrong
            return None

    def _has_grown_too_little(self, decision: Decision) -> bool:
        """Tell whether the steps that run now have nothing to do: the policy has none, or the view has hardly grown.

        Those are the steps of every call, and while a compaction waits until it pays those that run first.
        """
        wakes = self.request.policy.wakes(self.request.budget, When.FIRST if decision.waits else When.EVERY_CALL)
        if wakes is None:
            return True
        least = wakes * DOUBT if wakes else decision.budget * GROWTH
        return 0 <= decision.effective - self._looked_with < least

    def _would_repeat(self, decision: Decision, length: int) -> bool:
        grown, least = decision.effective - self._tried_with, decision.budget * GROWTH
        if self._tried_with >= self.threshold:  # the last attempt did not reach what it was made for
            least = max(least, (decision.budget - self._tried_with) * ROOM)
        small = 0 <= grown < least and decision.effective <= decision.budget
        return self._tried_at == length or (self._tried_at >= 0 and small)

    def compact(
        self, cause: Cause, *, loud: bool = True, focus: str | None = None, keep_recent: int | None = None
    ) -> DoneCard | None:
        """Compact; `focus` is what a summary should heed (L07), `keep_recent` what stays, in tokens (O17).

        Observers get no card if `loud` is off, nor of steps that run before every call. A card that says that it runs
        is always followed by one that says how it ended (O03, W16).
        """
        start, before = self._clock(), self.session.view_messages
        preview = self._preview(cause) if loud else None
        loud = loud and not self._is_silent(preview)
        started = self._started_card(cause, preview) if loud else None
        announced = started is not None and (preview is None or not preview.empty)
        if started is not None and announced:
            self._notify(started)
        try:
            done = self.session.compact(focus, cause=cause, keep_recent=keep_recent, handlers=self.handlers)
        except BaseException as error:
            if announced:
                self._notify(FailedCard(str(error) or type(error).__name__))
            raise
        if done is None or not done.compacted:
            if announced:
                self._notify(FailedCard(NOTHING))
            return None
        if started is not None and not announced:
            self._notify(started)
        self._report_renewal(done)
        return self._done_card(done.plan, before, self._clock() - start, loud=loud)

    def observe_recovery(self, event: Event) -> None:
        """Take over a plan of a recovery as soon as it is made, before the call is made again (W04, O12)."""
        match event:
            case CompactionStarted(cause=cause):
                self._recovery_began, self._recovery_card = self._clock(), None
                self._notify(self._started_card(cause, self._preview(cause)))
            case CompactionApplied(plan=plan):
                before = self.session.view_messages
                self._report_renewal(self.session.adopt(plan))
                began, self._recovery_began = self._recovery_began, None
                seconds = self._clock() - began if began is not None else 0.0
                self._recovery_card = self._done_card(plan, before, seconds)
            case CompactionFailed(reason=reason):
                self._recovery_began = None
                self._notify(FailedCard(reason))

    def end_recovery(self) -> DoneCard | None:
        """Return the card of the last plan that a recovery made."""
        card, self._recovery_card = self._recovery_card, None
        return card

    def learn(self, window: int | None) -> None:
        """Take over the window that a refusal told (W04)."""
        if window is not None and window < self.request.budget.window:
            reserve = self.request.policy.reserve(window, self.request.max_output)
            self.set(replace(self.request, budget=Budget(window, reserve)), remember=True)

    def _by_last_resort(self, cause: Cause) -> DoneCard | None:
        request = self.request
        self.session.configure(policy=policies.find(LAST_RESORT), remember=False)
        try:
            return self.compact(cause)
        finally:
            self.session.configure(policy=request.policy, remember=False)

    def _report_renewal(self, done: CompactionStats) -> None:
        if done.previous:
            self._notify(SessionRenewed(done.previous, done.session))

    def _preview(self, cause: Cause) -> Plan | None:
        """Return the plan that a compaction would make now; None where it would fail."""
        handlers = replace(self.handlers, summarize=lambda _: PLACEHOLDER, archive=None, read_file=None, count=None)
        try:
            return self.session.plan(cause=cause, handlers=handlers)
        except RefoldError:
            return None

    def _is_silent(self, plan: Plan | None) -> bool:  # L02
        """Tell whether a plan consists only of steps that run before every call, which nobody is told of."""
        silent = {step.name for step in self.request.policy.steps if step.when is When.EVERY_CALL}
        return plan is not None and bool(plan.steps) and all(step.label in silent for step in plan.steps)

    def _started_card(self, cause: Cause, plan: Plan | None) -> StartedCard:
        session, window = self.session, self.request.budget.window
        targets = 0 if plan is None else len(targets_of(plan, session.view_messages))
        return StartedCard(len(session.view()), targets, session.check().expected, self.threshold, window, cause)

    def _done_card(self, plan: Plan, before: tuple[Message, ...], seconds: float, *, loud: bool = True) -> DoneCard:
        self.last_known = None
        window = self.request.budget.window
        card = done_card(plan, before, self.session.view_messages, window=window, seconds=seconds)
        if loud:
            self._notify(card)
        return card
