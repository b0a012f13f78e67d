"""Commands that go on in the background: which still run, and how those ended that later calls named for.

Some harnesses answer a command before it has ended, with a part of its output and an id. What came of it stands in the
answer to a later call that names the id, or in a notice. Only then has it passed or failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import arguments_of, is_shell, subject
from refold._condense.call_outline import REPORTED, call_line, command_line, exit_code, one_line
from refold._condense.digest.targets import target_in
from refold._condense.shell_commands import without_heredocs
from refold.core.messages import Text, ToolCall, ToolResult, memoized, texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.core.messages import Message, MessageId

__all__ = ["ENDED", "KILLS", "STARTED", "in_background", "is_running", "only_waited", "with_ends"]

PART, LONGEST = 120, 2_000  # characters of a command that goes on by itself, and that are searched for one
HEAD = 400  # characters of an answer in which a harness says what became of a command
# What harnesses say of a command that goes on in the background, and of one that has ended.
STARTED = re.compile(
    r"(?:background with ID|running with (?:session|cell) ID|shell ID|started \((?:task|job|id))\b"
    r"[:=]? *[\"'`]?([\w-]+)",
    re.I,
)
ENDED = re.compile(r"\b(?:exited|completed|killed|terminated|finished|failed|no longer running|not found)\b", re.I)
GOES_ON = re.compile(r"<status>\s*running|\bstill running\b|\brunning with (?:session|cell) ID\b", re.I)
KILLS = re.compile(
    r"\bp?kill(?:all)?\b|(?:kill|stop)_?(?:shell|bash|task|job)|(?:shell|task|job)_?(?:kill|stop)$", re.I
)
# A command that goes on by itself, without those before it, and what makes it do so.
DETACHED = re.compile(
    r"""(?<![^|;&\n])((?:'[^']*'|"(?:\\.|[^"\\])*"|>&|&>|[^'"|;&\n])++)&\s*(?:$|\n|\)|disown\b|sleep\b|echo\b|\w+=\$!)"""
)
PRINTS_TO = re.compile(r"\boutput\b[^\n/]{0,60}(?<=\s)(/\S+[^\s.])", re.I)  # what a harness says of its output
SAVED = re.compile(r"\boutput (?:was )?(?:saved|written) (?:to|in):? *(/\S+[^\s.])", re.I)  # of one that was too long
NUMBER = re.compile(r"^(?:\[\d+\] )?(\d{2,7})$", re.M)
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


def only_waited(call: ToolCall, result: ToolResult) -> bool:
    """Tell whether a call asked for a command of the background that still ran, and printed nothing more by then."""
    runs = is_shell(call) and subject(call)[1]
    return not runs and GOES_ON.search(result.text[:HEAD]) is not None and not _split(result.text)[1].strip()


def in_background(command: str, call: ToolCall, result: ToolResult) -> tuple[str, str]:
    """Return the id and a line of a command that goes on in the background; two empty texts where none does."""
    head = result.text[:HEAD]
    if begun := STARTED.search(head):
        line, output = call_line(call), PRINTS_TO.search(head)
        if not is_shell(call):  # a tool that watches a command
            short = command_line(command, target_in(f"shell `{command}`").written)
            line = f"{call.name} `{short.replace('`', chr(39))}`"
        return begun[1], f"{line} → {begun[0].replace('(', '')}{f', output in {output[1]}' if output else ''}"
    detached = DETACHED.search(without_heredocs(command)[:LONGEST]) if "&" in command else None
    if detached is None or KILLS.search(command, detached.end()):
        return "", ""
    part = detached[1]
    if ")" in part and "(" not in part:  # the end of a line in parentheses
        part = detached.string[: detached.end(1)].rpartition("(")[2]
    number = NUMBER.search(head)
    line = f"{call.name} `{one_line(part.strip(' ()').replace('`', chr(39)), PART)}`"
    return command, f"{line} → process {number[1]}" if number else line


def with_ends(messages: Sequence[Message], answered: Mapping[MessageId, Pairs]) -> dict[MessageId, Pairs]:
    """Return what messages answer with commands of the background where they ended, not where they began.

    Each stands at the answer that says so, in place of the call that named for it. Where an output was too long, and a
    later command shows the file that has the whole of it, what that shows belongs to the first.
    """
    pairs = dict(answered)
    running: dict[str, _Begun] = {}
    saved: dict[str, tuple[MessageId, ToolCall, ToolResult]] = {}
    for message in messages:
        key = message.id
        for call, result in reversed(answered[key]):
            if is_shell(call) and subject(call)[1]:
                if file := SAVED.search(result.text[:HEAD]):
                    saved[file[1]] = key, call, result
                elif path := next((each for each in saved if each in call.arguments), ""):
                    begun_at, first, part = saved.pop(path)
                    whole = replace(part, content=(Text(f"{part.text}\n{result.text}"),))
                    pairs[begun_at] = tuple((first, whole) if each[1] is part else each for each in pairs[begun_at])
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
                text = f"{head}{command.printed}{printed}" if head else result.text
                ended = (command.call, replace(result, content=(Text(text),)))
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
