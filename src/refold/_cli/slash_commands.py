"""The commands within a chat: what begins with a slash."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from refold._cli import session_commands, show
from refold._text.suggestions import did_you_mean
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._cli.chat_session import Chat

__all__ = ["COMMANDS", "Command", "run"]

RECALLED = 10  # messages that /recall shows
KEEP = "--keep"


class Command(NamedTuple):
    """A command of a chat: its arguments, what it does in words, and the function, given what follows its name."""

    arguments: str
    about: str
    function: Callable[[Chat, str], None]


def run(chat: Chat, line: str) -> None:
    """Run a line that begins with a slash.

    Raises:
        UsageError: there is no such command, or it cannot be done.
    """
    name, _, rest = line[1:].strip().partition(" ")
    if name not in COMMANDS:
        raise UsageError(f"there is no command /{name}{did_you_mean(name, COMMANDS)}: /help lists them")
    COMMANDS[name].function(chat, rest.strip())


def _compact(chat: Chat, rest: str) -> None:
    keep, focus = _kept(rest)
    if not chat.compact(focus or None, keep):
        chat.screen.beside("Nothing could be made smaller")


def _kept(rest: str) -> tuple[int | None, str]:
    """Return the tokens that are to stay, if they are said, and the focus (O17, L07)."""
    if not rest.startswith(KEEP):
        return None, rest
    number, _, focus = rest.removeprefix(KEEP).lstrip("= ").partition(" ")
    if not number.isdecimal():
        raise UsageError("/compact --keep wants a number of tokens, as in /compact --keep 5000")
    return int(number), focus.strip()


def _context(chat: Chat, rest: str) -> None:
    from refold._cli import breakdown

    check, session = chat.check(), chat.session
    breakdown.print_breakdown(check, chat.threshold, session.context_window)
    billed = session.billed
    show.line(
        f"{show.many(len(session.ids), 'message')} said, {show.many(len(session.plans), 'compaction')} in force; "
        f"billed so far: {show.many(billed.calls, 'call')}, {billed.prompt:,} tokens in, {billed.completion:,} out",
        "dim",
    )


def _plan(chat: Chat, rest: str) -> None:
    from refold._cli import plan, plan_table
    from refold._compaction.options import Options
    from refold.agent._compactor import GUESSED
    from refold.handlers import Handlers

    session = chat.session
    if not session.ids:
        raise UsageError("there is nothing to compact yet")
    options = Options(**chat.request(), plans=session.plans, cause="manual", instructions=rest or None)
    summarize = (lambda _: GUESSED) if chat.settings.enable_summarization else None
    request, made = plan_table.planned(session.messages, options, Handlers(summarize=summarize))
    plan.summarized(made, session.id)
    if not made.empty:
        plan.messages(plan_table.rows(request, made), request.view, every=False)


def _rewind(chat: Chat, rest: str) -> None:
    chat.screen.line(session_commands.back(chat.session, rest or "1"))


def _undo(chat: Chat, rest: str) -> None:
    chat.screen.line(session_commands.undo(chat.session))


def _recall(chat: Chat, rest: str) -> None:
    from refold._cli.message_labels import full_text

    if not rest:
        raise UsageError("/recall wants an id of a message or compaction, or words that it held")
    found = chat.session.recall(session_commands.whole_id(chat.session, rest), RECALLED)
    if not found:
        raise UsageError(f"nothing that was said in this session holds {rest!r}")
    texts = {message.id: f"{message.role}: {full_text(message)}" for message in chat.read()}
    shown = [(each.id, show.clean(each.excerpt or texts.get(each.id, ""), 400)) for each in found[:RECALLED]]
    show.table(("message", "~what"), shown)
    if len(found) > RECALLED:
        chat.screen.beside(f"and {len(found) - RECALLED:,} more: refold show {chat.session.id} --message {rest}", "dim")


def _policy(chat: Chat, rest: str) -> None:
    from refold import policies

    if not rest:
        current = chat.session.policy.name
        chat.screen.line(f"{current}; others are {', '.join(name for name in policies.names() if name != current)}")
        return
    chat.choose(rest)
    chat.screen.line(f"From now on by {chat.session.policy.name}")


def _sessions(chat: Chat, rest: str) -> None:
    from refold._cli import sessions

    sessions.listed(session_commands.listed(chat.store, 20), chat.session.id)


def _help(chat: Chat, rest: str) -> None:
    rows = [(f"/{name} {each.arguments}".rstrip(), each.about) for name, each in COMMANDS.items()]
    show.lines([*rows, ("Ctrl-C", "Stop at once; what was said so far is kept"), ("Ctrl-D", "Leave")])


def _stop(chat: Chat, rest: str) -> None:
    chat.screen.beside("Nothing runs now; while an answer is written, /stop ends it after what is being done")


def _exit(chat: Chat, rest: str) -> None:
    raise EOFError


COMMANDS = {
    "compact": Command(
        "[--keep N] [focus]", "Compact now; a summary heeds the focus, N tokens stay as they are", _compact
    ),
    "context": Command("", "Show what the context holds", _context),
    "plan": Command("[focus]", "Show what /compact would do, without doing it", _plan),
    "rewind": Command("[N|ID]", "Go back before the last N turns (1), or to a message or compaction", _rewind),
    "undo": Command("", "Take the last rewind back, else the newest compaction", _undo),
    "recall": Command("ID|WORDS", "Bring back what was said, by id or by words", _recall),
    "policy": Command("[NAME]", "Show the policy, or go on by another", _policy),
    "sessions": Command("", "List the sessions that are kept", _sessions),
    "stop": Command("", "While an answer is written: end it after what is being done", _stop),
    "help": Command("", "List the commands", _help),
    "exit": Command("", "Leave; the session is kept", _exit),
    "quit": Command("", "The same", _exit),
}
