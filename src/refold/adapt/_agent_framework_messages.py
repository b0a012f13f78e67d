"""Messages of Agent Framework as items of the Responses API, one a content, and back what a plan made of them."""

from __future__ import annotations

import json
from copy import copy
from functools import partial
from typing import Any

from agent_framework import Content, Message

from refold.adapt._parts import placed, replaced, text_in

__all__ = ["items_of", "written"]


def items_of(message: Any) -> list[Any]:
    """Return a message as items of the Responses API, one a content."""
    return placed(message.contents, partial(_item, message.role))


def _item(role: str, content: Any) -> dict[str, Any]:
    match content.type:
        case "function_call":
            arguments = content.arguments
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments or {})
            return {"type": "function_call", "call_id": content.call_id, "name": content.name, "arguments": arguments}
        case "function_result":
            output = placed(content.items, _block) if content.items else content.result or ""
            return {"type": "function_call_output", "call_id": content.call_id, "output": output}
        case "text_reasoning":
            text = [{"type": "summary_text", "text": content.text or ""}]
            seal = content.protected_data or content.additional_properties.get("encrypted_content") or ""
            return {"type": "reasoning", "summary": text, "encrypted_content": seal}
        case str(kind) if kind.endswith("_tool_call"):
            return {"type": "program", "call_id": content.call_id, "code": str(content.to_dict())}
        case str(kind) if kind.endswith("_tool_result"):
            return {"type": "program_output", "call_id": content.call_id, "result": [_block(content)]}
        case "text":
            return {"role": role, "content": content.text}
        case _:
            return {"role": role, "content": [_block(content)]}


def _block(content: Any) -> dict[str, Any]:
    match content.type:
        case "text":
            return {"type": "input_text", "text": content.text}
        case "data" | "uri" if content.has_top_level_media_type("image"):
            return {"type": "input_image", "image_url": content.uri}
        case "data" | "uri":
            return {"type": "input_file", "file_url": content.uri}
        case _:
            return {"type": "other", "value": content.to_dict()}


def written(items: list[Any], message: Any) -> list[Any]:
    """Return the message that items hold now; of one that a plan made, the words."""
    if message is None:
        return [Message(items[0]["role"], [items[0]["content"]])]
    new = copy(message)
    new.contents = replaced(items, message.contents, partial(_item, message.role), _content)
    return [new]


def _content(item: dict[str, Any], content: Any) -> Any:
    """Return a content with what a plan made of its words; what is the provider's stays as it is."""
    if content is None:
        return Content.from_text(item["text"])
    new = copy(content)
    match content.type:
        case "function_call":
            new.arguments = item["arguments"]
        case "function_result":
            output = item["output"]
            blocks = [{"text": output}] if isinstance(output, str) else output
            new.items = replaced(blocks, content.items or (), _block, _content)
            new.result = "\n".join(each.text for each in new.items if each.type == "text")
        case "text" | "data" | "uri":
            text = text_in(item)
            if new.type == "text":
                new.text = text
            elif text is not None:
                return Content.from_text(text)
    return new
