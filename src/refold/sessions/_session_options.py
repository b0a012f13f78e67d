"""The options of a session: its settings, and those of one compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._compaction.options import HandlerOptions, ModelOptions, resolve_handlers
from refold.errors import BadBudget
from refold.stages.selectors import KeepTokens

if TYPE_CHECKING:
    from refold._compaction.options import Options
    from refold.core.budget import Limit
    from refold.core.policy import Policy, Step
    from refold.core.view import Cause
    from refold.handlers import Handlers

__all__ = ["SessionRunOptions", "SessionSettings", "handlers_of", "with_keep_recent"]


class SessionSettings(ModelOptions, total=False):
    """The settings of a `Session`, which are saved in its log; None removes a setting."""

    policy: str | Policy | None
    """A policy's name, a path to a file with one, or a `Policy`."""
    goal: int | float | Limit | None
    """Where compaction may stop: tokens (int), a share of the input budget (float up to 1.0), or a limit."""


class SessionRunOptions(HandlerOptions, total=False):
    """The options of one compaction of a session, or of its plan."""

    force: bool
    """Compact although it is not due."""
    cause: Cause | str | None
    """As in `refold.compact`."""
    keep_recent: int | None
    """Tokens of newest messages to keep, instead of the policy's own rule (O17)."""


def handlers_of(options: HandlerOptions) -> Handlers:
    """Return the handlers of the options."""
    return resolve_handlers(options.get("handlers"), options.get("summarize"), redact=options.get("redact", True))


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
