"""The options of a session: its settings, and those of one compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from msgspec.structs import replace

from refold._compaction.options import HandlerOptions, ModelOptions, resolve_handlers
from refold.errors import BadBudget
from refold.stages.selectors import KeepTokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.options import Options
    from refold.core.budget import Limit
    from refold.core.policy import Policy, Step
    from refold.core.view import Cause
    from refold.handlers import Handlers

__all__ = [
    "CompactSessionOptions",
    "PolicyFigures",
    "SessionRunOptions",
    "SessionSettings",
    "handlers_of",
    "with_figures",
    "with_keep_recent",
]


class SessionSettings(ModelOptions, total=False):
    """The settings of a `Session`, which are saved in its log; None removes a setting."""

    policy: str | Policy | None
    """A policy's name, a path to a file with one, or a `Policy`."""
    goal: int | float | Limit | None
    """Where compaction may stop: tokens (int), a share of the input budget (float up to 1.0), or a limit."""


class PolicyFigures(TypedDict, total=False):  # N19
    """Figures of the policy for one compaction, as `refold.config` has them as settings; the others stay."""

    enable_pruning: bool
    """Steps that clear old tool results."""
    enable_deduplication: bool
    """Steps that remove repeated reads of a file."""
    enable_sliding_window: bool
    """Steps that hide the oldest messages."""
    prune_protect_tokens: int
    """Tokens of the newest tool results that are never cleared."""
    prune_minimum_savings: int
    """Clear nothing unless so many tokens are saved."""
    prune_protected_tools: Sequence[str]
    """Tools whose results are never cleared."""
    keep_recent_ratio: float
    """The share of the newest messages that is not summarized."""
    truncation_fraction: float
    """The share of the messages that is hidden at once."""


class SessionRunOptions(HandlerOptions, PolicyFigures, total=False):
    """The options of one compaction of a session, or of its plan."""

    force: bool
    """Compact although it is not due."""
    cause: Cause | str | None
    """As in `refold.compact`."""
    keep_recent: int | None
    """Tokens of newest messages to keep, instead of the policy's own rule (O17)."""


class CompactSessionOptions(SessionSettings, SessionRunOptions, total=False):
    """The options of `compact_session`: settings of a session, and options of one compaction."""


def handlers_of(options: HandlerOptions) -> Handlers:
    """Return the handlers of the options."""
    return resolve_handlers(options.get("handlers"), options.get("summarize"), redact=options.get("redact", True))


def with_figures(options: Options, run: SessionRunOptions) -> Options:
    """Return options whose policy has the figures of one compaction.

    Raises:
        UsageError: a figure that cannot be.
    """
    figures = {name: value for name, value in run.items() if name in PolicyFigures.__optional_keys__}
    if not figures:
        return options
    from refold.config import Settings

    policy = options.policy
    assert not isinstance(policy, str)
    return replace(options, policy=Settings.of(figures).apply_to(policy))


def with_keep_recent(options: Options, tokens: int) -> Options:
    """Return options that keep so many newest tokens: where the policy cuts by tokens, else as the goal."""
    if tokens <= 0:
        raise BadBudget(f"keep_recent={tokens} keeps nothing: give a positive number of tokens")
    policy = options.policy
    assert not isinstance(policy, str)
    changed = _policy_keeping(policy, tokens)
    if changed.steps == policy.steps:
        return replace(options, goal=tokens)
    return replace(options, policy=changed)


def _policy_keeping(policy: Policy, tokens: int) -> Policy:
    after = policy.after_overflow
    steps = tuple(_step(step, tokens) for step in policy.steps)
    return replace(policy, steps=steps, after_overflow=None if after is None else _policy_keeping(after, tokens))


def _step(step: Step, tokens: int) -> Step:
    if not isinstance(getattr(step.stage, "cut", None), KeepTokens):
        return step
    return replace(step, stage=replace(step.stage, cut=KeepTokens(tokens)))  # type: ignore[type-var]
