"""`refold doctor`: is what was installed into agents in its place, and is it called?"""

from __future__ import annotations

import json

import rich_click as click

from refold._cli import completers, options

BROKEN = 1


@options.examples("refold doctor")
@click.command("doctor")
@click.argument("agent", required=False, shell_complete=completers.agents)
@options.as_json
def command(agent: str | None, as_json: bool) -> int:
    """Check what was installed into AGENT, or into every agent.

    For each: its version, whether its settings are as installed, whether its hooks were called, how long they took and
    what failed in them, and whether the gateway answers. The exit code is 1 if something is wrong.
    """
    from importlib.metadata import version

    from refold._cli.install import chosen_agent, options_of
    from refold._install.doctor import findings, installed
    from refold._recall.saved_outputs import agents_folder

    if agent is not None:
        chosen_agent(agent)
    rows: list[dict[str, object]] = []
    for name, recorded in installed(agents_folder()):
        if agent in (None, name):
            project = str(recorded["project"])
            chosen = options_of(
                project or None, gateway=recorded["gateway"], mcp=recorded["mcp"], hooks=recorded["hooks"]
            )  # fmt: skip
            rows += [
                {"agent": name, "project": project, "what": each.what, "well": each.well, "words": each.words}
                for each in findings(name, chosen)
            ]
    if as_json:
        click.echo(json.dumps({"refold": version("refold"), "findings": rows}, indent=2))
    else:
        click.echo(f"refold {version('refold')}")
        for row in rows:
            place = f" ({row['project']})" if row["project"] else ""
            click.echo(f"{'ok ' if row['well'] else '!! '} {row['agent']}{place}: {row['what']}: {row['words']}")
        if not rows:
            click.echo(f"nothing is installed{f' into {agent}' if agent else ''}: see `refold install --help`")
    return BROKEN if not all(row["well"] for row in rows) else 0
