"""`refold sessions rewind`: go back in a session without deleting anything."""

from __future__ import annotations

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions


@options.examples("refold sessions rewind last 2", "refold sessions rewind last --undo")
@click.command("rewind")
@click.argument("session", shell_complete=stored_sessions.complete_ids)
@click.argument("to", required=False)
@stored_sessions.option
@click.option("--undo", is_flag=True, help="Undo the last rewind, or else the newest compaction.")
def command(session: str, to: str | None, store: str | None, undo: bool) -> None:
    """Go back in a session, or undo that.

    It goes back before the last TO turns (1), or to the message or compaction of the id TO.
    Nothing is deleted: `--undo` reverts it. SESSION is an id, the beginning of one, or `last`.
    """
    from refold._cli import show
    from refold.errors import UsageError

    if undo and to is not None:
        raise UsageError("--undo takes no TO: it goes back to where the session was")
    with stored_sessions.opened_store(store) as place:
        opened = stored_sessions.opened(place, session)
        done = stored_sessions.undo(opened) if undo else stored_sessions.back(opened, to or "1")
    show.line(f"{opened.id}: {done}")
