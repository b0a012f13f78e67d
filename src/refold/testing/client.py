"""A client that is its own provider: what `ScriptedProvider` does with a request, without a server or an SDK."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from refold import formats
from refold.clients._protocol import Reply
from refold.core._json import Json
from refold.core.messages import MessageId, text_of
from refold.errors import UsageError
from refold.testing import judge
from refold.testing.provider._responder import Responder, Rules
from refold.testing.provider._script import Fault, FaultKind, ReceivedRequest, Script
from refold.testing.provider._wire_anthropic import AnthropicWire
from refold.testing.provider._wire_openai import OpenAIChatWire

if TYPE_CHECKING:
    from refold.clients._protocol import OnText, Wire
    from refold.core.counting import Counter
    from refold.testing.provider._script import Behave, Step
    from refold.testing.provider._wire import WireError

__all__ = ["ScriptedClient", "ScriptedRefusal"]

_encode = msgspec.json.Encoder().encode
_WORDS = 4_096  # tokens of an answer where a request to Anthropic must name a number and names none


class ScriptedRefusal(Exception):
    """A refusal in the provider's own words and status, as an SDK would raise it."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"Error code: {status} - {body}")
        self.status_code = status
        self.body = body


class ScriptedClient:
    """A `refold.clients._protocol.Client` that answers by a script or a rule, counts, checks and refuses.

    The arguments are those of `ScriptedProvider`; `format` is "openai-chat" or "anthropic". `strict=None` is strict
    where the provider's SDK is installed. Faults that only a network has (timeout, cut stream, malformed) are raised
    as `ConnectionError`.
    """

    base_url = ""

    def __init__(
        self,
        answers: Sequence[Step] | None = None,
        *,
        behave: Behave | None = None,
        window: int | None = None,
        format: Wire = "openai-chat",
        model: str = "scripted",
        faults: Mapping[int, FaultKind] | None = None,
        counter: Counter | None = None,
        output_apart: bool = False,
        silent_truncation: bool = False,
        strict: bool | None = None,
    ) -> None:
        if answers is not None and behave is not None:
            raise UsageError("give answers or behave, not both")
        self.model, self.format = model, format
        self._wire = AnthropicWire() if format == "anthropic" else OpenAIChatWire()
        strict = judge.installed(format) if strict is None else strict
        rules = Rules(window, output_apart=output_apart, silent_truncation=silent_truncation, strict=strict)
        script = Script(answers if answers is not None else ["OK."])
        numbered = {number: Fault(kind) for number, kind in (faults or {}).items()}
        self._answering = Responder(behave or script, rules, numbered, counter)
        self._lock = threading.Lock()

    @property
    def received(self) -> list[ReceivedRequest]:
        """Every call so far, in order, the refused ones too."""
        return self._answering.received

    def complete(
        self,
        messages: Sequence[Any],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Answer a request, or raise the refusal that it gets."""
        raw = _encode(self._body(messages, system, tools, max_tokens))
        with self._lock:
            outcome = self._answering.take(self._wire, raw, {})
        if outcome.refusal is not None:
            raise self._raised(outcome.refusal, outcome.number)
        if outcome.turn is None or (outcome.fault is not None and outcome.fault.kind != "empty"):
            raise ConnectionError(f"scripted fault: {outcome.fault.kind if outcome.fault else 'no answer'}")
        reply = self._reply(msgspec.json.decode(_encode(self._wire.reply(outcome.turn))))
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    def count(self, messages: Sequence[Any], system: Any = None, tools: Sequence[Any] | None = None) -> int:
        """Return the tokens of a prompt as the provider counts them."""
        counted = self._answering.count(self._wire, _encode(self._body(messages, system, tools, None)), {})
        if isinstance(counted, int):
            return counted
        raise self._raised(counted, 0)

    def close(self) -> None:
        """Nothing is open."""

    def _body(self, messages: Sequence[Any], system: Any, tools: Sequence[Any] | None, most: int | None) -> Any:
        body: Json = {"model": self.model, "messages": list(messages)}
        if self.format == "anthropic":
            body["max_tokens"] = most or _WORDS
            if system:
                body["system"] = system
        else:
            if system:
                body["messages"] = [{"role": "system", "content": system}, *messages]
            if most:
                body["max_tokens"] = most
        return body | ({"tools": list(tools)} if tools else {})

    def _raised(self, refusal: WireError, number: int) -> ScriptedRefusal:
        return ScriptedRefusal(self._wire.status(refusal), self._wire.error(refusal, number))

    def _reply(self, body: Json) -> Reply:
        if self.format == "anthropic":
            message, stop = {"role": "assistant", "content": body["content"]}, body["stop_reason"]
        else:
            choice = body["choices"][0]
            message, stop = choice["message"], choice["finish_reason"]
            message = {key: value for key, value in message.items() if value is not None or key == "content"}
        read = formats.find(self.format).read(message, MessageId("reply"))
        return Reply(message, text_of(read), read.calls, body["usage"], stop)
