"""Messages of LangChain as those of Claude, where it is the model, and back what a plan made of messages."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, convert_to_openai_messages

from refold.adapt._images import claude_image, text_blocks
from refold.formats._base import arguments_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["claude_message", "grouped", "messages_in", "written"]


def grouped(messages: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return messages as items, and what each is known by.

    Results of tools in a row are one item, a list, because they are one message to Claude.
    """
    known = [(m.id, m.content, m.tool_calls if m.type == "ai" else m.type) for m in messages]
    results = [at for at, key in enumerate(known) if key[2] == "tool"]
    later = {at for before, at in pairwise(results) if at == before + 1}
    if not later:
        return messages, known
    bounds = [*(at for at in range(len(messages)) if at not in later), len(messages)]
    items = [messages[at] if end == at + 1 else messages[at:end] for at, end in pairwise(bounds)]
    return items, [known[at] if end == at + 1 else known[at:end] for at, end in pairwise(bounds)]


def messages_in(items: Iterable[Any]) -> list[Any]:
    """Return the messages of items."""
    return [message for item in items for message in (item if isinstance(item, list) else [item])]


def claude_message(item: Any) -> dict[str, Any]:
    """Return an item as one message of Claude's."""
    messages = messages_in([item])
    role = {"ai": "assistant", "system": "system"}.get(messages[0].type, "user")
    return {"role": role, "content": [block for message in messages for block in _blocks(message)]}


def _blocks(message: Any) -> list[Any]:
    """Return a message as Claude's blocks."""
    content = text_blocks(message.content)
    if message.type != "ai":
        content = convert_to_openai_messages([message], text_format="block")[0]["content"]
    blocks = [claude_image(block) for block in content if block["type"] != "tool_use" and block.get("text") != ""]
    if message.type == "tool":
        error = message.status == "error"
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks, "is_error": error}]
    calls = [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return [*blocks, *({"type": "tool_use", "id": id, "name": name, "input": args} for id, name, args in calls)]


def written(natives: list[Any], item: Any) -> list[Any]:
    """Return messages of LangChain for native ones; what is neither content nor a call stays as in the item."""
    former = {getattr(each, "tool_call_id", ""): each for each in messages_in([item])}
    messages: list[Any] = []

    def add(kind: Any, content: Any, id: str = "", **fields: Any) -> None:
        fields |= {"content": content, **({"tool_call_id": id} if id else {})}
        old = former.get(id)
        messages.append(old.model_copy(update=fields) if isinstance(old, kind) else kind(**fields))

    for native in natives:
        role, content = native["role"], native.get("content") or ""
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        if role == "tool":
            add(ToolMessage, content, native["tool_call_id"])
        elif role == "assistant":
            functions = [(each["id"], each["function"]) for each in native.get("tool_calls", ())]
            calls = [(id, function["name"], arguments_of(function["arguments"])) for id, function in functions]
            calls += [(each["id"], each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"]
            add(AIMessage, content, tool_calls=[{"id": id, "name": name, "args": args} for id, name, args in calls])
        else:
            for block in blocks:
                if block["type"] == "tool_result":
                    add(ToolMessage, block.get("content", ""), block["tool_use_id"])
            if rest := [block for block in blocks if block["type"] != "tool_result"] or ("" if blocks else content):
                add(SystemMessage if role == "system" else HumanMessage, rest)
    return messages
