"""Extracts findings from messages: decisions, finished and open work, commands, errors and values, one line each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold._condense.call_facts import arguments_of, is_shell, reads, subject, writes
from refold._condense.call_outline import call_line, content_summary, exit_code, first_error, one_line
from refold._condense.digest.previous import own_text
from refold.core.messages import Message, ToolCall, ToolResult, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.view import View

__all__ = ["CallOutcome", "decisions", "openings", "outcomes", "prepare", "searches", "todos", "values", "well"]

MOST = 150  # lines of one sort that are looked for
LEAST, LONGEST = 24, 400  # characters of a sentence that gives a decision or a reason
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
DECIDED = re.compile(
    r"\b(?:decided?|decision|instead of|rather than|because|root cause|turns out|chose|going with|confirmed|"
    r"the (?:problem|issue|bug|cause|fix|reason) (?:is|was)|found (?:that|the)|I(?:'ll| will) (?:use|keep|not)|"
    r"we(?:'ll| will)? (?:use|keep|agreed)|agreed|deshalb|entschieden|weil|décidé|parce que|decidido|porque)\b|"
    "決め|ため|原因|决定|因为",
    re.I,
)
BOX = re.compile(r"^\s*(?:[-*]|\d+[.)]) \[([ xX~-])\] (.+)$", re.M)
VALUE = re.compile(r"(?<![\w.])([A-Za-z_][\w.-]{2,40}) ?[=:] ?[`\"']?([\w@][\w./:@%+-]{1,80})")
LISTS = ("todos", "todo_list", "plan", "items", "tasks")
WORDS = ("content", "step", "title", "text", "task", "description")


class CallOutcome(Struct, frozen=True):
    """What came of a call: the call as one line, how it ended, and whether it failed and never went well since."""

    call: str
    ended: str
    failed: bool
    shell: bool
    open: bool = False


def prepare(message: Message) -> None:
    """Find what a digest will ask of a message; the message and its parts remember it."""
    if message.role == "assistant":
        for of_answer in (_decided, _opening, _boxes):
            of_answer(message)
    if message.role in ("user", "assistant"):
        _values(message)
    for call in message.calls:
        _items(call)
        call_line(call)
    for result in message.results:
        _code(result)
        content_summary(result)


def outcomes(view: View, messages: Sequence[Message], later: Sequence[Message] = ()) -> tuple[CallOutcome, ...]:
    """Return the outcome of each shell command and each failed call, newest first, the same call only once.

    `later` are newer messages in which a failed call may have gone well.
    """
    went_well = {_same(call) for call, result in _answered(view, later) if not _failed(call, result)}
    results: dict[str, CallOutcome] = {}
    for call, result in _answered(view, reversed(messages)):
        if len(results) >= MOST:
            break
        shell, failed = is_shell(call), _failed(call, result)
        if not failed:
            went_well.add(_same(call))
        if not (shell or result.is_error):
            continue
        line = call_line(call)
        code = _code(result)
        ended = f"exit code {code}" if code is not None else "error" if result.is_error else ""
        if failed and (wrong := first_error(result.text)):
            ended = f"{ended}: {wrong}" if ended else wrong
        if line not in results:
            results[line] = CallOutcome(line, ended, failed, shell, failed and _same(call) not in went_well)
    return tuple(results.values())


def well(view: View, messages: Sequence[Message]) -> frozenset[str]:
    """Return the lines of the calls that went well."""
    return frozenset(call_line(call) for call, result in _answered(view, messages) if not _failed(call, result))


def searches(view: View, messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the calls that went well, ran no command and named no file, such as searches, newest first, each once."""
    results: dict[str, None] = {}
    for call, result in _answered(view, reversed(messages)):
        if len(results) >= MOST:
            break
        if not (is_shell(call) or reads(call) or writes(call) or _failed(call, result)):
            results[call_line(call)] = None
    return tuple(line for line in results if " " in line)  # a bare name leads nowhere


