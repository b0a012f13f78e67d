"""The state of a track in the metadata of a framework's messages: the newest message that has one tells the plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from refold.adapt._state import rewind_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["rewound_messages", "stored_state", "with_state"]

Message = TypeVar("Message")

KEY = "refold"  # in the metadata of an answer: the plans in force when it came, if they were other ones before


def stored_state(metadata: Sequence[Mapping[str, Any] | None]) -> str:
    """Return the newest state in the metadata of messages; empty where there is none."""
    return next((each[KEY] for each in reversed(metadata) if each and KEY in each), "")


def with_state(metadata: Mapping[str, Any] | None, state: str) -> dict[str, Any]:
    """Return the metadata of a message with a state."""
    return {**(metadata or {}), KEY: state}


def rewound_messages(
    messages: Sequence[Message],
    metadata: Callable[[Message], Mapping[str, Any] | None],
    write: Callable[[Message, dict[str, Any]], Message],
    to: int,
) -> list[Message]:
    """Return messages with fewer plans in force: the newest that has a state is written with another one.

    Raises:
        UsageError: there are not so many plans.
    """
    out = list(messages)
    for at in range(len(out) - 1, -1, -1):
        block = metadata(out[at])
        if block and KEY in block:
            out[at] = write(out[at], with_state(block, rewind_state(block[KEY], to)))
            break
    return out
