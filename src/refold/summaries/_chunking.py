"""Summaries of texts larger than the summarizer's window: in chunks, whose summaries are merged (W09)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

from msgspec.structs import replace

from refold._condense.transcript_text import FENCE, serialize
from refold.core.needs import Answer, Provided, Refused, SummaryNeed

__all__ = ["CLOSING", "OPENING", "Asking", "asking"]

Asking: TypeAlias = Generator[SummaryNeed, Answer, Answer]

SMALLEST = 2_000  # characters; a text that is refused at this size is not refused for its size
OPENING, CLOSING = f"<{FENCE}>\n", f"\n</{FENCE}>"


def asking(need: SummaryNeed) -> Asking:
    """Yield requests and take their answers until the summary is there; halve what is refused for its size.

    Every message ends up in a request that was answered, or the whole is refused: nothing is left out silently.
    """
    answer = yield need
    if not (isinstance(answer, Refused) and answer.kind == "overflow"):
        return answer
    parts: list[str] = []
    halves = _halves(need)
    for half in halves:
        reply = yield from asking(half)
        if not isinstance(reply, Provided):
            return reply
        parts.append(reply.text)
    if not parts:
        return answer
    merged = yield replace(need, messages=(), text=OPENING + "\n\n".join(parts) + CLOSING, previous=None)
    return merged if isinstance(merged, Provided) else Provided(text="\n\n".join(parts))


def _halves(need: SummaryNeed) -> tuple[SummaryNeed, ...]:
    """Return the request as two: at a message where that can be told, else at a line; none when it is small already.

    Only the first carries the earlier summary.
    """
    if len(need.text) < SMALLEST:
        return ()
    messages, middle = need.messages, len(need.messages) // 2
    if middle and serialize(messages, need.lengths) == need.text:
        first, second = serialize(messages[:middle], need.lengths), serialize(messages[middle:], need.lengths)
    else:
        body = need.text.removeprefix(OPENING).removesuffix(CLOSING)
        cut = body.rfind("\n", 0, len(body) // 2 + 1)
        cut = cut if cut > 0 else len(body) // 2
        first, second = OPENING + body[:cut] + CLOSING, OPENING + body[cut:].lstrip("\n") + CLOSING
    return (
        replace(need, messages=messages[:middle], text=first),
        replace(need, messages=messages[middle:], text=second, previous=None),
    )
