"""GitHub Copilot chat sessions of VS Code: requests, each with its rounds of calls."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, listing, mapping, objects, string
from refold.transcripts._chat_messages import function_call, json_text
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_CTOR_TEXT = 2  # node type of a piece of text in a rendered prompt; others only hold children


def matches(document: Document) -> bool:
    """Tell by requests with the name of who answers them."""
    value = document.objects[0][1] if document.objects else {}
    value = value["v"] if value.get("kind") == 0 and mapping(value.get("v")) else value
    return isinstance(value.get("requests"), list) and ("responderUsername" in value or "requesterUsername" in value)


def _session(document: Document) -> Json:
    """Return the session: the one value, or in newer files the first line with every later change made to it."""
    first = document.objects[0][1]
    if "requests" in first:
        return first
    session: Any = copy.deepcopy(first["v"])
    for _, change in document.objects[1:]:
        *path, last = change["k"]
        place = session
        for key in path:
            place = place[key]
        match change["kind"]:
            case 1:
                place[last] = change.get("v")
            case 2:
                items = place.setdefault(last, []) if isinstance(place, dict) else place[last]
                items[change.get("i", len(items)) :] = change.get("v") or []
            case 3:
                place.pop(last)
    return dict(session)


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the one conversation of a session."""
    aside = SkippedItems()
    messages: list[Any] = []
    model: str | None = None
    for request in _session(document)["requests"]:
        metadata = (request.get("result") or {}).get("metadata") or {}
        model = str(request["modelId"]).removeprefix("copilot/") if request.get("modelId") else model
        messages.append({"role": "user", "content": _user_text(request, metadata)})
        rounds = metadata.get("toolCallRounds") or []
        results = metadata.get("toolCallResults") or {}
        for item in rounds:
            messages.extend(_round(item, results, aside))
        for part in request.get("response") or []:
            if part.get("kind"):
                aside.add(f"part of type {part['kind']}, drawn on the screen")
        if not rounds and (text := "".join(string(part, "value") for part in request.get("response") or [])):
            messages.append({"role": "assistant", "content": text})
    yield RecordedConversation("copilot", "openai-chat", messages, model=model, name="main", notes=aside.notes())


def _user_text(request: Json, metadata: Json) -> str:
    """Return the message as it was rendered for the model, or as it was typed."""
    rendered = listing(metadata.get("renderedUserMessage"))
    if texts := [part["text"] for part in rendered if isinstance(part.get("text"), str)]:
        return "".join(texts)
    return str((request.get("message") or {}).get("text", ""))


def _round(item: Json, results: Json, aside: SkippedItems) -> Iterator[Json]:
    calls = item.get("toolCalls") or []
    message: Json = {"role": "assistant", "content": item.get("response") or None}
    if calls:
        message["tool_calls"] = [
            function_call(call["id"], call["name"], call.get("arguments") or "{}") for call in calls
        ]
    if calls or message["content"]:
        yield message
    for call in calls:
        if call["id"] in results:
            yield {"role": "tool", "tool_call_id": call["id"], "content": _text(results[call["id"]])}
        else:
            aside.add("call without a result, kept open")


def _text(result: Any) -> str:
    parts = result.get("content") if isinstance(result, dict) else result
    return "\n".join(_words(part.get("value") if isinstance(part, dict) else part) for part in parts or [])


def _words(value: object) -> str:
    """Return the words of a result, which may be a tree of rendered nodes."""
    match value:
        case {"node": dict(node)}:
            return "".join(_leaves(node))
        case _:
            return json_text(value)


def _leaves(node: Json) -> Iterator[str]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.get("type") == _CTOR_TEXT and isinstance(node.get("text"), str):
            yield node["text"] + ("\n" if node.get("lineBreakBefore") else "")
        waiting.extend(reversed(objects(node.get("children"))))
