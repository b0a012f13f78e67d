"""`refold sessions show`: one session, message by message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options
from refold._cli.sessions import stored_sessions
from refold._inspect.ages import ago

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.sessions import Session


@options.examples("refold sessions show last --view")
@click.command("show")
@click.argument("session", shell_complete=stored_sessions.complete_ids)
@stored_sessions.option
@click.option("--view", "seen", is_flag=True, help="What the model is sent, compactions applied, not the originals.")
@click.option("--message", metavar="ID", help="Only this message, or the originals behind this compaction, in full.")
@options.as_json
def command(session: str, store: str | None, seen: bool, message: str | None, as_json: bool) -> None:
    """Show the messages of a session.

    Each message is shown with what the compactions made of it.
    SESSION is an id, the beginning of one, or `last`. `--json` prints the messages in the provider's format.
    """
    from refold._cli import show
    from refold.errors import UsageError

    if seen and message:
        raise UsageError("--view and --message exclude each other: give one")
    with stored_sessions.opened_store(store, reads=True) as place:
        opened = stored_sessions.opened(place, session)
        if message is not None:
            _recalled(opened, message, as_json=as_json)
        elif as_json:
            show.emit(opened.view() if seen else opened.messages)
        else:
            _listed(opened, seen=seen)


def _listed(session: Session, *, seen: bool) -> None:
    from refold._cli import show
    from refold._inspect.message_labels import full_text

    head, billed = session.head, session.billed
    assert head is not None
    compactions = ", ".join(f"{plan.id} ({plan.policy})" for plan in session.plans) or "none"
    show.lines(
        [
            ("session", session.id),
            ("used", ago(head.touched)),
            ("messages", f"{len(session.ids):,}, {head.format}"),
            ("compactions", compactions),
            ("billed", f"{show.many(billed.calls, 'call')}: {billed.prompt:,} tokens in, {billed.completion:,} out"),
        ]
    )
    if seen:
        cells = [("", message.role, "", show.clean(full_text(message), 400)) for message in viewed(session)]
    else:
        fates = stored_sessions.fates(session)
        cells = [
            (message.id, message.role, fates.get(message.id, ""), show.clean(full_text(message), 400))
            for message in stored_sessions.messages_of(session)
        ]
    show.table(("message", "role", "in the view", "~what"), cells, title=" ")


def viewed(session: Session) -> Sequence[Message]:
    """Return the messages the model is sent, read."""
    from refold import formats

    return formats.read(formats.find(session.format or ""), session.view()).messages


def _recalled(session: Session, what: str, *, as_json: bool) -> None:
    from refold import formats
    from refold._cli import show
    from refold._inspect.message_labels import full_text
    from refold.errors import UsageError

    recalled = session.recall(stored_sessions.whole_id(session, what))
    if not recalled:
        raise UsageError(f"no message and no compaction of session {session.id} has the id {what!r}")
    if as_json:
        show.emit([each.message for each in recalled])
        return
    shape = formats.find(session.format or "")
    for each in recalled:
        message = shape.read(each.message, each.id)
        show.line(f"{each.id} {message.role}", style="bold")
        for line in full_text(message).split("\n"):
            show.line(show.clean(line) if line.strip() else "")
