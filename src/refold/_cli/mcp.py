"""`refold mcp`: a Model Context Protocol server over standard input and output."""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold._mcp.record import Source


@options.examples("refold mcp", "refold mcp --store sessions.db --allow-undo")
@click.command("mcp")
@options.store_option("A store instead of session files: a file or a database's URL.")
@click.option(
    "--files", "named", multiple=True, metavar="PATH", type=options.PATH,
    help="Session files, or folders of them, instead of those in the agents' own folders.",
)  # fmt: skip
@click.option("--session", metavar="ID", help="Session to use if a call names none.")
@click.option(
    "-C",
    "--folder",
    metavar="DIR",
    type=options.FOLDER,
    help="The working folder; by default CLAUDE_PROJECT_DIR or the current one.",
)
@click.option(
    "--recall-tokens", type=options.TokenNumber(300, 1_000_000), default=8_000, show_default=True,
    help="Largest answer of a tool in tokens.",
)  # fmt: skip
@click.option("--allow-undo", is_flag=True, help="Offer a tool that undoes compactions of a store.")
def command(
    store: str | None, named: tuple[str, ...], session: str | None, folder: str | None, recall_tokens: int,
    allow_undo: bool,
) -> None:  # fmt: skip
    """Serve recall and search to an agent by MCP.

    The server speaks over standard input and output, and also reports how full the context is.
    By default it reads the session files of Claude Code, Codex, opencode, pi, Gemini CLI, Cline and Copilot CLI in
    place, and never writes them. The session is the one that a call names, or --session, REFOLD_SESSION or
    CLAUDE_CODE_SESSION_ID, or else the newest of the working folder; each answer names it.
    """
    from refold.errors import UsageError

    if store is not None and named:
        raise UsageError("--store and --files exclude each other: give one")
    if store is not None and folder is not None:
        raise UsageError("--folder chooses among session files, and a store has no folders: leave it out")
    for name in named:
        if not os.path.exists(name):
            raise UsageError(f"{name}: no such file or folder: check the name given to --files")
    if allow_undo and store is None:
        raise UsageError("--allow-undo needs --store: session files are only read")
    gc.disable()  # the SDK builds thousands of classes when it is imported, and all of them stay
    try:
        from refold._mcp.server import RecallServer
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise UsageError("the MCP server needs the extra: pip install 'refold[mcp]'") from None
    else:
        gc.freeze()
    finally:
        gc.enable()
    from refold._install.hook_server import answering_hooks
    from refold._recall.saved_outputs import agents_folder

    with _source(store, named, folder, writable=allow_undo) as source, answering_hooks(agents_folder()):
        RecallServer(source, session=session, max_tokens=recall_tokens, allow_undo=allow_undo).app().run("stdio")


@contextmanager
def _source(store: str | None, named: tuple[str, ...], folder: str | None, *, writable: bool) -> Iterator[Source]:
    """Open what is served: a store, or else session files."""
    if store is not None:
        from refold._cli.sessions.stored_sessions import opened_store
        from refold._mcp.store_source import StoredSessions

        with opened_store(store, read_only=not writable) as place:
            yield StoredSessions(place)
        return
    from refold._mcp.agent_folders import agent_folders
    from refold._mcp.session_files import SessionFiles
    from refold.errors import UsageError

    files = SessionFiles(folder or os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd(), agent_folders(), named)
    if folder is not None and not os.path.isdir(folder) and not files.sessions():  # those of a deleted folder are there
        raise UsageError(f"{folder}: no such folder, and no session was held in it: check the name given to --folder")
    yield files
