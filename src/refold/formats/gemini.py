"""Gemini: `contents` with `parts`; a call's response stands in the next content, paired by id or name and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold._rules.arguments import JsonArguments
from refold._rules.content import Filled
from refold._rules.form import WellFormed
from refold._rules.ids import UniqueIds
from refold._rules.opening import Opening
from refold._rules.order import Order
from refold._rules.pairing import GroupPairing
from refold._rules.reasoning import SealedReasoning
from refold._rules.role import Speaker
from refold._rules.turns import CallsAfterUser
from refold._text.image_size import base64_image_size, image_size
from refold.core._json import Json, listing, mapping, string
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
from refold.core.view import FormatTraits
from refold.formats import _form_violations as form_violations
from refold.formats._base import (
    Body,
    arguments_of,
    arguments_text,
    content_text,
    get,
    json_text,
    opaque,
    role_of,
)
from refold.formats._blocks import Blocks

if TYPE_CHECKING:
    from typing import Literal

    from refold.core.messages import MessageId

__all__ = ["FORMAT", "Gemini"]

_SIGNATURES = ("thoughtSignature", "thought_signature")
_LEFT_OUT = "[left out]"  # in place of a reference to a file that went without words in its place


class _FileText(Struct, frozen=True):
    """Words in place of a file of a function response, until the message is finished: such a list holds files alone."""

    text: str
    name: str


class Gemini(Blocks):
    """GenerateContent API, in the camel case of the wire and the snake case of the Python SDK.

    A thought signature is read as sealed reasoning at its own key inside the part it vouches for: that part must not be
    changed while it has the signature. A stream may end with an empty text that carries one; that part is reasoning
    alone (https://ai.google.dev/gemini-api/docs/thought-signatures). Calls that the provider answers itself
    (`toolCall`, `executableCode`) are server calls.
    """

    name = "gemini"
    key = "parts"
    model = "model"
    rules = (
        GroupPairing(together=True),
        Order(system_in_list=False),
        Opening(),
        SealedReasoning(first=False),
        Speaker(("user", "model", "tool", "function", "system"), optional=True),
        WellFormed(form_violations.gemini),
        Filled(spaces=True),
        UniqueIds(optional=True, together=True),
        JsonArguments(),
        CallsAfterUser(),
    )
    traits = FormatTraits(results_together=True, system_in_list=False, assistant_last=False, alternates=True)
    body = Body(
        messages=("contents",),
        system=(("systemInstruction",), ("system_instruction",), ("config", "system_instruction")),
        tools=(("tools",), ("config", "tools")),
        max_output=(("generationConfig", "maxOutputTokens"), ("config", "max_output_tokens")),
    )

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that a native object holds."""
        blocks, speaker = native.get("parts"), native.get("role")
        role: Role = "assistant" if speaker == "model" else "system" if speaker == "system" else "user"
        if not isinstance(blocks, list):
            parts = [] if blocks is None else [self.block(blocks, ("parts",))]
            return Message(id, role, tuple(parts), None, native)
        parts = []
        for position, block in enumerate(blocks):
            part = self.block(block, ("parts", position))
            parts.append(part)
            if not isinstance(part, Reasoning) and isinstance(block, dict):
                parts.extend(
                    Reasoning("", True, len(block[key]), ("parts", position, key)) for key in _signatures(block)
                )
        return Message(id, role_of(role, parts), tuple(parts), None, native)

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        return (
            "parts" in native
            and "content" not in native
            and native.get("role", "user") in ("user", "model", "tool", "function")
        )

    def speaker(self, native: Any) -> str:
        """Return for whom a native object speaks."""
        return "model" if native.get("role") == "model" else "user"

    def apart(self, first: object, second: object) -> bool:
        """Tell whether neighbors of one speaker stay apart: responses, and words of the user that begin a turn.

        Joined they would begin none, and the calls before them would need their signatures, as the current turn's do.
        """
        return _responses(first) > 0 and _responses(second) == 0

    def block(self, block: object, at: Path) -> Part:
        """Return the part that a block holds."""
        if isinstance(block, str):
            return Text(block, at)
        if not isinstance(block, dict):
            return opaque(block, at)
        if isinstance(text := block.get("text"), str):
            signatures = _signatures(block)
            if block.get("thought") is True or (signatures and not text):
                return Reasoning(text, bool(signatures), sum(len(block[key]) for key in signatures), at)
            return Text(text, at)
        key, value = _kind(block)
        match key:
            case "functionCall" if isinstance(name := value.get("name"), str):
                return ToolCall(string(value, "id"), name, arguments_text(value.get("args") or {}), at=at)
            case "functionResponse":
                return self._response(block, value, at)
            case "inlineData":
                return _blob(value, _detail(block), at)
            case "fileData":
                return _file_or_image(_media_type(value), 0, value, at)
            case "executableCode":
                return ToolCall(
                    string(value, "id"), "code_execution", string(value, "code"), "code_execution", server=True, at=at
                )
            case "codeExecutionResult":
                failed = value.get("outcome") not in (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED")
                output = value.get("output")
                position = (*at, _spelled(block, "codeExecutionResult", "code_execution_result"), "output")
                content = (Text(output, position),) if isinstance(output, str) and output else ()
                return ToolResult(string(value, "id"), content, "code_execution", failed, "code_execution", True, at)
            case "toolCall":
                kind = _tool_type(value)
                return ToolCall(string(value, "id"), kind, arguments_text(value.get("args") or {}), kind, True, at)
            case "toolResponse":
                kind = _tool_type(value)
                inner = _response_content(value, (*at, _spelled(block, "toolResponse", "tool_response")))
                return ToolResult(string(value, "id"), inner, kind, False, kind, True, at)
            case _:
                return opaque(block, at, next(iter(block), ""))

    def text_block(self, text: str, old: Any) -> Any:
        """Return words as a part, in place of an old one."""
        return {**old, "text": text} if "text" in mapping(old) else {"text": text}

    def render(self, part: Part, old: Any, at: Path) -> Any:
        """Return a part as a native value; words in place of a response object become `{"output": …}`.

        Words in place of a file of a function response move into the response when the message is finished.
        """
        if isinstance(part, Text) and at[-1:] == ("response",):
            return {"error" if "error" in (old or {}) else "output": part.text}
        if isinstance(part, Text) and _of_response(at):
            return _FileText(part.text, old.name if isinstance(old, _FileText) else _display_name(old))
        return super().render(part, old, at)

    def finish(self, native: Any, message: Message) -> Any:
        """Return an edited object whose function responses name no file that went."""
        native = super().finish(native, message)
        parts = native.get("parts")
        if not isinstance(parts, list):
            return native
        known = _file_names(message.native)
        settled = [_settled(block, known) for block in parts]
        if all(new is old for new, old in zip(settled, parts, strict=True)):
            return native
        return {**native, "parts": settled}

    def call(self, call: ToolCall, old: Any) -> Any:
        """Return a call as a part, in place of an old one."""
        key = _spelled(old, "functionCall", "function_call")
        base = get(old, (key,)) or {}
        old_arguments = base.get("args")
        new_arguments = (
            old_arguments
            if old_arguments is not None and arguments_text(old_arguments) == call.arguments
            else arguments_of(call.arguments)
        )
        named = {"id": call.call_id} if call.call_id else {}
        return {**(old or {}), key: {**base, **named, "name": call.name, "args": new_arguments}}

    def result(self, result: ToolResult, old: Any) -> Any:
        """Return a result as a part, in place of an old one; its words become the response object."""
        key = _spelled(old, "functionResponse", "function_response")
        base = get(old, (key,)) or {}
        named = {"id": result.call_id} if result.call_id else {}
        response = {**base, **named, "name": result.name or string(base, "name")}
        files = base.get("parts")
        stay = {
            part.at[-1]: part
            for part in result.content
            if _of_response(part.at) and not isinstance(part, Text) and isinstance(files, list)
        }
        content = [part for part in result.content if part.at not in {each.at for each in stay.values()}]
        if not base or tuple(content) != _response_content(base, (*result.at, key)):
            response["response"] = {"error" if result.is_error else "output": content_text(content)}
        response.pop("parts", None)
        if isinstance(files, list) and stay:
            response["parts"] = [block for position, block in enumerate(files) if position in stay]
        return {**(old or {}), key: response}

    def holds_result(self, block: Json) -> bool:
        """Tell whether a part is a response; those stand before everything else."""
        return "functionResponse" in block or "function_response" in block

    def _response(self, block: Json, value: Json, at: Path) -> Part:
        root = (*at, _spelled(block, "functionResponse", "function_response"))
        files = value.get("parts")
        inner = (
            [self.content(file, (*root, "parts", i)) for i, file in enumerate(files)] if isinstance(files, list) else []
        )
        failed = isinstance(response := value.get("response"), dict) and "error" in response
        return ToolResult(
            string(value, "id"), (*_response_content(value, root), *inner), string(value, "name"), failed, at=at
        )


def _response_content(holder: Json, root: Path) -> tuple[Content, ...]:
    """Return the words of a response: its only string, or the object as JSON."""
    response = holder.get("response")
    if response is None or response == {}:
        return ()
    if isinstance(response, dict) and len(response) == 1:
        key, text = next(iter(response.items()))
        if isinstance(text, str):
            return (Text(text, (*root, "response", key)),) if text else ()
    return (Text(json_text(response), (*root, "response")),)


def _responses(native: Any) -> int:
    parts = native.get("parts")
    return sum(
        get(part, (_spelled(part, "functionResponse", "function_response"),)) is not None for part in listing(parts)
    )


def _signatures(block: Json) -> list[str]:
    """Return the keys at which a part carries a thought signature."""
    return [key for key in _SIGNATURES if isinstance(block.get(key), str | bytes) and block[key]]


def _of_response(at: Path) -> bool:
    """Tell whether a path leads to a file inside a function response."""
    return len(at) > 3 and at[-2] == "parts"


def _display_name(file: object) -> str:
    """Return the name by which a function response refers to a file of its own."""
    _, value = _kind(file) if isinstance(file, dict) else ("", {})
    return string(value, "displayName") or string(value, "display_name")


def _file_names(native: object) -> frozenset[str]:
    """Return the names of all files of a message's function responses; another `$ref` is some tool's own JSON."""
    files = [
        file
        for block in listing(get(native, ("parts",)))
        if isinstance(listed := get(block, (_spelled(block, "functionResponse", "function_response"), "parts")), list)
        for file in listed
    ]
    return frozenset(filter(None, map(_display_name, files)))


def _settled(block: Any, known: frozenset[str]) -> Any:
    """Return a part whose function response holds only files in its list of files, and refers to none that went.

    `known` are the names of the files that the message had. The provider refuses a `$ref` without the file it names,
    and words in the list of files (https://ai.google.dev/gemini-api/docs/function-calling#multimodal).
    """
    key = _spelled(block, "functionResponse", "function_response")
    function = get(block, (key,))
    files, response = get(function, ("parts",)), get(function, ("response",))
    if not isinstance(function, dict) or (files is not None and not isinstance(files, list)):
        return block
    files = files or []
    words_of = {file.name: file.text for file in files if isinstance(file, _FileText)}
    stay = [file for file in files if not isinstance(file, _FileText)]
    named: set[str] = set()
    settled = _without_references(response, known - set(map(_display_name, stay)), words_of, named)
    for file in files:
        if isinstance(file, _FileText) and file.name not in named:
            settled = _with_text(settled, file.text)
    if settled is response and len(stay) == len(files) and (stay or "parts" not in function):
        return block
    response_part = {**function, "parts": stay}
    if settled is not None:
        response_part["response"] = settled
    if not stay:
        del response_part["parts"]
    return {**block, key: response_part}


def _without_references(value: Any, removed: frozenset[str], words_of: dict[str, str], named: set[str]) -> Any:
    """Return a response with words in place of each reference to a file that went; `named` collects these."""
    match value:
        case {"$ref": str(name)} if len(value) == 1:
            if name not in removed:
                return value
            named.add(name)
            return words_of.get(name, _LEFT_OUT)
        case dict():
            changed = {key: _without_references(inner, removed, words_of, named) for key, inner in value.items()}
            return changed if any(changed[key] is not inner for key, inner in value.items()) else value
        case list():
            listed = [_without_references(inner, removed, words_of, named) for inner in value]
            return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
        case _:
            return value


def _with_text(response: object, text: str) -> Json:
    """Return a response with words more: after its output, or next to the values of its own keys."""
    if not isinstance(response, dict) or not response:
        return {"output": text}
    key = next((key for key in ("output", "error") if key in response), next(iter(response)))
    if isinstance(old := response[key], str) and (key in ("output", "error") or len(response) == 1):
        return {**response, key: f"{old}\n{text}" if old else text}
    known = response.get("left_out")
    return {**response, "left_out": f"{known}\n{text}" if isinstance(known, str) else text}


def _tool_type(block: Json) -> str:
    return (string(block, "toolType") or string(block, "tool_type") or "tool").lower()


def _detail(block: Json) -> str:
    """Return how finely a picture is read, in the words of OpenAI: "low", "medium", "high", "ultra_high"."""
    level = get(block, ("mediaResolution", "level")) or get(block, ("media_resolution", "level"))
    return level.removeprefix("MEDIA_RESOLUTION_").lower() if isinstance(level, str) else ""


_KEYS = {
    "toolCall": "toolCall",
    "tool_call": "toolCall",
    "toolResponse": "toolResponse",
    "tool_response": "toolResponse",
    "functionCall": "functionCall",
    "function_call": "functionCall",
    "functionResponse": "functionResponse",
    "function_response": "functionResponse",
    "inlineData": "inlineData",
    "inline_data": "inlineData",
    "fileData": "fileData",
    "file_data": "fileData",
    "executableCode": "executableCode",
    "executable_code": "executableCode",
    "codeExecutionResult": "codeExecutionResult",
    "code_execution_result": "codeExecutionResult",
}


def _kind(block: Json) -> tuple[str, Json]:
    for key, value in block.items():
        if key in _KEYS and isinstance(value, dict):
            return _KEYS[key], value
    return "", {}


def _spelled(block: object, camel: str, snake: str) -> str:
    return snake if isinstance(block, dict) and snake in block else camel


def _media_type(blob: Json) -> str:
    return string(blob, "mimeType") or string(blob, "mime_type")


def _blob(blob: Json, detail: str, at: Path) -> Part:
    data, media_type = blob.get("data"), _media_type(blob)
    size = len(data) * 3 // 4 if isinstance(data, str) else len(data) if isinstance(data, bytes) else 0
    if not media_type.startswith("image/"):
        return _file_or_image(media_type, size, blob, at)
    size_in_pixels = (
        base64_image_size(data) if isinstance(data, str) else image_size(data) if isinstance(data, bytes) else None
    )
    width, height = size_in_pixels or (0, 0)
    return Image(media_type, size, width, height, detail, at)


def _file_or_image(media_type: str, size: int, file: Json, at: Path) -> Part:
    family = media_type.partition("/")[0]
    if family == "image":
        return Image(media_type, size, at=at)
    kind: Literal["document", "audio", "video"] = (
        "audio" if family == "audio" else "video" if family == "video" else "document"
    )
    return File(kind, media_type, size, string(file, "displayName"), at=at)


FORMAT = Gemini()
