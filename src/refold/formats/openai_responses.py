"""OpenAI Responses: the list `input`, where every item (words, a call, an output, reasoning) is one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

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
    same,
    string,
    words,
)
from refold.rules.arguments import JsonArguments
from refold.rules.content import Filled
from refold.rules.ids import UniqueIds
from refold.rules.pairing import Pairing
from refold.rules.reasoning import ReasoningBeforeItem

if TYPE_CHECKING:
    from refold.core.messages import MessageId

__all__ = ["FORMAT", "OpenAIResponses"]

_ROLES: dict[Any, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_ASKED = {"function": "arguments", "custom": "input", "local_shell": "action", "shell": "action"}
_ASKED |= {"apply_patch": "operation", "computer": "action"}  # where each kind of call keeps what it asks for
_SERVER = {"web_search": "action", "file_search": "queries", "code_interpreter": "code", "mcp": "arguments"}
_SERVER |= {"image_generation": "result"}  # calls that the provider answers in the item itself
_ANSWERED = {"mcp": "output", "file_search": "results", "code_interpreter": "outputs"}
_TYPES = {"custom": "custom_tool_call"}  # where a type is not kind plus "_call"
_BLOCKS = frozenset({"input_text", "input_image", "input_file", "output_text", "summary_text", "input_audio"})
_ITEMS = frozenset({"reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request"})


class OpenAIResponses(Lens):
    """Responses API. Items of unknown types and references are Opaque; a refusal is Opaque and stays as it is."""

    name = "openai-responses"
    rules = (Pairing(anywhere=True), ReasoningBeforeItem(), Filled(), UniqueIds(), JsonArguments())
    traits = Traits()
    body = Body(messages=("input",), system=(("instructions",),), max_output=(("max_output_tokens",),))

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that an item holds."""
        kind, said = native.get("type"), native.get("role")
        if isinstance(said, str) and kind in (None, "message"):
            content = native.get("content")
            parts: tuple[Part, ...] = _contents(content, ("content",))
            return Message(id, _ROLES.get(said, "user"), parts, None, native)
        if isinstance(kind, str) and kind.endswith("_call"):
            return Message(id, "assistant", _asked(native, kind), None, native)
        if isinstance(kind, str) and kind.endswith("_output") and (call_id := _id(native)):
            return Message(id, "tool", (_answer(native, kind, call_id),), None, native)
        role: Role = "user" if kind == "mcp_approval_response" else "assistant"
        part = _reasoning(native) if kind == "reasoning" else opaque(native, ())
        return Message(id, role, (part,), None, native)

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        kind, content = native.get("type"), native.get("content")
        if isinstance(kind, str) and (kind in _ITEMS or kind.endswith(("_call", "_call_output"))):
            return True
        if kind == "message" and isinstance(native.get("role"), str) and not isinstance(native.get("message"), dict):
            return True
        return isinstance(content, list) and any(
            isinstance(block, dict)
            and isinstance(inner := block.get("type"), str)
            and inner in _BLOCKS - {"input_audio"}
            for block in content
        )

    def render(self, part: Part, old: Any, at: Path) -> Any:
        """Return a part as a native value, in place of an old one."""
        match part:
            case Text(text=text) if isinstance(old, str) or (len(at) == 1 and old is None):
                return text
            case Text(text=text):
                return _text_block(text, old)
            case ToolCall():
                return _call(part, old if isinstance(old, dict) else {})
            case ToolResult():
                return _output(part, old if isinstance(old, dict) else {})
            case _ if old is not None:
                return old
            case _:
                return _text_block(words((part,)), None)

    def invent(self, message: Message) -> Any:
        """Return an item for a message that has none."""
        match message.parts:
            case (ToolCall() as call,):
                return _call(call, {})
            case (ToolResult() as result,):
                return _output(result, {})
            case _:
                role = "user" if message.role == "tool" else message.role
                parts = [part for part in message.parts if not isinstance(part, Reasoning)]
                return {"type": "message", "role": role, "content": words(parts)}

    def spread(self, message: Message) -> tuple[Message, ...]:
        """Return one message an item: the words, then each call and result."""
        if len(message.parts) < 2:
            return (message,)
        apart = [part for part in message.parts if isinstance(part, ToolCall | ToolResult)]
        said = tuple(part for part in message.parts if not isinstance(part, ToolCall | ToolResult))
        made = [replace(message, parts=(part,)) for part in apart]
        return tuple([replace(message, parts=said), *made] if said else made)

    def finish(self, native: Any, message: Message) -> Any:
        """Return an edited item with content where nothing is left, and its words in blocks of the speaker's type."""
        content = native.get("content")
        if "role" not in native or not isinstance(content, list):
            return native if content or "role" not in native else {**native, "content": EMPTY}
        kind = "output_text" if native["role"] == "assistant" else "input_text"
        blocks = [
            {**block, "type": kind} if isinstance(block, dict) and block.get("type") == "input_text" else block
            for block in content
        ]
        return {**native, "content": blocks or [{"type": kind, "text": EMPTY}]}

    def speaker(self, native: Any) -> str:
        """Return for whom an item speaks: words of users and assistants alone can be joined."""
        role = native.get("role")
        return role if role in ("user", "assistant") and native.get("type", "message") == "message" else ""

    def join(self, first: Any, second: Any) -> Any:
        """Return two items of one speaker as one."""
        old, new = first.get("content"), second.get("content")
        if isinstance(old, str) and isinstance(new, str):
            return {**first, "content": f"{old}\n\n{new}" if old and new else old or new}
        kind = "output_text" if first.get("role") == "assistant" else "input_text"
        return {**first, "content": [*_listed(old, kind), *_listed(new, kind)]}


