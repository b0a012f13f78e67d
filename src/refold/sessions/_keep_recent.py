"""A compaction that keeps a stated number of newest tokens, whatever its policy says (O17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.errors import BadBudget
from refold.stages.selectors import KeepTokens

if TYPE_CHECKING:
    from refold._compaction.options import Options
    from refold.core.policy import Policy, Step

__all__ = ["retaining"]


def retaining(options: Options, tokens: int) -> Options:
    """Return options that keep so many tokens: where the policy cuts by tokens it cuts there, else it is the goal."""
    if tokens <= 0:
        raise BadBudget(f"keep_recent={tokens} keeps nothing: give a positive number of tokens")
    policy = options.policy
    assert not isinstance(policy, str)
    kept = _keeping(policy, tokens)
    if kept.steps == policy.steps:
        return replace(options, goal=tokens)
    return replace(options, policy=kept)


def _keeping(policy: Policy, tokens: int) -> Policy:
    after = policy.after_overflow
    steps = tuple(_step(step, tokens) for step in policy.steps)
    return replace(policy, steps=steps, after_overflow=None if after is None else _keeping(after, tokens))


def _step(step: Step, tokens: int) -> Step:
    if not isinstance(getattr(step.stage, "cut", None), KeepTokens):
        return step
    return replace(step, stage=replace(step.stage, cut=KeepTokens(tokens)))  # type: ignore[type-var]
