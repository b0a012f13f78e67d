"""How stages ask for a summary: instructions, the record as fenced data, an earlier summary apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold import _prompts as prompts
from refold._condense.quoted_requests import SUMMARIES, without_quote
from refold._condense.transcript_text import serialize
from refold._condense.view_positions import originals, quoted_alone
from refold.core import needs
from refold.core.messages import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.needs import Answer, Lengths
    from refold.core.view import View

__all__ = ["ask", "earlier", "summary_in"]


def earlier(messages: Sequence[Message], heading: str = "", ending: str | re.Pattern[str] = "") -> str | None:
    """Return the earlier summaries among messages as one text, or None.

    `heading` is left off, and all from `ending` or a quoted request on: what stages put around the words of a summary.
    """
    texts = [without_quote(text_of(message)) for message in messages if message.note and message.note.kind in SUMMARIES]
    pattern = re.compile(re.escape(ending)) if isinstance(ending, str) and ending else ending
    summaries = [
        (re.split(pattern, text, maxsplit=1)[0] if pattern else text).removeprefix(heading).strip() for text in texts
    ]
    return "\n\n".join(filter(None, summaries)) or None


def ask(
    view: View,
    messages: Sequence[Message],
    prompt: str,
    *,
    previous: str | None = None,
    max_tokens: int | None = None,
    lengths: Lengths | None = None,
    label: str = "summary",
) -> needs.SummaryNeed:
    """Return the need of a summary of messages as they were said, shaped by the person's instructions (L07).

    An earlier summary travels as `previous` and never inside the text; the words of an anchor are the earliest. A last
    request that only an earlier summary quotes opens the text, so that the summary can say what the work is for.
    """
    record = (*quoted_alone(view), *originals(view, messages))
    anchor = view.start[0].anchor if view.anchored else None
    if anchor is not None and anchor.text:
        previous = f"{anchor.text}\n\n{previous}" if previous else anchor.text
    instructions = f"{prompts.text('summarizer')}\n\n{prompts.text(prompt)}"
    if view.instructions.strip():
        instructions += f"\n\nThe person asks for this in particular:\n{view.instructions.strip()}"
    return needs.SummaryNeed(
        record, serialize(record, lengths), prompt, instructions, previous, max_tokens, label=label, lengths=lengths
    )


def summary_in(answer: Answer) -> str:
    """Return the words of an answer; nothing where it was refused or is blank."""
    return answer.text.strip() if isinstance(answer, needs.Provided) else ""
