"""Writes a session down in Anthropic's shape: blocks, ids, signatures, cache marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from refold.testing._seeded_random import SeededRandom

__all__ = ["PICTURES", "RecordedCall", "Recorder"]

CACHED = {"type": "ephemeral"}
MOST_MARKS = 3  # a request bears four (Anthropic, prompt-caching page), and the system prompt has one

# One-color PNG files of 1440 x 900, 1280 x 720 and 390 x 844 pixels, so that their size can be read off the header.
PICTURES = {
    "wide": (
        "iVBORw0KGgoAAAANSUhEUgAABaAAAAOEAQAAAAB/Nqt/AAACkElEQVR42u3OAQkAAAACoP6frh2BLjA9FGlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlp"
        "aWlpaWlpaWlpaWlpaWlp6T8DLtB8GyCjbH0AAAAASUVORK5CYII="
    ),
    "middle": (
        "iVBORw0KGgoAAAANSUhEUgAABQAAAALQAQAAAADnBuD7AAAB3ElEQVR42u3OAQ0AAAwCIPuX1hr/BglIj4ugoKCgoKCgoKCgoKCg"
        "oKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCg"
        "oKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCg"
        "oKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCg"
        "oKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCg"
        "oKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCg"
        "oKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKDgr+AAsd5YQVhb5vAAAAAA"
        "SUVORK5CYII="
    ),
    "phone": (
        "iVBORw0KGgoAAAANSUhEUgAAAYYAAANMAQAAAABwFzezAAAAlklEQVR42u3LoQEAAAwCIP9/Wm9YWINOehXDMAzDMAzDMAzDMAzD"
        "MAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzD"
        "MAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMAzDMJ7HAAQi89XO+TaCAAAAAElFTkSuQmCC"
    ),
}


class RecordedCall(Struct, frozen=True):
    """A tool call with what the tool answers; `picture` names one that comes with the answer."""

    name: str
    input: dict[str, Any]
    output: str
    is_error: bool = False
    picture: str = ""


class Recorder:
    """Collects the messages of a session."""

    def __init__(self, dice: SeededRandom) -> None:
        self.messages: list[dict[str, Any]] = []
        self._dice = dice
        self._marked: list[dict[str, Any]] = []

    def user(self, text: str, picture: str = "") -> None:
        """Record what the user says, with a picture before it where there is one."""
        block: dict[str, Any] = {"type": "text", "text": text}
        if len(self.messages) % 3 == 0:
            self._mark(block)
        self.messages.append({"role": "user", "content": [*_picture(picture), block]})

    def assistant(self, text: str, thinking: str = "", calls: tuple[RecordedCall, ...] = ()) -> None:
        """Record a message of the assistant and, where it calls tools, the message with their results."""
        blocks: list[dict[str, Any]] = []
        if thinking:
            signature = self._dice.letters(self._dice.between(60, 130) * 4 - 1) + "="
            blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})
        if text:
            blocks.append({"type": "text", "text": text})
        ids = [f"toolu_01{self._dice.letters(22)}" for _ in calls]
        for id, call in zip(ids, calls, strict=True):
            blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": call.input})
        self.messages.append({"role": "assistant", "content": blocks})
        if calls:
            results = [_result(id, call) for id, call in zip(ids, calls, strict=True)]
            if self._dice.chance(0.06):
                self._mark(results[-1])
            self.messages.append({"role": "user", "content": results})

    def _mark(self, block: dict[str, Any]) -> None:
        """Put a cache mark on a block; the oldest one is removed where there are more than a request may bear."""
        block["cache_control"] = CACHED
        self._marked.append(block)
        if len(self._marked) > MOST_MARKS:
            del self._marked.pop(0)["cache_control"]


def _result(id: str, call: RecordedCall) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": id, "content": call.output}
    if call.picture:
        result["content"] = [{"type": "text", "text": call.output}, *_picture(call.picture)]
    if call.is_error:
        result["is_error"] = True
    return result


def _picture(name: str) -> list[dict[str, Any]]:
    if not name:
        return []
    return [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURES[name]}}]
