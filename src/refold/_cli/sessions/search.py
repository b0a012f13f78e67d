"""`refold sessions search`: full-text search in all stored messages."""

from __future__ import annotations

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions

NO_MATCH = 1


@options.examples("refold sessions search disk full")
@click.command("search")
@click.argument("query", nargs=-1, required=True)
@stored_sessions.option
@click.option("--session", metavar="ID", shell_complete=stored_sessions.complete_ids, help="Only in this session.")
@options.limit_option()
@options.as_json
def command(query: tuple[str, ...], store: str | None, session: str | None, limit: int, as_json: bool) -> int:
    """Find messages by words that they contain, the best first.

    All sessions are searched, also what compactions and rewinds hide. REFOLD_STORE_KEY opens what a gateway has
    encrypted. The exit code is 1 if there are none.
    """
    from refold._cli import show
    from refold.errors import UsageError
    from refold.sessions._search import is_encrypted, newest_texts, search_all

    words = " ".join(query).strip()
    if not words:
        raise UsageError("nothing to search for: give a word")
    with stored_sessions.opened_store(store, reads=True) as place:
        opened = stored_sessions.opener(place)
        named = () if session is None else stored_sessions.opened(place, session).lineage
        hits, whole = search_all(place, words, named, limit, opened=opened.opened if opened is not None else None)
        locked = not hits and opened is None and any(map(is_encrypted, newest_texts(place)))
        name = place.name
    if as_json:
        show.emit([{"id": hit.message.id, "session": hit.session, "message": hit.native} for hit in hits])
    elif hits:
        cells = [(hit.session, hit.message.id, show.clean(hit.excerpt)) for hit in hits]
        show.table(("session", "message", "~what"), cells)
    else:
        show.note(f"refold: no message in {name} contains anything of {words!r}")
    if locked:
        show.note("refold: it has encrypted messages, in which REFOLD_STORE_KEY searches")
    if not whole:
        show.note("refold: the store is encrypted, and only the messages of the sessions used last were opened")
    return 0 if hits else NO_MATCH
