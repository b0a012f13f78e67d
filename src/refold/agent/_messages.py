"""Messages that a loop adds to a conversation, in the provider's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold.api import compact
from refold.core.messages import (
    Message,
    MessageId,
    Note,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.policy import Policy, Step
from refold.stages.repair import Repair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.clients._protocol import Reply

__all__ = ["answers", "kept", "open_calls", "says"]

MENDING = Policy("mending", (Step(Repair()), Step(Repair())))  # twice: a call may have two faults, each mended alone


def says(role: str, text: str, more: Sequence[str] = ()) -> dict[str, Any]:
    """Return a message of words in the shape that OpenAI's chat and Anthropic's messages share.

    Providers refuse blank blocks, so a blank `text` is left out where there is more.
    """
    if not more:
        return {"role": role, "content": text}
    return {"role": role, "content": [{"type": "text", "text": part} for part in (text, *more) if part.strip()]}


def kept(format: str, reply: Reply) -> tuple[list[Any], tuple[ToolCall, ...]]:
    """Return an answer's message as later requests can hold it, none where it holds nothing, and its calls.

    Providers refuse what they have sent themselves: an empty message, a blank block, two calls of one id, arguments
    that were cut off. The message is the very same object where nothing is wrong with it.
    """
    said = [says("user", "…"), reply.message]
    natives = compact(said, format=format, policy=MENDING, budget=10**9, counter="policy", force=True).messages[1:]
    if not natives or natives[0] is reply.message:
        return natives, reply.calls
    ids = [call.call_id for call in open_calls(format, natives[0])]
    return natives, tuple(replace(call, call_id=id) for call, id in zip(reply.calls, ids, strict=True))


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
    note = Note("synthetic")
    made = [Message(MessageId(f"results:{number}"), "tool", tuple(group), note) for number, group in enumerate(groups)]
    return formats.assemble(shape, made)


def open_calls(format: str, native: Any) -> tuple[ToolCall, ...]:
    """Return the calls of the last message of a conversation, which nothing can have answered."""
    return formats.find(format).read(native, MessageId("last")).calls
