"""What a loop works on: everything that was said, the plans in force, and what the model sees under them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold import formats
from refold.core.messages import Message, MessageId, Note, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.budget import Usage
    from refold.core.plan import Plan
    from refold.result import Result

__all__ = ["Conversation", "answers", "says"]


class Conversation:
    """Messages in the provider's shape. `said` is only ever extended; `view` is what is sent, compacted or not.

    `usage` is the provider's last report on the view, None when there is none that still holds.
    """

    def __init__(self, said: Sequence[Any] = (), plans: Sequence[Plan] = (), view: Sequence[Any] | None = None) -> None:
        self.said = list(said)
        self.plans = tuple(plans)
        self.view = list(self.said if view is None else view)
        self.usage: Usage | None = None

    def append(self, natives: Sequence[Any]) -> None:
        """Add what was said."""
        self.said.extend(natives)
        self.view.extend(natives)

    def put(self, result: Result) -> None:
        """Take over a compaction's result; the provider's last report no longer holds (O03)."""
        self.view = list(result.messages)
        self.plans = result.plans
        self.usage = None

    def restart(self) -> None:
        """Start again from everything that was said, as if nothing had been compacted (W18)."""
        if self.plans:
            self.view, self.plans, self.usage = list(self.said), (), None


def says(role: str, text: str, more: Sequence[str] = ()) -> dict[str, Any]:
    """Return a message of words in the shape that OpenAI's chat and Anthropic's messages share."""
    if not more:
        return {"role": role, "content": text}
    return {"role": role, "content": [{"type": "text", "text": part} for part in (text, *more)]}


def answers(format: str, results: Sequence[tuple[ToolCall, str, bool]]) -> list[Any]:
    """Return the messages that hold results, one for each or one for all as the format wants it.

    Each result is the call, the text, and whether it is an error.
    """
    shape = formats.find(format)
    parts = [
        ToolResult(call.call_id, (Text(text),), call.name, is_error, call.kind, at=(place,))
        for place, (call, text, is_error) in enumerate(results)
    ]
    groups = [parts] if shape.traits.results_together else [[part] for part in parts]
    made = [
        Message(MessageId(f"results:{n}"), "tool", tuple(group), Note("synthetic")) for n, group in enumerate(groups)
    ]
    return formats.assemble(shape, made)
