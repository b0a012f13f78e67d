"""Answers that were recorded as a stream of events, put together again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from refold._text.surrogates import repair_surrogates
from refold.core._json import Json
from refold.formats._streaming.accumulate import response_body, stream_format
from refold.formats._streaming.sse import objects

__all__ = ["AssembledReply", "answer_of", "answers", "whole"]


class AssembledReply(Struct, frozen=True):
    """What a provider answered: its messages in the provider's shape, and what it said about them."""

    format: str
    messages: list[Any]
    usage: Any = None
    model: str | None = None
    system: Any = None
    tools: list[Any] | None = None


def answers(events: Iterable[object]) -> Iterator[AssembledReply]:
    """Yield every answer in a run of events, of whichever provider they are."""
    run: list[Json] = []
    for event in events:
        if not isinstance(event, dict):
            continue
        if run and _opens(event, run[-1]):
            yield from _answer_to(run)
            run = []
        run.append(event)
    yield from _answer_to(run)


def _opens(event: Json, last: Json) -> bool:
    if event.get("object") == "chat.completion.chunk":
        return last.get("object") == "chat.completion.chunk" and event.get("id") != last.get("id")
    return event.get("type") in ("message_start", "response.created")


def _answer_to(run: list[Json]) -> Iterator[AssembledReply]:
    format = next(filter(None, map(stream_format, run)), None)
    answer = _answer_in(response_body(format, run)) if format else None
    if answer is not None and not all(map(_empty, answer.messages)):
        yield answer


def _empty(message: Json) -> bool:
    """Tell whether a stream ended before a message had any content."""
    return not any(value for key, value in message.items() if key != "role")


def answer_of(body: object) -> AssembledReply | None:
    """Return the answer in a whole reply body, of whichever provider; a string is taken for events."""
    if isinstance(body, str):
        return next(answers(objects(repair_surrogates(body).encode())), None) or _answer_in(whole(body))
    return _answer_in(body)


def _answer_in(body: object) -> AssembledReply | None:
    if not isinstance(body, dict):
        return None
    model, usage = body.get("model"), body.get("usage")
    match body:
        case {"choices": [{"message": dict(message)}, *_]}:
            # a request refuses the null that a reply has in place of calls
            empty = {"tool_calls", "function_call"} & {key for key, value in message.items() if value is None}
            message = {key: value for key, value in message.items() if key not in empty} if empty else message
            return AssembledReply("openai-chat", [message], usage, model)
        case {"type": "message", "role": "assistant", "content": list(content)}:
            messages = [{"role": "assistant", "content": content}] if content else []
            return AssembledReply("anthropic", messages, usage, model)
        case {"output": list(items)}:
            system, tools = body.get("instructions"), body.get("tools") or None
            return AssembledReply("openai-responses", items, usage, model, system, tools)
        case {"output": {"message": dict(message)}}:
            return AssembledReply("bedrock", [message], usage, model)
        case {"candidates": [{"content": dict(content)}, *_]}:
            return AssembledReply("gemini", [content], body.get("usageMetadata"), body.get("modelVersion"))
    return None


def whole(body: object) -> Any:
    """Return a body that was recorded as text as the value it is, anything else as it is."""
    if not isinstance(body, str) or not body.lstrip().startswith(("{", "[")):
        return body
    try:
        return json.loads(body)
    except ValueError:
        return body
