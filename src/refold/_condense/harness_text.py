"""Shortens what a harness says in a user's turn: each long span becomes a line that says what was there, or its lines.

The tags or the first line of a span stay around what is left of it. So the agent sees what sort of text it was, and a
client that sends the text back sends a span of the harness again, not words of the user.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_outline import content_line, one_line
from refold._condense.directives import ranks_of, shortened
from refold._condense.shorten import shorten
from refold._salience.segments import Segment, excerpt, harness_segments
from refold.core._speakers import STANDING, HarnessText, speech

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from refold.core._speakers import HarnessSpan
    from refold.core.messages import Message, Path

__all__ = ["ShortenedHarness", "shortened_harness"]

TAG = re.compile(r"</?[A-Za-z][^<>\n]*>")
SUMMARY = re.compile(r"<summary>([^<]+)</summary>")
OUTPUT_FILE = re.compile(r"<output-file>([^<\n]+)</output-file>")
INSTRUCTION_FILE = re.compile(r"[^\s()<>`\"'*,;:]*(?:AGENTS|CLAUDE|GEMINI|QWEN|CONVENTIONS)(?:\.\w+)?\.md\b")
FILES = 4  # files of instructions that a line names
TITLE = 60  # characters of what a text calls itself
WORDS = 120  # characters of a text that say what it is


class ShortenedHarness(Struct, frozen=True):
    """A text of a user's turn of which some of a harness's spans, given by their number, are cut to lines.

    `segments` are those of every span's body, with characters counted over the bodies together (`harness_segments`).
    `again`: a later message gives the same instructions word for word.
    """

    harness: HarnessText
    segments: tuple[tuple[Segment, ...], ...]
    spans: frozenset[int]
    again: bool = False

    @property
    def pieces(self) -> tuple[Segment, ...]:
        """The segments of what was cut, which can come back one by one."""
        return tuple(segment for number in sorted(self.spans) for segment in self.segments[number])

    @property
    def rules(self) -> dict[int, int]:
        """The ranks of the segments of instructions that hold rules, by where they begin."""
        ranks: dict[int, int] = {}
        before = 0
        for number, span in enumerate(self.harness.spans):
            body = span.body(self.harness.text.text)
            if number in self.spans and span.kind in STANDING:
                own = [replace(one, start=one.start - before, stop=one.stop - before) for one in self.segments[number]]
                ranks |= {start + before: rank for start, rank in ranks_of(body, own, "instructions").items()}
            before += len(body)
        return ranks

    @property
    def alone(self) -> bool:
        """Tell whether one span was cut, and no word of the user's stands beside it."""
        return len(self.spans) == len(self.harness.spans) == 1 and not self.harness.typed

    def showing(self, chosen: Collection[Segment] = ()) -> str:
        """Return the text with the chosen segments of what was cut, and all of what was not."""
        text, at, before = self.harness.text.text, 0, 0
        pieces: list[str] = []
        for number, span in enumerate(self.harness.spans):
            body = span.body(text)
            if number in self.spans:
                some = [segment for segment in chosen if before <= segment.start < before + len(body)]
                own = [replace(one, start=one.start - before, stop=one.stop - before) for one in some]
                pieces += (text[at : span.start], span.opening, self._left(span, body, own), span.closing)
                at = span.stop
            before += len(body)
        return "".join([*pieces, text[at:]])

    def pointers(self) -> str:
        """Return the lines that stand for what was cut, each between its tags."""
        text = self.harness.text.text
        return "\n".join(
            f"{span.opening}{min(self._pointer(span, body := span.body(text)), body, key=len)}{span.closing}".strip()
            for number, span in enumerate(self.harness.spans)
            if number in self.spans
        )

    def cut_to(self, limit: int, count: Callable[[str], int]) -> str:
        """Return a text that is one span in about so many tokens: head and tail of it, of instructions the rules."""
        (span,) = self.harness.spans
        body = span.body(self.harness.text.text)
        shorter = (
            shortened(body, limit, count, "instructions") if span.kind in STANDING else shorten(body, limit, count)
        )
        return f"{span.opening}{shorter}{span.closing}"

    def _left(self, span: HarnessSpan, body: str, chosen: Collection[Segment]) -> str:
        if not chosen:
            return self._pointer(span, body)
        if sum(segment.chars for segment in chosen) == len(body):
            return body
        lines = excerpt(body, chosen)
        title = _title(span, body)
        return f"[parts of: {title}]\n{lines}" if title else lines

    def _pointer(self, span: HarnessSpan, body: str) -> str:
        """Return what stands in place of a span: how much it was, and what it held."""
        lines = body.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(body):,} characters"
        again = ", given again below" if self.again and span.kind in STANDING else ""
        return f"[{size} left out{again}: {_about(span, body)}]"


def shortened_harness(
    message: Message, at: Path, worth: int, standing: int, *, again: bool = False
) -> ShortenedHarness | None:
    """Return a text of a message with its long spans cut: from `worth` characters on, instructions from `standing` on.

    None where nothing in it is to be cut. The summary of an earlier context is cut like a user's words, not here.
    """
    harness = speech(message).texts.get(at)
    if harness is None:
        return None
    spans = frozenset(
        number
        for number, span in enumerate(harness.spans)
        if span.kind != "recap" and len(span.body(harness.text.text)) >= (standing if span.kind in STANDING else worth)
    )
    return ShortenedHarness(harness, harness_segments(message)[at], spans, again) if spans else None


def _about(span: HarnessSpan, body: str) -> str:
    if span.kind == "output":
        return content_line(body)
    if span.kind == "instructions" and (files := _files(body)):
        return f"instructions of {files}"
    summary = SUMMARY.search(body)
    about = one_line(summary[1] if summary else TAG.sub(" ", body[: 8 * WORDS]), WORDS)
    file = OUTPUT_FILE.search(body)
    return f"{about}, in {file[1].strip()}" if file else about


def _title(span: HarnessSpan, body: str) -> str:
    """Return what a span calls itself: the summary in it, or the files of its instructions."""
    summary = SUMMARY.search(body)
    return one_line(summary[1], TITLE) if summary else _files(body) if span.kind == "instructions" else ""


def _files(body: str) -> str:
    return ", ".join(list(dict.fromkeys(INSTRUCTION_FILE.findall(body)))[:FILES])
