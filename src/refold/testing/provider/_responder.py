"""Decides the outcome of a request without any network: an error, a response, or a scripted fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold import formats
from refold._counting.token_cut import cut_to_tokens
from refold.core._json import Json, string
from refold.core.messages import Message, MessageId, Reasoning, Text, ToolCall
from refold.errors import BadMessages
from refold.testing.judge import problems
from refold.testing.judge._problem import indexed
from refold.testing.provider._cache import PromptCache
from refold.testing.provider._compaction import compaction_refusal
from refold.testing.provider._request_counter import RequestCounter, broken
from refold.testing.provider._script import Fault, ReceivedRequest, ScriptedReply
from refold.testing.provider._wire import WireError, WireTurn, arguments, offered

if TYPE_CHECKING:
    from refold.core.counting import Counter
    from refold.testing.provider._request_counter import Prompt
    from refold.testing.provider._script import Behave, FaultKind, Step
    from refold.testing.provider._wire import RefusalKind, Wire

__all__ = ["Responder", "Rules", "ScriptedOutcome"]

_EARLY_REFUSALS: dict[FaultKind, RefusalKind] = {
    "rate_limit": "rate_limit",
    "server_error": "server_error",
    "overloaded": "overloaded",
}
_SECRET = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization"})
_LENGTHS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


class Rules(Struct, frozen=True):
    """What a provider insists on; `ScriptedProvider` says what each means."""

    window: int | None = None
    key: str | None = None
    models: tuple[str, ...] = ()
    max_bytes: int = 32 * 1024 * 1024
    output_apart: bool = False
    silent_truncation: bool = False
    strict: bool = True
    native_compaction: bool = True


class ScriptedOutcome(Struct, frozen=True):
    """What a call gets: a refusal; a turn; or a fault, with the turn it spoils where it comes that far."""

    number: int
    refusal: WireError | None = None
    turn: WireTurn | None = None
    fault: Fault | None = None


class Responder:
    """One provider's memory: what it received, how often it was called, its prompt cache, and what it says next."""

    def __init__(self, behave: Behave, rules: Rules, faults: Mapping[int, Fault], counter: Counter | None) -> None:
        self.received: list[ReceivedRequest] = []
        self._calls = 0
        self._behave = behave
        self._rules = rules
        self._faults = faults
        self._tally = RequestCounter(counter)
        self._cache = PromptCache()

    def take(self, wire: Wire, raw: bytes, headers: Mapping[str, str]) -> ScriptedOutcome:
        """Return what a call gets; every call has a number, also one that is refused."""
        self._calls += 1
        received = ReceivedRequest(
            self._calls,
            wire.format,
            headers={name: value for name, value in headers.items() if name.lower() not in _SECRET},
        )
        body = self._opened(raw, headers)
        if isinstance(body, WireError):
            return self._refused(wire, received, body)
        received = replace(received, body=body, model=string(body, "model"), streaming=body.get("stream") is True)
        if not self._rules.native_compaction and (refusal := compaction_refusal(body, headers)):
            return self._refused(wire, received, refusal)
        fault = self._faults.get(received.number)
        if fault is not None and (early := self._early(wire, received, fault)):
            return early
        if self._rules.strict:
            received = replace(received, problems=problems(wire.format, body, headers=headers))
        prompt = self._prompt(wire, body)
        if not isinstance(prompt, WireError):
            received = _read(received, prompt)
        if received.problems:
            first = received.problems[0]
            return self._refused(wire, received, WireError("invalid", first.message, indexed(first.at)))
        if isinstance(prompt, WireError):
            return self._refused(wire, received, prompt)
        if received.violations and not self._rules.strict:
            return self._refused(wire, received, wire.violation(received.violations[0]))
        dropped = wire.thinking(body, received.headers)
        if isinstance(dropped, WireError):
            return self._refused(wire, received, dropped)
        window = self._rules.window
        if window is not None and self._rules.silent_truncation and prompt.tokens > window:
            short = prompt.shortened(window)
            received = replace(_read(received, short), dropped=len(prompt.messages) - len(short.messages))
            prompt = short
        elif window is not None and self._beyond(prompt, received.max_output, window):
            return self._refused(wire, received, wire.overflow(prompt, received.max_output, window))
        return self._answered(wire, received, prompt, fault, dropped)

    def count(self, wire: Wire, raw: bytes, headers: Mapping[str, str]) -> int | WireError:
        """Return the tokens of a prompt that is not to be answered."""
        body = self._opened(raw, headers)
        if isinstance(body, WireError):
            return body
        if not self._rules.native_compaction and (refusal := compaction_refusal(body, headers)):
            return refusal
        prompt = self._prompt(wire, body, counting=True)
        return prompt if isinstance(prompt, WireError) else prompt.tokens

    def allowed(self, headers: Mapping[str, str]) -> bool:
        """Tell whether the key of a request is right; any is where none was set."""
        value = (
            headers.get("x-api-key")
            or headers.get("x-goog-api-key")
            or headers.get("authorization", "").removeprefix("Bearer ")
        )
        return self._rules.key is None or value == self._rules.key

    def _opened(self, raw: bytes, headers: Mapping[str, str]) -> Json | WireError:
        if not self.allowed(headers):
            return WireError("auth", "wrong key")
        limit = self._rules.max_bytes
        if len(raw) > limit:
            return WireError("too_large", f"Maximum content size limit ({limit}) exceeded ({len(raw)} bytes read)")
        try:
            body = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            body = None
        if not isinstance(body, dict):
            return WireError("invalid", "We could not parse the JSON body of your request.")
        model = string(body, "model")
        if not model:
            return WireError("invalid", "you must provide a model parameter", "model")
        if self._rules.models and model not in self._rules.models:
            return WireError("model", model, "model")
        return body

    def _prompt(self, wire: Wire, body: Json, *, counting: bool = False) -> Prompt | WireError:
        if refusal := wire.misshapen(body, counting=counting):
            return refusal
        try:
            return self._tally.read(wire.format, body)
        except BadMessages as error:
            return WireError("invalid", str(error))

    def _early(self, wire: Wire, received: ReceivedRequest, fault: Fault) -> ScriptedOutcome | None:
        """Return what a call gets that fails before anybody looks at it."""
        if fault.kind == "reasoning_invalid" or fault.kind == "reasoning_missing":
            return self._refused(wire, received, wire.reasoning(fault.kind, received.body))
        if kind := _EARLY_REFUSALS.get(fault.kind):
            return self._refused(wire, received, WireError(kind, fault.kind, retry_after=fault.retry_after))
        if fault.kind == "timeout":
            self.received.append(replace(received, status=0))
            return ScriptedOutcome(received.number, fault=fault)
        return None

    def _answered(
        self, wire: Wire, received: ReceivedRequest, prompt: Prompt, fault: Fault | None, dropped: int
    ) -> ScriptedOutcome:
        step: Step = ScriptedReply() if fault and fault.kind == "empty" else self._behave(received)
        if isinstance(step, Fault):
            if early := self._early(wire, received, step):
                return early
            fault = step
            step = ScriptedReply() if fault.kind == "empty" else ScriptedReply("This answer never comes whole.")
        answer = ScriptedReply(step) if isinstance(step, str) else step
        answer = _limited(answer, self._room(prompt, received.max_output), prompt.counter)
        cached = wire.cached(self._cache, prompt, received.body)
        received = replace(received, cached=cached.read)
        self.received.append(received)
        turn = WireTurn(received, answer, prompt.tokens, _size(answer, prompt.counter), cached, dropped)
        return ScriptedOutcome(received.number, turn=turn, fault=fault)

    def _refused(self, wire: Wire, received: ReceivedRequest, refusal: WireError) -> ScriptedOutcome:
        self.received.append(replace(received, status=wire.status(refusal)))
        return ScriptedOutcome(received.number, refusal=refusal)

    def _beyond(self, prompt: Prompt, max_output: int | None, window: int) -> bool:
        return prompt.tokens + (0 if self._rules.output_apart else max_output or 0) > window

    def _room(self, prompt: Prompt, max_output: int | None) -> int | None:
        """Return the most tokens an answer may have: what the request allows, and what the window leaves."""
        window = self._rules.window
        left = None if window is None or self._rules.output_apart else max(1, window - prompt.tokens)
        return min((size for size in (left, max_output) if size is not None), default=None)


