"""Messages of Haystack as items of the Responses API, one a part, and what a plan made of them back in their parts."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

from haystack.dataclasses import (
    ChatMessage,
    ChatRole,
    FileContent,
    ImageContent,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolCallResult,
)
from haystack.tools import flatten_tools_or_toolsets

from refold.adapt._parts import placed, replaced, text_in

__all__ = ["items_of", "schemas_of", "written"]


def schemas_of(tools: Any) -> list[Any]:
    """Return the definitions of tools and toolsets."""
    return [tool.tool_spec for tool in flatten_tools_or_toolsets(tools)]


def items_of(message: ChatMessage) -> list[Any]:
    """Return a message as items of the Responses API, one a part."""
    return placed(message._content, partial(_item, message.role.value))


def _item(role: str, part: Any) -> dict[str, Any]:
    match part:
        case ToolCall(id=id, tool_name=name):
            arguments = json.dumps(part.arguments, ensure_ascii=False)
            return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}
        case ToolCallResult(result=result):
            output = result if isinstance(result, str) else placed(result, _block)
            return {"type": "function_call_output", "call_id": part.origin.id, "output": output}
        case ReasoningContent(reasoning_text=text, extra=extra):
            seal = json.dumps(extra, default=str) if extra else ""
            return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": seal}
        case TextContent(text=text):
            return {"role": role, "content": text}
        case _:
            return {"role": role, "content": [_block(part)]}


def _block(part: Any) -> dict[str, Any]:
    match part:
        case ImageContent():
            return {"type": "input_image", "image_url": f"data:{part.mime_type};base64,{part.base64_image}"}
        case FileContent():
            return {"type": "input_file", "filename": part.filename, "file_data": part.base64_data}
        case _:
            return {"type": "input_text", "text": part.text}


def written(items: list[Any], message: ChatMessage | None) -> list[ChatMessage]:
    """Return the message that items hold now; of one that a plan made, the words."""
    if message is None:
        return [ChatMessage(ChatRole(items[0]["role"]), [TextContent(items[0]["content"])])]
    return [replace(message, _content=replaced(items, message._content, partial(_item, message.role.value), _part))]


def _part(item: dict[str, Any], part: Any) -> Any:
    """Return a part with what a plan made of its words; what is the provider's stays as it is."""
    match part:
        case ToolCall():
            return replace(part, arguments=json.loads(item["arguments"]))
        case ToolCallResult(result=result):
            output = item["output"]
            return replace(part, result=output if isinstance(output, str) else replaced(output, result, _block, _part))
        case ReasoningContent():
            return part
    text = text_in(item)
    return part if text is None else TextContent(text)
