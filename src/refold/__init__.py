"""Keeps a language-model agent's conversation inside the model's context window."""

from refold.aio import acompact, aplan
from refold.api import apply, check, compact, count, plan, repair, rewind, violations, window
from refold.core.budget import Budget, Exactly, LeastCost, Share, Usage
from refold.core.plan import Plan
from refold.core.policy import Policy
from refold.core.wire import dump_plan, load_plan
from refold.errors import RefoldError
from refold.limits.overflow import classify_error
from refold.meter import Meter
from refold.outside import Outside
from refold.recovery import arecovering, recovering
from refold.result import Check, Result
from refold.sessions import Session, open_store

__all__ = [
    "Budget",
    "Check",
    "Exactly",
    "LeastCost",
    "Meter",
    "Outside",
    "Plan",
    "Policy",
    "RefoldError",
    "Result",
    "Session",
    "Share",
    "Usage",
    "acompact",
    "aplan",
    "apply",
    "arecovering",
    "check",
    "classify_error",
    "compact",
    "count",
    "dump_plan",
    "load_plan",
    "open_store",
    "plan",
    "recovering",
    "repair",
    "rewind",
    "violations",
    "window",
]
