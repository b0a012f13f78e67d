"""OpenAI chat completions on the wire, and the errors that both OpenAI wires share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core._json import Json
from refold.testing.provider._wire import CREATED, WireError, arguments, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.core.budget import Usage
    from refold.core.view import Violation
    from refold.testing.provider._cache import Cached, PromptCache
    from refold.testing.provider._request_counter import Prompt
    from refold.testing.provider._script import Stop
    from refold.testing.provider._wire import Event, ReasoningFault, RefusalKind, WireTurn

__all__ = ["OpenAIChatWire", "OpenAIWire"]

_STATUS: dict[RefusalKind, int] = {
    "overflow": 400, "invalid": 400, "auth": 401, "model": 404, "path": 404, "too_large": 413, "rate_limit": 429,
    "server_error": 500, "overloaded": 503, "encrypted": 400,
}  # fmt: skip
_TYPES: dict[RefusalKind, str] = {
    "rate_limit": "requests",
    "server_error": "server_error",
    "overloaded": "server_error",
}
_CODES: dict[RefusalKind, str] = {
    "overflow": "context_length_exceeded", "auth": "invalid_api_key", "model": "model_not_found",
    "rate_limit": "rate_limit_exceeded", "encrypted": "invalid_encrypted_content",
}  # fmt: skip
_MESSAGES: dict[RefusalKind, str] = {
    "model": "The model `{}` does not exist or you do not have access to it.",
    "auth": "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    "rate_limit": "Rate limit reached for requests per min (RPM): Limit 3, Used 3, Requested 1.",
    "server_error": "The server had an error while processing your request. Sorry about that!",
    "overloaded": "The engine is currently overloaded, please try again later.",
}
_STOPS: dict[Stop, str] = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "refusal": "content_filter",
    "window": "length",
}


class OpenAIWire:
    """What both of OpenAI's protocols have in common: a cache that keeps by itself, and the shape of errors."""

    def reasoning(self, fault: ReasoningFault, body: Json) -> WireError:
        """Return the refusal of encrypted reasoning that a body holds, or of an item without its reasoning."""
        if fault == "reasoning_missing":
            text = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."
            return WireError("invalid", text, "input")
        text = (
            "The encrypted content gAAA...DQ== could not be verified. Reason: Encrypted content could not be decrypted "
            "or parsed."
        )
        return WireError("encrypted", text)

    def cached(self, cache: PromptCache, prompt: Prompt, body: Json) -> Cached:
        """Return what the prompt cache gives; OpenAI stores without marks."""
        return cache.automatic(prompt.points(marks=False))

    def status(self, refusal: WireError) -> int:
        """Return the HTTP status of a refusal."""
        return _STATUS[refusal.kind]

    def error(self, refusal: WireError, number: int) -> Json:
        """Return the body of a refusal."""
        kind = refusal.kind
        message = _MESSAGES.get(kind, "{}").format(refusal.message)
        type_ = _TYPES.get(kind, "invalid_request_error")
        return {"error": {"message": message, "type": type_, "param": refusal.param, "code": _CODES.get(kind)}}


class OpenAIChatWire(OpenAIWire):
    """`POST /v1/chat/completions`."""

    format = "openai-chat"
    path = "/v1/chat/completions"
    closing = "[DONE]"

    def misshapen(self, body: Json, *, counting: bool = False) -> WireError | None:
        """Return what is wrong with a body before its messages are read."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            return WireError("invalid", "Missing required parameter: 'messages'.", "messages")
        if not messages:
            return WireError(
                "invalid", "Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages"
            )
        return None

    def violation(self, violation: Violation) -> WireError:
        """Return a broken rule in the provider's words."""
        place, ids = (violation.at or (0,))[0], ", ".join(violation.calls)
        at = f"messages.[{place}].role"
        if violation.rule == "pairing" and violation.message.endswith("has no result"):
            return WireError(
                "invalid",
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
                at,
            )
        if violation.rule == "pairing":
            return WireError(
                "invalid",
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
                at,
            )
        return WireError("invalid", f"Invalid 'messages[{place}]': {violation.message}.", f"messages[{place}]")

    def thinking(self, body: Json, headers: Mapping[str, str]) -> WireError | int:
        """Return that nothing is wrong: what this provider encrypts is bound to nothing before it."""
        return 0

    def overflow(self, prompt: Prompt, max_output: int | None, window: int) -> WireError:
        """Return the refusal of a request that does not fit, with its numbers."""
        head, tokens = f"This model's maximum context length is {window} tokens. However, ", prompt.tokens
        if tokens > window and prompt.tools:
            text = (
                f"your messages resulted in {tokens} tokens ({tokens - prompt.tools} in the messages, {prompt.tools} "
                "in the functions). Please reduce the length of the messages or functions."
            )
        elif tokens > window:
            text = f"your messages resulted in {tokens} tokens. Please reduce the length of the messages."
        else:
            text = (
                f"you requested {tokens + (max_output or 0)} tokens ({tokens} in the messages, {max_output} in the "
                "completion). Please reduce the length of the messages or completion."
            )
        return WireError("overflow", head + text, "messages")

    def reasoning(self, fault: ReasoningFault, body: Json) -> WireError:
        """Return the refusal of reasoning as routers pass it on from Claude, its places those of Claude's own list."""
        if fault == "reasoning_invalid":
            return WireError("invalid", "messages.1.content.0: Invalid `signature` in `thinking` block")
        text = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
        return WireError("invalid", text)

    def reply(self, turn: WireTurn) -> Json:
        """Return an answer as one body."""
        answer = turn.answer
        message: Json = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = _calls(turn)
        else:
            message["content"] = answer.text
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _STOPS[answer.stop or "end"]}
        return {**_head(turn), "object": "chat.completion", "choices": [choice], "usage": _usage(turn)}

    def events(self, turn: WireTurn) -> Iterator[Event]:
        """Yield an answer as chunks; usage in a chunk of its own where it was requested."""
        options = turn.received.body.get("stream_options")
        counted = isinstance(options, dict) and options.get("include_usage") is True
        head = {**_head(turn), "object": "chat.completion.chunk"} | ({"usage": None} if counted else {})

        def chunk(delta: Json, reason: str | None = None) -> Event:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            return "", {**head, "choices": [choice]}

        yield chunk({"role": "assistant", "content": None if turn.answer.calls else "", "refusal": None})
        for piece in pieces(turn.answer.text):
            yield chunk({"content": piece})
        for place, call in enumerate(_calls(turn)):
            function = call["function"]
            opened = {**call, "index": place, "function": {"name": function["name"], "arguments": ""}}
            yield chunk({"tool_calls": [opened]})
            for piece in pieces(function["arguments"]):
                yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
        yield chunk({}, _STOPS[turn.answer.stop or "end"])
        if counted:
            yield "", {**head, "choices": [], "usage": _usage(turn)}


def _head(turn: WireTurn) -> Json:
    number = turn.received.number
    return {"id": f"chatcmpl-{number:06}", "created": CREATED, "model": turn.received.model, "service_tier": "default"}


def _calls(turn: WireTurn) -> list[Json]:
    return [
        {
            "id": f"call_{turn.received.number:06}{place:02}",
            "type": "function",
            "function": {"name": name, "arguments": arguments(value)},
        }
        for place, (name, value) in enumerate(turn.answer.calls)
    ]


def _usage(turn: WireTurn) -> Json:
    reported: Usage | None = turn.answer.usage
    prompt, completion = (reported.prompt, reported.completion) if reported else (turn.prompt, turn.completion)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {
            "cached_tokens": reported.cached if reported else turn.cached.read,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
