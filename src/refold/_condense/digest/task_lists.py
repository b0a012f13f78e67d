"""Reads the agent's list of tasks back from its calls, whatever tool keeps it: its newest state.

A tool gives the whole list with each call, as items or as lines of text, or only what changed in it (`merge`), or one
task a call. An empty list is a list: all on it was finished or dropped. A call that failed changed nothing. Boxes
in the assistant's words count where no tool keeps a list and one of them is ticked: a list without a tick may be what
is checked each time. What a tool answers that was asked for its list is the whole list: others may have changed it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import arguments_of, plain_name
from refold._condense.call_outline import one_line
from refold.core.messages import Message, MessageId, ToolCall, ToolResult, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.transcript import Transcript

__all__ = ["IN_PROGRESS", "TaskList", "keeps_tasks", "lists_tasks", "newest_task_list", "prepare", "task_list"]

LISTS = ("todos", "todo_list", "todoList", "task_list", "plan", "items", "tasks")
TEXTS = ("todos", "plan", "task_progress")  # lists that are one text
NAMES = re.compile(r"todo|plan|task")  # in names of tools whose list may be empty, or a text
WORDS = ("content", "step", "title", "text", "task", "description")
LENGTH = 200  # characters of a task
DONE = frozenset({"completed", "done", "complete", "x", "✔", "✅"})
IN_PROGRESS = " (in_progress)"  # behind a task
BEGUN = frozenset({"in_progress", "inprogress", "active", "~", ">", "_"})
DROPPED = frozenset({"deleted", "cancelled", "canceled"})
LINE = re.compile(r"^\s*(?:[-*]|\d+[.)])?\s*\[([^\]\n]{1,12})\]\s*(\S.*)$", re.M)
ANSWERED = re.compile(r"(?:[-*] )?(?:#?(\d+)[.:)]? +)?\[([^\]\n]{1,12})\] +(?:#?(\d+)[.:)] +)?(\S.*)")
BOX = re.compile(r"^\s*(?:[-*]|\d+[.)]) \[([ xX~-])\] (.+)$", re.M)
CREATED = re.compile(r"Task #(\d+) created")
CREATE, UPDATE = "taskcreate", "taskupdate"  # tools that keep a list of tasks one by one


class TaskList(Struct, frozen=True):
    """The tasks that are done and those that remain, and the message that said so last.

    `passed` are those of the remaining that were begun, and that tasks behind them in the list which are done passed.
    """

    done: tuple[str, ...]
    remaining: tuple[str, ...]
    message: MessageId
    passed: frozenset[str] = frozenset()


class _Task(Struct, frozen=True):
    """A task as a call names it; the words may be left out where only its state changes."""

    key: str
    words: str
    state: str


class _Update(Struct, frozen=True):
    """What a call says of a list: the whole of it, or some tasks that changed."""

    tasks: tuple[_Task, ...]
    merges: bool = False


def prepare(message: Message) -> None:
    """Read what a message says of a list; the message and its calls remember it."""
    if message.role == "assistant":
        _boxes(message)
    for call in message.calls:
        _update(call)
    for result in message.results:
        _answer(result)


def keeps_tasks(call: ToolCall) -> bool:
    """Tell whether a call creates or changes one task of a list."""
    return plain_name(call.name) in (CREATE, UPDATE)


def lists_tasks(call: ToolCall) -> bool:
    """Tell whether a call says something of a list of tasks."""
    return keeps_tasks(call) or _update(call) is not None


@memoized
def newest_task_list(transcript: Transcript) -> TaskList | None:
    """Return the newest state of the list in a whole transcript."""
    return task_list(transcript.messages)


def task_list(messages: Sequence[Message]) -> TaskList | None:
    """Return the newest state of the list of tasks that messages keep; None where there is no list."""
    failed = {result.call_id for message in messages for result in message.results if result.is_error}
    list_calls = {call.call_id for message in messages for call in message.calls if NAMES.search(plain_name(call.name))}
    updates: list[_Update] = []
    newest: MessageId | None = None
    for message in reversed(messages):
        for result in reversed(message.results):
            if result.call_id in list_calls and (answer := _answer(result)):
                return _sorted(_merged([*updates, _Update(answer)]), newest or message.id)
        for call in reversed(message.calls):
            if call.call_id and call.call_id in failed:
                continue
            if keeps_tasks(call) and not updates:
                return _sorted(_one_by_one(messages, failed, list_calls), message.id)
            if update := _update(call):
                newest = newest or message.id
                updates.append(update)
                if not update.merges:
                    return _sorted(_merged(updates), newest)
    if newest:
        return _sorted(_merged(updates), newest)
    boxed = next((each for each in reversed(messages) if each.role == "assistant" and _boxes(each)), None)
    return _sorted(_boxes(boxed), boxed.id) if boxed else None


def _sorted(tasks: Iterable[_Task], message: MessageId) -> TaskList:
    named = [task for task in tasks if task.words and task.state not in DROPPED]
    behind = max((at for at, task in enumerate(named) if task.state in DONE), default=0)
    return TaskList(
        tuple(task.words for task in named if task.state in DONE),
        tuple(
            f"{task.words}{IN_PROGRESS}" if task.state in BEGUN else task.words
            for task in named
            if task.state not in DONE
        ),
        message,
        frozenset(f"{task.words}{IN_PROGRESS}" for task in named[:behind] if task.state in BEGUN),
    )


def _merged(updates: Sequence[_Update]) -> Iterable[_Task]:
    """Return the tasks after all updates, which come newest first."""
    tasks: dict[str, _Task] = {}
    for update in reversed(updates):
        for task in update.tasks:
            before = tasks.get(task.key)
            tasks[task.key] = _Task(task.key, task.words or (before.words if before else ""), task.state)
    return tasks.values()


def _one_by_one(messages: Sequence[Message], failed: set[str], list_calls: set[str]) -> Iterable[_Task]:
    """Return the tasks of tools that create them one by one, numbered from 1, and change their state."""
    ids = {result.call_id: number for message in messages for result in message.results if (number := _task_id(result))}
    tasks: dict[str, _Task] = {}
    for message in messages:
        for answer in (_answer(result) for result in message.results if result.call_id in list_calls):
            tasks = {task.key: task for task in answer} or tasks
        for call in message.calls:
            if not keeps_tasks(call) or (call.call_id and call.call_id in failed):
                continue
            arguments = arguments_of(call)
            if plain_name(call.name) == CREATE:
                key = ids.get(call.call_id, str(len(tasks) + 1))
                tasks[key] = _Task(key, one_line(str(arguments.get("subject", "")), LENGTH), "")
            elif before := tasks.get(str(arguments.get("taskId", ""))):
                state = _state(arguments["status"]) if "status" in arguments else before.state
                tasks[before.key] = _Task(before.key, before.words, state)
    return tasks.values()


@memoized
def _task_id(result: ToolResult) -> str:
    """Return the number that a tool gave a task, in a short result that says so."""
    match = CREATED.match(result.text) if result.text[:5] == "Task " else None
    return match[1] if match else ""


@memoized
def _answer(result: ToolResult) -> tuple[_Task, ...]:
    """Return the tasks that an answer lists, one a line, where it lists nothing else: in order, if they have such."""
    text = result.text.strip()
    lines = [ANSWERED.fullmatch(line.strip()) for line in text.split("\n")] if "[" in text[:LENGTH] else []
    matches = [match for match in lines if match]
    if not matches or len(matches) < len(lines):
        return ()
    tasks = [_Task(m[1] or m[3] or m[4], one_line(m[4], LENGTH), _state(m[2])) for m in matches]
    numbered = all(task.key.isdecimal() for task in tasks)
    return tuple(sorted(tasks, key=lambda task: int(task.key)) if numbered else tasks)


@memoized
def _update(call: ToolCall) -> _Update | None:
    """Return what a call says of a list of tasks; None where it says nothing of one."""
    if not any(f'{key}"' in call.arguments or f"{key}:" in call.arguments for key in (*LISTS, *TEXTS)):
        return None
    arguments = arguments_of(call)
    named = NAMES.search(plain_name(call.name)) is not None
    listed = next((value for key in LISTS if isinstance(value := arguments.get(key), list)), None)
    if listed is None:
        text = next((value for key in TEXTS if isinstance(value := arguments.get(key), str)), "")
        tasks = _in_lines(text) if named or "task_progress" in arguments else ()
        return _Update(tasks) if tasks else None
    merges = arguments.get("merge") is True
    tasks = tuple(task for item in listed if isinstance(item, dict) and (task := _task(item)))
    if len({task.key for task in tasks}) < len(tasks):
        tasks = tuple(replace(task, key=str(number)) for number, task in enumerate(tasks))
    return _Update(tasks, merges) if tasks or (named and not listed) else None


def _task(item: dict[str, object]) -> _Task | None:
    words = next((one_line(value, LENGTH) for key in WORDS if isinstance(value := item.get(key), str)), "")
    key = str(item.get("id", "")) or words
    return _Task(key, words, _state(item.get("status", ""))) if key else None


def _in_lines(text: str) -> tuple[_Task, ...]:
    return tuple(_Task(words := one_line(match[2], LENGTH), words, _state(match[1])) for match in LINE.finditer(text))


def _state(status: object) -> str:
    return str(status).strip().lower().replace("-", "_")


@memoized
def _boxes(message: Message) -> tuple[_Task, ...]:
    text = text_of(message)
    boxes = BOX.finditer(text) if "] " in text else ()
    tasks = tuple(_Task(match[2], one_line(match[2], LENGTH), _state(match[1])) for match in boxes)
    return tasks if any(task.state in DONE for task in tasks) else ()
