"""A bounded memo of facts about texts, keyed by digest; it stores no long text."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["forget", "remembered"]

Computed = TypeVar("Computed")

KEY = 64  # a text this short is its own key
REMEMBERED = 32_768  # values kept; one is some 200 bytes, so the memo stays under 7 MB

_memo: dict[tuple[str, str | bytes], Any] = {}


def remembered(what: str, text: str, work: Callable[[str], Computed]) -> Computed:
    """Return what `work` finds for a text, from the memo when it was asked before; `what` names the question."""
    key = what, text if len(text) <= KEY else blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    known: Computed | None = _memo.get(key)
    if known is not None:
        return known
    computed = work(text)
    if len(_memo) >= REMEMBERED:
        _memo.clear()
    _memo[key] = computed
    return computed


def forget() -> None:
    """Empty the memo."""
    _memo.clear()
