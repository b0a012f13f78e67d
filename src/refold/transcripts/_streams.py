"""Answers that were recorded as a stream of events, put together again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

__all__ = ["AssembledReply", "answer_of", "answers", "sse", "whole"]

_CLOSING = ("response.completed", "response.incomplete", "response.failed")


class AssembledReply(Struct, frozen=True):
    """What a provider answered: its messages in the provider's shape, and what it said about them."""

    format: str
    messages: list[Any]
    usage: Any = None
    model: str | None = None
    system: Any = None
    tools: list[Any] | None = None


def sse(text: str) -> list[Any]:
    """Return the JSON data of server-sent events; `[DONE]` and cut-off data are passed over."""
    found: list[Any] = []
    for line in text.splitlines():
        data = line[5:].strip() if line.startswith("data:") else ""
        if data.startswith(("{", "[{")):
            try:
                found.append(msgspec.json.decode(data))
            except msgspec.DecodeError:
                continue
    return found


def answers(events: Iterable[Any]) -> Iterator[AssembledReply]:
    """Yield every answer in a run of events, of whichever provider they are."""
    run: list[dict[str, Any]] = []
    for event in events:
        if not isinstance(event, dict):
            continue
        if run and _opens(event, run[-1]):
            yield from _whole(run)
            run = []
        run.append(event)
    yield from _whole(run)


def _opens(event: dict[str, Any], last: dict[str, Any]) -> bool:
    if event.get("object") == "chat.completion.chunk":
        return last.get("object") == "chat.completion.chunk" and event.get("id") != last.get("id")
    return event.get("type") in ("message_start", "response.created")


def _whole(run: list[dict[str, Any]]) -> Iterator[AssembledReply]:
    found: AssembledReply | None = None
    if any(event.get("type") == "message_start" for event in run):
        found = _anthropic(run)
    elif any(str(event.get("type", "")).startswith("response.") for event in run):
        found = _responses(run)
    elif any(event.get("object") == "chat.completion.chunk" for event in run):
        found = _chat(run)
    elif any("candidates" in event for event in run):
        found = _gemini(run)
    if found is not None and found.messages:
        yield found


def _anthropic(run: list[dict[str, Any]]) -> AssembledReply:
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    pieces: dict[int, list[str]] = {}
    usage: dict[str, Any] = {}
    for event in run:
        at = event.get("index", 0)
        match event.get("type"):
            case "message_start":
                message = event["message"]
                usage.update(message.get("usage") or {})
            case "content_block_start":
                blocks[at] = dict(event["content_block"])
            case "content_block_delta" if at in blocks:
                _grow(blocks[at], event["delta"], pieces.setdefault(at, []))
            case "message_delta":
                usage.update({key: value for key, value in (event.get("usage") or {}).items() if value is not None})
    for at, parts in pieces.items():
        if parts and "input" in blocks[at]:
            blocks[at]["input"] = _json("".join(parts))
    content = [blocks[at] for at in sorted(blocks)]
    return AssembledReply(
        "anthropic", [{"role": "assistant", "content": content}] if content else [], usage, message.get("model")
    )


def _grow(block: dict[str, Any], delta: dict[str, Any], pieces: list[str]) -> None:
    match delta.get("type"):
        case "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
        case "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        case "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        case "input_json_delta":
            pieces.append(delta["partial_json"])
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"": text}  # cut off in the middle of the arguments: kept as they came


def _responses(run: list[dict[str, Any]]) -> AssembledReply:
    whole = next((event["response"] for event in reversed(run) if event.get("type") in _CLOSING), None)
    said: dict[str, Any] = whole or next(
        (event["response"] for event in run if isinstance(event.get("response"), dict)), {}
    )
    items = said.get("output") or [event["item"] for event in run if event.get("type") == "response.output_item.done"]
    return AssembledReply(
        "openai-responses",
        list(items),
        said.get("usage"),
        said.get("model"),
        said.get("instructions"),
        said.get("tools") or None,
    )


def _chat(run: list[dict[str, Any]]) -> AssembledReply:
    texts: dict[str, list[str]] = {}
    calls: dict[int, dict[str, Any]] = {}
    usage = model = None
    for event in run:
        usage, model = event.get("usage") or usage, event.get("model") or model
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            for key in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(key), str):
                    texts.setdefault(key, []).append(delta[key])
            for piece in delta.get("tool_calls") or []:
                _call(calls, piece)
    message: dict[str, Any] = {"role": "assistant", "content": None}
    message |= {key: "".join(parts) for key, parts in texts.items() if any(parts)}
    if calls:
        message["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": "".join(call["function"]["arguments"])}}
            for _, call in sorted(calls.items())
        ]
    return AssembledReply("openai-chat", [message] if len(message) > 2 or message["content"] else [], usage, model)


def _call(calls: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
    function = piece.get("function") or {}
    call = calls.setdefault(
        piece.get("index", 0), {"id": "", "type": "function", "function": {"name": "", "arguments": []}}
    )
    call["id"] = piece.get("id") or call["id"]
    call["function"]["name"] = function.get("name") or call["function"]["name"]
    call["function"]["arguments"].append(function.get("arguments") or "")


def _gemini(run: list[dict[str, Any]]) -> AssembledReply:
    parts: list[Any] = []
    usage = model = None
    for event in run:
        usage, model = event.get("usageMetadata") or usage, event.get("modelVersion") or model
        for candidate in (event.get("candidates") or [])[:1]:
            for part in (candidate.get("content") or {}).get("parts") or []:
                plain = part.keys() == {"text"} and parts and parts[-1].keys() == {"text"}
                parts[-1:] = [{"text": parts[-1]["text"] + part["text"]}] if plain else [*parts[-1:], part]
    return AssembledReply("gemini", [{"role": "model", "parts": parts}] if parts else [], usage, model)


def answer_of(body: Any) -> AssembledReply | None:
    """Return the answer in a whole reply body, of whichever provider; a string is taken for events."""
    if isinstance(body, str):
        return next(answers(sse(body)), None) or _answer_in(whole(body))
    return _answer_in(body)


def _answer_in(body: Any) -> AssembledReply | None:
    if not isinstance(body, dict):
        return None
    model, usage = body.get("model"), body.get("usage")
    match body:
        case {"choices": [{"message": dict(message)}, *_]}:
            return AssembledReply("openai-chat", [message], usage, model)
        case {"type": "message", "role": "assistant", "content": list(content)}:
            return AssembledReply(
                "anthropic", [{"role": "assistant", "content": content}] if content else [], usage, model
            )
        case {"output": list(items)}:
            return AssembledReply("openai-responses", items, usage, model)
        case {"output": {"message": dict(message)}}:
            return AssembledReply("bedrock", [message], usage, model)
        case {"candidates": [{"content": dict(content)}, *_]}:
            return AssembledReply("gemini", [content], body.get("usageMetadata"), body.get("modelVersion"))
    return None


def whole(body: Any) -> Any:
    """Return a body that was recorded as text as the value it is, anything else as it is."""
    if not isinstance(body, str) or not body.lstrip().startswith(("{", "[")):
        return body
    try:
        return json.loads(body)
    except ValueError:
        return body
