"""Request bodies: taking the messages out of one and putting others in, everything else the same objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold.core._json import string_of
from refold.core._native import as_json
from refold.errors import BadMessages
from refold.formats._base import get, json_text, put

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from refold.core.messages import Message, Path
    from refold.formats import Format

__all__ = ["RequestBody", "close_body", "loaded_in", "open_body", "system_text", "tools_text"]

_SAME: Any = object()


class RequestBody(Struct, frozen=True):
    """A request body, opened: its messages, the system prompt and tools apart from them, the model, the most
    tokens the answer may have, and the body itself (`rest`).
    """

    messages: list[Any]
    system: Any = None
    tools: Any = None
    model: str = ""
    max_output: int | None = None
    rest: Any = None


def open_body(format: Format, body: object) -> RequestBody:
    """Return a request body, opened.

    Raises:
        BadMessages: the body is no object, or holds no list of messages where the format keeps it.
    """
    position = format.body
    messages = get(body, position.messages)
    if isinstance(messages, str):  # OpenAI Responses: a prompt alone
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list):
        raise BadMessages(
            f"this body has no list {'.'.join(map(str, position.messages))!r}, where {format.name} keeps it"
        )
    model, limit = get(body, position.model), _first(body, position.max_output)
    return RequestBody(
        messages,
        _first(body, position.system),
        _first(body, position.tools),
        string_of(model),
        limit if isinstance(limit, int) else None,
        body,
    )


def close_body(format: Format, request: RequestBody, messages: Sequence[object], system: object = _SAME) -> Any:
    """Return the body with other messages, and another system prompt if one is given; itself where nothing differs."""
    body, position = request.rest, format.body
    if len(messages) != len(request.messages) or any(
        new is not old for new, old in zip(messages, request.messages, strict=True)
    ):
        body = put(body, position.messages, list(messages))
    if system is not _SAME and system is not request.system and position.system:
        there = next((path for path in position.system if get(body, path) is not None), position.system[0])
        body = put(body, there, system)
    return body


def system_text(system: object) -> str:
    """Return the words of a system prompt, whether a string, blocks, or an object with parts."""
    prompt: Any = as_json(system)
    match prompt:
        case str():
            return prompt
        case list():
            return "\n".join(text for text in map(system_text, prompt) if text)
        case {"parts": parts}:
            return system_text(parts)
        case {"text": str(text)}:
            return text
        case {"content": content}:
            return system_text(content)
        case None:
            return ""
        case _:
            return json_text(prompt)


def tools_text(tools: object, loaded: Container[str] = ()) -> str:
    """Return tool definitions as JSON text, for counting; nothing where there are none.

    A deferred definition (`defer_loading`) is not in the model's context before a search has loaded it
    (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool,
    https://developers.openai.com/api/docs/guides/tools-tool-search), so of those only the ones named in `loaded` are in
    the text; a namespace of OpenAI's keeps its name and description.
    """
    tools = as_json(tools)
    loaded_tools = _loaded(tools, loaded) if isinstance(tools, list) else tools
    return json_text(loaded_tools) if loaded_tools else ""


def loaded_in(messages: Iterable[Message]) -> frozenset[str]:
    """Return the names of the tools that parts of messages have brought into the context."""
    return frozenset(name for message in messages for part in message.opaques for name in part.loads)


def _loaded(tools: list[Any], loaded: Container[str]) -> list[Any]:
    """Return the definitions that are in the model's context."""
    definitions: list[Any] = []
    for tool in tools:
        if not isinstance(tool, dict):
            definitions.append(tool)
        elif isinstance(inner := tool.get("tools"), list):
            definitions.append({**tool, "tools": _loaded(inner, loaded)})
        elif not tool.get("defer_loading") or tool.get("name") in loaded:
            definitions.append(tool)
    return definitions


def _first(body: object, paths: Sequence[Path]) -> Any:
    return next((value for path in paths if (value := get(body, path)) is not None), None)
