"""The agents that refold installs itself into, and the two verbs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from refold._install import claude_code, codex, gemini_cli, opencode, pi
from refold._install.changes import Change, FileEdit, InstallRecord, changes, require_writable, written

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["AGENTS", "AgentProgram", "plan_of", "record_of", "write"]


@dataclass(frozen=True)
class AgentProgram:
    """An agent: the name of its program, and how its settings change."""

    program: str
    edits: Callable[[InstallOptions], list[FileEdit]]


AGENTS = {
    "claude-code": AgentProgram("claude", claude_code.edits),
    "codex": AgentProgram("codex", codex.edits),
    "pi": AgentProgram("pi", pi.edits),
    "opencode": AgentProgram("opencode", opencode.edits),
    "gemini-cli": AgentProgram("gemini", gemini_cli.edits),
}


def record_of(agent: str, options: InstallOptions) -> InstallRecord:
    """Return the record of what is installed into an agent, for the user or for a project."""
    name = agent
    if options.project is not None:
        name += "-" + sha256(os.path.realpath(options.project).encode()).hexdigest()[:12]
    return InstallRecord(options.data / "installed" / f"{name}.json")


def plan_of(agent: str, options: InstallOptions, *, install: bool) -> list[Change]:
    """Return what becomes of an agent's settings, without writing any.

    Raises:
        UsageError: a file of settings cannot be understood.
    """
    record = record_of(agent, options).load()
    earlier = replace(options, installed=record.get("options", {}).get("gateway", ""))
    return changes(AGENTS[agent].edits(earlier), record, install=install)


def write(agent: str, options: InstallOptions, planned: list[Change], *, install: bool) -> None:
    """Write changes, and the record by which they are taken back."""
    record = record_of(agent, options)
    require_writable(planned)
    if install:
        record.save(planned, {"gateway": options.gateway, "mcp": options.mcp, "hooks": options.hooks,
                           "project": str(options.project or "")})  # fmt: skip
    written([change for change in planned if change.now != change.after])
    if not install:
        record.path.unlink(missing_ok=True)
