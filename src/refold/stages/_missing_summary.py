"""What a stage that cannot go on without a summary does when it gets none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.digest.render import digest_text
from refold._condense.summary_requests import summary_in
from refold._condense.view_positions import all_said, said
from refold.core.needs import Refused
from refold.errors import SummaryRefused
from refold.stages.summarize import outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["summary_or_digest"]


def summary_or_digest(
    view: View, messages: Sequence[Message], answer: Answer, previous: str | None
) -> tuple[str, bool]:
    """Return the summary and True, or a digest made without a model and False where nobody was there to ask.

    A digest follows `previous`, the earlier summary, where a model wrote that; else it is made anew from all originals.

    Raises:
        SummaryRefused: somebody was asked and gave no summary; nothing is changed then (V05).
    """
    if words := summary_in(answer):
        return words, True
    if isinstance(answer, Refused) and answer.absent:
        return _digest(view, messages, previous), False
    reason = answer.reason if isinstance(answer, Refused) else "the summary was empty"
    raise SummaryRefused(f"no summary could be had, so nothing was changed: {reason}; try again, or pass no summarizer")


def _digest(view: View, messages: Sequence[Message], previous: str | None) -> str:
    by_model = any(message.note and message.note.kind == "summary" for message in messages)
    originals = said(view, messages) if by_model else all_said(view, messages)
    words = digest_text(view, originals) or outline(originals)
    return f"{previous}\n\n{words}" if by_model and previous else words
