"""Measures a conversation before each call, and compacts it where that is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold import formats, policies
from refold.agent.cards import DoneCard, FailedCard, StartedCard, done_card, targets_of
from refold.agent.decisions import Decision
from refold.agent.events import AgentEvent
from refold.api import drive
from refold.core.budget import Budget, Never
from refold.core.policy import When
from refold.core.view import Cause
from refold.errors import CannotFit, RefoldError, UsageError
from refold.meter import Meter
from refold.outside import Outside
from refold.request import budget_for
from refold.result import proven
from refold.stages.choose import KeepTokens
from refold.stages.summarize import Summarize

if TYPE_CHECKING:
    from refold.agent.conversation import Conversation
    from refold.core.policy import Policy, Step
    from refold.recovery import Recovered
    from refold.request import Options, Request

__all__ = ["Compactor", "keeping", "resolved"]

LAST_RESORT = "refold"  # needs no model, so it works where a summary was refused
GUESSED = "[A summary will stand here.]"  # only to learn, for the first card, which messages will be touched


class Compactor:
    """Runs one policy over one conversation. `options` are as for `refold.compact`; the policy in them is a value."""

    def __init__(
        self, options: Options, outside: Outside, tell: Callable[[AgentEvent], None], clock: Callable[[], float]
    ) -> None:
        assert not isinstance(options.policy, str)
        self.policy: Policy = options.policy
        self.outside = outside
        self._tell, self._clock = tell, clock
        self._set(options)
        self._every_call = any(step.when is When.EVERY_CALL for step in self.policy.steps)
        self._asked_at = -1  # how many messages had been said when a compaction was last tried

    def _set(self, options: Options) -> None:
        self.budget = budget_for(self.policy, options)
        self.options = options
        named = {name: getattr(options, name) for name in options.__struct_fields__ if name != "usage"}
        self._said, self._seen = Meter(**named), Meter(**named)

    def decide(self, talk: Conversation, *, force: bool = False) -> Decision:
        """Measure what would be sent, at the price of what is new."""
        estimate = self._seen.check(talk.view)
        check = self._seen.check(talk.view, usage=talk.usage) if talk.usage else estimate
        trigger = self.policy.trigger
        return Decision(
            estimate=estimate.tokens,
            last_known=talk.usage.prompt if talk.usage else None,
            effective=check.tokens,
            budget=check.limit,
            threshold=check.limit if isinstance(trigger, Never) else trigger.tokens(self.budget),
            messages=len(talk.view),
            system_chars=len(formats.system_text(self.options.system)) if self.options.system else 0,
            system_tokens=check.breakdown.system,
            tools=len(self.options.tools or ()),
            force=force,
            due=check.due,
        )

    def prepare(self, talk: Conversation, decision: Decision, cause: Cause) -> DoneCard | None:
        """Compact where the decision says so; return the card if it changed anything.

        Without a new message no second attempt is made for the same reason. Where the policy cannot compact and what
        it has would not fit either, the default policy does, which needs nobody else.

        Raises:
            RefoldError: neither could.
        """
        due = decision.due or cause is not Cause.THRESHOLD
        if cause is Cause.THRESHOLD and self._asked_at == len(talk.said):
            return None
        if not due and not self._every_call:
            return None
        if due:
            self._asked_at = len(talk.said)
        try:
            return self._run(talk, self.policy, cause, loud=due)
        except RefoldError as error:
            self._tell(FailedCard(str(error)))
            if cause in (Cause.THRESHOLD, Cause.MANUAL) and decision.effective <= decision.budget:
                return None
        try:
            return self._run(talk, policies.find(LAST_RESORT), cause, loud=True)
        except CannotFit:
            if decision.estimate > decision.budget:
                raise
            talk.usage = None  # only by the last report is it too large, and the report may be wrong
            return None

    def compact(self, talk: Conversation, *, focus: str | None = None, policy: Policy | None = None) -> DoneCard | None:
        """Compact because a person asks for it; `focus` is what a summary should heed (L07)."""
        return self._run(talk, policy or self.policy, Cause.MANUAL, loud=True, focus=focus)

    def adopt(self, talk: Conversation, recovered: Recovered, seconds: float) -> DoneCard | None:
        """Take over what a recovery did: its plans, and the window that a refusal told (W04)."""
        fresh = recovered.plans[len(talk.plans) :]
        card = None
        for number, plan in enumerate(fresh, len(talk.plans)):
            options = replace(self.options, plans=recovered.plans[:number], cause=plan.cause)
            card = done_card(plan, self._said.request(talk.said, options).view, seconds=seconds)
            self._tell(card)
        if fresh:
            talk.plans, talk.view, talk.usage = recovered.plans, list(recovered.messages), None
        if recovered.window is not None and recovered.window < self.budget.window:
            reserve = self.policy.reserve(recovered.window, self.options.max_output)
            self._set(replace(self.options, budget=Budget(recovered.window, reserve), window=None))
        return card

    def _run(
        self, talk: Conversation, policy: Policy, cause: Cause, *, loud: bool, focus: str | None = None
    ) -> DoneCard | None:
        start = self._clock()
        options = replace(
            self.options, policy=policy, plans=talk.plans, usage=talk.usage, cause=cause, instructions=focus
        )
        request = self._said.request(talk.said, options)
        if loud:
            self._tell(self._started(request))
        plan = drive(request, self.outside)
        result = proven(request, plan, talk.said)
        if plan.empty:
            return None
        card = done_card(plan, request.view, seconds=self._clock() - start)
        talk.put(result)
        self._tell(card)
        return card

    def _started(self, request: Request) -> StartedCard:
        view = request.view
        try:
            plan = drive(request, replace(self.outside, summarize=lambda _: GUESSED, archive=None, read_file=None))
            targets = len(targets_of(plan, view.messages))
        except RefoldError:
            targets = 0
        trigger = request.policy.trigger
        threshold = view.budget.input if isinstance(trigger, Never) else trigger.tokens(view.budget)
        return StartedCard(len(view.messages), targets, view.tokens, threshold, view.budget.window, view.cause)


def resolved(policy: str | Policy) -> Policy:
    """Return a policy by name or as it is."""
    return policies.find(policy) if isinstance(policy, str) else policy


def keeping(policy: Policy, recent: int | None) -> Policy:
    """Return a policy whose summaries leave so many of the newest tokens alone (O17); the same where None is given.

    Raises:
        UsageError: the number is not positive, or the policy has no step that keeps a number of tokens.
    """
    if recent is None:
        return policy
    if recent <= 0:
        raise UsageError(f"{recent} tokens to be kept: give a positive number")
    steps = tuple(_keeping(step, recent) for step in policy.steps)
    if steps == policy.steps:
        raise UsageError(f"policy {policy.name} keeps no number of tokens: leave keep_recent out, or take opal")
    return replace(policy, steps=steps)


def _keeping(step: Step, recent: int) -> Step:
    match step.stage:
        case Summarize(cut=KeepTokens()) as stage:
            return replace(step, stage=replace(stage, cut=KeepTokens(recent)))
        case _:
            return step
