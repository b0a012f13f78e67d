"""Items of the OpenAI Responses API: how each kind is read, and how calls and outputs are written.

Theory of operation. An item is a message of one speaker. A call that we answer is an item, its output another of the
matching kind; a call that the provider answers is one item with both, but for hosted tool search and programs, which
are two. What holds state of the provider's is Opaque and marked: compaction items, approvals, references, updates of
tools and settings, containers. Sources: the request types of the openai SDK 3.57; the guides on compaction, tool
search, programmatic and asynchronous tool calling, MCP, code interpreter, image generation and computer use.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from refold._text.image_size import base64_image_size
from refold.core._json import Json, decoded, mapping, objects, string
from refold.core.messages import (
    Content,
    File,
    Image,
    Opaque,
    Part,
    Path,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from refold.formats._base import (
    EMPTY,
    arguments_text,
    content_text,
    get,
    is_unchanged,
    opaque,
)

__all__ = ["answer_value", "call_item", "contents", "output_item", "part_of_item", "restored", "text_block"]

Item = Json

# Where each kind of call has its arguments, those that we answer first.
_OURS = {"function": "arguments", "custom": "input", "local_shell": "action", "shell": "action"}
_OURS |= {"apply_patch": "operation", "computer": "action"}
_SERVER = {"web_search": "action", "file_search": "queries", "code_interpreter": "code", "mcp": "arguments"}
_SERVER |= {"image_generation": "revised_prompt"}
_ANSWERED = {"mcp": "output", "file_search": "results", "code_interpreter": "outputs", "image_generation": "result"}
_TYPES = {"custom": "custom_tool_call"}  # where a type is not kind plus "_call"

# What the provider keeps behind an item, and the speaker. Codex knows compaction items by two more names.
_STATE: dict[str, Role] = {
    "compaction": "assistant",
    "compaction_summary": "assistant",
    "context_compaction": "assistant",
    "compaction_trigger": "tool",
    "configuration_update": "system",
    "additional_tools": "system",
    "item_reference": "assistant",
    "mcp_list_tools": "assistant",
    "mcp_approval_request": "assistant",
    "mcp_approval_response": "tool",
}
# A picture of one transparent pixel: it stands where a field takes nothing but a picture.
PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
_SCREEN = {"type": "computer_screenshot", "image_url": PIXEL}


def part_of_item(native: Item) -> tuple[Role, tuple[Part, ...]]:
    """Return the speaker of an item that is no message, and what it holds."""
    kind = string(native, "type") or "item_reference"
    if kind in _STATE:
        return _STATE[kind], (_state(native, kind),)
    match kind:
        case "reasoning":
            return "assistant", (_reasoning(native),)
        case "tool_search_call":
            return "assistant", (_search(native),)
        case "tool_search_output":
            result = _search_result(native)
            return ("assistant" if result.server else "tool"), (result,)
        case "program":
            code = string(native, "code")
            return "assistant", (ToolCall(string(native, "call_id"), "program", code, "program", True),)
        case "program_output":
            content = contents(native.get("result"), ("result",))
            failed = native.get("status") == "incomplete"
            return "assistant", (ToolResult(string(native, "call_id"), content, "program", failed, "program", True),)
    if kind.endswith("_call"):
        return "assistant", _call(native, kind)
    if kind.endswith("_output") and (call_id := _id(native)):
        return "tool", (_answer(native, kind, call_id),)
    sealed = isinstance(native.get("encrypted_content"), str)
    return "assistant", (replace(opaque(native, ()), state=sealed),)


def contents(content: object, at: Path) -> tuple[Content, ...]:
    """Return what the content of a message or an output holds: a string, or blocks."""
    if isinstance(content, str):
        return (Text(content, at),) if content else ()
    if isinstance(content, list):
        return tuple([_block(block, (*at, position)) for position, block in enumerate(content)])
    return () if content is None else (_block(content, at),)


def text_block(text: str, old: Any) -> Any:
    """Return words as a block, in place of an old one."""
    match old:
        case {"type": str(kind)} if kind.endswith("_text"):
            return {**old, "text": text}
        case {"type": "logs" | "image"}:  # of the code interpreter
            return {"type": "logs", "logs": text}
        case {"type": "computer_screenshot"}:
            return old if old == _SCREEN else dict(_SCREEN)
        case _:
            return {"type": "input_text", "text": text}


def call_item(call: ToolCall, old: Item) -> Item:
    """Return the item of a call, in place of an old one."""
    stem = call.kind
    if old and (call.server or stem == "tool_search"):
        return old
    key = "actions" if "actions" in old else _OURS.get(stem, "arguments")
    base = old or {"type": _TYPES.get(stem, f"{stem}_call")}
    item = {**base, "call_id": call.call_id} if stem != "local_shell" or "call_id" in base or not old else {**base}
    if stem in ("function", "custom") or "name" in base or stem not in _OURS:
        item["name"] = call.name
    before = base.get(key)
    textual = key in ("arguments", "input")
    if before is not None and arguments_text(before) == call.arguments and (isinstance(before, str) or not textual):
        return item
    if isinstance(before, str) or textual:
        return {**item, key: call.arguments}
    arguments = decoded(call.arguments or "{}")
    return {**item, key: arguments if type(arguments) is type(before) or before is None else before}


def output_item(result: ToolResult, old: Item) -> Item:
    """Return an output item in the shape its kind allows: a string, blocks, chunks, a screenshot, tools."""
    stem = result.kind
    searched = {"type": "tool_search_output", "execution": "client", "status": "completed"}
    base = old or (searched if stem == "tool_search" else {"type": f"{_TYPES.get(stem, f'{stem}_call')}_output"})
    item = {**base} if "id" in base and "call_id" not in base else {**base, "call_id": result.call_id}
    before = base.get("output")
    match stem:
        case "computer":
            has_image = any(isinstance(part, Image) and part.at and not _pixel(part) for part in result.content)
            return {**item, "output": before if has_image and isinstance(before, dict) else dict(_SCREEN)}
        case "shell":
            return {**item, "output": [_chunk(before, content_text(result.content))]}
        case "tool_search":
            stays = any(isinstance(part, Opaque) for part in result.content)
            return {**item, "tools": base.get("tools", []) if stays else []}
        case "apply_patch" if not old:
            return {
                **item,
                "status": "failed" if result.is_error else "completed",
                "output": content_text(result.content),
            }
        case "local_shell" if not old:
            return {**item, "id": result.call_id, "output": content_text(result.content)}
    if not isinstance(before, list) or all(isinstance(part, Text) and not part.at for part in result.content):
        return {**item, "output": content_text(result.content)}
    blocks: list[Any] = []
    for part in result.content:
        block = get(base, part.at) if part.at else None
        if isinstance(block, dict) and is_unchanged(part, _block(block, part.at)):
            blocks.append(block)
        elif isinstance(part, Text) or block is None:
            blocks.append(text_block(content_text((part,)), block))
    return {**item, "output": blocks or EMPTY}


def answer_value(result: ToolResult, old: object) -> Any:
    """Return the answer inside an item of a call that the provider answers, in place of an old one."""
    match result.kind:
        case "code_interpreter":
            return [{"type": "logs", "logs": content_text(result.content)}]
        case "file_search":
            return [{"text": content_text(result.content)}]
        case "image_generation":
            return old if any(isinstance(part, Image) and not _pixel(part) for part in result.content) else None
        case _:
            return content_text(result.content)


def restored(native: Item) -> Item:
    """Return an edited item with the fields that its kind must have and that edits took away."""
    match native.get("type"):
        case "code_interpreter_call":
            return {"code": None, "outputs": None} | native
        case "image_generation_call" if "result" not in native:
            return {**native, "result": None}
        case "file_search_call" if "queries" not in native:
            return {**native, "queries": []}
        case "shell_call_output":
            chunks = native.get("output")
            if isinstance(chunks, list):
                full = [{"stdout": "", "stderr": ""} | each if isinstance(each, dict) else each for each in chunks]
                return {**native, "output": full}
            return native
        case "computer_call_output" if "output" not in native:
            return {**native, "output": dict(_SCREEN)}
        case str(kind) if kind.endswith("_call_output") and "output" not in native:
            return {**native, "output": EMPTY}
        case "mcp_call" if "arguments" not in native:
            return {**native, "arguments": ""}
        case _:
            return native


def _block(block: Any, at: Path) -> Content:
    match block:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text, at)
        case {"type": "logs", "logs": str(logs)}:
            return Text(logs, at)
        case {"type": "input_image" | "computer_screenshot"}:
            return _image(string(block, "image_url"), string(block, "detail"), at)
        case {"type": "image", "url": str(url)}:
            return _image(url, "", at)
        case {"type": "input_file"}:
            return File("document", "", len(string(block, "file_data")) * 3 // 4, string(block, "filename"), at=at)
        case {"type": "input_audio", "input_audio": dict(audio)}:
            return File("audio", f"audio/{audio.get('format', '')}", len(string(audio, "data")) * 3 // 4, at=at)
        case _:
            return opaque(block, at)


def _image(url: str, detail: str, at: Path) -> Image:
    if not url.startswith("data:"):
        return Image(detail=detail, at=at)
    width, height = base64_image_size(url) or (0, 0)
    size = (len(url) - url.find(",") - 1) * 3 // 4
    return Image(url[5 : max(url.find(";"), 5)], size, width, height, detail, at)


def _pixel(part: Image) -> bool:
    return part.width == part.height == 1


def _state(native: Item, kind: str) -> Opaque:
    """Read an item that holds state; of several lists of one MCP server's tools the newest counts."""
    part = replace(opaque(native, (), kind), state=True)
    match kind:
        case "compaction" | "compaction_summary" | "context_compaction":
            return replace(part, anchor=True, size=len(string(native, "encrypted_content")))
        case "compaction_trigger":
            return replace(part, last=True)
        case "mcp_list_tools":
            return replace(part, holds=string(native, "server_label"))
        case _:
            return part


