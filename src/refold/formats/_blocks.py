"""Base of the formats whose messages are lists of blocks and whose roles alternate: Anthropic, Bedrock, Gemini."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core._json import Json, listing
from refold.core.messages import (
    Content,
    Message,
    Part,
    Path,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from refold.formats._base import (
    EMPTY,
    Lens,
    content_text,
    get,
    is_unchanged,
    is_words,
    opaque,
    role_of,
    tagged_user_message,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import MessageId

__all__ = ["Blocks"]


class Blocks(Lens):
    """A format supplies `block` (reading), `text_block`, `call`, `result` (writing) and `holds_result`."""

    key = "content"
    model = "assistant"
    idle: frozenset[str] = frozenset()  # keys of blocks that are no content by themselves
    text_alone = False  # a text may stand in place of the list

    def block(self, block: object, at: Path) -> Part:
        """Return the part that a block holds."""
        raise NotImplementedError

    def text_block(self, text: str, old: object) -> Any:
        """Return words as a block, in place of an old one."""
        raise NotImplementedError

    def call(self, call: ToolCall, old: object) -> Any:
        """Return a call as a block, in place of an old one."""
        raise NotImplementedError

    def result(self, result: ToolResult, old: object) -> Any:
        """Return a result as a block, in place of an old one."""
        raise NotImplementedError

    def holds_result(self, block: Json) -> bool:
        """Tell whether a block is a result that stands before everything else."""
        raise NotImplementedError

    def thinks(self, block: object) -> bool:
        """Tell whether a block is reasoning that must open its message."""
        return False

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that a native object holds."""
        speaker, content, key = native.get("role"), native.get(self.key), self.key
        role: Role = "assistant" if speaker == self.model else "system" if speaker == "system" else "user"
        if isinstance(content, str):
            return Message(id, role, (Text(content, (key,)),) if content else (), None, native)
        if not isinstance(content, list):
            return Message(id, role, () if content is None else (opaque(content, (key,)),), None, native)
        parts = [self.block(block, (key, position)) for position, block in enumerate(content)]
        return Message(id, role_of(role, parts), tuple(parts), None, native)

    def render(self, part: Part, old: object, at: Path) -> Any:
        """Return a part as a native value, in place of an old one; words in place of a string stay a string."""
        match part:
            case Text(text=text) if at == (self.key,):
                return text if self.text_alone else [self.text_block(text, None)]
            case Text(text=text) if is_words(old, at):
                return text
            case Text(text=text):
                return self.text_block(text, old)
            case ToolCall():
                return self.call(part, old)
            case ToolResult():
                return self.result(part, old)
            case _ if old is not None:
                return old
            case _:
                return self.text_block(content_text((part,)), None)

    def invent(self, message: Message) -> Any:
        """Return a native object for a message that has none."""
        if message.role == "system":
            message = tagged_user_message(message)
        parts = [part for part in message.parts if not isinstance(part, Reasoning)]
        blocks = [
            self.render(Text(EMPTY) if isinstance(part, Text) and not part.text.strip() else part, None, (self.key, 0))
            for part in parts
        ]
        role = self.model if message.role == "assistant" else "user"
        return {"role": role, self.key: self.ordered(blocks) or [self.text_block(EMPTY, None)]}

    def finish(self, native: Any, message: Message) -> Any:
        """Return an edited object with its results first, and content where nothing is left."""
        content = native.get(self.key)
        if not isinstance(content, list):
            return native if content else {**native, self.key: EMPTY}
        ordered = self.ordered(content)
        if all(isinstance(block, dict) and not block.keys() - self.idle for block in ordered):
            ordered = [self.text_block(EMPTY, None), *ordered]
        return native if ordered is content else {**native, self.key: ordered}

    def speaker(self, native: Any) -> str:
        """Return for whom a native object speaks."""
        role = native.get("role")
        return role if isinstance(role, str) else "user"

    def join(self, first: Any, second: Any) -> Any:
        """Return two native objects of one speaker as one."""
        old, new = self._blocks(first), self._blocks(second)
        if not (old and self.thinks(old[0])):  # where reasoning comes first, it does so in the joined message too
            count = next((position for position, block in enumerate(new) if not self.thinks(block)), len(new))
            old, new = [*new[:count], *old], new[count:]
        return {**first, self.key: self.ordered([*old, *new])}

    def ordered(self, blocks: list[Any]) -> list[Any]:
        """Return blocks with results first, as they must stand; otherwise in the same order."""
        marks = [isinstance(block, dict) and self.holds_result(block) for block in blocks]
        count = sum(marks)
        if all(marks[:count]):
            return blocks
        pairs = list(zip(blocks, marks, strict=True))
        return [block for block, mark in pairs if mark] + [block for block, mark in pairs if not mark]

    def result_blocks(self, content: Sequence[Content], old: object, root: int) -> list[Any]:
        """Return a result's content as blocks; what is still said as before keeps its block. `root`: path length."""
        blocks: list[Any] = []
        for part in content:
            block = get(old, part.at[root:]) if len(part.at) > root else None
            if isinstance(block, dict) and is_unchanged(part, self.content(block, part.at)):
                blocks.append(block)
            elif isinstance(part, Text) or block is None:
                blocks.append(self.text_block(content_text((part,)), block))
        return blocks or [self.text_block(EMPTY, None)]

    def content(self, block: object, at: Path) -> Content:
        """Return what one block of a result's content holds."""
        part = self.block(block, at)
        return part if isinstance(part, Content) else opaque(block, at)

    def contents(self, content: object, at: Path) -> tuple[Content, ...]:
        """Return what a result's content holds: a string, or a list of blocks."""
        if isinstance(content, str):
            return (Text(content, at),) if content else ()
        if isinstance(content, list):
            return tuple([self.content(block, (*at, position)) for position, block in enumerate(content)])
        return () if content is None else (opaque(content, at),)

    def _blocks(self, native: Any) -> list[Any]:
        content = native.get(self.key)
        if isinstance(content, str):
            return [self.text_block(content, None)] if content else []
        return listing(content)
