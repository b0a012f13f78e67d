"""The options of an agent: typed for the caller, read into one value, and resolved.

What is not passed comes from the settings file, then from the session or from what is known of the model.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypedDict

from msgspec import Struct

from refold import policies
from refold._compaction.options import Options, check_names
from refold._compaction.request import budget_for, counter_for, policy_counter
from refold.agent._tool_output import OutputLimit, most_tokens
from refold.agent.events import Warned
from refold.agent.middleware import ContextWarning, Middleware
from refold.clients._retry import WAITS
from refold.errors import UsageError
from refold.models._catalog import table_budget
from refold.sessions import MemoryStore, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from refold.agent._changed_files import Files
    from refold.agent._compactor import RequestSpec
    from refold.agent._heartbeat import Heartbeat
    from refold.agent._profiles import AgentProfile
    from refold.agent._tasks import TaskFiles
    from refold.agent._tools import Tool
    from refold.agent.events import AgentEvent, AgentObserver
    from refold.clients._protocol import OnText
    from refold.config import Settings
    from refold.core._native import SystemPrompt
    from refold.core.budget import Budget
    from refold.core.needs import Summarizer
    from refold.core.policy import Policy
    from refold.handlers import Handlers
    from refold.recovery._learned_windows import LearnedWindows

__all__ = [
    "AgentArguments",
    "AgentOptions",
    "open_session",
    "output_limit",
    "read_agent_options",
    "resolve_budget",
    "resolve_policy",
    "warning_middleware",
]

DEFAULT = "refold"
MAX_STEPS = 200


class AgentOptions(TypedDict, total=False):
    """The options of an agent, apart from its client.

    Added in 0.1.0.
    """

    policy: str | Policy | None
    """As in `refold.compact`; by default the settings', else the session's, else refold."""
    tools: Sequence[Tool]
    """What the model may call; see `tool`."""
    session: Session | None
    """Where the conversation is stored; by default in memory."""
    system: SystemPrompt | None
    """The system prompt, a text or Anthropic's blocks."""
    settings: Settings | None
    """A `refold.config.Settings`; arguments win over it."""
    budget: Budget | None
    """Window and output reserve; by default from `window`, the settings, or what is known of the model."""
    window: int | None
    """Tokens of the context window."""
    max_output: int | None
    """Tokens of one answer."""
    middlewares: Sequence[Middleware]
    """Run before and after each call of the model; see `refold.agent.middleware`."""
    observers: Sequence[AgentObserver]
    """Called with each event; see `refold.agent.events`. One that raises changes nothing."""
    on_text: OnText | None
    """Gets the answer piece by piece, as it is streamed."""
    summarize: Summarizer | None
    """Writes summaries, as in `refold.compact`, with retries after `waits`; by default the agent's own model, unless
    `handlers` are given or the settings switch summaries off.
    """
    handlers: Handlers | None
    """Handlers of the other needs, as in `refold.compact`."""
    redact: bool | None
    """Remove secrets from what a summarizer is sent; by default from the settings, else true."""
    files: Files | None
    """The workspace whose files are noticed when they change and restored after a compaction."""
    folder: Path | None
    """Where outputs are stored that are too large for the conversation, and transcripts before a policy that asks for
    it replaces everything (`.transcripts` in the workspace by default).
    """
    heartbeat: Heartbeat | None
    """Answers health checks outside of the conversation."""
    task_files: TaskFiles | None
    """Writes the tool outputs of each task to a file, which the model can read back after a compaction."""
    profile: AgentProfile | None
    """What is done apart from compaction; by default that of the policy's own system."""
    windows: LearnedWindows | None
    """Windows learned from provider errors; see `refold.recovering`."""
    max_steps: int
    """Calls of the model in one turn; 200 by default."""
    waits: Sequence[float]
    """Seconds before each retry of a call or summary that failed temporarily; 1, 2, 4, 8, 16 by default."""
    sleep: Callable[[float], object]
    """Waits; gets seconds."""
    clock: Callable[[], float]
    """Gives seconds for durations."""


class AgentArguments(Struct, frozen=True, kw_only=True):
    """The options of an agent as the caller passed them, with defaults; `AgentOptions` says what each means."""

    policy: str | Policy | None = None
    tools: Sequence[Tool] = ()
    session: Session | None = None
    system: SystemPrompt | None = None
    settings: Settings | None = None
    budget: Budget | None = None
    window: int | None = None
    max_output: int | None = None
    middlewares: Sequence[Middleware] = ()
    observers: Sequence[AgentObserver] = ()
    on_text: OnText | None = None
    summarize: Summarizer | None = None
    handlers: Handlers | None = None
    redact: bool | None = None
    files: Files | None = None
    folder: Path | None = None
    heartbeat: Heartbeat | None = None
    task_files: TaskFiles | None = None
    profile: AgentProfile | None = None
    windows: LearnedWindows | None = None
    max_steps: int = MAX_STEPS
    waits: Sequence[float] = WAITS
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic


def read_agent_options(options: Mapping[str, object]) -> AgentArguments:
    """Return the options with defaults for what was not passed.

    Raises:
        UnknownOption: a misspelt name; also a TypeError.
    """
    check_names("Agent", options, AgentOptions)
    return AgentArguments(**options)  # type: ignore[arg-type] # AgentOptions has checked the caller's types


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
        overridden = known.source == "override"
        tabled = None if overridden else table_budget(policy.reserve, model, max_output, settings.provider)
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
    profile: AgentProfile, request: RequestSpec, format: str, folder: Path | None, settings: Settings | None
) -> OutputLimit:
    """Return the limit of tool outputs; limits that were set apply to any policy (N14, N17)."""
    own = policy_counter(request.policy, request.model, format, request.provider)
    counter = own or counter_for("exact", request.model, request.provider, format)
    how, most = profile.output, most_tokens(request.budget.input, profile.output_share)
    if settings is None:
        return OutputLimit(how, counter, folder, most)
    if settings.is_set("max_tool_output_bytes") or settings.is_set("max_tool_output_lines"):
        how = "cut"
    size, lines = settings.max_tool_output_bytes, settings.max_tool_output_lines
    return OutputLimit(how, counter, folder, most, size, lines)
