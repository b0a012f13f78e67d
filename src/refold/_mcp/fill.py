"""Measures a context: what takes room by tool and role, and whether a compaction is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold._compaction.options import Options
from refold._compaction.request import request_for
from refold._mcp.record import Fill, ToolShare
from refold.core.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.result import Check
    from refold.core.budget import Usage

__all__ = ["measured", "shares_of"]

ROOMY = Budget(10**12)  # nothing is planned, so any room will do


def shares_of(messages: Sequence[Any], format: str, model: str | None) -> list[ToolShare]:
    """Return what the results of each tool and the words of each role take, the largest first.

    A message with results of several tools is shared among them.
    """
    view = request_for(list(messages), Options(format=format, budget=ROOMY, model=model, counter="exact")).view
    tokens: dict[str, int] = {}
    counts: dict[str, int] = {}
    for message, size in zip(view.messages, view.sizes, strict=True):
        calls = [view.call_of(message, result) for result in message.results]
        names = list(dict.fromkeys(call.name for call in calls if call is not None)) or [message.role]
        share, rest = divmod(size, len(names))
        for place, name in enumerate(names):
            tokens[name] = tokens.get(name, 0) + share + (0 if place else rest)
            counts[name] = counts.get(name, 0) + 1
    shares = [ToolShare(name, tokens[name], counts[name]) for name in tokens]
    return sorted(shares, key=lambda share: (-share.tokens, share.name))


def measured(check: Check | None, shares: Sequence[ToolShare], usage: Usage | None, *, compactions: int) -> Fill:
    """Return the fill by a check, or by the messages and the last report alone where no window is known."""
    counted = sum(share.tokens for share in shares)
    if check is None:
        size = max(counted, usage.prompt + usage.completion if usage else 0)
        return Fill(size, 0, shares, outside=size - counted, compactions=compactions)
    size = max(check.expected, check.tokens)
    waits = check.waiting.waits if check.waiting else ""
    return Fill(size, check.limit, shares, check.due, waits, max(size - counted, 0), compactions)
