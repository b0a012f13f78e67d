"""Finds violations of the providers' request types in single messages, format by format.

Only what is known to be wrong is a flaw: a block of another provider's protocol is one, a block of an unknown kind is
carried through as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from refold._rules.arguments import JsonArguments
from refold._rules.form import Flaw
from refold.core._json import Json, listing, mapping, placed_objects, string
from refold.core.messages import (
    Message,
    Part,
    Path,
    Text,
    ToolCall,
    ToolResult,
    memoized,
)
from refold.formats._base import arguments_text
from refold.formats._field_violations import content_flaws, words_for, wrong_calls, wrong_entries

__all__ = ["anthropic", "anthropic_marks", "bedrock", "bedrock_marks", "gemini", "openai_chat", "openai_responses"]

# Kinds of blocks of other protocols that clients send by mistake when they change providers, and the key of their words
_RESPONSES = {"input_text": "text", "output_text": "text", "input_image": "", "input_file": ""}
_CHAT = {"image_url": "", "input_audio": "", "file": "", "refusal": "refusal"}
_CLAUDE = {"tool_use": "", "tool_result": "", "image": "", "document": ""}
# OpenAI's calls whose arguments are text, and the items whose output is text or blocks
_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_WORDS, _TEXTS = frozenset({"text"}), frozenset({"input_text", "output_text", "text"})
_BY_ASSISTANT = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "thinking", "redacted_thinking"})

_NAMELESS = "a call without name"
_GOES_ON = ("willContinue", "will_continue")
_PIECES = frozenset({"partialArgs", "partial_args", *_GOES_ON})
# What stands by a document of a message without words, which Converse refuses (API_runtime_Message, "content")
_BY_A_DOCUMENT = "(see the document)"


@memoized
def anthropic(message: Message) -> tuple[Flaw, ...]:
    """Return calls without input or by the user, thinking without signature, compactions of empty words, and blocks of
    OpenAI's.
    """
    return tuple(_anthropic(message))


@memoized
def bedrock(message: Message) -> tuple[Flaw, ...]:
    """Return calls without input or by the user, and the end of a message that holds a document and no words."""
    return tuple(_bedrock(message))


@memoized
def gemini(message: Message) -> tuple[Flaw, ...]:
    """Return parts that hold nothing, and responses that are no object."""
    return tuple(_gemini(message))


@memoized
def openai_chat(message: Message) -> tuple[Flaw, ...]:
    """Return lists of calls that are none, calls without type or with arguments that are no text, results that are none
    either, and blocks of other protocols.
    """
    return () if _is_plain_chat(message.native) else tuple(_chat(message))


@memoized
def openai_responses(message: Message) -> tuple[Flaw, ...]:
    """Return arguments and outputs that are no text, blocks that only the other side of a conversation may send, and
    blocks of other protocols.
    """
    return tuple(_responses(message))


@memoized
def anthropic_marks(message: Message) -> tuple[Path, ...]:
    """Return the paths of a message's cache marks, those inside results included."""
    return tuple(_marks(message.native, ()))


@memoized
def bedrock_marks(message: Message) -> tuple[Path, ...]:
    """Return the paths of a message's cache points."""
    return tuple(at for at, block in _listed(message, "content") if "cachePoint" in block)


def _anthropic(message: Message) -> Iterator[Flaw]:
    yield from content_flaws(message, "content", _WORDS)
    for at, block in _listed(message, "content"):
        kind = string(block, "type")
        if kind in _BY_ASSISTANT and message.role != "assistant":
            yield Flaw(f"a block of type {kind} that is not the assistant's", at)
        elif kind == "tool_result" and message.role == "assistant":
            yield Flaw("a result that is not the user's", at)
        elif kind == "tool_use" and not isinstance(block.get("name"), str):
            yield Flaw(_NAMELESS, at)
        elif kind == "tool_use" and "input" not in block:
            yield from _rewritten("a call without input", message, at)
        elif kind == "tool_use" and isinstance(block["input"], str):
            yield from _objects(message, at)
        elif kind == "tool_result" and not isinstance(block.get("content", ""), str | list):
            yield from _worded(message, at, block["content"])
        elif kind == "thinking" and not block.get("signature"):
            yield Flaw("thinking without signature", at)
        elif kind == "compaction" and block.get("content") == "":  # of no words (null) is a failure, which is accepted
            yield Flaw("a compaction block of empty words", at)
        else:
            yield from _foreign(block, at, _RESPONSES | _CHAT)


