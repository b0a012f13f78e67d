"""What is installed into an agent, and where."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["InstallOptions", "is_hook", "is_server"]

HOOK = Path(__file__).parent / "hook.py"
SERVER = ["-P", "-m", "refold", "mcp"]  # a module of the project's folder cannot replace ours


@dataclass(frozen=True)
class InstallOptions:
    """What is installed: the MCP server, the hooks, and the base URL of a gateway where there is one.

    `project` is the folder whose settings are changed instead of the user's, `data` where hooks write, `installed` the
    gateway of an earlier installation.
    """

    data: Path
    project: Path | None = None
    gateway: str = ""
    mcp: bool = True
    hooks: bool = True
    installed: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    python: str = sys.executable

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return Path(self.environ.get("HOME") or Path.home())

    def folder_of(self, variable: str, default: str) -> Path:
        """Return an agent's folder, as its variable or its default below the home folder says."""
        return Path(self.environ.get(variable) or self.home / default)

    def hook_arguments(self, agent: str, event: str) -> list[str]:
        """Return the program and the arguments of a hook."""
        return [self.python, "-P", "-S", str(HOOK), agent, str(self.data), event]

    def hook_command(self, agent: str, event: str) -> str:
        """Return the command line of a hook, for a shell."""
        return shlex.join(self.hook_arguments(agent, event))

    @property
    def server(self) -> tuple[str, list[str]]:
        """The program and the arguments of the MCP server."""
        return self.python, list(SERVER)


def is_hook(entry: object) -> bool:
    """Tell whether an entry of an agent's settings calls our hook."""
    return "_install" in (words := str(entry)) and HOOK.name in words


def is_server(entry: object) -> bool:
    """Tell whether an entry of an agent's settings is our MCP server, of whatever Python; the user's own is not."""
    lines = (entry.get("args"), entry.get("command")) if isinstance(entry, dict) else ()
    return any(isinstance(line, list) and line[-len(SERVER) :] == SERVER for line in lines)
