"""The script of a mock provider: responses, faults, and the requests it received."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from refold.core._json import Json
from refold.core.budget import Usage
from refold.core.messages import Message
from refold.core.view import Violation
from refold.errors import UsageError
from refold.testing.judge._problem import Problem

__all__ = ["Behave", "Fault", "FaultKind", "ReceivedRequest", "Script", "ScriptedReply", "Step", "Stop"]

Stop: TypeAlias = Literal["end", "calls", "length", "refusal", "window"]
FaultKind: TypeAlias = Literal[
    "rate_limit", "server_error", "overloaded", "timeout", "cut_stream", "empty", "malformed", "reasoning_invalid",
    "reasoning_missing"
]  # fmt: skip


class ScriptedReply(Struct, frozen=True):
    """What the model answers: words, then calls, each a tool's name and its arguments (a mapping, or text as it is).

    `stop` follows from the calls when left out. `usage` is reported in place of what was counted. `thinking` comes
    first: signed over Anthropic's wire, a reasoning item over OpenAI's Responses; the others leave it out.
    """

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    stop: Stop | None = None
    usage: Usage | None = None
    thinking: str = ""


class Fault(Struct, frozen=True):
    """How a call fails. `retry_after` is the header of that name, in seconds; it is left out when None.

    `timeout` never answers, `cut_stream` closes the connection in the middle, `empty` is an answer without content,
    `malformed` one that is no JSON. `reasoning_invalid` refuses reasoning that came back, `reasoning_missing` a request
    without it, each in the words of the wire.
    """

    kind: FaultKind
    retry_after: float | None = None


class ReceivedRequest(Struct, frozen=True):
    """One request: where it came in (`wire` is the name of its format), the body as sent, and what was made of it.

    `tokens` is the whole prompt; `messages` are what the model sees, without the `dropped` oldest ones that a silent
    truncation left out; `system` is the system prompt where it stands outside the messages. `violations` are the rules
    of this library that it breaks; `problems` are the reasons of `refold.testing.judge` to refuse it, where the
    provider is strict. `cached` are tokens from the prompt cache, `status` is what it was answered with. `headers`
    hold no key.
    """

    number: int
    wire: str
    body: Json = {}
    headers: dict[str, str] = {}
    model: str = ""
    tokens: int = 0
    messages: tuple[Message, ...] = ()
    system: str = ""
    tools: tuple[str, ...] = ()
    max_output: int | None = None
    violations: tuple[Violation, ...] = ()
    problems: tuple[Problem, ...] = ()
    streaming: bool = False
    dropped: int = 0
    cached: int = 0
    status: int = 200


Step: TypeAlias = ScriptedReply | Fault | str
Behave: TypeAlias = Callable[[ReceivedRequest], Step]


class Script:
    """Gives scripted steps in turn, the last one for ever; a behaviour for `ScriptedProvider`."""

    def __init__(self, steps: Sequence[Step]) -> None:
        if isinstance(steps, str) or not steps:
            raise UsageError("answers is a list of at least one Answer, Fault or text")
        self._steps = tuple(steps)
        self._count = 0

    def __call__(self, received: ReceivedRequest) -> Step:
        """Return the next step."""
        step = self._steps[min(self._count, len(self._steps) - 1)]
        self._count += 1
        return step
