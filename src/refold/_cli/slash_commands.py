"""The commands of a chat: lines that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from refold._cli import show
from refold._cli.sessions import stored_sessions
from refold._text.suggestions import did_you_mean
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._cli.chat_session import Chat

__all__ = ["COMMANDS", "Command", "run"]

RECALLED = 10  # messages that /recall shows
KEEP = "--keep"


class Command(NamedTuple):
    """A command of a chat: its arguments, a description, and a function that takes the text after its name."""

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
    keep, focus = _keep_argument(rest)
    if not chat.compact(focus or None, keep):
        chat.screen.note("Nothing could be made smaller")


def _keep_argument(rest: str) -> tuple[int | None, str]:
    """Return the tokens of --keep, if it is given, and the focus (O17, L07)."""
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


def _card(chat: Chat, rest: str) -> None:
    if chat.screen.last_card is None:
        raise UsageError("no compaction was done in this chat yet")
    chat.screen.expand(chat.screen.last_card)


def _plan(chat: Chat, rest: str) -> None:
    from refold._cli import plan
    from refold._compaction.options import Options
    from refold._inspect import plan_table
    from refold.agent._compactor import PLACEHOLDER
    from refold.handlers import Handlers

    session = chat.session
    if not session.ids:
        raise UsageError("there is nothing to compact yet")
    options = Options(**chat.request(), plans=session.plans, cause="manual", instructions=rest or None)
    summarize = (lambda _: PLACEHOLDER) if chat.settings.enable_summarization else None
    request, compaction_plan = plan_table.planned(session.messages, options, Handlers(summarize=summarize))
    plan.summarized(compaction_plan, session.id, options.model)
    if not compaction_plan.empty:
        plan.messages(plan_table.rows(request, compaction_plan), request.view, every=False)


def _rewind(chat: Chat, rest: str) -> None:
    chat.screen.line(stored_sessions.back(chat.session, rest or "1"))


def _undo(chat: Chat, rest: str) -> None:
    chat.screen.line(stored_sessions.undo(chat.session))


def _recall(chat: Chat, rest: str) -> None:
    from refold._inspect.message_labels import full_text

    if not rest:
        raise UsageError("/recall wants an id of a message or compaction, or words that it held")
    recalled = chat.session.recall(stored_sessions.whole_id(chat.session, rest), RECALLED)
    if not recalled:
        raise UsageError(f"nothing that was said in this session holds {rest!r}")
    texts = {message.id: f"{message.role}: {full_text(message)}" for message in chat.read()}
    cells = [(each.id, show.clean(each.excerpt or texts.get(each.id, ""), 400)) for each in recalled[:RECALLED]]
    show.table(("message", "~what"), cells)
    if len(recalled) > RECALLED:
        more = len(recalled) - RECALLED
        chat.screen.note(f"and {more:,} more: refold sessions show {chat.session.id} --message {rest}", "dim")


def _policy(chat: Chat, rest: str) -> None:
    from refold import policies

    if not rest:
        current = chat.session.policy.name
        chat.screen.line(f"{current}; others are {', '.join(name for name in policies.names() if name != current)}")
        return
    chat.choose(rest)
    chat.screen.line(f"From now on by {chat.session.policy.name}")


def _sessions(chat: Chat, rest: str) -> None:
    from refold._cli.sessions.list import print_sessions

    print_sessions(stored_sessions.listed(chat.store, 20), chat.session.id)


def _help(chat: Chat, rest: str) -> None:
    rows = [(f"/{name} {each.arguments}".rstrip(), each.about) for name, each in COMMANDS.items()]
    show.lines([*rows, ("Ctrl-C", "Stop at once; the messages so far are stored"), ("Ctrl-D", "Leave")])


def _stop(chat: Chat, rest: str) -> None:
    chat.screen.note("Nothing runs now; while an answer is written, /stop ends it after the current step")


def _exit(chat: Chat, rest: str) -> None:
    raise EOFError


COMMANDS = {
    "compact": Command(
        "[--keep N] [focus]", "Compact now; a summary follows the focus, the newest N tokens stay as they are", _compact
    ),
    "context": Command("", "Show what the context contains", _context),
    "card": Command("", "Show all that the last compaction made smaller", _card),
    "plan": Command("[focus]", "Show what /compact would do, without doing it", _plan),
    "rewind": Command("[N|ID]", "Go back before the last N turns (1), or to a message or compaction", _rewind),
    "undo": Command("", "Undo the last rewind, else the newest compaction", _undo),
    "recall": Command("ID|WORDS", "Show original messages, by id or by words", _recall),
    "policy": Command("[NAME]", "Show the policy, or use another", _policy),
    "sessions": Command("", "List the stored sessions", _sessions),
    "stop": Command("", "While an answer is written: stop after the current step", _stop),
    "help": Command("", "List the commands", _help),
    "exit": Command("", "Leave; the session stays stored", _exit),
    "quit": Command("", "The same", _exit),
}
