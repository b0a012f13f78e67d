"""`refold export`: a session as JSONL, complete enough to continue from."""

from __future__ import annotations

import rich_click as click

from refold._cli import options, session_commands


@click.command("export")
@click.argument("session")
@options.output
@session_commands.option
def command(session: str, out: str, store: str | None) -> None:
    """Write a session as JSONL: a header, each message as it was received, each compaction, rewind and report.

    SESSION is an id, the beginning of one, or `last`. `refold.sessions.import_session` writes the file into another
    store; `refold show --json` prints the messages alone.
    """
    from refold._cli import output, show
    from refold.sessions import export_session

    output.writable(out)
    with session_commands.stored(store) as place:
        lines = list(export_session(place, session_commands.find(place, session)))
    output.write(out, "".join(f"{line}\n" for line in lines).encode())
    if out != "-":
        show.note(f"{out}: {len(lines):,} lines")
