"""Amazon Bedrock Converse: blocks named by their one key, all results of a batch in the next user message."""

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
from refold._rules.pairing import GroupPairing, ServerPairing
from refold._rules.reasoning import SealedReasoning
from refold._rules.role import Speaker
from refold._rules.spelling import Spelled
from refold._text.image_size import base64_image_size, image_size
from refold.core._json import Json, mapping, objects, string
from refold.core.messages import (
    Content,
    File,
    Image,
    Part,
    Path,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.transcript import canonical
from refold.core.view import FormatTraits
from refold.formats import _form_violations as form_violations
from refold.formats._base import (
    Body,
    arguments_of,
    arguments_text,
    blocks_text,
    get,
    json_text,
    opaque,
)
from refold.formats._blocks import Blocks

if TYPE_CHECKING:
    from typing import Literal

__all__ = ["FORMAT", "Bedrock"]

_KEYS = frozenset(
    {"toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent", "image", "document", "video", "audio",
     "citationsContent", "searchResult", "json", "toolAddition", "toolRemoval"}
)  # fmt: skip


class Bedrock(Blocks):
    """Converse API. A cache point is no part of what was said: it moves freely and is no content by itself."""

    name = "bedrock"
    volatile = frozenset({"cachePoint"})
    idle = frozenset({"cachePoint"})
    rules = (
        GroupPairing(together=True),
        ServerPairing(),
        Order(alternate=True, system_first=False),
        Opening(),
        SealedReasoning(),
        Speaker(("user", "assistant", "system")),
        WellFormed(form_violations.bedrock),
        Filled(),
        UniqueIds(together=True),
        JsonArguments(),
        Spelled(id="[a-zA-Z0-9_.:-]+", longest_id=64),
        CacheMarks(form_violations.bedrock_marks),
    )
    traits = FormatTraits(
        results_together=True, system_in_list=False, system_later=True, assistant_last=False, alternates=True
    )
    body = Body(
        system=(("system",),),
        tools=(("toolConfig",),),
        model=("modelId",),
        max_output=(("inferenceConfig", "maxTokens"),),
    )

    def identity(self, native: Any) -> bytes:
        """Return the bytes that say which message this is, cache points left out."""
        content = native.get("content")
        if any("cachePoint" in block for block in objects(content)):
            blocks = [block for block in content if "cachePoint" not in mapping(block)]
            native = {**native, "content": blocks}
        return canonical(native)

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        content = native.get("content")
        return any(
            "type" not in block and (not _KEYS.isdisjoint(block) or "text" in block) for block in objects(content)
        )

    def block(self, block: Any, at: Path) -> Part:
        """Return the part that a block holds."""
        match block:
            case {"text": str(text)}:
                return Text(text, at)
            case {"toolUse": {"name": str(name)} as use}:
                server = use.get("type") == "server_tool_use"
                return ToolCall(
                    string(use, "toolUseId"), name, arguments_text(use.get("input", {})), server=server, at=at
                )
            case {"toolResult": dict(result)}:
                content = self.contents(result.get("content"), (*at, "toolResult", "content"))
                failed = result.get("status") == "error"
                return ToolResult(string(result, "toolUseId"), content, "", failed, server=_by_server(result), at=at)
            case {"reasoningContent": dict(reasoning)}:
                readable = reasoning.get("reasoningText")
                if not isinstance(readable, dict):
                    return Reasoning("", True, opaque(reasoning, at).size, at)
                signature = string(readable, "signature")
                return Reasoning(string(readable, "text"), bool(signature), len(signature), at)
            case {"image": dict(image)}:
                return _image(image, at)
            case {"document": dict(file)}:
                return _file("document", file, at)
            case {"video": dict(file)}:
                return _file("video", file, at)
            case {"audio": dict(file)}:
                return _file("audio", file, at)
            case {"searchResult": {"content": list(content)} as result} if text := blocks_text(content):
                return File("document", "txt", len(text), string(result, "title"), text, at)
            case {"citationsContent": {"content": list(content)}}:  # what is cited is not read again
                return replace(opaque(block, at, "citationsContent"), text=blocks_text(content))
            case {"guardContent": {"text": {"text": str(text)}}}:
                return replace(opaque(block, at, "guardContent"), text=text)
            case {"toolAddition": _} | {"toolRemoval": _}:
                return replace(opaque(block, at, next(iter(block))), state=True)
            case dict() if len(block) == 1:
                return opaque(block, at, str(next(iter(block))))
            case _:
                return opaque(block, at)

    def content(self, block: Any, at: Path) -> Content:
        """Return what one block of a result's content holds; JSON is read as text."""
        if "json" in mapping(block):
            return Text(json_text(block["json"]), at)
        return super().content(block, at)

    def text_block(self, text: str, old: Any) -> Any:
        """Return words as a block, in place of an old one."""
        return {**old, "text": text} if "text" in mapping(old) else {"text": text}

    def call(self, call: ToolCall, old: Any) -> Any:
        """Return a call as a block, in place of an old one."""
        base = get(old, ("toolUse",)) or {}
        old_input = base.get("input")
        same_input = isinstance(old_input, dict | list) and arguments_text(old_input) == call.arguments
        new_input = old_input if same_input else arguments_of(call.arguments)
        return {**(old or {}), "toolUse": {**base, "toolUseId": call.call_id, "name": call.name, "input": new_input}}

    def result(self, result: ToolResult, old: Any) -> Any:
        """Return a result as a block, in place of an old one; the status stays."""
        base = get(old, ("toolResult",)) or {}
        root = len(result.at) + 2
        content = self.result_blocks(result.content, base.get("content"), root)
        block = {**base, "toolUseId": result.call_id, "content": content}
        return {**(old or {}), "toolResult": {**block, "status": "error"} if result.is_error else block}

    def holds_result(self, block: Json) -> bool:
        """Tell whether a block is a result that stands before everything else."""
        result = block.get("toolResult")
        return isinstance(result, dict) and not _by_server(result)

    def thinks(self, block: object) -> bool:
        """Tell whether a block is reasoning that must open its message."""
        return "reasoningContent" in mapping(block)


def _by_server(result: Json) -> bool:
    """Tell whether a tool of the provider's own gave a result, in the message of its call.

    Its type names the tool: nova_grounding_result, nova_code_interpreter_result, code_execution_tool_result.
    """
    kind = string(result, "type")
    return kind.endswith("_result") and kind != "tool_result"


def _image(image: Json, at: Path) -> Part:
    data = get(image, ("source", "bytes"))
    size = base64_image_size(data) if isinstance(data, str) else image_size(data) if isinstance(data, bytes) else None
    width, height = size or (0, 0)
    return Image(f"image/{string(image, 'format')}", _length(data), width, height, "", at)


def _file(kind: Literal["document", "audio", "video"], file: Json, at: Path) -> Part:
    text, data = get(file, ("source", "text")), get(file, ("source", "bytes"))
    words = text if isinstance(text, str) else blocks_text(get(file, ("source", "content")))
    return File(kind, string(file, "format"), _length(data) or len(words), string(file, "name"), words, at)


def _length(data: object) -> int:
    return len(data) * 3 // 4 if isinstance(data, str) else len(data) if isinstance(data, bytes) else 0


FORMAT = Bedrock()
