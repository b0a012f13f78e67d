"""Anthropic messages: blocks in user and assistant messages, all results of a batch in the next user message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold._rules.arguments import JsonArguments
from refold._rules.cache_marks import CacheMarks
from refold._rules.content import Filled
from refold._rules.form import WellFormed
from refold._rules.ids import UniqueIds
from refold._rules.opening import Opening
from refold._rules.order import Order
from refold._rules.pairing import GroupPairing, ResultsFirst, ServerPairing
from refold._rules.prefill import Prefill
from refold._rules.reasoning import SealedReasoning
from refold._rules.role import Speaker
from refold._rules.spelling import Spelled
from refold._text.image_size import base64_image_size
from refold.core._json import Json, listing, mapping, string
from refold.core.messages import (
    File,
    Image,
    Message,
    Opaque,
    Part,
    Path,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.view import FormatTraits
from refold.formats import _form_violations as form_violations
from refold.formats._base import (
    Body,
    arguments_of,
    arguments_text,
    blocks_text,
    content_text,
    get,
    opaque,
    text_block,
)
from refold.formats._blocks import Blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.messages import MessageId

__all__ = ["FORMAT", "Anthropic"]

_OURS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_listing",
     "compaction", "container_upload", "search_result", "tool_addition", "tool_removal", "fallback"}
)  # fmt: skip


class Anthropic(Blocks):
    """Messages API. A system message of ours becomes a user message in a `<system>` tag, never the system field."""

    name = "anthropic"
    text_alone = True
    volatile = frozenset({"cache_control"})
    rules = (
        GroupPairing(together=True),
        ServerPairing(),
        ResultsFirst(),
        Order(system_first=False),
        Opening(),
        SealedReasoning(),
        Speaker(("user", "assistant", "system")),
        WellFormed(form_violations.anthropic),
        Filled(),
        UniqueIds(together=True, everywhere=True),
        JsonArguments(),
        Spelled(id="[a-zA-Z0-9_-]+", longest_name=128),
        CacheMarks(form_violations.anthropic_marks),
        Prefill(),
    )
    traits = FormatTraits(
        results_together=True, system_in_list=False, system_later=True, assistant_last=False, alternates=True
    )
    body = Body(system=(("system",),), max_output=(("max_tokens",),))

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        for block in listing(native.get("content")):
            kind = mapping(block).get("type")
            if kind == "thinking" and "signature" not in block:  # Mistral and Cohere have blocks of this type as well
                continue
            if isinstance(kind, str) and (kind in _OURS or kind.endswith("_tool_result")):
                return True
            if kind in ("image", "document") and "source" in block:
                return True
        return False

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that a native object holds.

        A system message may only set options for a turn. One that the provider shows for a single turn (`clear_at`)
        holds no instruction that lasts: its words are Opaque. So is what stands before a compaction block, and of no
        size, for the provider does not read it.
        """
        message = super().read(native, id)
        newest = max(
            (position for position, part in enumerate(message.parts) if isinstance(part, Opaque) and part.anchor),
            default=0,
        )
        if newest:
            ignored = tuple(Opaque("", 0, part.at) for part in message.parts[:newest])
            return replace(message, parts=(*ignored, *message.parts[newest:]))
        if message.role == "system" and native.get("clear_at") == "next_user_message":
            return replace(
                message,
                parts=tuple(
                    Opaque("reminder", len(part.text), part.at, text=part.text) if isinstance(part, Text) else part
                    for part in message.parts
                ),
            )
        if not message.parts and isinstance(native.get("output_config"), dict):
            return replace(message, parts=(Opaque("output_config", 0, ("output_config",)),))
        return message

    def block(self, block: Any, at: Path) -> Part:
        """Return the part that a block holds."""
        kind = mapping(block).get("type")
        if not isinstance(kind, str):
            return opaque(block, at)
        if kind == "tool_result":
            content = self.contents(block.get("content"), (*at, "content"))
            return ToolResult(string(block, "tool_use_id"), content, "", block.get("is_error") is True, at=at)
        if kind.endswith("_tool_result"):
            return _server_result(block, at)
        reader = _READERS.get(kind)
        part = reader(block, at) if reader is not None else None
        return opaque(block, at) if part is None else part

    def text_block(self, text: str, old: object) -> Any:
        """Return words as a block, in place of an old one."""
        return text_block(text, old)

    def call(self, call: ToolCall, old: object) -> Any:
        """Return a call as a block, in place of an old one."""
        base = old if isinstance(old, dict) else {"type": "tool_use" if call.kind == "function" else call.kind}
        old_input = base.get("input")
        same_input = isinstance(old_input, dict | list) and arguments_text(old_input) == call.arguments
        new_input = old_input if same_input else arguments_of(call.arguments)
        return {**base, "id": call.call_id, "name": call.name, "input": new_input}

    def result(self, result: ToolResult, old: object) -> Any:
        """Return a result as a block, in place of an old one: a string, or blocks where there were blocks."""
        base = old if isinstance(old, dict) else {"type": "tool_result"}
        old_content = base.get("content")
        listed = isinstance(old_content, list)
        content = (
            self.result_blocks(result.content, old_content, len(result.at) + 1)
            if listed
            else content_text(result.content)
        )
        block = {**base, "tool_use_id": result.call_id, "content": content}
        return {**block, "is_error": True} if result.is_error else block

    def holds_result(self, block: Json) -> bool:
        """Tell whether a block is a result that stands before everything else."""
        return block.get("type") == "tool_result"

    def thinks(self, block: object) -> bool:
        """Tell whether a block is reasoning that must open its message."""
        return get(block, ("type",)) in ("thinking", "redacted_thinking")


