"""`refold sessions`: the stored conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options, session_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.sessions import Head


@click.command("sessions")
@session_commands.option
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Maximum number of rows.")
@options.as_json
def command(store: str | None, limit: int, as_json: bool) -> None:
    """List the stored sessions, the last used first."""
    from refold._cli import show

    with session_commands.stored(store) as place:
        rows = session_commands.listed(place, limit)
        if as_json:
            show.emit([{**_fields(head), "title": title} for head, title in rows])
            return
        if not rows:
            show.note("refold: there are no sessions yet; `refold chat` starts one")
            return
        listed(rows)


def listed(rows: Sequence[tuple[Head, str]], current: str = "") -> None:
    """Print sessions, the current one in bold."""
    from refold._cli import show

    cells = [(head.id, session_commands.ago(head.touched), show.number(head.messages), title) for head, title in rows]
    styles = ["bold" if head.id == current else "" for head, _ in rows]
    show.table(("session", "used", ">messages", "~begins"), cells, styles=styles)


def _fields(head: Head) -> dict[str, object]:
    wanted = ("id", "format", "parent", "created", "touched", "messages")
    return {name: getattr(head, name) for name in wanted}
