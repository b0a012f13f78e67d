"""Extracts from messages, one line each, the calls that lead elsewhere, and values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import act_of, plain_name, reads, writes
from refold._condense.call_outline import call_line, content_summary, one_line
from refold._condense.digest import conclusions, task_lists
from refold._condense.digest.conclusions import prose
from refold._condense.digest.file_log import AGENTS
from refold._condense.digest.identifier_kinds import argument_names
from refold._condense.digest.identifier_ledger import asks_the_web, identifiers_of
from refold._condense.digest.outcomes import answered, code_of, failed, verdict_of
from refold._condense.digest.previous import own_text
from refold._condense.digest.question_tools import asks_user
from refold._condense.digest.targets import target_of
from refold._condense.digest.task_lists import lists_tasks
from refold._condense.digest.turns import turns_at
from refold._condense.digest.worked_through import PASSING
from refold._text.secrets import holds_secret
from refold.core.messages import Message, ToolCall, memoized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import ToolResult
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = [
    "other_calls",
    "prepare",
    "values",
]

MOST = 150  # lines of one sort that are looked for
BARE = re.compile(r"(?!\w*skill)\S+ [\w\\-]+", re.I)  # a call with one plain word leads nowhere
SAYS = re.compile(r"^\S+ .*\w", re.S)  # a call with an argument that holds a word
# A field of JSON that says which one, where, or in which state.
FIELD = re.compile(
    r'"((?:\w+_)?(?:id|ur[li]|address|status|state|number)|\w+(?:Id|Ur[li]))" ?: ?"?([^\s",{}\[\]]{1,200})', re.I
)
SEARCHED, FIELDS = 4_000, 4  # characters of such an answer, and fields that are told
LONGEST, SHORT_ANSWER = 200, 160  # characters of them together, and of an answer in words
NAMES_ONE = re.compile(r"\d|/")  # in an answer that says which one it is about
VALUE = re.compile(
    r"(?<![\w./-])([A-Za-z_][\w-]*(?:\.[\w-]+)*) ?= ?[`\"']?([\w@][\w./:@%+-]{1,80})|"
    r"^[\s>*-]*[`\"']?([A-Za-z_][\w.-]{2,40})[`\"']?: [`\"']?([\w@][\w./:@%+-]{1,80})[`\"']?\s*$",
    re.M,
)
SHARED = re.compile(r"[A-Z]?\d*(?:/[A-Z]?\d*)+")  # a ratio, or letters such as I/O
CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\.?|[a-z_]\w*_\w*")  # in place of a value: an expression, a name


def prepare(message: Message) -> None:
    """Find what a digest will ask of a message; the message and its parts remember it."""
    if message.role == "assistant":
        conclusions.prepare(message)
    if message.role in ("user", "assistant"):
        _values(message)
    task_lists.prepare(message)
    for call in message.calls:
        identifiers_of(call)
        argument_names(call)
        call_line(call)
        target_of(call)
    for result in message.results:
        identifiers_of(result)
        code_of(result)
        verdict_of(result)
        content_summary(result)


def other_calls(view: View, messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the calls that went well and do more than to run, read, write, search or open a page, newest first.

    Each stands with what it gave, such as the address of what was made; one that gave nothing that can be told, and
    leads nowhere by its arguments, is left out. Sub-agents are told with their reports.
    """
    results: dict[str, str] = {}
    for call, result in answered(view, reversed(messages)):
        if len(results) >= MOST:
            break
        looks = act_of(call) or reads(call) or asks_the_web(call) or target_of(call).looks
        gives_work = AGENTS.search(plain_name(call.name)) is not None
        if not (looks or gives_work or writes(call) or failed(call, result) or _is_passing(call)):
            line, gave = call_line(call), _gave(call, result)
            is_short = SAYS.search(line) and not BARE.fullmatch(line) and len(result.text) <= SHORT_ANSWER
            if line not in results and (gave or is_short):
                results[line] = gave
    return tuple(f"{line} → {gave}" if gave else line for line, gave in results.items())


def _gave(call: ToolCall, result: ToolResult) -> str:
    """Return what names the outcome of a call: ids, addresses and states in JSON, else a short answer, or nothing."""
    text = result.text.strip()
    if holds_secret(text):
        return ""
    if text[:1] in ("{", "["):
        names = {value: name for name, value in reversed(FIELD.findall(text[:SEARCHED]))}
        fields = [f"{name}: {value}" for value, name in reversed(names.items()) if value not in call.arguments]
        return one_line(", ".join(fields[:FIELDS]), LONGEST)
    return one_line(text, SHORT_ANSWER) if len(text) <= SHORT_ANSWER and NAMES_ONE.search(text) else ""


def _is_passing(call: ToolCall) -> bool:
    """Tell whether a call has a section of its own, or only waits."""
    return lists_tasks(call) or asks_user(call.name) or PASSING.search(plain_name(call.name)) is not None


def values(transcript: Transcript, messages: Sequence[Message]) -> tuple[str, ...]:
    """Return `name = value` for values that users and the assistant name in words, newest first, one a name.

    Of `messages` of a transcript, with the turn of what was said in an earlier one than the newest.
    """
    turns, index = turns_at(transcript), transcript.index
    results: dict[str, str] = {}
    for message in reversed(messages):
        if message.role in ("user", "assistant") and message.note is None:
            turn = turns[index[message.id]]
            for name, value in _values(message):
                results.setdefault(name, f"{value} (turn {turn})" if 0 < turn < turns[-1] else value)
        if len(results) >= MOST:
            break
    return tuple(f"{name} = {value}" for name, value in results.items())


@memoized
def _values(message: Message) -> tuple[tuple[str, str], ...]:
    words = prose(message) if message.role == "assistant" else own_text(message)
    if "=" not in words and ": " not in words:
        return ()
    pairs = ((name or field, value or of_field) for name, value, field, of_field in VALUE.findall(words[:20_000]))
    return tuple(
        (name, value)
        for name, raw in pairs
        if (value := raw.rstrip(".:"))
        and len(name) > 2
        and any(char.isdigit() or char in "/._" for char in value)
        and not CODE.fullmatch(value)
        and not SHARED.fullmatch(value)
    )
