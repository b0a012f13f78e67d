"""`refold sessions delete`: removes a session from a store for good."""

from __future__ import annotations

import sys

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions


@options.examples("refold sessions delete copy")
@click.command("delete")
@click.argument("session", shell_complete=stored_sessions.complete_ids)
@stored_sessions.option
@options.yes_option
def command(session: str, store: str | None, yes: bool) -> None:
    """Delete a session and its messages for good.

    SESSION is an id, or the beginning of one. A session that another one continues cannot be deleted before that one.
    """
    from refold._cli import show
    from refold.errors import UsageError, WriteConflict

    with stored_sessions.opened_store(store) as place:
        id = stored_sessions.find(place, session)
        if not yes:
            if not (sys.stdin and sys.stdin.isatty()):
                raise UsageError(f"session {id} would be deleted for good: confirm with --yes")
            if not click.confirm(f"Delete session {id} for good?", err=True):
                return
        try:
            place.delete(id)
        except WriteConflict as error:
            raise UsageError(str(error)) from None
    show.line(f"{id}: deleted")
