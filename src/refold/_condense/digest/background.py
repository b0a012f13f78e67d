"""Commands that go on in the background: which still run, and how those ended that later calls named for.

Some harnesses answer a command before it has ended, with a part of its output and an id. What came of it stands in the
answer to a later call that names the id, or in a notice. Only then has it passed or failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import arguments_of, is_shell
from refold._condense.call_outline import REPORTED, exit_code
from refold.core.messages import Text, ToolCall, ToolResult, memoized, texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.core.messages import Message, MessageId

__all__ = ["ENDED", "KILLS", "STARTED", "is_running", "with_ends"]

HEAD = 400  # characters of an answer in which a harness says what became of a command
# What harnesses say of a command that goes on in the background, and of one that has ended.
STARTED = re.compile(r"(?:background with ID|running with session ID|shell ID)\b[:=]? *[\"'`]?([\w-]+)", re.I)
ENDED = re.compile(r"\b(?:exited|completed|killed|terminated|finished|failed|no longer running|not found)\b", re.I)
GOES_ON = re.compile(r"<status>\s*running|\bstill running\b|\brunning with session ID\b", re.I)
KILLS = re.compile(r"\bp?kill(?:all)?\b|kill_?(?:shell|bash)", re.I)
NOTICE = re.compile(r"^.*\b(?:completed|failed|exited)\b.{0,20}\bexit code:? \d+.*$", re.M)

Pairs: TypeAlias = "tuple[tuple[ToolCall, ToolResult], ...]"


class _Begun(Struct):
    """A command that goes on, the key of the message that says so, the answer there, and what it has printed."""

    key: MessageId
    call: ToolCall
    result: ToolResult
    printed: str


@memoized
def is_running(result: ToolResult) -> bool:
    """Tell whether an answer says that its command goes on in the background."""
    return STARTED.search(result.text[:HEAD]) is not None and exit_code(result.text) is None


def with_ends(messages: Sequence[Message], answered: Mapping[MessageId, Pairs]) -> dict[MessageId, Pairs]:
    """Return what messages answer with commands of the background where they ended, not where they began.

    Each stands at the answer that says so, in place of the call that named for it.
    """
    pairs = dict(answered)
    running: dict[str, _Begun] = {}
    for message in messages:
        key = message.id
        for call, result in reversed(answered[key]):
            if is_shell(call):
                if is_running(result) and (begun := STARTED.search(result.text[:HEAD])):
                    running[begun[1]] = _Begun(key, call, result, _split(result.text)[1])
                continue
            named = next((id for id in map(str, arguments_of(call).values()) if id in running), "") if running else ""
            if not named:
                continue
            head, printed = _split(result.text)
            command = running[named]
            if KILLS.search(call.name):
                del running[named]
            elif GOES_ON.search(result.text[:HEAD]) or not ENDED.search(result.text[:HEAD]):
                command.printed += printed if head else ""
            else:
                whole = f"{head}{command.printed}{printed}" if head else result.text
                ended = (command.call, replace(result, content=(Text(whole),)))
                pairs[key] = tuple(ended if each[1] is result else each for each in pairs[key])
                _end(pairs, running.pop(named))
        if running and message.role == "user":
            words = "\n".join(texts(message))
            for id in [id for id in running if id in words]:
                if notice := NOTICE.search(words, words.index(id)):
                    ended = (running[id].call, ToolResult(running[id].call.call_id, (Text(notice[0].strip()),)))
                    pairs[key] = (ended, *pairs[key])
                    _end(pairs, running.pop(id))
    return pairs


def _end(pairs: dict[MessageId, Pairs], begun: _Begun) -> None:
    """Take the answer away with which a command began."""
    pairs[begun.key] = tuple(each for each in pairs[begun.key] if each[1] is not begun.result)


def _split(text: str) -> tuple[str, str]:
    """Return what a harness reports of a command, and what that printed, as whole lines."""
    head = REPORTED.match(text)
    printed = text[head.end() :] if head else text
    return head[0] if head else "", printed if not printed or printed.endswith("\n") else f"{printed}\n"
