"""Gemini GenerateContent on the wire; the path contains the model and whether the response is streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from refold.core._json import Json
from refold.testing.provider._wire import WireError, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.core.view import Violation
    from refold.testing.provider._cache import Cached, PromptCache
    from refold.testing.provider._request_counter import Prompt
    from refold.testing.provider._script import Stop
    from refold.testing.provider._wire import Event, ReasoningFault, RefusalKind, WireTurn

__all__ = ["GeminiWire", "named"]

_STOPS: dict[Stop, str] = {"length": "MAX_TOKENS", "window": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUS: dict[RefusalKind, tuple[int, str]] = {
    "auth": (400, "INVALID_ARGUMENT"),
    "model": (404, "NOT_FOUND"),
    "path": (404, "NOT_FOUND"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED"),
    "server_error": (500, "INTERNAL"),
    "overloaded": (503, "UNAVAILABLE"),
}


class GeminiWire:
    """`POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent`; the answer is counted apart."""

    format = "gemini"
    path = "/v1beta/models/{model}"
    closing = ""

    def misshapen(self, body: Json, *, counting: bool = False) -> WireError | None:
        """Return what is wrong with a body before its messages are read; `counting` asks for less than answering."""
        contents = body.get("contents")
        if not isinstance(contents, list) or not contents:
            return WireError("invalid", "* GenerateContentRequest.contents: contents is not specified")
        return None

    def violation(self, violation: Violation) -> WireError:
        """Return a broken rule in the provider's words."""
        if violation.rule == "pairing":
            return WireError(
                "invalid",
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn.",
            )
        if violation.rule in ("order", "opening"):
            return WireError("invalid", "Please ensure that multiturn requests alternate between user and model.")
        return WireError(
            "invalid", f"* GenerateContentRequest.contents[{(violation.at or (0,))[0]}]: {violation.message}"
        )

    def thinking(self, body: Json, headers: Mapping[str, str]) -> WireError | int:
        """Return that nothing is wrong: what this provider encrypts is bound to nothing before it."""
        return 0

    def overflow(self, prompt: Prompt, max_output: int | None, window: int) -> WireError:
        """Return the refusal of a request that does not fit, with its numbers."""
        text = f"The input token count ({prompt.tokens}) exceeds the maximum number of tokens allowed ({window})."
        return WireError("overflow", text)

    def reasoning(self, fault: ReasoningFault, body: Json) -> WireError:
        """Return the refusal of signatures that a body holds, or of a call without one."""
        if fault == "reasoning_invalid":
            return WireError("invalid", "Corrupted thought signature.")
        text = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work."
        return WireError("invalid", text)

    def cached(self, cache: PromptCache, prompt: Prompt, body: Json) -> Cached:
        """Return what the prompt cache gives; it stores without marks."""
        return cache.automatic(prompt.points(marks=False))

    def status(self, refusal: WireError) -> int:
        """Return the HTTP status of a refusal."""
        return _STATUS.get(refusal.kind, (400, ""))[0]

    def error(self, refusal: WireError, number: int) -> Json:
        """Return the body of a refusal."""
        code, status = _STATUS.get(refusal.kind, (400, "INVALID_ARGUMENT"))
        return {"error": {"code": code, "message": refusal.message, "status": status}}

    def reply(self, turn: WireTurn) -> Json:
        """Return an answer as one body."""
        return _chunk(turn, _parts(turn), last=True)

    def events(self, turn: WireTurn) -> Iterator[Event]:
        """Yield an answer as chunks, words in pieces and each call whole."""
        words = pieces(turn.answer.text)
        for piece in words:
            yield "", _chunk(turn, [{"text": piece}], last=False)
        yield "", _chunk(turn, _parts(turn)[1 if turn.answer.text else 0 :] or [{"text": ""}], last=True)


def named(raw: bytes, model: str, *, streaming: bool) -> bytes:
    """Return a body with what the path says of it: the model, and whether the answer is streamed."""
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw
    return msgspec.json.encode({**body, "model": model, "stream": streaming}) if isinstance(body, dict) else raw


def _parts(turn: WireTurn) -> list[Json]:
    answer = turn.answer
    parts: list[Json] = [{"text": answer.text}] if answer.text else []
    for place, (name, value) in enumerate(answer.calls):
        arguments = msgspec.json.decode(value or "{}") if isinstance(value, str) else dict(value)
        id = f"fc_{turn.received.number:06}{place:02}"
        parts.append({"functionCall": {"id": id, "name": name, "args": arguments}})
    return parts


def _chunk(turn: WireTurn, parts: list[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = _STOPS.get(turn.answer.stop or "end", "STOP")
    reported = turn.answer.usage
    prompt, completion = (reported.prompt, reported.completion) if reported else (turn.prompt, turn.completion)
    cached = reported.cached if reported else turn.cached.read
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": completion, "totalTokenCount": prompt + completion}
    return {
        "candidates": [candidate],
        "usageMetadata": {**usage, "cachedContentTokenCount": cached} if cached else usage,
        "modelVersion": turn.received.model,
        "responseId": f"resp_{turn.received.number:06}",
    }
