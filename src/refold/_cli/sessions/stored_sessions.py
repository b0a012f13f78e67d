"""What the commands about sessions share: open, find, list, rewind."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import rich_click as click
from click.shell_completion import CompletionItem

from refold import formats
from refold._cli import options
from refold._inspect.ages import ago
from refold.core.edits import Hide, Insert, Rewrite
from refold.errors import RefoldError, SessionNotFound, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold._gateway.conversations.encryption import Seal
    from refold.config import Settings
    from refold.core.messages import Message
    from refold.sessions import Head, Session, Store

__all__ = [
    "back",
    "complete_ids",
    "fates",
    "find",
    "listed",
    "messages_of",
    "opened",
    "opened_store",
    "opener",
    "option",
    "turns",
    "undo",
]

R = TypeVar("R")
COMPLETED = 100  # ids; more are not read in a menu


def option(function: Callable[..., R]) -> Callable[..., R]:
    """Add `--store`."""
    return options.store_option(
        "Place of the sessions: a file or a database's URL; by default a file in your data folder."
    )(function)


def opener(store: Store) -> Seal | None:
    """Return what opens the messages that a gateway has encrypted, where REFOLD_STORE_KEY is set."""
    if not (key := os.environ.get("REFOLD_STORE_KEY", "")):
        return None
    from refold._gateway.conversations.encryption import Seal

    return Seal(key, store.salt())


@contextmanager
def opened_store(
    place: str | None,
    settings: Settings | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    reads: bool = False,
) -> Iterator[Store]:
    """Open the store that an argument or the settings name, and close it.

    Where the settings of a chat switch its memory off, the store is one in memory. A store that is not there is made
    only for a chat and with `create`: who looks into one has misspelt its name, or has no sessions yet. With `reads` a
    file that must not be written is opened for reading alone; any other may be migrated.

    Raises:
        UsageError: there is no store at the place that was named, or it cannot be opened.
    """
    from refold.config import Settings
    from refold.sessions import open_store
    from refold.sessions._stores.open_store import store_file

    if settings is not None:
        memory = not settings.memory_enabled
        store = open_store("memory" if memory else settings.store, max_sessions=settings.memory_max_sessions)
    else:
        where = Settings.load({"store": place}).store
        file = None if create else store_file(where)
        missing = file is not None and not file.exists()
        if missing and where:
            raise UsageError(f"there is no store {file}: check the name")
        read_only = read_only or (reads and file is not None and not os.access(file, os.W_OK))
        try:
            store = open_store("memory" if missing else where, read_only=read_only)
        except StoreError as error:
            if place is None:
                raise
            raise UsageError(str(error)) from None  # what was typed is no store
    try:
        yield store
    finally:
        store.close()


def complete_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ids of the sessions in the store that the command line names, the last used first; `last` is one too."""
    try:
        with opened_store(ctx.params.get("store"), reads=True) as store:
            matching = [head for head in store.sessions() if head.id.startswith(incomplete)][:COMPLETED]
    except (RefoldError, OSError):
        return []
    last = [CompletionItem("last", help=matching[0].id)] if matching and "last".startswith(incomplete) else []
    return [*last, *(CompletionItem(head.id, help=ago(head.touched)) for head in matching)]


def find(store: Store, session: str) -> str:
    """Return the id of a session by it, or by the beginning of it; `last` is the one used last.

    Raises:
        SessionNotFound: there is none, or several begin so.
    """
    sessions = store.sessions()
    like = [head.id for head in sessions if head.id.startswith(session)]
    if session in like:
        return session
    if session == "last" and sessions:
        return sessions[0].id
    if len(like) != 1:
        many = f"{len(like):,} ids start with it, give more characters" if like else "see `refold sessions list`"
        raise SessionNotFound(f"there is no session {session!r} in {store.name}: {many}")
    return like[0]


def opened(store: Store, session: str) -> Session:
    """Open a stored session without a model, to read or rewind it."""
    from refold.sessions import Session

    return Session(store, find(store, session), must_exist=True)


def messages_of(session: Session) -> Sequence[Message]:
    """Return the original messages that are not rewound, read."""
    return formats.read(formats.find(session.format or ""), session.messages).messages if session.ids else ()


def fates(session: Session) -> dict[str, str]:
    """Return by id what the active compactions did to messages: hidden, or shortened in the view."""
    fates_by_id: dict[str, str] = {}
    for edit in (edit for plan in session.plans for edit in plan.edits):
        match edit:
            case Hide(messages=ids):
                fates_by_id |= dict.fromkeys(ids, "hidden")
            case Rewrite(message=id):
                fates_by_id[id] = "shortened"
            case Insert():
                pass
    return fates_by_id


def whole_id(session: Session, what: str) -> str:
    """Return the whole id of a message or compaction by a unique prefix of it; any other text is returned as it is."""
    known = [*session.ids, *(plan.id for plan in session.plans)]
    like = [id for id in known if id.startswith(what) or id.partition(":")[2].startswith(what)]
    return like[0] if len(like) == 1 else what


def turns(messages: Sequence[Message]) -> list[int]:
    """Return where turns begin: the positions of user messages."""
    return [place for place, message in enumerate(messages) if message.role == "user" and not message.results]


def back(session: Session, to: str) -> str:
    """Go back before so many turns, or to the message or plan of an id; return a description of what was done.

    Raises:
        UsageError: no such message, plan or turn.
    """
    if not (to.isdecimal() and len(to) < 5):
        session.rewind(to)
        return f"Back to {to}: {_stands(session)}"
    from refold._cli import show

    begins, wanted = turns(messages_of(session)), int(to)
    if not 0 < wanted < len(begins):
        most = f"1 to {len(begins) - 1:,}" if len(begins) > 1 else "none; a new session begins anew"
        raise UsageError(
            f"{show.many(int(to), 'turn')} cannot be taken back: the session has {len(begins):,}, so give {most}"
        )
    session.rewind(session.ids[begins[-wanted] - 1])
    return f"Back before the last {'turn' if wanted == 1 else f'{wanted:,} turns'}: {_stands(session)}"


def undo(session: Session) -> str:
    """Undo the last rewind, else the newest compaction; return a description of what was done.

    Raises:
        UsageError: there is neither.
    """
    try:
        session.forward()
    except UsageError:
        if not session.plans:
            raise UsageError("there is nothing to undo: no rewind, and no compaction in force") from None
        session.rewind(-1)
        return f"The newest compaction is taken off: {_stands(session)}"
    return f"The last rewind is taken back: {_stands(session)}"


def listed(store: Store, limit: int) -> list[tuple[Head, str]]:
    """Return the last used sessions, each with its title; those that another continues are left out."""
    from refold._inspect.titles import title

    sessions = [head for head in store.sessions() if not head.next][:limit]
    return [(head, title(store, head)) for head in sessions]


def _stands(session: Session) -> str:
    from refold._cli import show

    return f"{show.many(len(session.ids), 'message')}, {show.many(len(session.plans), 'compaction')} in force"
