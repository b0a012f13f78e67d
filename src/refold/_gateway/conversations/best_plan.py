"""The best plan that there is for a request: the policy's own, else what comes nearest to the input budget.

A request that is too large is refused in any case. So where the policy cannot bring it under the input budget, or fails
(a summarizer that does not answer, a policy with a fault), the plan that leaves least is used: the policy's own, or one
of `refold`, which asks nobody. It may leave more than the input budget, but nothing that could not fit the window.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold import policies
from refold._compaction.driver import plan_request
from refold._compaction.request import check_plans, request_for
from refold._compaction.result import verified_result
from refold.core.edits import fold
from refold.core.transcript import Transcript
from refold.errors import CannotFit, RefoldError
from refold.handlers import Handlers

if TYPE_CHECKING:
    from refold._compaction.options import Options
    from refold.core.edits import Edit
    from refold.core.messages import Message, MessageId
    from refold.core.plan import Plan

__all__ = ["BestPlan", "PlanningInput", "best_plan"]

FALLBACK = policies.find("refold")
DOUBT = 1.15  # by how much an estimate that no report has confirmed may be too large


class PlanningInput(Struct, frozen=True):
    """What a plan is made of: messages, the options of `refold.plan`, known sizes, and thinking that is left out.

    `too_large` says that the request would be refused as it is; `assumed`, that the model's window is not known;
    `partial`, that another plan may follow, so that this one need not fit.
    """

    messages: tuple[Message, ...]
    options: Options
    estimates: dict[MessageId, int]
    dropped: tuple[Edit, ...]
    handlers: Handlers
    too_large: bool = False
    assumed: bool = False
    partial: bool = False


class BestPlan(Struct, frozen=True):
    """A plan, and why it is not what the policy should have made; empty where it is."""

    plan: Plan
    failed: str = ""


def best_plan(work: PlanningInput) -> BestPlan:
    """Return the best plan; it takes as long as planning does.

    Raises:
        Exception: what the policy, or a handler, raised where no other plan would be of use.
    """
    try:
        return BestPlan(_plan(work, work.options, work.estimates, work.handlers))
    except Exception as error:
        if work.partial and isinstance(error, CannotFit):
            return BestPlan(error.plan)
        if not work.too_large and not isinstance(error, CannotFit):
            raise
        failure = error
    plan = failure.plan if isinstance(failure, CannotFit) else None
    policy = work.options.policy
    if not isinstance(policy, str) and policy.steps not in (FALLBACK.steps, ()):
        plan = _smaller(plan, _fallback(work))
    if plan is None or not plan.sizes.saved or not _may_fit(plan, work):
        raise failure
    return BestPlan(plan, type(failure).__name__)


def _fallback(work: PlanningInput) -> Plan | None:
    """Return a plan of the policy that asks nobody; None where it has none either."""
    try:
        return _plan(work, replace(work.options, policy=FALLBACK, goal=None), {}, Handlers())
    except CannotFit as error:
        return error.plan
    except RefoldError:
        return None


def _smaller(plan: Plan | None, other: Plan | None) -> Plan | None:
    candidates = [each for each in (plan, other) if each is not None]
    return min(candidates, key=lambda each: each.sizes.after, default=None)


def _may_fit(plan: Plan, work: PlanningInput) -> bool:
    """Tell whether what a plan leaves may fit the window, although not the part of it that is for input."""
    budget = work.options.budget
    window = plan.sizes.limit if budget is None or isinstance(budget, int) else budget.window
    return work.assumed or plan.sizes.after <= window * (1 if plan.sizes.calibrated else DOUBT)


def _plan(work: PlanningInput, options: Options, estimates: dict[MessageId, int], handlers: Handlers) -> Plan:
    """Return a plan that was proven to be valid and to fit.

    Raises:
        CannotFit: it is valid and does not fit.
    """
    natives = [message.native for message in work.messages]
    # Stages remember on messages what they found in them, many times their size: that goes with these copies.
    copies = Transcript(tuple(map(copy, work.messages)))
    start = None
    if work.dropped:
        plans = check_plans(options.plans, copies)
        runs, tips = [plan.edits for plan in plans], [plan.base.tip for plan in plans]
        start = fold(copies.messages, [*runs, work.dropped], tips)
    request = request_for(natives, options, transcript=copies, estimates=estimates, start=start)
    run = plan_request(request, handlers)
    try:
        verified_result(run, natives)
    except CannotFit:
        verified_result(replace(run, due=False), natives)
        raise
    return run.plan
