"""`refold uninstall`: takes hooks, MCP server and base URL out of an agent's settings."""

from __future__ import annotations

import rich_click as click

from refold._cli import completers, options
from refold._cli.install import chosen_agent, options_of, scoped


@options.examples("refold uninstall claude-code")
@click.command("uninstall")
@click.argument("agent", shell_complete=completers.agents)
@scoped
@click.option("--dry-run", is_flag=True, help="Print the changes as a diff and write nothing.")
def command(agent: str, project: str | None, dry_run: bool) -> None:
    """Take refold out of the settings of AGENT.

    A file that nobody has changed since is as it was before, byte for byte; in one that was changed, only refold's
    entries go. What hooks have stored stays, so that pointers in sessions still lead to it.
    """
    from refold._install.agents import plan_of, write
    from refold._install.changes import diff

    chosen_agent(agent)
    options = options_of(project)
    planned = plan_of(agent, options, install=False)
    if dry_run:
        click.echo(diff(planned), nl=False)
        return
    write(agent, options, planned, install=False)
    for change in planned:
        if change.now != change.after:
            click.echo(f"refold: {'restored' if change.after is not None else 'removed'} {change.path}", err=True)
    if all(change.now == change.after for change in planned):
        click.echo(f"refold: there is nothing of refold in the settings of {agent}", err=True)
