"""`refold chat`: an agent on the terminal, whose context never runs out."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import rich_click as click

from refold._cli import completers, options
from refold._cli.sessions import stored_sessions
from refold._inspect.ages import ago

if TYPE_CHECKING:
    from refold._cli.chat_session import Chat
    from refold.clients._protocol import Client, Wire
    from refold.config import Settings
    from refold.sessions import Head, Store

PROMPT = "› "
FORMATS = ("openai-chat", "anthropic")
HISTORY = 2_000  # lines that are remembered for the arrow keys


@options.examples(
    "refold chat --model gpt-5",
    "refold chat --model qwen3 --base-url http://127.0.0.1:11434/v1 --window 32k",
    "refold chat --resume",
)
@click.command("chat")
@options.model_option("by default the configured one")
@click.option("--base-url", metavar="URL", help="Base URL of the API; by default the provider's own.")
@click.option("--format", type=click.Choice(FORMATS), help="Format of the API; by default detected from model and URL.")
@options.policy_option("by default the configured one (refold)")
@click.option(
    "--trigger",
    type=options.Trigger(),
    help="Size that starts a compaction: a share of the input budget (0.7), tokens (60k), or never, also as 0.",
)
@options.window_option("by default the model's")
@click.option(
    "--summarizer",
    metavar="MODEL",
    shell_complete=completers.models,
    help="Model that writes summaries; by default the chat's.",
)
@click.option(
    "--session",
    metavar="ID",
    shell_complete=stored_sessions.complete_ids,
    help="Session to continue, or the id of a new one.",
)
@click.option("--resume", is_flag=True, help="Continue the last used session; with --session, it must exist.")
@click.option(
    "-C",
    "--folder",
    metavar="DIR",
    type=options.FOLDER,
    default=".",
    help="Folder for the tools; by default this one.",
)
@options.yes_option
@click.option("--subagents", is_flag=True, default=None, help="Give the model a tool that starts sub-agents.")
@click.option("--task-files", is_flag=True, default=None, help="Write a file per task that the model can read back.")
@click.option("--daily-log", is_flag=True, default=None, help="Write a log file per day, without texts.")
@click.option("--snapshots", is_flag=True, default=None, help="Write a file per model call with the sizes behind it.")
@click.option("--decisions", is_flag=True, default=None, help="Show a line for each check of the context's size.")
@stored_sessions.option
def command(session: str | None, folder: str, format: Wire | None, *, resume: bool, yes: bool, **overrides: Any) -> int:
    """Talk with a small agent in the terminal.

    It has file tools for one folder, and a shell that asks first, unless --yes is given.
    The conversation is stored, and compacted when it is due; `/help` lists its commands. The key is taken from
    OPENAI_API_KEY or ANTHROPIC_API_KEY. Without a terminal each line of standard input is a message, answers go to
    standard output, and the first failure ends it. `refold loop` is the same.
    """
    from refold._cli.chat_screen import Screen
    from refold.errors import SessionNotFound
    from refold.sessions import Session
    from refold.sessions._stores.open_store import store_file

    settings = _settings(overrides)
    screen = Screen(agreed=yes, decisions=settings.decisions)
    if settings.memory_enabled and (file := store_file(settings.store)) and not file.exists():
        if resume or session == "last":
            raise SessionNotFound(
                f"there is no session to resume, as there is no store {file}: name another with --store, or leave "
                f"{'--resume' if resume else '--session'} out to start one"
            )
        _client(settings, None, format).close()  # where that fails, as without a key, no store is made
    with ExitStack() as stack:
        store = stack.enter_context(stored_sessions.opened_store(None, settings))
        head, id = _choose_session(store, session, resume=resume)
        client = _client(settings, head, format)
        stack.callback(client.close)

        from refold._cli.chat_session import Chat, data_folder
        from refold.sessions._leases import chat_lock

        oldest = Session(store, id, format=client.format).lineage[-1]
        stack.enter_context(chat_lock(data_folder() / "chats", store.name, oldest))
        chat = Chat(store, id, settings, client, folder, screen)
        if screen.live:
            _history(stack)
            _greet(chat, head)
        return _talk(chat)


def _settings(overrides: dict[str, Any]) -> Settings:
    from refold.config import Settings
    from refold.errors import UsageError

    match overrides.pop("trigger"):
        case 0:
            overrides["enabled"] = False
        case float() as share:
            overrides["threshold"] = share
        case tokens:
            overrides["auto_compact_threshold"] = tokens
    settings = Settings.load(overrides)
    if settings.model is None:
        raise UsageError("which model? Give --model, set REFOLD_MODEL, or write model into refold.toml")
    settings.chosen()  # an unknown policy is reported before anything is opened
    return settings


def _choose_session(store: Store, session: str | None, *, resume: bool) -> tuple[Head | None, str]:
    """Return the session to continue, if it is stored, and its id."""
    from refold.errors import SessionNotFound
    from refold.sessions import new_id

    sessions_by_id = {head.id: head for head in store.sessions()}
    if session is None and not resume:
        return None, new_id()
    if session is None and not sessions_by_id:
        raise SessionNotFound(f"there is no session to resume in {store.name}: leave --resume out to start one")
    stored = session == "last" or any(id.startswith(session or "") for id in sessions_by_id)
    if session is not None and not resume and not stored:
        return None, session
    head = sessions_by_id[stored_sessions.find(store, session or "last")]
    while head.next:  # a policy that renews sessions has continued in another
        head = sessions_by_id[head.next]
    return head, head.id


def _client(settings: Settings, head: Head | None, format: Wire | None) -> Client:
    from refold.clients._factory import client
    from refold.errors import UsageError

    assert settings.model is not None
    if head is not None and head.format not in FORMATS:
        raise UsageError(f"session {head.id} has messages of {head.format}, which no client here supports")
    if head is not None and format not in (None, head.format):
        raise UsageError(f"session {head.id} has messages of {head.format}: leave --format out, or begin another")
    spoken: Any = head.format if head is not None else format
    return client(settings.model, settings.base_url, wire=spoken)


def _greet(chat: Chat, head: Head | None) -> None:
    from refold._cli import show
    from refold._inspect.titles import title

    session, screen = chat.session, chat.screen
    model = chat.client.model
    screen.line(f"refold chat · {model} · {session.policy.name} · window {session.context_window:,}", "bold")
    screen.line(f"Folder {show.clean(str(chat.workspace.root))}", "dim")
    about = "new"
    if head is not None:
        used, first_words = ago(head.touched), title(chat.store, head)
        about = f"{show.many(len(session.ids), 'message')}, used {used}: {first_words}"
    screen.line(f"Session {session.id}, {about}", "dim")
    for name, folder in chat.records.items():
        screen.line(f"{name} in {show.clean(str(folder))}", "dim")
    screen.line("/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves", "dim")


def _talk(chat: Chat) -> int:
    """Handle lines until there are no more."""
    while (line := _line(chat)) is not None:
        if not line.strip():
            continue
        try:
            _handle_line(chat, line.strip())
        except EOFError:
            break
        except KeyboardInterrupt:
            chat.screen.idle()
            if not chat.screen.live:
                raise click.Abort from None
            chat.session.refresh()
            chat.screen.line("Interrupted; what was said so far is kept", "yellow")
        except Exception as error:
            _show_failure(chat, error, in_turn=not line.startswith("/"))
    if chat.screen.live and chat.session.ids:
        chat.screen.line(f"Kept: refold chat --session {chat.session.id}", "dim")
    return 0


def _handle_line(chat: Chat, line: str) -> None:
    from refold._cli import slash_commands

    if line.startswith("/") and not line.startswith("//"):
        slash_commands.run(chat, line)
    else:
        chat.turn(line.removeprefix("/") if line.startswith("//") else line)


def _show_failure(chat: Chat, error: Exception, *, in_turn: bool) -> None:
    """Show a refold error and continue; before the first answer, or without a terminal, it ends the chat."""
    from refold.errors import RefoldError

    chat.screen.idle()
    first = in_turn and not chat.client.answered
    if first or not chat.screen.live or not isinstance(error, RefoldError):
        raise error
    chat.screen.line(f"{' '.join(str(error).split())}", "red")


def _line(chat: Chat) -> str | None:
    """Return the next line, None at the end; a line that ends in a backslash goes on in the next."""
    screen = chat.screen
    if screen.live:
        screen.line("")
    if screen.typed:
        line = screen.typed.pop(0)
        screen.line(f"{PROMPT}{line}", "bold")
        return line
    if not screen.live:
        read = sys.stdin.readline()
        return read if read else None
    parts: list[str] = []
    while True:
        try:
            part = input("  " if parts else _prompt())
        except EOFError:
            sys.stdout.write("\n")
            return None
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            parts = []
            continue
        parts.append(part.removesuffix("\\"))
        if not part.endswith("\\"):
            return "\n".join(parts)


def _prompt() -> str:
    """Return the prompt, in colour where that shows; the marks tell readline that colours take no room."""
    from refold._cli import show

    coloured = show.terminal().color_system is not None and "readline" in sys.modules
    return f"\001\033[1;36m\002{PROMPT}\001\033[0m\002" if coloured else PROMPT


def _history(stack: ExitStack) -> None:
    """Give the prompt arrow keys and a history, in a file that only its owner can read."""
    try:
        import readline
    except ImportError:
        return
    from refold._cli.chat_session import data_folder
    from refold.agent._private_files import owned_folder, write_owned

    path = owned_folder(data_folder()) / "chat_history"
    if not path.exists():
        write_owned(path, "")
    try:
        readline.read_history_file(path)
    except OSError:
        return
    readline.set_history_length(HISTORY)
    stack.callback(_write_history, path)


def _write_history(path: Any) -> None:
    import readline
    from contextlib import suppress

    with suppress(OSError):
        readline.write_history_file(path)
