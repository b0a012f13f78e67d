"""When compaction is due where the policy's own word is not taken: for all, a route, a model, or a single request."""

from __future__ import annotations

import re

from refold import policies
from refold._text.token_numbers import parse_tokens
from refold.config import Settings as Configured
from refold.core.budget import Exactly, Limit, Never, Share
from refold.core.policy import Policy
from refold.errors import UsageError

__all__ = ["trigger", "triggered"]

SHARE = re.compile(r"(\d+|\d*\.\d+)(%?)", re.ASCII)
TOKENS = {"auto_compact_threshold": "argument"}
PERCENT = 100  # so few tokens are a share that lacks its sign: under them every call would be compacted
MOST = 100_000_000  # the largest window that refold.models takes


def trigger(text: str) -> Limit:
    """Read a trigger: a share of the input budget (0.7, 70%), tokens (60k, 60000), or `never`, which 0 means too.

    Raises:
        UsageError: it is none of these.
    """
    value = text.strip().lower()
    if value == "never":
        return Never()
    tokens = parse_tokens(value)
    if tokens is not None and 0 < tokens <= PERCENT:
        raise UsageError(f"{text!r} means {tokens} tokens: for a share of the input budget give {tokens}%")
    if tokens is not None and 0 <= tokens <= MOST:
        return policies.threshold(tokens)
    if (match := SHARE.fullmatch(value)) and 0 < (share := float(match[1]) / (100 if match[2] else 1)) <= 1:
        return Share(share, inclusive=True)
    raise UsageError(f"{text!r} is no trigger: give a share as in 0.7 or 70%, tokens as in 60k, or never")


def triggered(policy: Policy, limit: Limit, window: int) -> Policy:
    """Return a policy that is due from a limit on; its goal goes below where that would lie above."""
    match limit:
        case Share(share=share):
            configured = Configured(window=window, threshold=share, sources={"threshold": "argument"})
        case Exactly(count=count):
            configured = Configured(window=window, auto_compact_threshold=count, sources=TOKENS)
        case _:
            configured = Configured(window=window, auto_compact_threshold=0, sources=TOKENS)
    return configured.apply_to(policy)
