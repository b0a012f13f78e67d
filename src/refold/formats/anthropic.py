"""Anthropic messages: blocks in user and assistant messages, all results of a batch in the next user message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core.messages import (
    Content,
    File,
    Image,
    Message,
    Part,
    Path,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.pixels import pixels_of_base64
from refold.core.view import Traits
from refold.formats.lens import (
    EMPTY,
    Body,
    Lens,
    arguments_of,
    arguments_text,
    get,
    opaque,
    results_first,
    role_of,
    same,
    tagged,
    words,
)
from refold.rules.pairing import Pairing

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.messages import MessageId

__all__ = ["FORMAT", "Anthropic"]

_CONTENT: tuple[str | int, ...] = ("content",)
_ROLES: dict[Any, Role] = {"assistant": "assistant", "system": "system"}
_OURS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})


class Anthropic(Lens):
    """Messages API. A system message of ours becomes a user message in a `<system>` tag, never the system field."""

    name = "anthropic"
    volatile = frozenset({"cache_control"})
    rules = (Pairing(together=True, server=True),)
    traits = Traits(results_together=True, system_in_list=False, assistant_last=False, alternates=True)
    body = Body(system=(("system",),), max_output=(("max_tokens",),))

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that a native object holds."""
        said, content = native.get("role"), native.get("content")
        role: Role = _ROLES.get(said, "user") if isinstance(said, str) else "user"
        if isinstance(content, str):
            return Message(id, role, (Text(content, _CONTENT),) if content else (), None, native)
        if not isinstance(content, list):
            return Message(id, role, () if content is None else (opaque(content, _CONTENT),), None, native)
        parts = [_block(block, ("content", place)) for place, block in enumerate(content)]
        return Message(id, role_of(role, parts), tuple(parts), None, native)

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        content = native.get("content")
        for block in content if isinstance(content, list) else ():
            kind = block.get("type") if isinstance(block, dict) else None
            if isinstance(kind, str) and (kind in _OURS or kind.endswith("_tool_result") or "cache_control" in block):
                return True
            if kind in ("image", "document") and "source" in block:
                return True
        return False

    def render(self, part: Part, old: Any, at: Path) -> Any:
        """Return a part as a native value, in place of an old one."""
        match part:
            case Text(text=text) if at[-1:] == _CONTENT and not isinstance(old, list):
                return text
            case Text(text=text):
                return _text_block(text, old)
            case ToolCall():
                return _call(part, old)
            case ToolResult():
                return _result(part, old)
            case _ if old is not None:
                return old
            case _:
                return _text_block(words((part,)), None)

    def invent(self, message: Message) -> Any:
        """Return a native object for a message that has none."""
        if message.role == "system":
            message = tagged(message)
        role = "assistant" if message.role == "assistant" else "user"
        if len(message.parts) == 1 and isinstance(part := message.parts[0], Text):
            return {"role": role, "content": part.text or EMPTY}
        parts = [part for part in message.parts if not isinstance(part, Reasoning)]
        blocks = [self.render(part, None, ("content", 0)) for part in parts]
        return {"role": role, "content": self._ordered(blocks) or EMPTY}

    def finish(self, native: Any, message: Message) -> Any:
        """Return an edited object with its results first, and content where nothing is left."""
        content = native.get("content")
        if isinstance(content, list):
            ordered = self._ordered(content) or [_text_block(EMPTY, None)]
            return native if ordered is content else {**native, "content": ordered}
        return native if content else {**native, "content": EMPTY}

    def join(self, first: Any, second: Any) -> Any:
        """Return two native objects of one speaker as one."""
        return {**first, "content": self._ordered([*_blocks(first), *_blocks(second)])}

    @staticmethod
    def _ordered(blocks: list[Any]) -> list[Any]:
        return results_first(blocks, lambda block: isinstance(block, dict) and block.get("type") == "tool_result")


def _blocks(native: Any) -> list[Any]:
    content = native.get("content")
    if isinstance(content, str):
        return [_text_block(content, None)] if content else []
    return content if isinstance(content, list) else []


def _block(block: Any, at: Path) -> Part:
    kind = block.get("type") if isinstance(block, dict) else None
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    part = reader(block, at) if reader is not None else None
    if part is None and isinstance(kind, str) and kind.endswith("_tool_result"):
        part = _server_result(block, at)
    return opaque(block, at) if part is None else part


def _read_text(block: dict[str, Any], at: Path) -> Part | None:
    text = block.get("text")
    return Text(text, at) if isinstance(text, str) else None


def _read_call(block: dict[str, Any], at: Path) -> Part | None:
    call_id, name = block.get("id"), block.get("name")
    if not isinstance(name, str):
        return None
    kind = block["type"]
    server = kind != "tool_use"
    arguments = arguments_text(block.get("input", {}))
    return ToolCall(
        call_id if isinstance(call_id, str) else "", name, arguments, kind if server else "function", server, at
    )