def _contents(content: Any, at: Path) -> tuple[Content, ...]:
    if isinstance(content, str):
        return (Text(content, at),) if content else ()
    if isinstance(content, list):
        return tuple([_block(block, (*at, place)) for place, block in enumerate(content)])
    return () if content is None else (_block(content, at),)


def _block(block: Any, at: Path) -> Content:
    match block:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text, at)
        case {"type": "input_image" | "computer_screenshot"}:
            return _image(string(block, "image_url"), string(block, "detail"), at)
        case {"type": "input_file"}:
            return File("document", "", len(string(block, "file_data")) * 3 // 4, string(block, "filename"), at=at)
        case {"type": "input_audio", "input_audio": dict(audio)}:
            return File("audio", f"audio/{audio.get('format', '')}", len(string(audio, "data")) * 3 // 4, at=at)
        case _:
            return opaque(block, at)


def _image(url: str, detail: str, at: Path) -> Image:
    if not url.startswith("data:"):
        return Image(detail=detail, at=at)
    width, height = pixels_of_base64(url) or (0, 0)
    size = (len(url) - url.find(",") - 1) * 3 // 4
    return Image(url[5 : max(url.find(";"), 5)], size, width, height, detail, at)


def _id(native: dict[str, Any]) -> str:
    return string(native, "call_id") or string(native, "id")


def _stem(kind: str) -> str:
    stem = kind.removesuffix("_output").removesuffix("_call")
    return "custom" if stem == "custom_tool" else stem


def _asked(native: dict[str, Any], kind: str) -> tuple[Part, ...]:
    """Read a call: one that awaits an output of ours, or one that the provider answered in the item itself."""
    stem = _stem(kind)
    if stem in _SERVER and "call_id" not in native:
        asked = native.get(_SERVER[stem])
        name = string(native, "name") or stem
        call = ToolCall(
            string(native, "id"), name, "" if asked is None else arguments_text(asked), stem, server=True, at=()
        )
        held = native.get(_ANSWERED.get(stem, ""))
        if not held:
            return (call,)
        content = _contents(held, (_ANSWERED[stem],))
        return call, ToolResult(call.call_id, content, name, bool(native.get("error")), stem, True, (_ANSWERED[stem],))
    call_id = _id(native)
    if not call_id or (stem not in _ASKED and "call_id" not in native):
        return (opaque(native, ()),)
    key = _ASKED.get(stem, "arguments")
    asked = native.get(key)
    name = string(native, "name") or stem
    return (ToolCall(call_id, name, "" if asked is None else arguments_text(asked), stem),)


def _answer(native: dict[str, Any], kind: str, call_id: str) -> Part:
    output = native.get("output")
    failed = native.get("status") in ("failed", "incomplete")
    if isinstance(output, list) and _stem(kind) == "shell":
        content: list[Content] = []
        for place, chunk in enumerate(output):
            at: Path = ("output", place)
            said = [Text(text, (*at, key)) for key in ("stdout", "stderr") if (text := get(chunk, (key,)))]
            content.extend(said if all(isinstance(part.text, str) for part in said) else [opaque(chunk, at)])
        return ToolResult(call_id, tuple(content), "", failed, _stem(kind))
    return ToolResult(call_id, _contents(output, ("output",)), "", failed, _stem(kind))


def _reasoning(native: dict[str, Any]) -> Part:
    sealed = string(native, "encrypted_content")
    blocks = [block for key in ("summary", "content") if isinstance(held := native.get(key), list) for block in held]
    said = [string(block, "text") for block in blocks if isinstance(block, dict)]
    return Reasoning("\n".join(filter(None, said)), bool(sealed), len(sealed))


def _text_block(text: str, old: Any) -> dict[str, Any]:
    if isinstance(old, dict) and isinstance(kind := old.get("type"), str) and kind.endswith("_text"):
        return {**old, "text": text}
    return {"type": "input_text", "text": text}


def _call(call: ToolCall, old: dict[str, Any]) -> dict[str, Any]:
    stem = call.kind
    key = _ASKED.get(stem, "arguments")
    base = old or {"type": _TYPES.get(stem, f"{stem}_call")}
    made = {**base, "call_id": call.call_id} if stem != "local_shell" or "call_id" in base or not old else {**base}
    if stem in ("function", "custom") or "name" in base or stem not in _ASKED:
        made["name"] = call.name
    held = base.get(key)
    if held is not None and arguments_text(held) == call.arguments:
        return made
    if isinstance(held, str) or key in ("arguments", "input"):
        return {**made, key: call.arguments}
    return {**made, key: arguments_of(call.arguments)}


def _output(result: ToolResult, old: dict[str, Any]) -> dict[str, Any]:
    """Return an output item: a string, or blocks where pictures or unknown blocks stay."""
    stem = result.kind
    base = old or {"type": f"{_TYPES.get(stem, f'{stem}_call')}_output"}
    made = {**base} if "id" in base and "call_id" not in base else {**base, "call_id": result.call_id}
    held = base.get("output")
    if isinstance(held, list) and stem == "shell":
        chunk = held[0] if held and isinstance(held[0], dict) else {}
        return {**made, "output": [{**chunk, "stdout": words(result.content), "stderr": ""}]}
    if not isinstance(held, list) or all(isinstance(part, Text) and not part.at for part in result.content):
        return {**made, "output": words(result.content)}
    kept: list[Any] = []
    for part in result.content:
        block = get(base, part.at) if part.at else None
        if isinstance(block, dict) and same(part, _block(block, part.at)):
            kept.append(block)
        elif isinstance(part, Text) or block is None:
            kept.append(_text_block(words((part,)), block))
    return {**made, "output": kept or EMPTY}


def _listed(content: Any, kind: str) -> list[Any]:
    if isinstance(content, str):
        return [{"type": kind, "text": content}] if content else []
    return content if isinstance(content, list) else []


FORMAT = OpenAIResponses()