def _read_text(block: Json, at: Path) -> Part | None:
    text = block.get("text")
    return Text(text, at) if isinstance(text, str) else None


def _read_call(block: Json, at: Path) -> Part | None:
    kind, name = block["type"], block.get("name")
    if not isinstance(name, str):
        return None
    server = kind != "tool_use"
    arguments = arguments_text(block.get("input", {}))
    return ToolCall(string(block, "id"), name, arguments, kind if server else "function", server, at)


def _server_result(block: Json, at: Path) -> Part:
    """Read a result that the provider gave itself; what it found is mostly encrypted and must stay as it is."""
    content, kind = block.get("content"), block["type"]
    parts = () if content is None else (replace(opaque(content, (*at, "content"), kind), loads=_references(content)),)
    failed = block.get("is_error") is True or str(get(content, ("type",))).endswith("_error")
    return ToolResult(string(block, "tool_use_id"), parts, "", failed, kind, True, at)


def _references(content: object) -> tuple[str, ...]:
    """Return the names of the tools that a search of the provider's has loaded."""
    references = get(content, ("tool_references",))
    names = (get(each, ("tool_name",)) for each in references) if isinstance(references, list) else ()
    return tuple(name for name in names if isinstance(name, str))


def _read_thinking(block: Json, at: Path) -> Part | None:
    text, signature = block.get("thinking"), string(block, "signature")
    return Reasoning(text, bool(signature), len(signature), at) if isinstance(text, str) else None


def _read_redacted(block: Json, at: Path) -> Part | None:
    return Reasoning("", True, len(string(block, "data")), at)


def _read_image(block: Json, at: Path) -> Part | None:
    source: Any = block.get("source")
    match source:
        case {"type": "base64", "data": str(data)}:
            width, height = base64_image_size(data) or (0, 0)
            return Image(string(source, "media_type"), len(data) * 3 // 4, width, height, "", at)
        case dict():
            return Image(at=at)
        case _:
            return None


def _read_document(block: Json, at: Path) -> Part | None:
    name, source = string(block, "title"), block.get("source")
    if not isinstance(source, dict):
        return None
    media_type, data = string(source, "media_type"), source.get("data", source.get("content"))
    match source.get("type"):
        case "text" | "content" if isinstance(data, str):
            return File("document", media_type, len(data), name, data, at)
        case "base64" if isinstance(data, str):
            return File("document", media_type, len(data) * 3 // 4, name, "", at)
        case "content":
            text = blocks_text(data)
            return File("document", media_type, len(text) or opaque(data, at).size, name, text, at)
        case _:
            return File("document", media_type, 0, name, "", at)


def _read_search_result(block: Json, at: Path) -> Part | None:
    text = blocks_text(block.get("content"))
    return File("document", "text/plain", len(text), string(block, "title"), text, at) if text else None


def _read_compaction(block: Json, at: Path) -> Part | None:
    """Read a compaction block; one without content is a compaction that failed, and nothing was dropped for it."""
    text, changes = string(block, "content"), block.get("tool_changes")
    loads = tuple(name for change in changes for name in _added(change)) if isinstance(changes, list) else ()
    return replace(opaque(block, at), state=bool(text), anchor=bool(text), text=text, loads=loads)


def _read_state(block: Json, at: Path) -> Part | None:
    return replace(opaque(block, at), state=True, loads=_added(block))


def _added(block: object) -> tuple[str, ...]:
    """Return the name of the tool that a block adds in the middle of the list; it may be deferred."""
    name = get(block, ("tool", "name"))
    return (name,) if isinstance(name, str) and get(block, ("type",)) == "tool_addition" else ()


def _read_reference(block: Json, at: Path) -> Part | None:
    name = string(block, "tool_name")
    return replace(opaque(block, at), loads=(name,)) if name else None


_READERS: dict[str, Callable[[Json, Path], Part | None]] = {
    "text": _read_text,
    "tool_use": _read_call,
    "server_tool_use": _read_call,
    "mcp_tool_use": _read_call,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "image": _read_image,
    "document": _read_document,
    "search_result": _read_search_result,
    "compaction": _read_compaction,
    "container_upload": _read_state,
    "tool_addition": _read_state,
    "tool_removal": _read_state,
    "tool_reference": _read_reference,
}
FORMAT = Anthropic()
