"""How stages ask for a summary: instructions, the record as fenced data, an earlier summary apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold import prompts
from refold.core import needs
from refold.core.messages import text_of
from refold.stages.places import SUMMARIES, said
from refold.stages.serialize import Lengths, serialize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["ask", "earlier", "summary_in"]


def earlier(messages: Sequence[Message], heading: str = "") -> str | None:
    """Return the earlier summaries among messages as one text without their heading, or None."""
    found = [text_of(m).removeprefix(heading).strip() for m in messages if m.note and m.note.kind in SUMMARIES]
    return "\n\n".join(found) or None


def ask(
    view: View,
    messages: Sequence[Message],
    prompt: str,
    *,
    previous: str | None = None,
    max_tokens: int | None = None,
    lengths: Lengths | None = None,
    label: str = "summary",
) -> needs.Summarize:
    """Return the need of a summary of messages as they were said, shaped by the person's instructions (L07).

    An earlier summary travels as `previous` and never inside the text.
    """
    record = said(view, messages)
    instructions = f"{prompts.text('summarizer')}\n\n{prompts.text(prompt)}"
    if view.instructions.strip():
        instructions += f"\n\nThe person asks for this in particular:\n{view.instructions.strip()}"
    return needs.Summarize(record, serialize(record, lengths), prompt, instructions, previous, max_tokens, label=label)


def summary_in(answer: Answer) -> str:
    """Return the words of an answer; nothing where it was refused or is blank."""
    return answer.text.strip() if isinstance(answer, needs.Given) else ""
