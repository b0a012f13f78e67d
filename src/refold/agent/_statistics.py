"""What the calls of a session used: the last one, all of them, and how full the context is (V04, O01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from refold.core.budget import Usage

__all__ = ["Statistics", "context_line"]

INFORMS_FROM = 0.60  # N18


class Statistics(Struct, frozen=True):
    """Tokens as the provider reported them.

    `prompt` and `completion` are the last call's; `context_tokens` is both together, what the context holds now
    (V04). The session's totals are what is billed: they count the same history again with every call (O01), and the
    calls that wrote summaries or counted.
    """

    window: int = 0
    steps: int = 0
    prompt: int = 0
    completion: int = 0
    session_prompt: int = 0
    session_completion: int = 0
    context_tokens: int = 0
    tokens_per_second: float = 0.0

    @property
    def session_tokens(self) -> int:
        """All tokens that were billed."""
        return self.session_prompt + self.session_completion

    @property
    def ratio(self) -> float:
        """The last call's prompt as a share of the window: what a meter shows (O01)."""
        return self.prompt / self.window if self.window else 0.0

    def after(self, usage: Usage, seconds: float) -> Statistics:
        """Return the statistics after one more call that took so many seconds."""
        fast = usage.completion / seconds if seconds > 0 and usage.completion > 0 else self.tokens_per_second
        return replace(
            self,
            steps=self.steps + 1,
            prompt=usage.prompt,
            completion=usage.completion,
            session_prompt=self.session_prompt + usage.prompt,
            session_completion=self.session_completion + usage.completion,
            context_tokens=usage.prompt + usage.completion,
            tokens_per_second=fast,
        )

    def billed(self, usage: Usage) -> Statistics:  # V04
        """Return the statistics after a call that was not of the conversation, such as a summary's."""
        return replace(
            self,
            steps=self.steps + 1,
            session_prompt=self.session_prompt + usage.prompt,
            session_completion=self.session_completion + usage.completion,
        )

    def compacted(self, tokens: int) -> Statistics:
        """Return the statistics after a compaction: the context is as measured, the last call's figures are stale."""
        return replace(self, prompt=0, completion=0, context_tokens=tokens)


def context_line(used: int, limit: int, threshold: float) -> str:
    """Return what a person is told after a turn (N18): nothing up to 60 %, a line above, a warning from the threshold.

    `threshold` is the share of the input budget from which on compaction is due.
    """
    ratio = used / limit if limit else 0.0
    figures = f"{ratio:.0%} of the context used ({used:,} of {limit:,} tokens)"
    if ratio >= threshold:
        return f"Warning: {figures}; compaction is due at {threshold:.0%}"
    return f"{figures[0].upper()}{figures[1:]}" if ratio > INFORMS_FROM else ""