def _bedrock(message: Message) -> Iterator[Flaw]:
    yield from content_flaws(message, "content")
    for at, block in _listed(message, "content"):
        match block:
            case {"toolUse": use} if not isinstance(mapping(use).get("name"), str):
                yield Flaw(_NAMELESS, at)
            case {"toolUse": dict()} if message.role != "assistant":
                yield Flaw("a call that is not the assistant's", at)
            case {"toolUse": dict(use)} if "input" not in use:
                yield from _rewritten("a call without input", message, at)
            case {"toolUse": {"input": str()}}:
                yield from _objects(message, at)
            case {"toolResult": result} if not isinstance(result, dict):
                yield Flaw("a result that is no object", at)
    blocks = [block for _, block in _listed(message, "content")]
    if any("document" in block for block in blocks) and not any(string(block, "text").strip() for block in blocks):
        yield Flaw("a document without words", ("content", len(blocks)), Text(_BY_A_DOCUMENT))


def _gemini(message: Message) -> Iterator[Flaw]:
    yield from content_flaws(message, "parts")
    goes_on = False
    for at, part in _listed(message, "parts"):
        call = part.get("functionCall", part.get("function_call"))
        result = part.get("functionResponse", part.get("function_response"))
        value = mapping(result).get("response")
        # Vertex AI can stream arguments: a call with the name, others with pieces, and an empty one at the end
        streamed = goes_on or not mapping(call).keys().isdisjoint(_PIECES)
        goes_on = any(mapping(call).get(key) is True for key in _GOES_ON)
        if part == {}:
            yield Flaw("a part without data", at)
        elif call is not None and not isinstance(mapping(call).get("name"), str) and not streamed:
            yield Flaw(_NAMELESS, at)
        elif result is not None and not isinstance(result, dict):
            yield Flaw("a result that is no object", at)
        elif value is not None and not isinstance(value, dict):
            yield from _worded(message, at, value)


def _is_plain_chat(native: Any) -> bool:
    """Tell whether a message is of the commonest form, text and calls of functions, so that nothing can be wrong."""
    content, by_assistant = native.get("content"), native.get("role") == "assistant"
    if type(content) is not str and not (content is None and by_assistant):
        return False
    if "tool_calls" not in native:
        return "function_call" not in native
    calls = native["tool_calls"]
    if not by_assistant or type(calls) is not list or not calls:
        return False
    for call in calls:
        function = call.get("function") if type(call) is dict and type(call.get("type")) is str else None
        if type(function) is not dict:
            return False
        if type(function.get("name")) is not str or type(function.get("arguments")) is not str:
            return False
    return "function_call" not in native


def _chat(message: Message) -> Iterator[Flaw]:
    native: Any = message.native
    calls = native.get("tool_calls") if message.role == "assistant" else None
    if calls == [] or (calls is None and "tool_calls" in native):
        yield Flaw("an empty list of calls", ("tool_calls",))
    nameless = {flaw.at: flaw for flaw in wrong_calls(native)} if message.role == "assistant" else {}
    yield from nameless.values()
    for position, call in placed_objects(calls):
        if ("tool_calls", position) in nameless:
            continue
        match call:
            case {"type": str(), "function": {"arguments": str()}}:
                pass
            case {"type": str(), "function": dict()}:
                yield from _rewritten("arguments that are no text", message, ("tool_calls", position))
            case {"type": str()}:
                pass
            case {"function": {"arguments": dict()}} if "type" not in call:  # Ollama's
                pass
            case _:
                yield from _rewritten("a call without type", message, ("tool_calls", position))
    if native.get("role") == "tool":
        yield from _wordless(message, "content", may_be_empty=False)
        yield from _entries_of_result(message)
    elif message.role != "tool":
        yield from content_flaws(message, "content", _WORDS, untyped=True)
    for at, block in _listed(message, "content"):
        if not isinstance(block.get("document"), dict):  # Cohere's, of a tool's output
            yield from _foreign(block, at, _RESPONSES | _CLAUDE)


