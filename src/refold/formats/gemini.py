"""Gemini: `contents` with `parts`; a call's response stands in the next content, paired by id or name and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core.messages import Content, File, Image, Message, Part, Path, Reasoning, Role, Text, ToolCall, ToolResult
from refold.core.pixels import pixels_of_base64
from refold.core.view import Traits
from refold.formats.blocks import Blocks
from refold.formats.lens import Body, arguments_of, arguments_text, get, json_text, opaque, role_of, string, words
from refold.rules.content import Filled
from refold.rules.ids import UniqueIds
from refold.rules.opening import Opening
from refold.rules.order import Order
from refold.rules.pairing import Pairing
from refold.rules.reasoning import SealedReasoning

if TYPE_CHECKING:
    from typing import Literal

    from refold.core.messages import MessageId

__all__ = ["FORMAT", "Gemini"]

_SIGNATURES = ("thoughtSignature", "thought_signature")


class Gemini(Blocks):
    """GenerateContent API, in the camel case of the wire and the snake case of the Python SDK.

    A thought signature is read as sealed reasoning at its own key inside the part it vouches for: that part must not be
    changed, and goes only with its message.
    """

    name = "gemini"
    key = "parts"
    model = "model"
    rules = (
        Pairing(together=True),
        Order(system_in_list=False),
        Opening(),
        SealedReasoning(first=False),
        Filled(),
        UniqueIds(optional=True, together=True),
    )
    traits = Traits(results_together=True, system_in_list=False, assistant_last=False, alternates=True)
    body = Body(
        messages=("contents",),
        system=(("systemInstruction",), ("system_instruction",), ("config", "system_instruction")),
        tools=(("tools",), ("config", "tools")),
        max_output=(("generationConfig", "maxOutputTokens"), ("config", "max_output_tokens")),
    )

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that a native object holds."""
        held, said = native.get("parts"), native.get("role")
        role: Role = "assistant" if said == "model" else "system" if said == "system" else "user"
        if not isinstance(held, list):
            parts = [] if held is None else [self.block(held, ("parts",))]
            return Message(id, role, tuple(parts), None, native)
        parts = []
        for place, block in enumerate(held):
            part = self.block(block, ("parts", place))
            parts.append(part)
            if not isinstance(part, Reasoning) and isinstance(block, dict):
                parts.extend(
                    Reasoning("", True, len(block[key]), ("parts", place, key))
                    for key in _SIGNATURES
                    if isinstance(block.get(key), str | bytes)
                )
        return Message(id, role_of(role, parts), tuple(parts), None, native)

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        return (
            "parts" in native
            and "content" not in native
            and native.get("role", "user") in ("user", "model", "function")
        )

    def speaker(self, native: Any) -> str:
        """Return for whom a native object speaks."""
        return "model" if native.get("role") == "model" else "user"

    def block(self, block: Any, at: Path) -> Part:
        """Return the part that a block holds."""
        if isinstance(block, str):
            return Text(block, at)
        if not isinstance(block, dict):
            return opaque(block, at)
        if isinstance(text := block.get("text"), str):
            if block.get("thought") is True:
                size = sum(len(block[key]) for key in _SIGNATURES if isinstance(block.get(key), str | bytes))
                return Reasoning(text, bool(size), size, at)
            return Text(text, at)
        key, held = _kind(block)
        match key:
            case "functionCall" if isinstance(name := held.get("name"), str):
                return ToolCall(string(held, "id"), name, arguments_text(held.get("args") or {}), at=at)
            case "functionResponse":
                return self._response(block, held, at)
            case "inlineData":
                return _blob(held, at)
            case "fileData":
                return _named(_media(held), 0, held, at)
            case "executableCode":
                return ToolCall("", "code_execution", string(held, "code"), "code_execution", server=True, at=at)
            case "codeExecutionResult":
                failed = held.get("outcome") not in (None, "OUTCOME_OK", "OUTCOME_UNSPECIFIED")
                output = held.get("output")
                place = (*at, _spelled(block, "codeExecutionResult", "code_execution_result"), "output")
                content = (Text(output, place),) if isinstance(output, str) and output else ()
                return ToolResult("", content, "code_execution", failed, "code_execution", True, at)
            case _:
                return opaque(block, at, next(iter(block), ""))

    def text_block(self, text: str, old: Any) -> Any:
        """Return words as a part, in place of an old one."""
        return {**old, "text": text} if isinstance(old, dict) and "text" in old else {"text": text}

    def render(self, part: Part, old: Any, at: Path) -> Any:
        """Return a part as a native value; words in place of a response object become `{"output": …}`."""
        if isinstance(part, Text) and at[-1:] == ("response",):
            return {"error" if "error" in (old or {}) else "output": part.text}
        return super().render(part, old, at)

    def call(self, call: ToolCall, old: Any) -> Any:
        """Return a call as a part, in place of an old one."""
        key = _spelled(old, "functionCall", "function_call")
        base = get(old, (key,)) or {}
        held = base.get("args")
        given = held if held is not None and arguments_text(held) == call.arguments else arguments_of(call.arguments)
        named = {"id": call.call_id} if call.call_id else {}
        return {**(old or {}), key: {**base, **named, "name": call.name, "args": given}}

    def result(self, result: ToolResult, old: Any) -> Any:
        """Return a result as a part, in place of an old one; its words become the response object."""
        key = _spelled(old, "functionResponse", "function_response")
        base = get(old, (key,)) or {}
        named = {"id": result.call_id} if result.call_id else {}
        made = {**base, **named, "name": result.name or string(base, "name")}
        said = [part for part in result.content if part.at[-2:-1] != ("parts",)]
        if not base or tuple(said) != _said(base, (*result.at, key)):
            made["response"] = {"error" if result.is_error else "output": words(said)}
        if isinstance(held := base.get("parts"), list):
            stay = {part.at[-1] for part in result.content if part.at[-2:-1] == ("parts",)}
            made["parts"] = [block for place, block in enumerate(held) if place in stay]
        return {**(old or {}), key: made}

    def holds_result(self, block: dict[str, Any]) -> bool:
        """Tell whether a part is a response; those stand before everything else."""
        return "functionResponse" in block or "function_response" in block

    def _response(self, block: dict[str, Any], held: dict[str, Any], at: Path) -> Part:
        root = (*at, _spelled(block, "functionResponse", "function_response"))
        files = held.get("parts")
        inner = (
            [self.content(file, (*root, "parts", i)) for i, file in enumerate(files)] if isinstance(files, list) else []
        )
        failed = isinstance(response := held.get("response"), dict) and "error" in response
        return ToolResult(string(held, "id"), (*_said(held, root), *inner), string(held, "name"), failed, at=at)


