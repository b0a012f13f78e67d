"""What `codex exec --json` prints: JSON lines of items, without what the user asked; a command holds its output."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, objects, string
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems, type_of
from refold.transcripts._source import Document

_BEGINS = "thread.started"
_LIMITS = "what the user asked and the usage of single calls are not in the output of `codex exec --json`"


def matches(document: Document) -> bool:
    """Tell by the beginning of a thread, or by an item that has completed."""
    return any(
        (row.get("type") == _BEGINS and "thread_id" in row)
        or (row.get("type") == "item.completed" and "type" in mapping(row.get("item")))
        for _, row in document.objects[:20]
    )


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield a conversation for each thread; one that is resumed in the same file goes on."""
    aside = SkippedItems()
    threads: dict[str, list[Json]] = {}
    thread: list[Json] | None = None
    for number, row in document.lines:
        kind = type_of(row)
        if kind == _BEGINS:
            thread = threads.setdefault(string(row, "thread_id"), [])
            continue
        if thread is None:  # the file begins later
            thread = threads.setdefault("", [])
        items = tuple(_items(str(kind), mapping(mapping(row).get("item")), f"{number}"))
        thread.extend(items)
        if not items:
            item = mapping(row).get("item")
            aside.add(f"line of type {kind}" + (f" with an item of type {type_of(item)}" if item else ""), number)
    for at, (name, messages) in enumerate(threads.items()):
        notes = (_LIMITS, *aside.notes()) if not at else (_LIMITS,)
        yield RecordedConversation("codex-exec", "openai-responses", messages, name=name if at else "main", notes=notes)


def _items(event: str, item: Json, id: str) -> Iterator[Json]:
    """Yield what an event means in the conversation; a list of tasks counts each time that it is written."""
    kind = item.get("type")
    if kind == "todo_list" and event in ("item.started", "item.updated"):
        tasks = [
            {"step": task.get("text"), "status": "completed" if task.get("completed") else "pending"}
            for task in objects(item.get("items"))
        ]
        yield from _called(id, "update_plan", {"plan": tasks}, "Plan updated")
    if event != "item.completed":
        return
    match kind:
        case "agent_message":
            content = [{"type": "output_text", "text": string(item, "text"), "annotations": []}]
            yield {"type": "message", "role": "assistant", "content": content}
        case "command_execution":
            output, code = string(item, "aggregated_output"), item.get("exit_code")
            ended = output if code in (0, None) else f"{output.rstrip()}\nProcess exited with code {code}"
            yield from _called(id, "exec_command", {"cmd": _command(string(item, "command"))}, ended)
        case "file_change":
            yield from _called(id, "apply_patch", {"changes": item.get("changes") or []}, string(item, "status"))
        case "mcp_tool_call":
            name = "__".join(filter(None, (string(item, "server"), string(item, "tool"))))
            yield from _called(id, name, item.get("arguments") or {}, _result(item))
        case "web_search":
            yield from _called(id, "web_search", {"query": string(item, "query")}, string(item, "status"))
        case _:
            return


def _called(id: str, name: str, arguments: object, output: str) -> Iterator[Json]:
    """Yield a call and its output; ids of items begin anew when a thread is resumed, so the line's number is theirs."""
    call_id = f"line_{id}"
    call = {"type": "function_call", "call_id": call_id, "name": name}
    yield {**call, "arguments": json.dumps(arguments, ensure_ascii=False)}
    yield {"type": "function_call_output", "call_id": call_id, "output": output}


def _command(line: str) -> str:
    """Return the command that a shell was started with, as the model wrote it."""
    try:
        words = shlex.split(line)
    except ValueError:
        return line
    return words[2] if len(words) == 3 and words[1] in ("-lc", "-c") else line


def _result(item: Json) -> str:
    error: Any = mapping(item.get("error")).get("message")
    content = objects(mapping(item.get("result")).get("content"))
    return str(error) if error else "\n".join(filter(None, (string(part, "text") for part in content)))