def _responses(message: Message) -> Iterator[Flaw]:
    native: Any = message.native
    kind = string(native, "type") if "type" in native else "message"
    if kind in _ARGUMENTS and not isinstance(native.get("name"), str):
        yield Flaw(_NAMELESS, ())
    elif (
        (kind in _ARGUMENTS or kind in _OUTPUTS)
        and not isinstance(native.get("call_id"), str)
        and not _names_its_function(native)
    ):
        yield Flaw("a call or a result without call_id", ())
    elif (key := _ARGUMENTS.get(kind)) and not isinstance(native.get(key, ""), str):
        yield from _rewritten("arguments that are no text", message, ())
    elif kind in _OUTPUTS:
        yield from _wordless(message, "output")
    if "role" not in native or kind != "message":
        return
    yield from content_flaws(message, "content", _TEXTS)
    wrong = ("input_text", "text") if native["role"] == "assistant" else ("output_text", "text")
    for at, block in _listed(message, "content"):
        if block.get("type") in wrong:
            yield from _rewritten(f"a block of type {block['type']} in a message of the {message.role}", message, at)
        else:
            yield from _foreign(block, at, {"image_url": ""} | _CLAUDE)


def _names_its_function(native: Json) -> bool:
    """Tell whether a result names its function in place of a call: OpenAI's types ask for neither."""
    named = isinstance(native.get("name"), str)
    return native["type"] == "function_call_output" and named and native.get("call_id") is None


def _foreign(block: Json, at: Path, kinds: dict[str, str]) -> Iterator[Flaw]:
    """Yield a block of another protocol, to be said in words: its own, or a label."""
    kind = string(block, "type")
    if kind in kinds:
        words = string(block, kinds[kind])
        text = words if words.strip() else f"[{kind}]"
        yield Flaw(f"a block of type {kind}, which is another provider's", at, Text(text))


def _wordless(message: Message, key: str, *, may_be_empty: bool = True) -> Iterator[Flaw]:
    """Yield a result of OpenAI's whose value is neither text nor blocks."""
    native: Any = message.native
    value = native.get(key)
    if not isinstance(value, str) and not (isinstance(value, list) and (may_be_empty or value)):
        yield from _worded(message, (), value)


def _entries_of_result(message: Message) -> Iterator[Flaw]:
    """Yield a result in chat completions of which an entry is no block, or a block of text without any."""
    content = listing(mapping(message.native).get("content"))
    wrong = {
        ("content", place): (text, words_for(value))
        for place, text, value in wrong_entries(content, "content", _WORDS, untyped=True)
    }
    for result in message.results if wrong else ():
        parts = tuple(Text(wrong[part.at][1]) if part.at in wrong else part for part in result.content)
        whole = replace(result, content=tuple(part for part in parts if not isinstance(part, Text) or part.text))
        yield from (Flaw(text, (), whole) for text, _ in wrong.values())


def _worded(message: Message, at: Path, value: object) -> Iterator[Flaw]:
    """Yield a result whose value its field does not take, to be said in words: text, or the value as JSON."""
    part = _at(message, at)
    if isinstance(part, ToolResult):
        text = "" if value is None or value == [] else arguments_text(value)
        yield Flaw("a result of a form that the provider does not take", at, replace(part, content=(Text(text),)))


def _objects(message: Message, at: Path) -> Iterator[Flaw]:
    """Yield a call whose input is a JSON object written as text; other text is a matter of its arguments."""
    part = _at(message, at)
    if isinstance(part, ToolCall) and JsonArguments.holds(part):
        yield Flaw("an input that is no object", at, part)


def _rewritten(text: str, message: Message, at: Path) -> Iterator[Flaw]:
    """Yield a value that its format writes correctly, so that rewriting the part as itself is enough."""
    part = _at(message, at)
    if part is not None:
        yield Flaw(text, at, part)


def _at(message: Message, at: Path) -> Part | None:
    return next((part for part in message.parts if part.at == at), None)


def _listed(message: Message, key: str) -> Iterator[tuple[Path, Json]]:
    for position, block in placed_objects(mapping(message.native).get(key)):
        yield (key, position), block


def _marks(native: object, at: Path) -> Iterator[Path]:
    for position, block in placed_objects(mapping(native).get("content")):
        here: Path = (*at, "content", position)
        if isinstance(block.get("cache_control"), dict):
            yield (*here, "cache_control")
        yield from _marks(block, here)
