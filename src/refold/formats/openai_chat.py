"""OpenAI chat completions: the list `messages`, with calls next to the content and one message per result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from refold._rules.arguments import JsonArguments
from refold._rules.content import Filled
from refold._rules.form import WellFormed
from refold._rules.ids import UniqueIds
from refold._rules.pairing import GroupPairing
from refold._rules.role import Speaker
from refold._rules.spelling import Spelled
from refold._text.image_size import base64_image_size
from refold.core._json import Json, listing, mapping, objects, string, string_of
from refold.core.messages import (
    OLLAMA,
    Content,
    File,
    Image,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.view import FormatTraits
from refold.formats import _form_violations as form_violations
from refold.formats._base import (
    EMPTY,
    Body,
    Lens,
    arguments_of,
    arguments_text,
    content_text,
    get,
    is_unchanged,
    is_words,
    opaque,
    text_block,
)

if TYPE_CHECKING:
    from refold.core.messages import MessageId, Path

__all__ = ["FORMAT", "OpenAIChat"]

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_REASONING = ("reasoning_content", "reasoning", "thinking")  # vendors' readable thinking, in a field by the content
_SEALED = ("reasoning_details", "thinking_blocks")
_OTHER = ("refusal", "audio")
_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
_CONTENT: tuple[str | int, ...] = ("content",)


class OpenAIChat(Lens):
    """Chat completions, and Ollama's own messages. A refusal is Opaque: it is the model's word on a request."""

    name = "openai-chat"
    volatile = frozenset({"cache_control"})
    rules = (
        GroupPairing(),
        Speaker(("system", "developer", "user", "assistant", "tool"), known_only=False),
        WellFormed(form_violations.openai_chat),
        Filled(blank_with_calls=True, reasoning_alone=False),
        UniqueIds(optional=True),
        JsonArguments(),
        Spelled(longest_id=40),
    )
    traits = FormatTraits(flags_errors=False)
    body = Body(max_output=(("max_completion_tokens",), ("max_tokens",)))

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that a native object holds."""
        role = _ROLES.get(string(native, "role"), "user")
        content = native.get("content")
        if role == "tool":
            contents = _content(content)
            result = ToolResult(
                string(native, "tool_call_id"),
                tuple(contents),  # type: ignore[arg-type] # results hold no calls
                string(native, "name") or string(native, "tool_name"),
                native.get("is_error") is True,
                OLLAMA if "tool_name" in native else "function",
            )
            return Message(id, role, (result,), None, native)
        if type(content) is str and len(native) == 2:
            return Message(id, role, (Text(content, _CONTENT),) if content else (), None, native)
        parts: list[Part] = _thinking(native) if role == "assistant" else []
        parts.extend(_spoken(native, content) if role == "assistant" else _content(content))
        if role == "assistant":
            parts.extend(opaque(native[key], (key,), key) for key in _OTHER if native.get(key))
        images = listing(native.get("images"))  # of Ollama's users, and those that OpenRouter's models draw
        parts.extend(_block(image, ("images", position)) for position, image in enumerate(images))
        if role == "assistant":
            parts.extend(_calls(native))
        return Message(id, role, tuple(parts), None, native)

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        if "tool_calls" in native or "tool_call_id" in native or "function_call" in native:
            return "type" not in native
        if native.get("role") in ("tool", "function") and "content" in native:
            return True
        return any(string(block, "type") in _BLOCKS for block in objects(native.get("content")))

    def render(self, part: Part, old: object, at: Path) -> Any:
        """Return a part as a native value, in place of an old one."""
        match part:
            case Text(text=text) | Reasoning(text=text) if len(at) == 1 or is_words(old, at):
                return text if isinstance(part, Text) or isinstance(old, str) else old
            case Text(text=text):
                return text_block(text, old)
            case ToolCall():
                return _function(part, old) if at == ("function_call",) else _call(part, old)
            case ToolResult(call_id=call_id):
                old = old if isinstance(old, dict) else {"role": "tool"}
                named = {"tool_name" if part.kind == OLLAMA else "name": part.name} if part.name else {}
                key = {"tool_call_id": call_id} if call_id or "tool_call_id" in old else named
                return {**old, **key, "content": _result(part, old)}
            case _ if old is not None:
                return old
            case _:
                return text_block(content_text((part,)), None)

    def invent(self, message: Message) -> Any:
        """Return a native object for a message that has none."""
        for part in message.parts:
            if isinstance(part, ToolResult):
                who = {"role": "tool"} if part.call_id or part.kind == OLLAMA else {"role": "function"}
                return self.render(part, who, ())
        spoken = [part for part in message.parts if not isinstance(part, ToolCall | Reasoning)]
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if not calls:
            return {"role": message.role, "content": content_text(spoken)}
        content = content_text(spoken) if spoken else None
        if len(calls) == 1 and not calls[0].call_id and calls[0].kind != OLLAMA:
            return {"role": "assistant", "content": content, "function_call": _function(calls[0], None)}
        return {"role": "assistant", "content": content, "tool_calls": [_call(call, None) for call in calls]}

    def spread(self, message: Message) -> tuple[Message, ...]:
        """Return one message a result."""
        results = message.results
        if len(results) + (len(message.parts) > len(results)) < 2:
            return (message,)
        rest = tuple(part for part in message.parts if part not in results)
        messages = tuple(Message(message.id, "tool", (result,), message.note) for result in results)
        return (*messages, Message(message.id, "user", rest, message.note)) if rest else messages

    def speaker(self, native: Any) -> str:
        """Return for whom a native object speaks: users and assistants alone can be joined."""
        role = native.get("role")
        return role if role in ("user", "assistant") and "function_call" not in native else ""

    def join(self, first: Any, second: Any) -> Any:
        """Return two native objects of one speaker as one: words as one string where both are strings."""
        old, new = first.get("content"), second.get("content")
        if isinstance(old, str) and isinstance(new, str):
            content: Any = f"{old}\n\n{new}" if old and new else old or new
        else:
            content = [*_listed(old), *_listed(new)] or None
        joined = {**second, **first, "content": content}
        calls = [*(first.get("tool_calls") or ()), *(second.get("tool_calls") or ())]
        return {**joined, "tool_calls": calls} if calls else joined

    def finish(self, native: Any, message: Message) -> Any:
        """Return an edited object with content where nothing else is left."""
        calls = native.get("tool_calls")
        if calls == []:
            native = {key: value for key, value in native.items() if key != "tool_calls"}
        if isinstance(images := native.get("images"), list):  # no words among pictures
            native = {**native, "images": [image for image in images if get(image, ("type",)) != "text"]}
        if native.get("content") or calls or any(native.get(key) for key in ("function_call", "images", *_OTHER)):
            return native if "content" in native else {**native, "content": None}
        return {**native, "content": EMPTY}


