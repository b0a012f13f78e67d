"""Deterministic replacements for a model and a disk in a replay, with the cost that a model would have had.

A summary is an outline of what it covers: users' words first, then the newest words and calls. A real summary may hold
more or less; what it costs is charged as if a model had read the whole request and written an answer of that length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.call_facts import reads
from refold._condense.call_outline import call_line, one_line
from refold.core.messages import Text, ToolCall
from refold.core.needs import FileNeed, Refused, SummaryNeed
from refold.handlers import Handlers
from refold.replay.pricing import CallTokens
from refold.summaries._chunking import CLOSING, OPENING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.counting import Counter
    from refold.core.messages import Message

__all__ = ["FakeHandlers", "outlined"]

LONGEST = 2_000  # tokens of a summary, unless its request allows less
CHARS = 4  # characters a token of a summary
USER_LINE, ASSISTANT_LINE = 300, 160  # characters of a line of a user's words and of the assistant's


class FakeHandlers:
    """Answers what policies ask for over one conversation; `by_user` are the requests a model would have had.

    A request above `window` tokens is refused as a model would refuse it, and comes again in parts. `ratio` turns our
    counts into the provider's tokens.
    """

    def __init__(self, messages: Sequence[Message], counter: Counter, *, window: int = 0, ratio: float = 1.0) -> None:
        self.calls: list[CallTokens] = []
        self._messages, self._counter, self._window, self._ratio = messages, counter, window, ratio

    def handlers(self, known: int) -> Handlers:
        """Return who answers when `known` messages of the conversation are there."""
        return Handlers(summarize=self._summary, read_file=lambda need: self._file(need, known))

    def _summary(self, need: SummaryNeed) -> str | Refused:
        prompt = self._count("\n".join((need.instructions, need.previous or "", need.text)))
        if self._window and prompt > self._window:
            return Refused(f"{prompt:,} tokens are above the window", "overflow")
        summary = outlined(need)
        self.calls.append(CallTokens(prompt, output=self._count(summary)))
        return summary

    def _file(self, need: FileNeed, known: int) -> str:
        """Return what the newest call that read the whole file was shown; nothing where none did."""
        results = {each.call_id: each.text for message in self._messages[:known] for each in message.results}
        for message in reversed(self._messages[:known]):
            for call in message.calls:
                ref = reads(call)
                if ref is not None and ref.whole and ref.path == need.path and call.call_id in results:
                    return results[call.call_id]
        return ""

    def _count(self, text: str) -> int:
        return round(self._counter.text(text) * self._ratio)


def outlined(need: SummaryNeed) -> str:
    """Return an outline of what a summary is asked of, within the length it may have."""
    room = CHARS * min(need.max_tokens or LONGEST, LONGEST)
    if not need.messages:  # summaries of parts, which are to be one
        return need.text.removeprefix(OPENING).removesuffix(CLOSING)[:room]
    previous = (need.previous or "")[: room // 2]
    lines = [*_lines(need.messages)]
    chosen: set[int] = set()
    room -= len(previous)
    for place in sorted(range(len(lines)), key=lambda place: (not lines[place][0], -place)):
        room -= len(lines[place][1]) + 1
        if room < 0:
            break
        chosen.add(place)
    return "\n".join(filter(None, (previous, *(lines[place][1] for place in sorted(chosen)))))


def _lines(messages: Sequence[Message]) -> Iterator[tuple[bool, str]]:
    """Yield a line for what was said and each call, and whether a user said it."""
    for message in messages:
        for part in message.parts:
            match part:
                case Text(text=text) if text.strip():
                    by_user = message.role == "user"
                    yield by_user, f"- {message.role}: {one_line(text, USER_LINE if by_user else ASSISTANT_LINE)}"
                case ToolCall():
                    yield False, f"- {call_line(part)}"
                case _:
                    pass