def decisions(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return sentences of the assistant that give a decision or a reason, newest first."""
    results: dict[str, None] = {}
    for message in reversed(messages):
        if message.role == "assistant":
            results |= dict.fromkeys(_decided(message))
        if len(results) >= MOST:
            break
    return tuple(results)


@memoized
def _decided(message: Message) -> tuple[str, ...]:
    return tuple(
        one_line(sentence, LONGEST)
        for sentence in reversed(SENTENCE.split(text_of(message)))
        if LEAST < len(sentence) <= LONGEST and not sentence.rstrip().endswith(":") and DECIDED.search(sentence)
    )


def openings(messages: Sequence[Message]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return how the assistant's last words of each turn begin, and its other texts, both newest first."""
    closing: dict[str, None] = {}
    others: dict[str, None] = {}
    closes = True
    for message in reversed(messages):
        if message.role == "user" and message.note is None:
            closes = True
        elif message.role == "assistant" and (line := _opening(message)):
            (closing if closes and not message.calls else others)[line] = None
            closes = False
        if len(others) >= MOST:
            break
    return tuple(closing), tuple(others)


@memoized
def _opening(message: Message) -> str:
    return one_line(text_of(message), 300)


def todos(messages: Sequence[Message]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return what the newest list of tasks has as done and as remaining; None where there is no list."""
    for message in reversed(messages):
        for call in reversed(message.calls):
            if items := _items(call):
                done = tuple(text for text, state in items if state in ("completed", "done", "complete"))
                rest = (f"{text} ({state})" if state == "in_progress" else text for text, state in items)
                return done, tuple(line for line, (text, _) in zip(rest, items, strict=True) if text not in done)
        boxes = _boxes(message) if message.role == "assistant" else ()
        if boxes:
            return (
                tuple(one_line(text, 200) for mark, text in boxes if mark in "xX"),
                tuple(one_line(text, 200) for mark, text in boxes if mark not in "xX"),
            )
    return None


@memoized
def _boxes(message: Message) -> tuple[tuple[str, str], ...]:
    text = text_of(message)
    return tuple(BOX.findall(text)) if "] " in text else ()


def values(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return `name = value` for values that users and the assistant name in words, newest first, one a name."""
    results: dict[str, str] = {}
    for message in reversed(messages):
        if message.role in ("user", "assistant") and message.note is None:
            for name, value in _values(message):
                results.setdefault(name, value)
        if len(results) >= MOST:
            break
    return tuple(f"{name} = {value}" for name, value in results.items())


@memoized
def _values(message: Message) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value.rstrip(".:"))
        for name, value in VALUE.findall(own_text(message)[:20_000])
        if any(char.isdigit() or char in "/._" for char in value)
    )


def _answered(view: View, messages: Iterable[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    for message in messages:
        for result in reversed(message.results):
            call = view.call_of(message, result)
            if call is not None:
                yield call, result


def _same(call: ToolCall) -> tuple[str, object]:
    """Return what tells whether two calls ask for the same."""
    return call.name, subject(call)


@memoized
def _code(result: ToolResult) -> int | None:
    return exit_code(result.text)


def _failed(call: ToolCall, result: ToolResult) -> bool:
    return result.is_error or (is_shell(call) and bool(_code(result)))


@memoized
def _items(call: ToolCall) -> list[tuple[str, str]]:
    if not any(f'"{key}"' in call.arguments for key in LISTS):
        return []
    arguments = arguments_of(call)
    listed: Any = next((value for key in LISTS if isinstance(value := arguments.get(key), list)), [])
    results: list[tuple[str, str]] = []
    for item in listed:
        if isinstance(item, dict):
            words = next((value for key in WORDS if isinstance(value := item.get(key), str)), "")
            if words:
                results.append((one_line(words, 200), str(item.get("status", "")).lower()))
    return results
