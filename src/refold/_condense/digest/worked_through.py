"""Tells what an agent has worked through for the current request: the subjects of its calls, by tool.

An agent that reads forty e-mails or looks up forty customers sees from its own calls which of them are done. Where the
calls leave with their outputs, it begins anew, and never comes to an end where one compaction holds fewer than all.
Files, commands and searches have sections of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from refold._condense import call_facts
from refold._condense.call_facts import act_of, arguments_of, is_shell, plain_name, reads, subject, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.outcomes import answered, failed, was_refused
from refold._condense.digest.previous import earlier_entries
from refold._condense.digest.task_lists import keeps_tasks
from refold._condense.digest.turns import turns_at, turns_in_work
from refold._text.graphemes import grapheme_suffix
from refold._text.secrets import holds_secret, names_secret
from refold._text.urls import without_secrets
from refold.core.messages import ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["PASSING", "WORKED_THROUGH", "worked_through"]

WORKED_THROUGH = "Calls for the current request that went well, by tool"  # the section of a digest
FEWEST = 4  # different subjects of the calls of a tool in the turns at work; with fewer it works through no list
IN_LINE = 8  # subjects in a line, so that a share of the digest can hold some of the lines
SUBJECT = 60  # characters
BETWEEN = "; "  # subjects
# Tools whose calls go through no list: what an agent thinks, and how it waits for a command that runs.
PASSING = re.compile(r"think|thought|stdin|^wait|^sleep|output$|^kill")
SHORT = 400  # characters of an output that begins as an error does, where nothing marks it as one
REFUSED = re.compile(
    r"[\s*#>\[(!❌-]*(?:\d{3} )?(?:error|failed|failure|not found|no such|unknown|invalid|could not|"
    r"can(?:no|['’])t|unable to|(?:permission|access) denied|unauthorized|forbidden|timed? ?out|rate limit|"
    r"too many requests)\b|"
    r'\s*\{(?:[^{}]*,)?\s*"errors?"\s*:\s*+(?!null|false|0|""|\[\s*\]|\{\s*\})',
    re.I,
)
LINE = re.compile(r"(?P<tool>turn (?P<turn>\d+): \S+: )(?P<subjects>.+)")


def worked_through(view: View, messages: Sequence[Message], staying: Sequence[Message]) -> tuple[str, ...]:
    """Return the calls that leave the view with these messages, by turn and tool, newest first.

    Those that earlier digests tell follow. Calls that stay show themselves.
    """
    transcript = view.transcript
    turns, in_work, index = turns_at(transcript), turns_in_work(transcript), transcript.index
    stays = {call.call_id for message in staying for call in message.calls}
    calls: dict[str, list[ToolCall]] = {}
    for message in reversed(messages):
        turn = turns[index[message.id]]
        for call, result in answered(view, [message]) if turn in in_work else ():
            if not (call.call_id in stays or _is_passing(call) or failed(call, result) or _refused(result)):
                calls.setdefault(f"turn {turn}: {call.name}: ", []).append(call)
    subjects = {tool: _different(some) for tool, some in calls.items()}
    for line in reversed(earlier_entries(transcript).lines(WORKED_THROUGH)):
        if (match := LINE.fullmatch(line)) and int(match["turn"]) in in_work:
            subjects.setdefault(match["tool"], {}).update(dict.fromkeys(match["subjects"].split(BETWEEN)))
    number = Counter(tool.partition(": ")[2] for tool, about in subjects.items() for _ in about)
    enough = {tool: about for tool, about in subjects.items() if number[tool.partition(": ")[2]] >= FEWEST}
    return tuple(line for tool, about in enough.items() for line in _lines(tool, [*about]))


@memoized
def _is_passing(call: ToolCall) -> bool:
    """Tell whether a call has a section of its own, or goes through no list."""
    known = act_of(call) or is_shell(call) or reads(call) or writes(call) or keeps_tasks(call)
    return bool(known) or PASSING.search(plain_name(call.name)) is not None


@memoized
def _refused(result: ToolResult) -> bool:
    """Tell whether an output that no flag marks as an error reads as one."""
    text = result.text[:SHORT]
    return (
        call_facts.failed(result)
        or was_refused(result)
        or (len(result.text) < SHORT and REFUSED.match(text) is not None)
    )


def _different(calls: Sequence[ToolCall]) -> dict[str, None]:
    """Return what calls of a tool are about: the first words of each, or what differs where most have these alike."""
    short = dict.fromkeys(filter(None, (_briefly([subject(call)[0]]) for call in calls)))
    if 2 * len(short) > len(calls):
        return short
    values = [_values(call) for call in calls]
    same = {name for name, value in values[0].items() if all(each.get(name) == value for each in values)}
    changing = ([value for name, value in each.items() if name not in same] for each in values)
    whole = dict.fromkeys(filter(None, map(_briefly, changing)))
    return whole if len(whole) >= 2 * len(short) else short


def _values(call: ToolCall) -> dict[str, str]:
    """Return the short arguments of a call, numbers too, but for secrets."""
    arguments = arguments_of(call).items()
    return {
        name: str(value) for name, value in arguments if isinstance(value, str | int | float) and not names_secret(name)
    }


def _briefly(words: Sequence[str]) -> str:
    """Return words as one subject, without secrets; of one that is long without a blank, as an address, its end."""
    plain = (without_secrets(word) if "://" in word else word for word in words)
    text = ", ".join(word for word in plain if word and not holds_secret(word)).replace(BETWEEN, ", ")
    if len(text) > SUBJECT and " " not in text:
        return one_line(f"…{grapheme_suffix(text, SUBJECT - 1)}", SUBJECT)
    return one_line(text, SUBJECT)


def _lines(tool: str, subjects: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(subjects), IN_LINE):
        yield tool + BETWEEN.join(subjects[start : start + IN_LINE])
