"""Keeps a language-model agent's conversation inside the model's context window."""

from refold._compaction.meter import Meter
from refold._compaction.options import CompactOptions
from refold._compaction.result import Check, Result
from refold.aio import acompact, aplan
from refold.api import (
    apply,
    check,
    compact,
    count,
    plan,
    repair,
    rewind,
    violations,
    window,
)
from refold.core._native import Messages, SystemPrompt, ToolDefinitions
from refold.core._plan_json import dump_plan, load_plan
from refold.core.budget import Budget, Exactly, LeastCost, Share, Usage, WhenItPays
from refold.core.needs import Summarizer
from refold.core.plan import Plan
from refold.core.policy import Policy
from refold.errors import RefoldError
from refold.handlers import Handlers
from refold.models.provider_errors import classify_error
from refold.recovery._run import arecovering, recovering
from refold.sessions import Session, open_store

__all__ = [
    "Budget",
    "Check",
    "CompactOptions",
    "Exactly",
    "Handlers",
    "LeastCost",
    "Messages",
    "Meter",
    "Plan",
    "Policy",
    "RefoldError",
    "Result",
    "Session",
    "Share",
    "Summarizer",
    "SystemPrompt",
    "ToolDefinitions",
    "Usage",
    "WhenItPays",
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
