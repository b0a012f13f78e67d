"""Answers that are a compaction and nothing else, whole and as streams, in the shapes of the official SDKs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from refold.core._json import Json, mapping, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["compacted_message", "compaction_result", "event_bytes", "local_response", "message_events",
           "opening_events", "response_events"]  # fmt: skip

NONE_USED: Json = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0,
                   "cache_read_input_tokens": 0}  # fmt: skip
ITERATION: Json = {"type": "compaction", **NONE_USED}  # no model was called


def compacted_message(id: str, model: str, block: Json, applied: list[Json] | None) -> Json:
    """Return Anthropic's message that holds a compaction block alone."""
    usage = {**NONE_USED, "iterations": [ITERATION]}
    message: Json = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": model, "content": [block]}
    message |= {"stop_reason": "compaction", "stop_sequence": None, "usage": usage}
    return message if applied is None else {**message, "context_management": {"applied_edits": applied}}


def message_events(message: Json) -> list[Json]:
    """Return a message with a compaction block as the events of its stream."""
    start = {**message, "content": [], "stop_reason": None, "usage": NONE_USED}
    managed = {key: start.pop(key) for key in ("context_management",) if key in start}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        {"type": "message_start", "message": start},
        *opening_events(message["content"][0]),
        {"type": "message_delta", "delta": delta, "usage": message["usage"], **managed},
        {"type": "message_stop"},
    ]


def opening_events(block: Json) -> list[Json]:
    """Return the events of a compaction block that opens a message of Anthropic's."""
    delta = {"type": "compaction_delta", "content": block["content"], "encrypted_content": block["encrypted_content"]}
    return [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
    ]


def local_response(id: str, model: str, output: list[Json], request: Any) -> Json:
    """Return OpenAI's response to a request that no model has answered; `request` is read as a mapping.

    It has every field that the schema of Open Responses requires, with the provider's default where the request has
    none. Nobody stores it.
    """
    now = int(time.time())
    same = ("instructions", "max_output_tokens", "max_tool_calls", "prompt_cache_key", "safety_identifier")
    defaults: Json = {"metadata": {}, "parallel_tool_calls": True, "service_tier": "default", "temperature": 1.0,
                      "tool_choice": "auto", "top_p": 1.0, "truncation": "disabled"}  # fmt: skip
    chosen = {name: default if (value := request.get(name)) is None else value for name, default in defaults.items()}
    return {
        "id": f"resp_{id}", "object": "response", "created_at": now, "completed_at": now, "status": "completed",
        "background": False, "error": None, "frequency_penalty": 0.0, "incomplete_details": None, "model": model,
        "output": output, "presence_penalty": 0.0, "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None, **mapping(request.get("reasoning"))}, "store": False,
        "text": {"format": {"type": "text"}, **mapping(request.get("text"))},
        "tools": [_tool(each) for each in objects(request.get("tools"))], "top_logprobs": 0, "usage": _usage(0, 0),
        **{name: request.get(name) for name in same}, **chosen,
    }  # fmt: skip


def response_events(response: Json) -> list[Json]:
    """Return a response that no model has made as the events of its stream."""
    begun = {**response, "status": "in_progress", "completed_at": None, "output": [], "usage": None}
    places = [{"output_index": index, "item": item} for index, item in enumerate(response["output"])]
    names = "response.output_item.added", "response.output_item.done"
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *({"type": name, **place} for place in places for name in names),
        {"type": "response.completed", "response": response},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def compaction_result(id: str, output: Sequence[Any], before: int, after: int) -> Json:
    """Return the answer to `POST /v1/responses/compact`; the sizes are tokens of the history and of what it became."""
    head = {"id": f"resp_{id}", "object": "response.compaction", "created_at": int(time.time())}
    return {**head, "output": list(output), "usage": _usage(before, after)}


def event_bytes(events: Iterable[Json]) -> bytes:
    """Return events as the bytes of a stream."""
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event)) for event in events
    )


def _tool(tool: Json) -> Json:
    return {"description": None, "parameters": None, "strict": None, **tool} if tool.get("type") == "function" else tool


def _usage(prompt: int, completion: int) -> Json:
    return {
        "input_tokens": prompt, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": completion, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }  # fmt: skip
