"""Requests that Gemini's GenerateContent rejects: the types of the `google-genai` SDK and the documented rules."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from refold.core._json import Json, listing, mapping, placed_objects
from refold.testing.judge._model_versions import gemini
from refold.testing.judge._problem import Mismatch, Path, Problem, indexed
from refold.testing.judge._sdk_types import Compiler, faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refold.testing.judge._sdk_types import Check

__all__ = ["problems"]

_SDK = "google-genai SDK, types.py"
_CONTENT = "https://ai.google.dev/api/caching#Content"
_CALLING = "https://ai.google.dev/gemini-api/docs/function-calling"
_SIGNATURES = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_ROLES = ("", "user", "model", "function", "tool")  # an empty one is none; google-genai's README has "tool"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")  # FunctionDeclaration.name: at most 128 characters
SIGNED_FROM = (3, 0)  # thought-signatures page: from Gemini 3 on the calls of the current turn need theirs
# What a part is; thought, signature and metadata come on top of it
_DATA = frozenset(
    {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
    | {"toolCall", "toolResponse"}
)
_BY_ITSELF = frozenset({"thought", "partMetadata", "mediaResolution", "videoMetadata"})  # no part without data
_REQUEST = ("contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig")
_OTHER_KEYS = ("cachedContent", "labels", "model", "stream", "serviceTier", "store", "config", "name")


@cache
def _checks() -> dict[str, Check]:
    """Return the checks of a content and of the other keys of a body.

    Raises:
        ImportError: the `google-genai` SDK is not installed.
    """
    from google.genai import types

    # the SDK moves most of its own configuration into the request's `generationConfig`
    config = frozenset(field.alias or name for name, field in types.GenerateContentConfig.model_fields.items())
    compiler = Compiler(snake=True, extra={"GenerationConfig": config | {_snake(name) for name in config}})
    return {
        "content": compiler.check_of(types.Content),
        "systemInstruction": compiler.check_of(types.Content),
        "tools": compiler.check_of(list[types.Tool]),
        "toolConfig": compiler.check_of(types.ToolConfig),
        "safetySettings": compiler.check_of(list[types.SafetySetting]),
        "generationConfig": compiler.check_of(types.GenerationConfig),
    }


def problems(body: Mapping[str, object], model: str, headers: Mapping[str, str]) -> Iterator[Problem]:
    """Yield every reason to refuse a body; rules are applied to what has the right shape."""
    checks = _checks()
    camel = {_camel(key): value for key, value in body.items()}
    for key, value in camel.items():
        if key not in _REQUEST and key not in _OTHER_KEYS:
            yield _worded(Mismatch("unknown", (key,)))
        elif key in checks:
            # a schema has two dialects and is not looked into
            yield from (_worded(fault) for fault in faults(checks[key], value, (key,)) if "parameters" not in fault.at)
    contents = camel.get("contents")
    if not isinstance(contents, list) or not contents:
        text = "* GenerateContentRequest.contents: contents is not specified"
        yield Problem("shape", text, ("contents",), _CONTENT)
        return
    for place, content in enumerate(contents):
        yield from map(_worded, faults(checks["content"], content, ("contents", place)))
    entries = [mapping(content) for content in contents]
    for place, content in enumerate(entries):
        yield from _content(content, place)
    yield from _pairs(entries)
    version = gemini(model)
    if version is not None and version >= SIGNED_FROM:
        yield from _signed(entries)


def _worded(fault: Mismatch) -> Problem:
    """Return a difference from the types in the API's words."""
    match fault.kind:
        case "unknown":
            where = f" at '{indexed(fault.at[:-1])}'" if len(fault.at) > 1 else ""
            text = f'Invalid JSON payload received. Unknown name "{fault.at[-1]}"{where}: Cannot find field.'
        case "missing":
            text = f"* GenerateContentRequest.{indexed(fault.at)}: required field is not set"
        case _:
            wanted = fault.expected[0] if fault.kind == "type" and fault.expected else "value"
            text = f"Invalid value at '{indexed(fault.at)}' ({wanted}), {fault.got}"
    return Problem(fault.rule, text, fault.at, _SDK)


