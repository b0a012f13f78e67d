"""Anthropic messages on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from refold.core._json import Json, listing, mapping
from refold.testing.provider._thinking import CONTROLS, misplaced, missing, signature, without_misplaced
from refold.testing.provider._wire import WireError, arguments, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.core.view import Violation
    from refold.testing.provider._cache import Cached, PromptCache
    from refold.testing.provider._request_counter import Prompt
    from refold.testing.provider._script import Stop
    from refold.testing.provider._wire import Event, ReasoningFault, RefusalKind, WireTurn

__all__ = ["AnthropicWire"]

_STATUS: dict[RefusalKind, int] = {
    "overflow": 400, "invalid": 400, "auth": 401, "model": 404, "path": 404, "too_large": 413, "rate_limit": 429,
    "server_error": 500, "overloaded": 529, "encrypted": 400,
}  # fmt: skip
_TYPES: dict[RefusalKind, str] = {
    "auth": "authentication_error", "model": "not_found_error", "path": "not_found_error",
    "too_large": "request_too_large", "rate_limit": "rate_limit_error", "server_error": "api_error",
    "overloaded": "overloaded_error",
}  # fmt: skip
_MESSAGES: dict[RefusalKind, str] = {
    "model": "model: {}",
    "auth": "invalid x-api-key",
    "path": "Not found",
    "too_large": "Request exceeds the maximum size",
    "rate_limit": "This request would exceed the rate limit of your organization. Please try again later.",
    "server_error": "Internal server error",
    "overloaded": "Overloaded",
}
_STOPS: dict[Stop, str] = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "window": "model_context_window_exceeded",
}


class AnthropicWire:
    """`POST /v1/messages`, and the shapes of `POST /v1/messages/count_tokens`."""

    format = "anthropic"
    path = "/v1/messages"
    closing = ""

    def misshapen(self, body: Json, *, counting: bool = False) -> WireError | None:
        """Return what is wrong with a body before its messages are read."""
        messages, limit = body.get("messages"), body.get("max_tokens")
        if not counting and (not isinstance(limit, int) or isinstance(limit, bool)):
            return WireError("invalid", "max_tokens: Field required")
        if not counting and isinstance(limit, int) and limit < 1:
            return WireError("invalid", "max_tokens: Input should be greater than or equal to 1")
        if not isinstance(messages, list):
            return WireError("invalid", "messages: Field required")
        if not messages:
            return WireError("invalid", "messages: at least one message is required")
        return None

    def violation(self, violation: Violation) -> WireError:
        """Return a broken rule in the provider's words."""
        place, ids, text = (violation.at or (0,))[0], ", ".join(violation.calls), violation.message
        if violation.rule == "pairing" and text.endswith("has no result"):
            message = (
                f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
                "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        elif violation.rule == "pairing" and "second result" in text:
            message = (
                f"messages.{place}.content: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {ids}"
            )
        elif violation.rule == "pairing" and ids:
            message = (
                f"messages.{place}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {ids}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        elif violation.rule == "content":
            message = f"messages.{place}: all messages must have non-empty content"
        elif violation.rule == "opening":
            message = 'messages: first message must use the "user" role'
        elif violation.rule == "ids":
            message = f"messages.{place}: `tool_use` ids must be unique"
        else:
            message = f"messages.{place}: {text}"
        return WireError("invalid", message)

    def thinking(self, body: Json, headers: Mapping[str, str]) -> WireError | int:
        """Return what is wrong with the thinking of a request, or how many blocks are dropped as it asks for."""
        if (place := missing(body)) is not None:
            return WireError(
                "invalid",
                f"messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. "
                "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding "
                "the lastmost set of `tool_use` and `tool_result` blocks).",
            )
        stale = misplaced(body)
        binding = body.get("thinking", {}).get("block_binding", {}) if isinstance(body.get("thinking"), dict) else {}
        if stale and not (
            binding.get("prefix_mismatch_behavior") == "drop_block" and CONTROLS in headers.get("anthropic-beta", "")
        ):
            place, number = stale[0]
            return WireError(
                "invalid",
                f"messages.{place}.content.{number}: Invalid signature in thinking block. The block is bound to a "
                "different conversation: what stands before it is not what it was produced behind.",
            )
        return len(stale)

    def overflow(self, prompt: Prompt, max_output: int | None, window: int) -> WireError:
        """Return the refusal of a request that does not fit, with its numbers."""
        tokens = prompt.tokens
        if tokens > window:
            return WireError("overflow", f"prompt is too long: {tokens} tokens > {window} maximum")
        return WireError(
            "overflow",
            f"input length and `max_tokens` exceed context limit: {tokens} + {max_output} > {window}, decrease input "
            "length or `max_tokens` and try again",
        )

    def reasoning(self, fault: ReasoningFault, body: Json) -> WireError:
        """Return the refusal of thinking that a body holds, of the first by its place, or of a body without it."""
        if fault == "reasoning_missing":
            text = (
                "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
                "`thinking` is enabled, a final `assistant` message must start with a thinking block."
            )
            return WireError("invalid", text)
        place, block = _first_thinking(body)
        text = (
            f"messages.{place}.content.{block}: Invalid `signature` in `thinking` block. The block is bound to a "
            "different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
            '"drop_block".'
        )
        return WireError("invalid", text)

    def cached(self, cache: PromptCache, prompt: Prompt, body: Json) -> Cached:
        """Return what the prompt cache gives and takes: up to marks, or to the end where the body itself bears one."""
        points = prompt.points(marks=True)
        if isinstance(body.get("cache_control"), dict):
            points[-1] = replace(points[-1], marked=True)
        return cache.marked(points)

    def status(self, refusal: WireError) -> int:
        """Return the HTTP status of a refusal."""
        return _STATUS[refusal.kind]

    def error(self, refusal: WireError, number: int) -> Json:
        """Return the body of a refusal."""
        kind = refusal.kind
        message = {
            "type": _TYPES.get(kind, "invalid_request_error"),
            "message": _MESSAGES.get(kind, "{}").format(refusal.message),
        }
        return {"type": "error", "error": message, "request_id": f"req_{number:06}"}

    def reply(self, turn: WireTurn) -> Json:
        """Return an answer as one body."""
        stop = _STOPS[turn.answer.stop or "end"]
        return {**_head(turn), "content": _blocks(turn), "stop_reason": stop, "usage": _usage(turn), **_dropped(turn)}

    def events(self, turn: WireTurn) -> Iterator[Event]:
        """Yield an answer as events, block by block."""
        usage = _usage(turn)
        yield _event("message_start", message={**_head(turn), "usage": {**usage, "output_tokens": 1}})
        for place, block in enumerate(_blocks(turn)):
            if block["type"] == "thinking":
                yield from _thinking(place, block)
                continue
            words = block["type"] == "text"
            opened = {**block, "text": ""} if words else {**block, "input": {}}
            yield _event("content_block_start", index=place, content_block=opened)
            if not place:
                yield _event("ping")
            for piece in pieces(block["text"] if words else arguments(turn.answer.calls[place - _calls_from(turn)][1])):
                delta = {"type": "text_delta", "text": piece}
                delta = delta if words else {"type": "input_json_delta", "partial_json": piece}
                yield _event("content_block_delta", index=place, delta=delta)
            yield _event("content_block_stop", index=place)
        ending = {"stop_reason": _STOPS[turn.answer.stop or "end"], "stop_sequence": None}
        yield _event("message_delta", delta=ending, usage=usage)
        yield _event("message_stop")


def _thinking(place: int, block: Json) -> Iterator[Event]:
    opened = {**block, "thinking": "", "signature": ""}
    yield _event("content_block_start", index=place, content_block=opened)
    for piece in pieces(block["thinking"]):
        yield _event("content_block_delta", index=place, delta={"type": "thinking_delta", "thinking": piece})
    sealing = {"type": "signature_delta", "signature": block["signature"]}
    yield _event("content_block_delta", index=place, delta=sealing)
    yield _event("content_block_stop", index=place)


def _first_thinking(body: Json) -> tuple[int, int]:
    """Return where the first block of thinking stands: message and block."""
    for place, message in enumerate(body["messages"]):
        for number, block in enumerate(listing(message.get("content"))):
            if mapping(block).get("type") in ("thinking", "redacted_thinking"):
                return place, number
    return 1, 0


def _event(name: str, **data: Any) -> Event:
    return name, {"type": name, **data}


def _head(turn: WireTurn) -> Json:
    return {
        "id": f"msg_{turn.received.number:06}",
        "type": "message",
        "role": "assistant",
        "model": turn.received.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _calls_from(turn: WireTurn) -> int:
    """Return the place of the first call among the blocks."""
    return bool(turn.answer.thinking) + bool(turn.answer.text)


def _blocks(turn: WireTurn) -> list[Json]:
    answer, number = turn.answer, turn.received.number
    blocks: list[Json] = []
    if answer.thinking:
        body = turn.received.body if not turn.dropped_thinking else without_misplaced(turn.received.body)
        sealed = signature(body, answer.thinking)
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": sealed})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for place, (name, value) in enumerate(answer.calls):
        id = f"toolu_{number:06}{place:02}"
        blocks.append({"type": "tool_use", "id": id, "name": name, "input": _input(value)})
    return blocks


def _dropped(turn: WireTurn) -> Json:
    one = {"type": "thinking_dropped", "reason": "prefix_binding_mismatch"}
    return {"input_transformations": [one] * turn.dropped_thinking} if turn.dropped_thinking else {}


def _input(value: Any) -> Any:
    """Return arguments as an object; other text cannot come over this wire and is stored whole under a key."""
    if not isinstance(value, str):
        return dict(value)
    try:
        decoded = msgspec.json.decode(value or "{}")
    except msgspec.DecodeError:
        decoded = None
    return decoded if isinstance(decoded, dict) else {"raw": value}


def _usage(turn: WireTurn) -> Json:
    """Return usage: what was read from and written to the cache, and the rest of the prompt."""
    usage = turn.answer.usage
    prompt, completion = (usage.prompt, usage.completion) if usage else (turn.prompt, turn.completion)
    read, written = (usage.cached, 0) if usage else (turn.cached.read, turn.cached.written)
    return {
        "input_tokens": prompt - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": completion,
        "service_tier": "standard",
    }
