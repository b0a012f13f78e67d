"""Long conversations with the messages of a healthy request in them, and what must hold of their compaction."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import refold
from refold import formats
from refold.core.messages import Message, MessageId, Text, ToolCall, ToolResult
from refold.errors import BadBudget, BrokenConversation, CannotFit, SummaryRefused
from refold.formats._base import get
from refold.testing import judge
from tests.healthy import (
    Feature,
    anthropic,
    bedrock,
    gemini,
    openai_chat,
    openai_responses,
)

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from refold._compaction.result import Result

__all__ = ["CORPORA", "PLACES", "Attempt", "Place", "around", "attempt", "faults", "filler", "with_messages"]

CORPORA: dict[str, Any] = {
    "anthropic": anthropic,
    "bedrock": bedrock,
    "gemini": gemini,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
}
Place: TypeAlias = Literal["beginning", "middle", "end"]
PLACES: tuple[Place, ...] = ("beginning", "middle", "end")
TURNS = {"beginning": (0, 4), "middle": (2, 2), "end": (4, 0)}  # turns before the feature and after it
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
SIGNATURE = "EgEKxXN0YXRlIG9mIGEgZmlsbGVy"


class Attempt(NamedTuple):
    """One compaction: what it gave, or why it rightly gave nothing, and what is wrong with the result."""

    result: Result | None = None
    refused: str = ""
    wrong: tuple[str, ...] = ()


def filler(format: str, turns: range) -> list[dict[str, Any]]:
    """Return turns of a user who has a log read, always the same for a number."""
    said: list[Message] = []
    for n in turns:
        log = "\n".join(f"{n:02}:{line:02} step {line} of stage {n} took {line * n % 97} ms" for line in range(40))
        call = ToolCall(f"call_fill{n}", "read_log", json.dumps({"path": f"logs/{n}.log"}))
        said += [
            Message(MessageId(f"u{n}"), "user", (Text(f"Stage {n}: what does its log say? The port is {8000 + n}."),)),
            Message(MessageId(f"a{n}"), "assistant", (Text(f"I read the log of stage {n}."), call)),
            Message(MessageId(f"t{n}"), "tool", (ToolResult(call.call_id, (Text(log),), "read_log"),)),
            Message(MessageId(f"b{n}"), "assistant", (Text(f"Stage {n} ran through; its slowest step took 96 ms."),)),
        ]
    natives = formats.assemble(formats.find(format), said)
    return [_signed(native) for native in natives] if format == "gemini" else natives


def around(format: str, feature: Feature, place: Place) -> dict[str, Any]:
    """Return the body of a feature with turns before and behind its own messages, and the tool of these declared."""
    before, after = TURNS[place]
    own = formats.open_body(formats.find(format), feature.body).messages
    messages = [*filler(format, range(1, before + 1)), *own, *filler(format, range(11, after + 11))]
    if after:
        messages += formats.assemble(
            formats.find(format), [Message(MessageId("last"), "user", (Text("Which stage was the slowest?"),))]
        )
    return with_messages(format, feature.body, messages)


def with_messages(format: str, body: dict[str, Any], messages: list[Any]) -> dict[str, Any]:
    """Return a body with other messages, and the tool of the filler among its tools."""
    shape = formats.find(format)
    made = {**formats.close_body(shape, formats.open_body(shape, body), messages)}
    about = {"name": "read_log", "description": "Reads a log."}
    match format:
        case "anthropic":
            made["tools"] = [*made.get("tools", ()), {**about, "input_schema": SCHEMA}]
        case "bedrock":
            config = made.get("toolConfig", {})
            spec = {"toolSpec": {**about, "inputSchema": {"json": SCHEMA}}}
            made["toolConfig"] = {**config, "tools": [*config.get("tools", ()), spec]}
        case "openai-chat":
            made["tools"] = [
                *made.get("tools", ()),
                {"type": "function", "function": {**about, "parameters": SCHEMA}},
            ]
        case "openai-responses":
            tool = {"type": "function", "strict": False, "parameters": SCHEMA, **about}
            made["tools"] = [*made.get("tools", ()), tool]
        case _ if "cachedContent" not in body:  # the cache holds the tools then
            made["tools"] = [*made.get("tools", ()), {"functionDeclarations": [{**about, "parameters": SCHEMA}]}]
    return made


def faults(format: str, body: dict[str, Any], model: str) -> set[str]:
    """Return what the rules and the judge find wrong with a request, positions left out."""
    messages = formats.open_body(formats.find(format), body).messages
    found = [f"{violation.rule}: {violation.message}" for violation in refold.violations(messages, format=format)]
    found += [f"judge: {problem.rule}: {problem.message}" for problem in judge.problems(format, body, model=model)]
    return {re.sub(r"(?<=[\[.])\d+", "#", text) for text in found}


def attempt(
    format: str,
    body: dict[str, Any],
    model: str,
    policy: str,
    share: float,
    summarize: Any,
    known: Set[str] = frozenset(),
) -> Attempt:
    """Compact a valid request to a share of its messages, and say what is wrong with what comes out.

    `known` are faults that the request has before, as `faults` returns them.
    """
    shape = formats.find(format)
    opened = formats.open_body(shape, body)
    about = {"format": format, "model": model, "system": opened.system, "tools": opened.tools}
    fixed = refold.count([], **about)
    whole = refold.count(opened.messages, **about)
    try:
        result = refold.compact(
            opened.messages,
            policy=policy,
            budget=fixed + max(int((whole - fixed) * share), 1),
            summarize=summarize,
            force=True,
            **about,
        )
    except (CannotFit, BadBudget, SummaryRefused) as error:
        return Attempt(refused=type(error).__name__)
    except BrokenConversation as error:
        return Attempt(wrong=(f"{type(error).__name__}: {error}",))
    made = formats.close_body(shape, opened, result.messages)
    wrong = sorted(faults(format, made, model) - known)
    wrong += [f"state is lost: {value}" for value in _lost(format, opened.messages, result.messages)]
    back = refold.rewind(result)
    if len(back) != len(opened.messages) or any(new is not old for new, old in zip(back, opened.messages, strict=True)):
        wrong.append("rewind does not give the originals back")
    return Attempt(result, wrong=tuple(wrong))


def _lost(format: str, before: Sequence[Any], after: Sequence[Any]) -> list[str]:
    """Return what carried state before and is not there any more, of what the provider reads."""
    shape = formats.find(format)
    said = formats.read(shape, before).messages
    carried: list[str] = []
    held: set[tuple[str, str]] = set()  # what newer parts hold; an older one may leave
    for message in reversed(said[shape.anchor(said) :]):
        kept = [part for part in message.opaques if part.state and (part.kind, part.holds) not in held]
        carried += [json.dumps(get(message.native, part.at), sort_keys=True, default=repr) for part in kept]
        held |= {(part.kind, part.holds) for part in message.opaques if part.holds}
    if not carried:
        return []
    text = json.dumps(after, sort_keys=True, default=repr)
    return [value[:200] for value, times in Counter(carried).items() if text.count(value) < times]


def _signed(native: dict[str, Any]) -> dict[str, Any]:
    """Return a content of Gemini with the signature that its function call needs."""
    parts = [{**part, "thoughtSignature": SIGNATURE} if "functionCall" in part else part for part in native["parts"]]
    return {**native, "parts": parts}