def _content(content: Json, place: int) -> Iterator[Problem]:
    """Yield what is wrong with a content by itself."""
    at: Path = ("contents", place)
    if content.get("role", "user") not in _ROLES:
        yield Problem("roles", "Please use a valid role: user, model.", (*at, "role"), _CONTENT)
    parts = content.get("parts")
    if not parts:
        text = "* GenerateContentRequest.contents: contents.parts must not be empty."
        yield Problem("content", text, (*at, "parts"), _CONTENT)
    for number, part in placed_objects(parts):
        data = [name for name in map(_camel, part) if name in _DATA]
        where = f"* GenerateContentRequest.contents[{place}].parts[{number}]"
        # a signature may come alone, and an unknown key is reported by itself
        alone = not data and (set(map(_camel, part)) - _BY_ITSELF)
        if len(data) != 1 and not alone:
            text = f"{where}.data: required oneof field 'data' must have one initialized field"
            yield Problem("content", text, (*at, "parts", number), _CONTENT)
        for key in ("functionCall", "functionResponse"):
            if key not in data:
                continue
            function = part.get(key) or part.get(_snake(key))
            name = mapping(function).get("name")
            if not name:
                text = f"{where}.{_snake(key)}.name: Name cannot be empty."
                yield Problem("names", text, (*at, "parts", number), _CALLING)
            elif isinstance(name, str) and not NAME.fullmatch(name):
                text = (
                    f"{where}.{_snake(key)}.name: Invalid function name. Must start with a letter or an underscore. "
                    "Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with "
                    "a maximum length of 128."
                )
                yield Problem("names", text, (*at, "parts", number), _CALLING)


def _pairs(contents: Sequence[Json]) -> Iterator[Problem]:
    """Yield turns of calls that follow neither the user nor responses, and turns of responses of another number."""
    for place, content in enumerate(contents):
        at: Path = ("contents", place)
        before = contents[place - 1] if place else None
        calls, responses = _count(content, "functionCall"), _count(content, "functionResponse")
        if calls and (before is None or before.get("role") == "model"):
            text = (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
            yield Problem("order", text, at, _CALLING)
        if calls:
            answered = 0
            for after in contents[place + 1 :]:
                if after.get("role") == "model" or not (number := _count(after, "functionResponse")):
                    break
                answered += number
            if answered != calls:
                text = (
                    "Please ensure that the number of function response parts is equal to the number of function "
                    "call parts of the function call turn."
                )
                yield Problem("pairing", text, at, _CALLING)
        elif responses and (
            before is None or not (_count(before, "functionCall") or _count(before, "functionResponse"))
        ):
            text = "Please ensure that function response turn comes immediately after a function call turn."
            yield Problem("pairing", text, at, _CALLING)


def _signed(contents: Sequence[Json]) -> Iterator[Problem]:
    """Yield turns of calls since the user last spoke whose first call bears no signature (Gemini 3 and later)."""
    spoke = max((place for place, content in enumerate(contents) if _speaks(content)), default=-1)
    for place in range(spoke + 1, len(contents)):
        parts = contents[place].get("parts")
        if contents[place].get("role") != "model" or not isinstance(parts, list):
            continue
        calls = [part for part in parts if isinstance(part, dict) and "functionCall" in map(_camel, part)]
        if calls and not (calls[0].get("thoughtSignature") or calls[0].get("thought_signature")):
            call = calls[0].get("functionCall") or calls[0].get("function_call") or {}
            text = (
                f"Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `default_api:{call.get('name')}`, position {place + 1}."
            )
            yield Problem("thinking", text, ("contents", place), _SIGNATURES)


def _speaks(content: Json) -> bool:
    """Tell whether a content is the user's own, other than responses."""
    return content.get("role", "user") == "user" and not _count(content, "functionResponse")


def _count(content: Json, key: str) -> int:
    return sum(isinstance(part, dict) and key in map(_camel, part) for part in listing(content.get("parts")))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