def _read_result(block: dict[str, Any], at: Path) -> Part | None:
    call_id = block.get("tool_use_id")
    content = _content(block.get("content"), (*at, "content"))
    return ToolResult(
        call_id if isinstance(call_id, str) else "", content, "", block.get("is_error") is True, "function", False, at
    )


def _server_result(block: dict[str, Any], at: Path) -> Part:
    """Read a result that the provider gave itself; what it found is mostly encrypted and must stay as it is."""
    call_id, content = block.get("tool_use_id"), block.get("content")
    inner: Path = (*at, "content")
    held: tuple[Content, ...] = () if content is None else (opaque(content, inner, block["type"]),)
    failed = block.get("is_error") is True or str(get(content, ("type",))).endswith("_error")
    return ToolResult(call_id if isinstance(call_id, str) else "", held, "", failed, block["type"], True, at)


def _content(content: Any, at: Path) -> tuple[Content, ...]:
    if isinstance(content, str):
        return (Text(content, at),) if content else ()
    if not isinstance(content, list):
        return () if content is None else (opaque(content, at),)
    found: list[Content] = []
    for place, block in enumerate(content):
        part = _block(block, (*at, place))
        found.append(part if isinstance(part, Content) else opaque(block, (*at, place)))
    return tuple(found)


def _read_thinking(block: dict[str, Any], at: Path) -> Part | None:
    text, signature = block.get("thinking"), block.get("signature")
    if not isinstance(text, str):
        return None
    size = len(signature) if isinstance(signature, str) else 0
    return Reasoning(text, bool(signature), size, at)


def _read_redacted(block: dict[str, Any], at: Path) -> Part | None:
    data = block.get("data")
    return Reasoning("", True, len(data) if isinstance(data, str) else 0, at)


def _read_image(block: dict[str, Any], at: Path) -> Part | None:
    held: Any = block.get("source")
    match held:
        case {"type": "base64", "data": str(data)} as source:
            width, height = pixels_of_base64(data) or (0, 0)
            return Image(_str(source.get("media_type")), len(data) * 3 // 4, width, height, "", at)
        case dict():
            return Image(at=at)
        case _:
            return None


def _read_document(block: dict[str, Any], at: Path) -> Part | None:
    name = _str(block.get("title"))
    held: Any = block.get("source")
    match held:
        case {"type": "text", "data": str(text)} as source:
            return File("document", _str(source.get("media_type")), len(text), name, text, at)
        case {"type": "base64", "data": str(data)} as source:
            return File("document", _str(source.get("media_type")), len(data) * 3 // 4, name, "", at)
        case {"type": "content", "content": content}:
            size = len(content) if isinstance(content, str) else opaque(content, at).size
            return File("document", "", size, name, content if isinstance(content, str) else "", at)
        case dict():
            return File("document", "", 0, name, "", at)
        case _:
            return None


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


_READERS: dict[str, Callable[[dict[str, Any], Path], Part | None]] = {
    "text": _read_text,
    "tool_use": _read_call,
    "server_tool_use": _read_call,
    "mcp_tool_use": _read_call,
    "tool_result": _read_result,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "image": _read_image,
    "document": _read_document,
}


def _text_block(text: str, old: Any) -> dict[str, Any]:
    if isinstance(old, dict):
        if old.get("type") == "text":
            return {**old, "text": text}
        if "cache_control" in old:
            return {"type": "text", "text": text, "cache_control": old["cache_control"]}
    return {"type": "text", "text": text}


def _call(call: ToolCall, old: Any) -> dict[str, Any]:
    kind = "tool_use" if call.kind == "function" else call.kind
    made = {"type": kind, "id": call.call_id, "name": call.name, "input": arguments_of(call.arguments)}
    if not isinstance(old, dict):
        return made
    if arguments_text(old.get("input", {})) == call.arguments:
        made["input"] = old.get("input", {})
    return {**old, **made}


def _result(result: ToolResult, old: Any) -> dict[str, Any]:
    base = old if isinstance(old, dict) else {}
    at = (*result.at, "content")
    content: Any = _result_content(result.content, base.get("content"), len(at))
    made = {**base, "type": "tool_result", "tool_use_id": result.call_id, "content": content}
    if result.is_error:
        made["is_error"] = True
    return made


def _result_content(content: tuple[Content, ...], old: Any, depth: int) -> Any:
    """Return a result's content: a string when it was one or is new and all words, else blocks."""
    blocks = isinstance(old, list)
    if not blocks:
        return words(content)
    kept: list[Any] = []
    for part in content:
        block = get(old, part.at[depth:]) if len(part.at) > depth else None
        if isinstance(block, dict) and same(part, _as_content(block)):
            kept.append(block)
        else:
            kept.append(_text_block(words((part,)), block))
    return kept or [_text_block(EMPTY, None)]


def _as_content(block: Any) -> Content | None:
    part = _block(block, ())
    return part if isinstance(part, Content) else None


FORMAT = Anthropic()
