"""`refold sessions export`: a session as JSONL, complete enough to continue from."""

from __future__ import annotations

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions


@options.examples("refold sessions export last -o talk.jsonl")
@click.command("export")
@click.argument("session", shell_complete=stored_sessions.complete_ids)
@options.output
@stored_sessions.option
def command(session: str, out: str, store: str | None) -> None:
    """Write a session as JSONL.

    The file has a header, each message as it was received, and each compaction, rewind and report.
    SESSION is an id, the beginning of one, or `last`. `refold sessions import` writes the file into another store;
    `refold sessions show --json` prints the messages alone.
    """
    from refold._cli import output, show
    from refold.sessions import export_session

    output.writable(out)
    with stored_sessions.opened_store(store, reads=True) as place:
        lines = list(export_session(place, stored_sessions.find(place, session)))
    output.write(out, "".join(f"{line}\n" for line in lines).encode())
    if out != "-":
        show.note(f"{out}: {len(lines):,} lines")
