"""OpenAI Responses: the list `input`, in which every item (text, call, output, reasoning) is one message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold._rules.arguments import JsonArguments
from refold._rules.content import Filled
from refold._rules.form import WellFormed
from refold._rules.ids import UniqueIds
from refold._rules.items import Approvals, ItemIds, LastItem
from refold._rules.pairing import IdPairing
from refold._rules.reasoning import ReasoningBeforeItem
from refold._rules.role import Speaker
from refold._rules.spelling import Spelled
from refold.core._json import listing, mapping, objects, string
from refold.core.messages import (
    Image,
    Message,
    Part,
    Path,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.view import FormatTraits
from refold.formats import _form_violations as form_violations
from refold.formats._base import EMPTY, Body, Lens, content_text, is_words
from refold.formats._openai_items import (
    answer_value,
    call_item,
    contents,
    output_item,
    part_of_item,
    restored,
    text_block,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import MessageId

__all__ = ["FORMAT", "OpenAIResponses"]

_ROLES: dict[Any, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_WORDS = frozenset({"input_text", "output_text", "text"})  # the same words, said by one side or the other
_OF_ANSWERS = frozenset({"annotations", "logprobs"})  # keys of an answer's words alone
_BLOCKS = frozenset({"input_text", "input_image", "input_file", "output_text", "summary_text", "input_audio"})
_ITEMS = frozenset({"reasoning", "item_reference", "compaction", "compaction_trigger", "configuration_update"})
_ITEMS |= {"additional_tools", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "program"}
_ITEMS |= {"program_output", "tool_search_output"}


class OpenAIResponses(Lens):
    """Responses API. Items of unknown types are Opaque, as is a refusal, which stays as it is.

    After a compaction item the provider reads on from there; a window that `/responses/compact` returned holds messages
    before the item, and those are read.
    """

    name = "openai-responses"
    marks = ("role", "type", "id")  # a reference to an item may be its id alone
    rules = (
        LastItem(),
        ItemIds(),
        Approvals(),
        IdPairing(),
        ReasoningBeforeItem(),
        Speaker(("system", "developer", "user", "assistant"), known_only=False, items=True),
        WellFormed(form_violations.openai_responses),
        Filled(),
        UniqueIds(),
        JsonArguments(),
        Spelled(longest_id=64),
    )
    traits = FormatTraits(picture_results=frozenset({"computer"}))
    body = Body(messages=("input",), system=(("instructions",),), max_output=(("max_output_tokens",),))

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that an item holds."""
        speaker = native.get("role")
        if isinstance(speaker, str) and native.get("type") in (None, "message"):
            parts: tuple[Part, ...] = contents(native.get("content"), ("content",))
            return Message(id, _ROLES.get(speaker, "user"), parts, None, native)
        role, parts = part_of_item(native)
        return Message(id, role, parts, None, native)

    def anchor(self, messages: Sequence[Message]) -> int:
        """Return the position of the newest compaction item, or 0 where only messages that it left stand before it."""
        newest = super().anchor(messages)
        retained = all(message.role in ("user", "system") and message.note is None for message in messages[:newest])
        return 0 if retained else newest

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""
        kind, content = native.get("type"), native.get("content")
        if isinstance(kind, str) and (kind in _ITEMS or kind.endswith(("_call", "_call_output"))):
            return True
        if kind == "message" and isinstance(native.get("role"), str) and not isinstance(native.get("message"), dict):
            return True
        return any(string(block, "type") in _BLOCKS - {"input_audio"} for block in objects(content))

    def render(self, part: Part, old: object, at: Path) -> Any:
        """Return a part as a native value, in place of an old one."""
        match part:
            case Text(text=text) if is_words(old, at) or at == ("content",) or (len(at) == 1 and old is None):
                return text
            case Text(text=text):
                return text_block(text, old)
            case Image(width=1, height=1):  # in place of a picture where nothing else may stand
                return text_block("", old)
            case ToolCall():
                return call_item(part, old) if isinstance(old, dict) else old
            case ToolResult() if at:
                return answer_value(part, old)
            case ToolResult():
                return output_item(part, mapping(old))
            case _ if old is not None:
                return old
            case _:
                return text_block(content_text((part,)), None)

    def invent(self, message: Message) -> Any:
        """Return an item for a message that has none."""
        match message.parts:
            case (ToolCall() as call,):
                return call_item(call, {})
            case (ToolResult() as result,):
                return output_item(result, {})
            case _:
                role = "user" if message.role == "tool" else message.role
                parts = [part for part in message.parts if not isinstance(part, Reasoning)]
                return {"type": "message", "role": role, "content": content_text(parts)}

    def spread(self, message: Message) -> tuple[Message, ...]:
        """Return one message an item: the words, then each call and result."""
        if len(message.parts) < 2:
            return (message,)
        apart = [part for part in message.parts if isinstance(part, ToolCall | ToolResult)]
        spoken = tuple(part for part in message.parts if not isinstance(part, ToolCall | ToolResult))
        messages = [replace(message, parts=(part,)) for part in apart]
        return tuple([replace(message, parts=spoken), *messages] if spoken else messages)

    def finish(self, native: Any, message: Message) -> Any:
        """Return an edited item with the fields that it must have, and its words in blocks of the speaker's type."""
        content = native.get("content")
        if "role" not in native:
            return restored(native)
        if not isinstance(content, list):
            return native if content else {**native, "content": EMPTY}
        kind = "output_text" if native["role"] == "assistant" else "input_text"
        blocks = [_retyped(block, kind) for block in content]
        return {**native, "content": blocks or [{"type": kind, "text": EMPTY}]}

    def speaker(self, native: Any) -> str:
        """Return for whom an item speaks: words of users and assistants alone can be joined."""
        role = native.get("role")
        return role if role in ("user", "assistant") and native.get("type", "message") == "message" else ""

    def join(self, first: Any, second: Any) -> Any:
        """Return two items of one speaker as one."""
        old, new = first.get("content"), second.get("content")
        if isinstance(old, str) and isinstance(new, str):
            return {**first, "content": f"{old}\n\n{new}" if old and new else old or new}
        kind = "output_text" if first.get("role") == "assistant" else "input_text"
        return {**first, "content": [*_listed(old, kind), *_listed(new, kind)]}


def _listed(content: object, kind: str) -> list[Any]:
    if isinstance(content, str):
        return [{"type": kind, "text": content}] if content else []
    return listing(content)


def _retyped(block: object, kind: str) -> Any:
    """Return a block of words as one of the speaker's type, any other block as it is."""
    if not isinstance(block, dict) or block.get("type") == kind or block.get("type") not in _WORDS:
        return block
    return {key: value for key, value in block.items() if key not in _OF_ANSWERS} | {"type": kind}


FORMAT = OpenAIResponses()
