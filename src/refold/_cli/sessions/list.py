"""`refold sessions list`: the stored conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions
from refold._inspect.ages import ago

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.sessions import Head


@options.examples("refold sessions list")
@click.command("list")
@stored_sessions.option
@options.limit_option()
@options.as_json
def command(store: str | None, limit: int, as_json: bool) -> None:
    """List the stored sessions, the last used first."""
    from refold._cli import show

    with stored_sessions.opened_store(store, reads=True) as place:
        rows = stored_sessions.listed(place, limit)
        if as_json:
            show.emit([{**_fields(head), "title": title} for head, title in rows])
            return
        if not rows:
            show.note("refold: there are no sessions yet; `refold chat` starts one")
            return
        print_sessions(rows)


def print_sessions(rows: Sequence[tuple[Head, str]], current: str = "") -> None:
    """Print sessions, the current one in bold."""
    from refold._cli import show

    cells = [(head.id, ago(head.touched), show.number(head.messages), title) for head, title in rows]
    styles = ["bold" if head.id == current else "" for head, _ in rows]
    show.table(("session", "used", ">messages", "~begins"), cells, styles=styles)


def _fields(head: Head) -> dict[str, object]:
    wanted = ("id", "format", "parent", "created", "touched", "messages")
    return {name: getattr(head, name) for name in wanted}
