"""Requests that Bedrock's Converse rejects: botocore's service model and the documented rules."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from refold.core._json import Json, mapping, objects
from refold.testing.judge._model_versions import claude
from refold.testing.judge._problem import Path, Problem, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["problems"]

_MODEL = "botocore, service model of bedrock-runtime, Converse"
_CONVERSE = "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html"
_MESSAGE = "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html"
_TOOLS = "https://docs.aws.amazon.com/bedrock/latest/userguide/tool-use-inference-call.html"
_CACHING = "https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html"
_THINKING = "https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html"
MOST_MARKS = 4  # prompt-caching page, "Max number of cache checkpoints per request"
_START = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
_UNIONS = frozenset({"ContentBlock", "ToolResultContentBlock", "SystemContentBlock", "Tool"})  # one key, by the guide


@cache
def _shape() -> Any:
    """Return the shape of a Converse request.

    Raises:
        ImportError: botocore is not installed.
    """
    from botocore.session import get_session

    return get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def problems(body: Mapping[str, Any], model: str, headers: Mapping[str, str]) -> Iterator[Problem]:
    """Yield every reason to refuse a body; rules are applied to what has the right shape."""
    from botocore.validate import ParamValidator

    shape = _shape()
    request = {"modelId": model or "any", **body}
    request.pop("model", None)
    for reason, name, info in ParamValidator().validate(request, shape)._errors:
        rule = "unknown" if reason == "unknown field" else "shape"
        yield Problem(rule, _reported(reason, name, info), _path(name), _MODEL)
    yield from _limits(request, shape, ())
    messages = body.get("messages")
    if not isinstance(messages, list):
        return
    if not messages:
        yield Problem("opening", _START, ("messages",), _CONVERSE)
        return
    turns = [objects(mapping(message).get("content")) for message in messages]
    roles = [mapping(message).get("role") for message in messages]
    yield from _order(roles, turns)
    for place, blocks in enumerate(turns):
        yield from _contents(blocks, roles[place], place, model)
    yield from _pairs(roles, turns)
    used = any("toolUse" in block or "toolResult" in block for blocks in turns for block in blocks)
    if used and not body.get("toolConfig"):
        text = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        yield Problem("tools", text, ("toolConfig",), _TOOLS)
    lists = [body.get("system"), mapping(body.get("toolConfig")).get("tools"), *turns]
    marks = sum("cachePoint" in mapping(block) for blocks in lists for block in blocks or ())
    if marks > MOST_MARKS:
        text = f"A maximum of {MOST_MARKS} blocks with cachePoint may be provided. Found {marks}."
        yield Problem("cache_marks", text, ("messages",), _CACHING)


def _reported(reason: str, name: str, info: Mapping[str, object]) -> str:
    """Return what botocore reports, as its exception writes it."""
    from botocore.validate import ValidationErrors

    report = ValidationErrors()
    report.report(name, reason, **info)
    return f"Parameter validation failed: {report.generate_report()}"


def _path(name: str) -> Path:
    """Return the path that botocore writes as `messages[0].content`."""
    return tuple(int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", name))


def _limits(value: Any, shape: Any, at: Path) -> Iterator[Problem]:
    """Yield enumerations, patterns, lengths and unions that a value breaks; the client checks none of them."""
    kind = shape.type_name
    if kind == "structure" and isinstance(value, dict) and not getattr(shape, "is_document_type", False):
        if shape.name in _UNIONS and len(value) != 1:
            keys = ", ".join(value) or "none"
            text = f"{dotted(at)}: exactly one member of {shape.name} must be set, got {keys}"
            yield Problem("shape", text, at, _MODEL)
        for key, entry in value.items():
            if key in shape.members:
                yield from _limits(entry, shape.members[key], (*at, key))
    elif kind == "list" and isinstance(value, list):
        yield from _sized(len(value), value, shape, at)
        for place, entry in enumerate(value):
            yield from _limits(entry, shape.member, (*at, place))
    elif kind == "string" and isinstance(value, str):
        yield from _sized(len(value), value, shape, at)
        pattern = shape.metadata.get("pattern")
        if shape.enum and value not in shape.enum:
            yield _unmet(value, at, f"Member must satisfy enum value set: [{', '.join(shape.enum)}]")
        if pattern and at != ("modelId",) and not re.fullmatch(pattern, value):
            yield _unmet(value, at, f"Member must satisfy regular expression pattern: {pattern}")


def _sized(size: int, value: Any, shape: Any, at: Path) -> Iterator[Problem]:
    most, least = shape.metadata.get("max"), shape.metadata.get("min")
    if most is not None and size > most:
        yield _unmet(value, at, f"Member must have length less than or equal to {most}")
    if least is not None and size < least:
        yield _unmet(value, at, f"Member must have length greater than or equal to {least}")


def _unmet(value: object, at: Path, text: str) -> Problem:
    message = f"1 validation error detected: Value '{value}' at '{dotted(at)}' failed to satisfy constraint: {text}"
    return Problem("ids" if at[-1] == "toolUseId" else "shape", message, at, _MODEL)


def _order(roles: list[Any], turns: list[list[Json]]) -> Iterator[Problem]:
    """Yield a conversation that the assistant opens, and neighbors of one role; split results are accepted."""
    if roles[0] == "assistant":
        yield Problem("opening", _START, ("messages", 0), _MESSAGE)
    for place in range(1, len(roles)):
        split = any("toolResult" in block for block in (*turns[place - 1], *turns[place]))
        if roles[place] == roles[place - 1] and roles[place] in ("user", "assistant") and not split:
            text = (
                "A conversation must alternate between user and assistant roles. Make sure the conversation "
                "alternates between user and assistant roles and try again."
            )
            yield Problem("order", text, ("messages", place), _MESSAGE)


def _contents(blocks: list[Json], role: object, place: int, model: str) -> Iterator[Problem]:
    """Yield what is wrong with the blocks of a message."""
    if not blocks:
        message = (
            f"The content field in the Message object at messages.{place} is empty. Add a ContentBlock object to the "
            "content field and try again."
        )
        yield Problem("content", message, ("messages", place, "content"), _MESSAGE)
    if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
        message = "A text block must be included when using documents."
        yield Problem("content", message, ("messages", place, "content"), _MESSAGE)
    ids: set[tuple[str, str]] = set()
    for number, block in enumerate(blocks):
        at: Path = ("messages", place, "content", number)
        where, text = dotted(at), block.get("text")
        if isinstance(text, str) and not text.strip():
            message = (
                f"The text field in the ContentBlock object at {where} is blank. Add text to the text field, and try "
                "again."
            )
            yield Problem("content", message, at, _MESSAGE)
        for kind, speaker in (("toolUse", "assistant"), ("toolResult", "user")):
            half = block.get(kind)
            if not isinstance(half, dict):
                continue
            served = re.fullmatch(r"\w+_result", str(half.get("type"))) and half["type"] != "tool_result"
            if role != speaker and not served:
                yield Problem("roles", f"The {kind} block at {where} is only valid for the {speaker}.", at, _TOOLS)
            id = str(half.get("toolUseId"))
            if (kind, id) in ids:
                message = f"The {kind} blocks at messages.{place}.content contain duplicate Ids: {id}"
                yield Problem("ids", message, at, _TOOLS)
            ids.add((kind, id))
            if kind == "toolUse" and not isinstance(half.get("input"), dict):
                message = f"The format of the value at {where}.toolUse.input is invalid. Provide a json object for the"
                yield Problem("arguments", f"{message} field and try again.", (*at, "toolUse", "input"), _TOOLS)
        reasoning_text = mapping(block.get("reasoningContent")).get("reasoningText")
        if claude(model) is not None and isinstance(reasoning_text, dict) and not reasoning_text.get("signature"):
            message = f"{where}.reasoningContent.reasoningText.signature: Field required"
            yield Problem("thinking", message, at, _THINKING)


def _pairs(roles: list[Any], turns: list[list[Json]]) -> Iterator[Problem]:
    """Yield uses without results in the messages of the user right after, and results without use."""
    open_: dict[str, int] = {}
    for place, blocks in enumerate(turns):
        if roles[place] == "assistant":
            if open_:
                yield _unanswered(open_, place)
            uses = [block["toolUse"] for block in blocks if isinstance(block.get("toolUse"), dict)]
            open_ = {str(use.get("toolUseId")): place for use in uses if use.get("type") != "server_tool_use"}
            continue
        for number, block in enumerate(blocks):
            result = block.get("toolResult")
            if not isinstance(result, dict):
                continue
            id = str(result.get("toolUseId"))
            if id not in open_:
                text = (
                    f"The number of toolResult blocks at messages.{place}.content exceeds the number of toolUse "
                    "blocks of previous turn."
                )
                yield Problem("pairing", text, ("messages", place, "content", number), _TOOLS)
            open_.pop(id, None)
        following = roles[place + 1] if place + 1 < len(roles) else None
        if open_ and following != "user":
            yield _unanswered(open_, place)
            open_ = {}
    if open_:
        yield _unanswered(open_, len(turns))


def _unanswered(open_: Mapping[str, int], place: int) -> Problem:
    ids = ", ".join(open_)
    text = f"Expected toolResult blocks at messages.{place}.content for the following Ids: {ids}"
    return Problem("pairing", text, ("messages", min(open_.values())), _TOOLS)
