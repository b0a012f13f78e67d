"""The state of a track in the metadata of a framework's messages: each has the lines that were new with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from refold.adapt._state import appended_lines, joined_state, rewind_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["rewound_messages", "stored_state", "with_state"]

Message = TypeVar("Message")

KEY = "refold"  # in the metadata of an answer: what is new in the state since the last one


def stored_state(metadata: Iterable[Mapping[str, Any] | None]) -> str:
    """Return the state in the metadata of messages; empty where there is none."""
    return joined_state(each[KEY] for each in metadata if each and KEY in each)


def with_state(metadata: Mapping[str, Any] | None, state: str, before: str = "") -> dict[str, Any]:
    """Return the metadata of a message with a state that differs from the one before."""
    return {**(metadata or {}), KEY: appended_lines(state, before)}


def rewound_messages(
    messages: Sequence[Message],
    metadata: Callable[[Message], Mapping[str, Any] | None],
    write: Callable[[Message, dict[str, Any]], Message],
    to: int,
) -> list[Message]:
    """Return messages with fewer plans in force: the newest that has lines is written with another one.

    Raises:
        UsageError: there are not so many plans.
    """
    out, state = list(messages), rewind_state(stored_state(map(metadata, messages)), to)
    for at in range(len(out) - 1, -1, -1):
        block = metadata(out[at])
        if block and KEY in block:
            out[at] = write(out[at], with_state(block, state))
            break
    return out
