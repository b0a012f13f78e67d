"""`refold install`: hooks, MCP server and base URL in an agent's own settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import rich_click as click

from refold._cli import completers, options

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold._install.options import InstallOptions

__all__ = ["chosen_agent", "command", "options_of", "scoped"]


def scoped(function: Callable[..., object]) -> Callable[..., object]:
    """Give a command the option that says whose settings are meant."""
    return click.option(
        "--project", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="The settings of this folder "
        "instead of the user's.",
    )(function)  # fmt: skip


def chosen_agent(agent: str) -> str:
    """Return the name of an agent that can be installed into.

    Raises:
        UsageError: there is none of that name.
    """
    from refold._install.agents import AGENTS
    from refold._text.suggestions import did_you_mean
    from refold.errors import UsageError

    if agent not in AGENTS:
        raise UsageError(f"there is no agent {agent!r}{did_you_mean(agent, AGENTS)}: name one of {', '.join(AGENTS)}")
    return agent


def options_of(project: str | None, *, gateway: str = "", mcp: bool = True, hooks: bool = True) -> InstallOptions:
    """Return what is installed and where, as the command line says."""
    from pathlib import Path

    from refold._install.options import InstallOptions
    from refold._recall.saved_outputs import agents_folder

    return InstallOptions(agents_folder(), Path(project).resolve() if project else None, gateway, mcp, hooks)


@options.examples("refold install claude-code --dry-run", "refold install codex --gateway http://127.0.0.1:8787")
@click.command("install")
@click.argument("agent", shell_complete=completers.agents)
@scoped
@click.option("--gateway", metavar="URL", default="", help="The base URL of a gateway that the agent is to use.")
@click.option("--no-mcp", is_flag=True, help="Leave out the MCP server.")
@click.option("--no-hooks", is_flag=True, help="Leave out the hooks.")
@click.option("--dry-run", is_flag=True, help="Print the changes as a diff and write nothing.")
def command(agent: str, project: str | None, gateway: str, no_mcp: bool, no_hooks: bool, dry_run: bool) -> None:
    """Put refold into the settings of AGENT.

    AGENT is claude-code, codex, pi, opencode or gemini-cli.
    Hooks shorten long output of tools and keep the whole of it, and add a digest after the agent's own compaction;
    the MCP server lets it read what was removed; with --gateway the agent talks to its provider through that. What
    each agent allows is in docs/install.md. Everything else in the settings stays as it is, byte for byte, and `refold
    uninstall` restores them. Run it again to change what is installed, or after an update of Python.
    """
    from refold._install.agents import plan_of, write
    from refold._install.changes import diff
    from refold.errors import UsageError

    chosen_agent(agent)
    if gateway:
        gateway = gateway.rstrip("/")
        if urlsplit(gateway).scheme not in ("http", "https") or not urlsplit(gateway).netloc:
            raise UsageError(f"--gateway {gateway}: give the URL of a gateway, such as http://127.0.0.1:8787")
    if no_mcp and no_hooks and not gateway:
        raise UsageError("nothing is left to install: leave out --no-mcp or --no-hooks, or give --gateway")
    options = options_of(project, gateway=gateway, mcp=not no_mcp, hooks=not no_hooks)
    if options.mcp:
        _require_mcp()
    planned = plan_of(agent, options, install=True)
    if dry_run:
        click.echo(diff(planned), nl=False)
        return
    write(agent, options, planned, install=True)
    note = partial(click.echo, err=True)
    for change in planned:
        if change.now != change.after:
            note(f"refold: {'changed' if change.now is not None else 'wrote'} {change.path}")
    if all(change.now == change.after for change in planned):
        note(f"refold: {agent} has it already; nothing was changed")
    note(f"refold: start {agent} again, then see `refold doctor`; `refold uninstall {agent}` takes it back")


def _require_mcp() -> None:
    from importlib.util import find_spec

    from refold.errors import UsageError

    if find_spec("mcp") is None:
        raise UsageError("the MCP server needs the extra: pip install 'refold[mcp]', or install with --no-mcp")
