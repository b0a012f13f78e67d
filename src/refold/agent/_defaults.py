"""Resolves an agent's settings: arguments first, then the settings file, then the session or model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold import policies
from refold._compaction.options import Options
from refold._compaction.request import budget_for, counter_for, policy_counter
from refold.agent._tool_output import OutputLimit, most_tokens
from refold.agent.events import Warned
from refold.agent.middleware import ContextWarning, Middleware
from refold.errors import UsageError
from refold.models._catalog import table_budget
from refold.sessions import MemoryStore, Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from refold.agent._compactor import RequestSpec
    from refold.agent._profiles import Output
    from refold.agent.events import AgentEvent
    from refold.config import Settings
    from refold.core.budget import Budget
    from refold.core.policy import Policy

__all__ = ["open_session", "output_limit", "resolve_budget", "resolve_policy", "warning_middleware"]

DEFAULT = "refold"


def resolve_policy(policy: str | Policy | None, session: Session | None, settings: Settings | None) -> Policy:
    """Return the policy: the argument with the settings applied; else the settings', the session's, the default."""
    if policy is None and settings is not None:
        return settings.chosen()
    if policy is None and session is not None:
        return session.policy
    chosen = policies.find(policy or DEFAULT) if policy is None or isinstance(policy, str) else policy
    return settings.apply_to(chosen) if settings is not None else chosen


def open_session(session: Session | None, format: str, *, in_flight: bool) -> Session:
    """Return the argument, or a new session in memory.

    Raises:
        UsageError: the session's messages are of another format than the client's.
    """
    if session is None:
        return Session(MemoryStore(), format=format, in_flight=in_flight)
    if session.format not in (None, format):
        raise UsageError(f"session {session.id} holds {session.format}, and the client speaks {format}")
    return session


def resolve_budget(
    model: str, policy: Policy, settings: Settings | None, window: int | None, max_output: int | None
) -> Budget:
    """Return the budget of a window: of the argument, or of what settings and tables have for the model."""
    if window is None and settings is not None:
        known = settings.window_of(model)
        tabled = None if known.source == "override" else table_budget(policy.reserve, model, max_output)
        if tabled is not None:
            return tabled
        window = known.window
    return budget_for(policy, Options(model=model, window=window, max_output=max_output))


def warning_middleware(
    settings: Settings | None, request: RequestSpec, notify: Callable[[AgentEvent], None]
) -> tuple[Middleware, ...]:
    """Return the middleware that warns at half of the threshold, where the settings enable it (V02, V13)."""
    half = settings.warns_at(request.policy, request.budget) if settings is not None else None
    return () if half is None else (ContextWarning(2 * half, lambda text: notify(Warned(text))),)


def output_limit(
    how: Output, request: RequestSpec, format: str, folder: Path | None, settings: Settings | None
) -> OutputLimit:
    """Return the limit of tool outputs; limits that were set apply to any policy (N14, N17)."""
    counter = policy_counter(request.policy, request.model, format) or counter_for("exact", request.model)
    most = most_tokens(request.budget.input)
    if settings is None:
        return OutputLimit(how, counter, folder, most)
    if settings.is_set("max_tool_output_bytes") or settings.is_set("max_tool_output_lines"):
        how = "cut"
    size, lines = settings.max_tool_output_bytes, settings.max_tool_output_lines
    return OutputLimit(how, counter, folder, most, size, lines)
