"""Arguments that are written as text are a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from refold._rules.base import CutAnywhere
from refold.core.messages import Message, ToolCall, memoized
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["JsonArguments"]

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class JsonArguments(CutAnywhere, frozen=True):
    """The arguments of a function call are a JSON object, or nothing; other kinds of call take any text.

    A stream that was cut inside the arguments leaves text that servers refuse in every later request.
    """

    name: str = "arguments"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return calls whose arguments are no JSON object."""
        return tuple(
            Violation(
                self.name,
                f"the arguments of call {call.call_id or call.name} are no JSON object",
                (position,),
                (message.id,),
            )
            for position, message in enumerate(messages)
            if message.role == "assistant"
            for call in message.calls
            if not self.holds(call)
        )

    @staticmethod
    def holds(call: ToolCall) -> bool:
        """Tell whether the arguments of a call are what a function call takes."""
        return call.kind != "function" or not call.arguments or _object(call)


@memoized
def _object(call: ToolCall) -> bool:
    try:
        _decode(call.arguments)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True
