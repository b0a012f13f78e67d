"""Parts of OpenAI's chat messages, for the readers that put such messages together."""

from __future__ import annotations

import json

from refold.core._json import Json

__all__ = ["function_call", "json_text"]


def json_text(value: object) -> str:
    """Return a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def function_call(id: str, name: str, arguments: object) -> Json:
    """Return one entry of `tool_calls`; arguments that are a text stay as they are."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json_text(arguments)}}