def _reasoning(native: Item) -> Reasoning:
    sealed = string(native, "encrypted_content")
    texts = [string(block, "text") for key in ("summary", "content") for block in objects(native.get(key))]
    return Reasoning("\n".join(filter(None, texts)), bool(sealed), len(sealed))


def _search(native: Item) -> ToolCall:
    """Read a search for tools; a hosted one has no call id and is paired with its output by order."""
    call_id = string(native, "call_id")
    arguments = native.get("arguments")
    hosted = native.get("execution") == "server" or not call_id
    return ToolCall(
        call_id, "tool_search", "" if arguments is None else arguments_text(arguments), "tool_search", hosted
    )


def _search_result(native: Item) -> ToolResult:
    call_id = string(native, "call_id")
    hosted = native.get("execution") == "server" or not call_id
    tools = native.get("tools")
    names = tuple(_tool_names(tools))
    content = (replace(opaque(tools, ("tools",), "tools"), loads=names),) if tools else ()
    return ToolResult(call_id, content, "tool_search", False, "tool_search", hosted)


def _tool_names(tools: object) -> list[str]:
    """Return the names of tools, those inside namespaces too."""
    names: list[str] = []
    for tool in objects(tools):
        names += [name] if (name := string(tool, "name")) else []
        names += _tool_names(tool.get("tools"))
    return names


