"""`refold sessions import`: an exported session into a store."""

from __future__ import annotations

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions


@options.examples("refold sessions import talk.jsonl --id copy")
@click.command("import")
@click.argument("file", type=options.PATH)
@stored_sessions.option
@click.option("--id", "id", metavar="ID", help="Id of the new session; by default the exported one, if it is free.")
def command(file: str, store: str | None, id: str | None) -> None:
    """Import an exported session.

    FILE is what `refold sessions export` wrote; `-` is standard input.
    All of it is stored or nothing. A store that does not exist yet is created.
    """
    from pathlib import Path

    from refold._cli import files, show
    from refold.errors import UnreadableTranscript, UsageError, WriteConflict
    from refold.sessions import MemoryStore, import_session

    try:
        content = files.standard_input() if file == files.STDIN else Path(file).read_bytes()
        lines = content.decode().splitlines()
        import_session(MemoryStore(), lines, id)  # so that a damaged file leaves no store behind
        with stored_sessions.opened_store(store, create=True) as place:
            imported = import_session(place, lines, id)
            show.line(f"{imported}: imported into {place.name}")
    except (UnicodeDecodeError, UnreadableTranscript) as error:
        raise UnreadableTranscript(f"{file}: {error}: give a file that `refold sessions export` wrote") from None
    except WriteConflict as error:
        raise UsageError(str(error)) from None
