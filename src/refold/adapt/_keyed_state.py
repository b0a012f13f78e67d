"""The state of a track under several keys of a framework's state, each with the lines that were new when it was set."""

from __future__ import annotations

from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

from refold.adapt._state import appended_lines, joined_state

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["changed_keys", "keyed_state"]


def keyed_state(get: Callable[[str], Any], key: str) -> str:
    """Return the state under a key and those that go on with it; `get` returns the value of a key, or None."""
    return joined_state(_pieces(get, key))


def changed_keys(get: Callable[[str], Any], key: str, state: str) -> dict[str, str | None]:
    """Return what to set that a key and those that go on with it have another state; None for those to remove."""
    pieces = _pieces(get, key)
    before = joined_state(pieces)
    if state == before:
        return {}
    if before and state.startswith(before):
        return {_name(key, len(pieces)): appended_lines(state, before)}
    return {key: state, **{_name(key, number): None for number in range(1, len(pieces))}}


def _pieces(get: Callable[[str], Any], key: str) -> list[str]:
    return list(takewhile(bool, (get(_name(key, number)) for number in count())))


def _name(key: str, number: int) -> str:
    return f"{key}:{number}" if number else key
