"""Messages that a loop adds to a conversation, in the provider's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold._condense.call_facts import failed
from refold.api import compact
from refold.core._json import Json
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

__all__ = ["error_text", "open_calls", "repaired_reply", "result_messages", "text_message"]

LONG_ERROR = 400  # characters; the least to which any step of a policy cuts a text
REPLY_REPAIR = Policy("repair reply", (Step(Repair()), Step(Repair())))  # twice: a call may have two faults


def text_message(role: str, text: str, more: Sequence[str] = ()) -> Json:
    """Return a text message in the format that OpenAI's chat and Anthropic's messages share.

    Providers reject blank blocks, so a blank `text` is left out where there is more.
    """
    if not more:
        return {"role": role, "content": text}
    return {"role": role, "content": [{"type": "text", "text": part} for part in (text, *more) if part.strip()]}


def repaired_reply(format: str, reply: Reply) -> tuple[list[Any], tuple[ToolCall, ...]]:
    """Return a reply's message as later requests may contain it (none where it is empty), and its calls.

    Providers reject what they have sent themselves: an empty message, a blank block, two calls of one id, arguments
    that were cut off. The message is the very same object where nothing is wrong with it.
    """
    conversation = [text_message("user", "…"), reply.message]
    repaired = compact(conversation, format=format, policy=REPLY_REPAIR, budget=10**9, counter="policy", force=True)
    natives = repaired.messages[1:]
    if not natives or natives[0] is reply.message:
        return natives, reply.calls
    ids = [call.call_id for call in open_calls(format, natives[0])]
    return natives, tuple(replace(call, call_id=id) for call, id in zip(reply.calls, ids, strict=True))


def result_messages(format: str, results: Sequence[tuple[ToolCall, str, bool]]) -> list[Any]:
    """Return the messages of results, one for each or one for all as the format requires.

    Each result is the call, the text, and whether it is an error.
    """
    shape = formats.find(format)
    parts = [
        ToolResult(call.call_id, (Text(text),), call.name, is_error, call.kind, at=(place,))
        for place, (call, text, is_error) in enumerate(results)
    ]
    groups = [parts] if shape.traits.results_together else [[part] for part in parts]
    note = Note("synthetic")
    messages = [Message(MessageId(f"results:{n}"), "tool", tuple(group), note) for n, group in enumerate(groups)]
    return formats.assemble(shape, messages)


def error_text(format: str, text: str) -> str:  # W05
    """Return the text of an error result so that a compaction knows it as one in a format without a flag for errors.

    A short text is returned unchanged: no compaction shortens it.
    """
    known = formats.find(format).traits.flags_errors or failed(ToolResult("", (Text(text),)))
    return text if known or len(text) < LONG_ERROR else f"Error: {text}"


def open_calls(format: str, native: object) -> tuple[ToolCall, ...]:
    """Return the calls of the last message of a conversation, which have no result yet."""
    return formats.find(format).read(native, MessageId("last")).calls