def _content(content: object) -> list[Part]:
    if isinstance(content, str):
        return [Text(content, _CONTENT)] if content else []
    if isinstance(content, list):
        return [_block(block, ("content", position)) for position, block in enumerate(content)]
    return [] if content is None else [opaque(content, _CONTENT)]


def _spoken(native: Json, content: object) -> list[Part]:
    """Read what a model says: Cohere's plan of its calls, thinking as Mistral and Cohere write it, and all others."""
    parts: list[Part] = [Text(plan, ("tool_plan",))] if (plan := string(native, "tool_plan")) else []
    if not isinstance(content, list):
        return [*parts, *_content(content)]
    calls = bool(native.get("tool_calls"))
    for position, block in enumerate(content):
        at: Path = ("content", position)
        match block:
            case {"type": "thinking", "thinking": str(words)}:
                parts.append(Reasoning(words, calls, at=at))
            case {"type": "thinking", "thinking": list(chunks)}:
                parts.append(Reasoning("\n".join(string(chunk, "text") for chunk in objects(chunks)), calls, at=at))
            case _:
                parts.append(_block(block, at))
    return parts


def _block(block: object, at: Path) -> Content:
    match block:
        case str(data) if at[0] == "images":  # Ollama's: base64 without a name of its type
            width, height = base64_image_size(data) or (0, 0)
            return Image("", len(data) * 3 // 4, width, height, "", at)
        case {"type": "text", "text": str(text)}:
            return Text(text, at)
        case {"type": "image_url", "image_url": dict(image)}:
            return _image(string(image, "url"), string(image, "detail"), at)
        case {"type": "image_url", "image_url": str(link)}:
            return _image(link, "", at)
        case {"type": "input_audio", "input_audio": {"data": str(data)} as audio}:
            return File("audio", f"audio/{audio.get('format', '')}", len(data) * 3 // 4, at=at)
        case {"type": "video_url", "video_url": {"url": str(link)}}:
            return _recording("video", link, at)
        case {"type": "audio_url", "audio_url": {"url": str(link)}}:
            return _recording("audio", link, at)
        case {"type": "document", "document": {"data": str() | dict() as data}}:  # of a tool's output, to Cohere
            return Text(arguments_text(data), at)
        case {"type": "file", "file": dict(file)}:
            return File("document", "", len(string(file, "file_data")) * 3 // 4, string(file, "filename"), at=at)
        case _:
            return opaque(block, at)


def _recording(kind: Literal["audio", "video"], link: str, at: Path) -> File:
    """Read a recording as OpenRouter, vLLM and Qwen take it."""
    inline = link.startswith("data:")
    media = link[5 : max(link.find(";"), 5)] if inline else ""
    return File(kind, media, (len(link) - link.find(",") - 1) * 3 // 4 if inline else 0, at=at)


def _listed(content: object) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return listing(content)


def _image(url: str, detail: str, at: Path) -> Image:
    if not url.startswith("data:"):
        return Image("", 0, 0, 0, detail, at)
    width, height = base64_image_size(url) or (0, 0)
    start = url.find(",") + 1
    return Image(url[5 : max(url.find(";"), 5)], (len(url) - start) * 3 // 4, width, height, detail, at)


def _thinking(native: Json) -> list[Part]:
    """Read thinking; with calls its words must be sent back as well (https://api-docs.deepseek.com/guides/thinking_mode).

    What is sealed holds the readable words once more, which are not counted twice.
    """
    parts: list[Part] = []
    calls = bool(native.get("tool_calls"))
    for key in _REASONING:
        thought = native.get(key)
        if thought and isinstance(thought, str):
            parts.append(Reasoning(thought, calls, at=(key,)))
    readable = max((len(part.text) for part in parts if isinstance(part, Reasoning)), default=0)
    sizes = [(key, opaque(native[key], ()).size) for key in _SEALED if native.get(key)]
    return [*parts, *(Reasoning(sealed=True, size=max(size - readable, 0), at=(key,)) for key, size in sizes)]


def _calls(native: Json) -> list[Part]:
    parts: list[Part] = []
    for position, call in enumerate(listing(native.get("tool_calls"))):
        at: Path = ("tool_calls", position)
        match call:
            case {"function": {"name": str(name)} as function}:
                call_id, arguments = call.get("id"), function.get("arguments", "")
                kind = OLLAMA if isinstance(arguments, dict) and "type" not in call else "function"
            case {"type": "custom", "custom": {"name": str(name)} as custom}:
                call_id, arguments = call.get("id"), custom.get("input", "")
                kind = "custom"
            case _:
                parts.append(opaque(call, at))
                continue
        text = arguments_text(arguments)
        parts.append(ToolCall(string_of(call_id), name, text, kind, False, at))
    function_call: Any = native.get("function_call")
    match function_call:
        case {"name": str(name)} as function:
            parts.append(ToolCall("", name, arguments_text(function.get("arguments", "")), at=("function_call",)))
        case None:
            pass
        case other:
            parts.append(opaque(other, ("function_call",)))
    return parts


def _call(call: ToolCall, old: object) -> Json:
    base = mapping(old)
    if call.kind == "custom":
        inner = {**mapping(base.get("custom")), "name": call.name, "input": call.arguments}
        return {**base, "id": call.call_id, "type": "custom", "custom": inner}
    if call.kind == OLLAMA:
        function = {**mapping(base.get("function")), "name": call.name, "arguments": arguments_of(call.arguments)}
        return {**base, **({"id": call.call_id} if call.call_id else {}), "function": function}
    fields = {"type": string(base, "type") or "function", "function": _function(call, base.get("function"))}
    return {**base, "id": call.call_id, **fields}


def _function(call: ToolCall, old: object) -> Json:
    return {**mapping(old), "name": call.name, "arguments": call.arguments}


def _result(result: ToolResult, old: Json) -> Any:
    """Return a result's content: a string when it is all words, blocks where pictures or unknown blocks stay."""
    content = result.content
    if not isinstance(old.get("content"), list):
        return content_text(content)
    blocks: list[Any] = []
    for part in content:
        block = get(old, part.at) if part.at else None
        if block is not None and is_unchanged(part, _block(block, part.at)):
            blocks.append(block)
        elif isinstance(part, Text):
            blocks.append(text_block(part.text, block))
        elif text := content_text((part,)):
            blocks.append(text_block(text, None))
    return blocks or EMPTY


FORMAT = OpenAIChat()
