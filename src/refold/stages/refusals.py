"""What a stage that cannot go on without a summary does when it gets none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core.needs import Refused
from refold.errors import SummaryRefused
from refold.stages.asking import earlier, summary_in
from refold.stages.digest import digest_text
from refold.stages.places import said
from refold.stages.summarize import outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["summary_or_digest"]


def summary_or_digest(view: View, messages: Sequence[Message], answer: Answer) -> tuple[str, bool]:
    """Return the summary and True, or a digest made without a model and False where nobody was there to ask.

    Raises:
        SummaryRefused: somebody was asked and gave no summary; nothing is changed then (V05).
    """
    if words := summary_in(answer):
        return words, True
    if isinstance(answer, Refused) and answer.absent:
        return _digest(view, messages), False
    reason = answer.reason if isinstance(answer, Refused) else "the summary was empty"
    raise SummaryRefused(f"no summary could be had, so nothing was changed: {reason}; try again, or pass no summarizer")


def _digest(view: View, messages: Sequence[Message]) -> str:
    originals = said(view, messages)
    return "\n\n".join(text for text in (earlier(messages), digest_text(view, originals) or outline(originals)) if text)
