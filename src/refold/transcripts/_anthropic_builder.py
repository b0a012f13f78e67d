"""An Anthropic conversation put together piece by piece, with the results of parallel calls in one message."""

from __future__ import annotations

from typing import Any

from refold.core._json import Json, listing, mapping

__all__ = ["ConversationBuilder", "blocks_of"]


def blocks_of(content: object) -> list[Any]:
    """Return content as a list of blocks; a string becomes one text block, nothing becomes none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


def _type(block: object) -> Any:
    return mapping(block).get("type")


class ConversationBuilder:
    """Messages in the making. Nothing that is handed in is changed: lists of content are our own."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self._calls_at: dict[str, int] = {}  # call id -> index of the assistant message that holds the call
        self._answered: dict[str, int] = {}  # message id -> index, for answers that come in several lines

    def assistant(self, content: object, id: str | None = None) -> int:
        """Add an answer, or a further piece of the answer with the same id; return its index."""
        blocks = blocks_of(content)
        at = self._answered.get(id, -1) if id else -1
        if at < 0:
            at = len(self.messages)
            self.messages.append({"role": "assistant", "content": []})
            if id:
                self._answered[id] = at
        self.messages[at]["content"].extend(blocks)
        for block in blocks:
            if _type(block) == "tool_use":
                self._calls_at[block.get("id", "")] = at
        return at

    def user(self, content: Any) -> None:
        """Add what the user's side sent; results join the message right after their call."""
        calls = [block.get("tool_use_id") for block in listing(content) if _type(block) == "tool_result"]
        call_at = self._calls_at.get(calls[0]) if calls else None
        after = len(self.messages) if call_at is None else call_at + 1
        if after >= len(self.messages) or self.messages[after]["role"] != "user":
            self.messages.append({"role": "user", "content": list(content) if isinstance(content, list) else content})
            return
        blocks = blocks_of(self.messages[after]["content"])
        cut = next((i for i, block in enumerate(blocks) if _type(block) != "tool_result"), len(blocks))
        results = [block for block in content if _type(block) == "tool_result"]
        others = [block for block in content if _type(block) != "tool_result"]
        self.messages[after]["content"] = blocks[:cut] + results + blocks[cut:] + others

    def more_of_user(self, content: object) -> None:
        """Add to the last message, a user's, what is sent in one message with it."""
        last = self.messages[-1]
        last["content"] = blocks_of(last["content"]) + blocks_of(content)

    def result(self, call_id: str, content: object, *, is_error: bool = False) -> None:
        """Add the result of one call."""
        block: Json = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        self.user([{**block, "is_error": True} if is_error else block])