def _call(native: Item, kind: str) -> tuple[Part, ...]:
    """Read a call: one that awaits an output of ours, or one that the provider answered in the item itself."""
    stem = _stem(kind)
    if stem in _SERVER and "call_id" not in native:
        return _served(native, stem)
    call_id = _id(native)
    if not call_id or (stem not in _OURS and "call_id" not in native):
        return (opaque(native, ()),)
    arguments = native.get("actions") or native.get(_OURS.get(stem, "arguments"))
    return (
        ToolCall(
            call_id,
            string(native, "name") or stem,
            "" if arguments is None else arguments_text(arguments),
            stem,
            item=string(native, "id") if stem == "local_shell" else "",
            caller=string(mapping(native.get("caller")), "caller_id"),
            deferred=native.get("async") is True,
        ),
    )


def _served(native: Item, stem: str) -> tuple[Part, ...]:
    key, answered = _SERVER[stem], _ANSWERED.get(stem, "")
    arguments, results = native.get(key), native.get(answered)
    id, name = string(native, "id"), string(native, "name") or stem
    call = ToolCall(id, name, "" if arguments is None else arguments_text(arguments), stem, True)
    parts: tuple[Part, ...] = (call,)
    if container := string(native, "container_id"):
        part = Opaque("container", len(container), ("container_id",), state=True, holds=container)
        parts = (part, replace(call, at=(key,)))
    match stem, results:
        case "image_generation", str(base64) if base64:
            kind = string(native, "output_format") or "png"
            content: tuple[Content, ...] = (_image(f"data:image/{kind};base64,{base64}", "", (answered,)),)
        case "file_search", list(passages):
            content = tuple([_passage(each, (answered, position)) for position, each in enumerate(passages)])
        case _:
            content = contents(results, (answered,)) if results else ()
    if not content and (error := native.get("error")):
        content = (opaque(error, ("error",)),)
    failed = bool(native.get("error"))
    if not content:
        return parts
    return *parts, ToolResult(id, content, name, failed, stem, True, (answered,))


def _passage(passage: Any, at: Path) -> Content:
    return Text(passage["text"], (*at, "text")) if isinstance(get(passage, ("text",)), str) else opaque(passage, at)


def _answer(native: Item, kind: str, call_id: str) -> ToolResult:
    output, stem = native.get("output"), _stem(kind)
    failed = native.get("status") in ("failed", "incomplete")
    name = string(native, "name")
    if isinstance(output, list) and stem == "shell":
        content: list[Content] = []
        for position, chunk in enumerate(output):
            at: Path = ("output", position)
            texts = [Text(text, (*at, key)) for key in ("stdout", "stderr") if (text := get(chunk, (key,)))]
            content.extend(texts if all(isinstance(part.text, str) for part in texts) else [opaque(chunk, at)])
        return ToolResult(call_id, tuple(content), name, failed, stem)
    return ToolResult(call_id, contents(output, ("output",)), name, failed, stem)


def _chunk(output: object, text: str) -> Item:
    """Return one chunk of a shell's output; how the last command ended stays known."""
    chunks = objects(output)
    outcome = chunks[-1].get("outcome") if chunks else None
    return {"stdout": text, "stderr": "", "outcome": outcome or {"type": "exit", "exit_code": 0}}


def _id(native: Item) -> str:
    return string(native, "call_id" if "call_id" in native else "id")


def _stem(kind: str) -> str:
    stem = kind.removesuffix("_output").removesuffix("_call")
    return "custom" if stem == "custom_tool" else stem
