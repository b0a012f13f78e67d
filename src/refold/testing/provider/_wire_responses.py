"""OpenAI Responses on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core._json import Json, listing
from refold.testing.provider._wire import CREATED, WireError, arguments, offered, pieces
from refold.testing.provider._wire_openai import OpenAIWire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.core.view import Violation
    from refold.testing.provider._request_counter import Prompt
    from refold.testing.provider._script import Stop
    from refold.testing.provider._wire import Event, WireTurn

__all__ = ["OpenAIResponsesWire"]

_INCOMPLETE: dict[Stop, str] = {
    "length": "max_output_tokens",
    "window": "max_output_tokens",
    "refusal": "content_filter",
}


_EMPTY: Json = {"content": [], "summary": [], "arguments": "", "input": ""}  # what an item begins with in a stream


class OpenAIResponsesWire(OpenAIWire):
    """`POST /v1/responses`, with everything in the input: nothing is stored between calls."""

    format = "openai-responses"
    path = "/v1/responses"
    closing = ""

    def misshapen(self, body: Json, *, counting: bool = False) -> WireError | None:
        """Return what is wrong with a body before its messages are read; `counting` asks for less than answering."""
        if earlier := body.get("previous_response_id"):
            text = f"Previous response with id '{earlier}' not found."
            return WireError("invalid", text, "previous_response_id")
        items = body.get("input")
        if isinstance(items, str) and items:
            return None
        if not isinstance(items, list) or not items:
            return WireError("invalid", "Missing required parameter: 'input'.", "input")
        return None

    def violation(self, violation: Violation) -> WireError:
        """Return a broken rule in the provider's words."""
        place, ids = (violation.at or (0,))[0], ", ".join(violation.calls)
        if violation.rule == "pairing" and violation.message.endswith("has no result"):
            return WireError("invalid", f"No tool output found for function call {ids}.", "input")
        if violation.rule == "pairing":
            return WireError("invalid", f"No tool call found for function call output with call_id {ids}.", "input")
        if violation.rule == "reasoning":
            item = f"Item {place} of type 'reasoning' was provided without its required following item."
            return WireError("invalid", item, "input")
        return WireError("invalid", f"Invalid 'input[{place}]': {violation.message}.", f"input[{place}]")

    def thinking(self, body: Json, headers: Mapping[str, str]) -> WireError | int:
        """Return that nothing is wrong: what this provider encrypts is bound to nothing before it."""
        return 0

    def overflow(self, prompt: Prompt, max_output: int | None, window: int) -> WireError:
        """Return the refusal of a request that does not fit; this wire tells no numbers."""
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return WireError("overflow", text, "input")

    def reply(self, turn: WireTurn) -> Json:
        """Return an answer as one body."""
        reason = _INCOMPLETE.get(turn.answer.stop or "end")
        whole = {**_head(turn), "status": "completed", "output": _items(turn), "usage": _usage(turn)}
        return {**whole, "status": "incomplete", "incomplete_details": {"reason": reason}} if reason else whole

    def events(self, turn: WireTurn) -> Iterator[Event]:
        """Yield an answer as numbered events, item by item."""
        for number, (name, data) in enumerate(self._events(turn)):
            yield name, {"type": name, "sequence_number": number, **data}

    def _events(self, turn: WireTurn) -> Iterator[Event]:
        begun = {**_head(turn), "status": "in_progress"}
        yield "response.created", {"response": begun}
        yield "response.in_progress", {"response": begun}
        for place, item in enumerate(_items(turn)):
            empty: Json = {name: value for name, value in _EMPTY.items() if name in item}
            yield (
                "response.output_item.added",
                {"output_index": place, "item": {**item, "status": "in_progress", **empty}},
            )
            if item["type"] == "reasoning":
                yield from _summary_events(place, item)
            else:
                yield from _content(place, item) if "content" in item else _call_events(place, item)
            yield "response.output_item.done", {"output_index": place, "item": item}
        whole = self.reply(turn)
        yield f"response.{whole['status']}", {"response": whole}


def _content(place: int, item: Json) -> Iterator[Event]:
    at = {"item_id": item["id"], "output_index": place, "content_index": 0}
    part = item["content"][0]
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**at, "part": part}


def _summary_events(place: int, item: Json) -> Iterator[Event]:
    at = {"item_id": item["id"], "output_index": place, "summary_index": 0}
    part = item["summary"][0]
    yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
    yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**at, "part": part}


def _call_events(place: int, item: Json) -> Iterator[Event]:
    at = {"item_id": item["id"], "output_index": place}
    if item["type"] == "custom_tool_call":
        event, field, named = "response.custom_tool_call_input", "input", {}
    else:
        event, field, named = "response.function_call_arguments", "arguments", {"name": item["name"]}
    for piece in pieces(item[field]):
        yield f"{event}.delta", {**at, "delta": piece}
    yield f"{event}.done", {**at, **named, field: item[field]}


def _head(turn: WireTurn) -> Json:
    body = turn.received.body
    return {
        "id": f"resp_{turn.received.number:06}",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": turn.received.max_output,
        "metadata": {},
        "model": turn.received.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
    }


def _items(turn: WireTurn) -> list[Json]:
    answer, number = turn.answer, turn.received.number
    items: list[Json] = []
    if answer.thinking:
        item = {"id": f"rs_{number:06}", "type": "reasoning", "summary": _summary(answer.thinking)}
        encrypted = "reasoning.encrypted_content" in listing(turn.received.body.get("include"))
        items.append({**item, "encrypted_content": f"gAAAAA{number:06}=="} if encrypted else item)
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        reply = {"role": "assistant", "status": "completed", "content": [part]}
        items.append({"id": f"msg_{number:06}", "type": "message", **reply})
    tools = {tool.get("name"): (namespace, tool) for namespace, tool in offered(turn.received.body)}
    for place, (name, value) in enumerate(answer.calls):
        namespace, tool = tools.get(name, ("", {}))
        custom = tool.get("type") == "custom"
        ids = {"id": f"{'ctc' if custom else 'fc'}_{number:06}{place:02}", "call_id": f"call_{number:06}{place:02}"}
        call: Json = {"name": name, "input" if custom else "arguments": arguments(value), "status": "completed"}
        call |= {"namespace": namespace} if namespace else {}
        items.append({**ids, "type": "custom_tool_call" if custom else "function_call", **call})
    return items


def _summary(text: str) -> list[Json]:
    return [{"type": "summary_text", "text": text}]


def _usage(turn: WireTurn) -> Json:
    reported = turn.answer.usage
    prompt, completion = (reported.prompt, reported.completion) if reported else (turn.prompt, turn.completion)
    cached = reported.cached if reported else turn.cached.read
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }
