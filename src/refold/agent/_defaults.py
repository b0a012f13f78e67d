"""What an agent is made from: arguments first, then settings, then what a session or a model brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold import policies
from refold._compaction.options import Options
from refold._compaction.request import budget_for, counter_for
from refold.agent._tool_output import OutputLimit, most_tokens
from refold.agent.events import Warned
from refold.agent.middleware import ContextWarning, Middleware
from refold.errors import UsageError
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

__all__ = ["output_limit", "resolved", "session_for", "sized", "warnings_of"]

DEFAULT = "refold"


def resolved(policy: str | Policy | None, session: Session | None, settings: Settings | None) -> Policy:
    """Return the policy: the one given, with the settings applied; else the settings', the session's, the default."""
    if policy is None and settings is not None:
        return settings.chosen()
    if policy is None and session is not None:
        return session.policy
    found = policies.find(policy or DEFAULT) if policy is None or isinstance(policy, str) else policy
    return settings.apply_to(found) if settings is not None else found


def session_for(session: Session | None, format: str, *, in_flight: bool) -> Session:
    """Return the session given, or a new one in memory.

    Raises:
        UsageError: the session's messages are of another format than the client's.
    """
    if session is None:
        return Session(MemoryStore(), format=format, in_flight=in_flight)
    if session.format not in (None, format):
        raise UsageError(f"session {session.id} holds {session.format}, and the client speaks {format}")
    return session


def sized(model: str, policy: Policy, settings: Settings | None, window: int | None, max_output: int | None) -> Budget:
    """Return the budget of a window: the one given, or what settings and tables say of the model."""
    if window is None and settings is not None:
        window = settings.window_of(model).window
    return budget_for(policy, Options(model=model, window=window, max_output=max_output))


def warnings_of(
    settings: Settings | None, asked: RequestSpec, tell: Callable[[AgentEvent], None]
) -> tuple[Middleware, ...]:
    """Return the warning at half of the threshold, where the settings want it (V02, V13)."""
    half = settings.warns_at(asked.policy, asked.budget) if settings is not None else None
    return () if half is None else (ContextWarning(2 * half, lambda text: tell(Warned(text))),)


def output_limit(how: Output, asked: RequestSpec, folder: Path | None, settings: Settings | None) -> OutputLimit:
    """Return what is done with tool outputs; limits that were set hold for any policy (N14, N17)."""
    counter = asked.policy.counter or counter_for("exact", asked.model)
    most = most_tokens(asked.budget.input)
    if settings is None:
        return OutputLimit(how, counter, folder, most)
    if settings.is_set("max_tool_output_bytes") or settings.is_set("max_tool_output_lines"):
        how = "cut"
    size, lines = settings.max_tool_output_bytes, settings.max_tool_output_lines
    return OutputLimit(how, counter, folder, most, size, lines)
