"""`refold hook`: what agents call as a hook, by hand; installed hooks run the same file without this command line."""

from __future__ import annotations

import rich_click as click


@click.command("hook", hidden=True)
@click.argument("agent")
@click.argument("event")
def command(agent: str, event: str) -> int:
    """Answer the EVENT of an AGENT, which is JSON on standard input."""
    from refold._install.hook import main
    from refold._recall.saved_outputs import agents_folder

    return main([agent, str(agents_folder()), event])
