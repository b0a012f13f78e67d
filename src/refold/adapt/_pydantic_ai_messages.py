"""Messages of Pydantic AI as items of the Responses API, one a part, and what a plan made of them back in its parts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from pydantic_ai import messages as ai
from pydantic_core import to_jsonable_python

from refold.adapt._parts import placed, replaced

__all__ = ["items_of", "written"]

ROLES = {"request": "user", "response": "assistant"}


def items_of(message: Any) -> list[Any]:
    """Return a message as items of the Responses API, one a part."""
    return placed(message.parts, partial(_item, ROLES[message.kind]))


def written(items: list[Any], message: Any) -> list[Any]:
    """Return the message that items hold now; of one that a plan made, the words."""
    if message is not None:
        return [replace(message, parts=replaced(items, message.parts, partial(_item, ROLES[message.kind]), _part))]
    text, is_answer = items[0]["content"], items[0]["role"] == "assistant"
    return [ai.ModelResponse([ai.TextPart(text)]) if is_answer else ai.ModelRequest([ai.UserPromptPart(text)])]


def _item(role: str, part: Any) -> dict[str, Any]:
    match part:
        case ai.ToolCallPart(tool_call_id=id, tool_name=name):
            return {"type": "function_call", "call_id": id, "name": name, "arguments": part.args_as_json_str()}
        case ai.ToolReturnPart(tool_call_id=id):
            return {"type": "function_call_output", "call_id": id, "output": placed(_contents(part), _block)}
        case ai.NativeToolCallPart(tool_call_id=id):
            return {"type": "program", "call_id": id, "code": part.args_as_json_str()}
        case ai.NativeToolReturnPart(tool_call_id=id):
            return {"type": "program_output", "call_id": id, "result": [_block(part)]}
        case ai.ThinkingPart(content=text, signature=seal):
            return {"type": "reasoning", "content": [{"type": "text", "text": text}], "encrypted_content": seal or ""}
        case ai.CompactionPart(content=text):
            return {"type": "compaction", "encrypted_content": text or ""}
        case _:
            role = "system" if isinstance(part, ai.SystemPromptPart) else role
            return {"role": role, "content": placed(_contents(part), _block)}


def _contents(part: Any) -> Any:
    if isinstance(part, ai.ToolReturnPart):
        return part.content_items(mode="str", wrap_if_error=False)
    content = getattr(part, "content", part)
    return content if isinstance(content, list | tuple) else [content]


def _block(content: Any) -> dict[str, Any]:
    match content:
        case str() | ai.TextContent():
            return {"type": "input_text", "text": getattr(content, "content", content)}
        case ai.ImageUrl(url=url) | ai.BinaryContent(is_image=True, data_uri=url):
            return {"type": "input_image", "image_url": url}
        case ai.BinaryContent(base64=data):
            return {"type": "input_file", "file_data": data}
        case _:
            return {"type": "other", "value": to_jsonable_python(content)}


def _part(item: dict[str, Any], part: Any) -> Any:
    """Return a part with what a plan made of its words; what is the provider's stays as it is."""
    if isinstance(part, ai.ToolCallPart):
        return replace(part, args=item["arguments"])
    new = item.get("output", item.get("content"))
    if new is None or isinstance(part, ai.ThinkingPart | ai.FilePart):
        return part
    if not isinstance(new, str):
        texts = replaced(new, _contents(part), _block, lambda block, content: block.get("text", content))
        new = texts[0] if len(texts) == 1 and isinstance(texts[0], str) else texts
    return replace(part, content=new)