def _said(held: dict[str, Any], root: Path) -> tuple[Content, ...]:
    """Return the words of a response: its only string, or the object as JSON."""
    response = held.get("response")
    if response is None or response == {}:
        return ()
    if isinstance(response, dict) and len(response) == 1:
        key, value = next(iter(response.items()))
        if isinstance(value, str):
            return (Text(value, (*root, "response", key)),) if value else ()
    return (Text(json_text(response), (*root, "response")),)


_KEYS = {
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


def _kind(block: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    for key, value in block.items():
        if key in _KEYS and isinstance(value, dict):
            return _KEYS[key], value
    return "", {}


def _spelled(block: Any, camel: str, snake: str) -> str:
    return snake if isinstance(block, dict) and snake in block else camel


def _media(held: dict[str, Any]) -> str:
    return string(held, "mimeType") or string(held, "mime_type")


def _blob(held: dict[str, Any], at: Path) -> Part:
    data, media_type = held.get("data"), _media(held)
    size = len(data) * 3 // 4 if isinstance(data, str) else len(data) if isinstance(data, bytes) else 0
    if not media_type.startswith("image/"):
        return _named(media_type, size, held, at)
    width, height = (pixels_of_base64(data) if isinstance(data, str) else None) or (0, 0)
    return Image(media_type, size, width, height, "", at)


def _named(media_type: str, size: int, held: dict[str, Any], at: Path) -> Part:
    family = media_type.partition("/")[0]
    if family == "image":
        return Image(media_type, size, at=at)
    kind: Literal["document", "audio", "video"] = (
        "audio" if family == "audio" else "video" if family == "video" else "document"
    )
    return File(kind, media_type, size, string(held, "displayName"), at=at)


FORMAT = Gemini()