def _read(received: ReceivedRequest, prompt: Prompt) -> ReceivedRequest:
    """Return a request with everything that was read from it."""
    return replace(
        received,
        tokens=prompt.tokens,
        messages=prompt.messages,
        system=formats.system_text(prompt.request.system),
        tools=tuple(name for _, tool in offered(received.body) if (name := string(tool, "name"))),
        max_output=next((size for key in _LENGTHS if isinstance(size := received.body.get(key), int)), None),
        violations=received.violations or broken(prompt),
    )


def _size(answer: ScriptedReply, counter: Counter) -> int:
    """Return the tokens of an answer, without what frames a message."""
    calls = [ToolCall("", name, arguments(value)) for name, value in answer.calls]
    empty = Message(MessageId(""), "assistant")
    return counter.message(
        replace(empty, parts=(Text(answer.text), Reasoning(answer.thinking), *calls))
    ) - counter.message(empty)


def _limited(answer: ScriptedReply, room: int | None, counter: Counter) -> ScriptedReply:
    """Return an answer with its stop, cut where its words are longer than there is room for; then calls are lost."""
    if room is not None and counter.text(answer.text) > room:
        return replace(answer, text=cut_to_tokens(answer.text, room, counter)[0], calls=(), stop="length")
    return replace(answer, stop=answer.stop or ("calls" if answer.calls else "end"))
