"""A recorded conversation as calls: how large each message is by the provider's own count, and when it was sent."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from refold import formats
from refold._counting import counter_for
from refold.replay._timestamps import Stamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.counting import Counter
    from refold.core.messages import Message, MessageId
    from refold.core.transcript import Transcript
    from refold.formats import Format
    from refold.transcripts import RecordedConversation, RecordedUsage

__all__ = ["Beat", "Timeline", "timeline"]

LEAST, MOST = 0.25, 4.0  # a growth beyond these times our own count says nothing about the ratio
FEW = 50  # tokens; smaller growths are mostly framing


class Beat(Struct, frozen=True):
    """One call: how many leading messages it sent, tokens of its answer, when, and whether it paid for long life."""

    covers: int
    output: int
    seconds: float | None = None
    long: bool = False


class Timeline(Struct, frozen=True):
    """A conversation ready to be replayed; sizes are in the provider's tokens where the file reports usage.

    `counted` are our own counts. `fixed` is what no message holds (system prompt, tools); `ratio` turns our own counts
    into the provider's; `warm` is what the first call found in the cache.
    """

    format: Format
    transcript: Transcript
    counter: Counter
    counted: dict[MessageId, int]
    fixed: int
    sizes: dict[MessageId, int]
    ratio: float
    beats: tuple[Beat, ...]
    warm: int = 0

    def count(self, message: Message) -> int:
        """Return our own count of a message of a view."""
        if message.native is not None and not message.patches:
            return self.counted[message.id]
        known: int | None = message.__dict__.get("replayed")
        if known is None:
            known = message.__dict__["replayed"] = self.counter.message(message)
        return known

    def size(self, message: Message) -> int:
        """Return the tokens of a message of a view, in the provider's scale."""
        if message.native is not None and not message.patches:
            return self.sizes[message.id]
        return round(self.count(message) * self.ratio)


def timeline(recorded: RecordedConversation, stamps: Sequence[Stamp] = (), *, model: str | None = None) -> Timeline:
    """Return a conversation as calls.

    Calls are the usage reports of the file; without any, each answer of the assistant is one, and sizes are counted by
    the tokenizer of `model` (the file's own by default).
    """
    shape = formats.find(recorded.format)
    transcript = formats.read(shape, recorded.messages)
    counter = counter_for(model or recorded.model, None, recorded.format)
    counted = [counter.message(message) for message in transcript.messages]
    overhead = counter.text(formats.system_text(recorded.system)) if recorded.system else 0
    tools = formats.tools_text(recorded.tools, formats.loaded_in(transcript.messages))
    overhead += counter.tools(tools)
    ids = [message.id for message in transcript.messages]
    by_id = dict(zip(ids, counted, strict=True))
    reports = _growing(recorded, stamps)
    if not reports:
        beats = tuple(_answers(transcript.messages, counted))
        return Timeline(shape, transcript, counter, by_id, overhead, by_id, 1.0, beats)
    ratio, sizes = _scaled(recorded, [report for report, _ in reports], counted)
    first = reports[0][0]
    fixed = max(first.prompt - sum(sizes[: first.covers]), round(overhead * ratio), 0)
    beats = tuple(Beat(report.covers, report.completion, stamp.seconds, stamp.long) for report, stamp in reports)
    return Timeline(
        shape, transcript, counter, by_id, fixed, dict(zip(ids, sizes, strict=True)), ratio, beats, first.cache_read
    )


def _growing(recorded: RecordedConversation, stamps: Sequence[Stamp]) -> list[tuple[RecordedUsage, Stamp]]:
    """Return the reports in order, each covering more messages than the one before, with their stamps."""
    stamps_or_none = list(stamps) or [Stamp()] * len(recorded.usage)
    growing: list[tuple[RecordedUsage, Stamp]] = []
    for report, stamp in zip(recorded.usage, stamps_or_none, strict=True):
        if report.prompt and 0 < report.covers <= len(recorded.messages):
            if growing and report.covers <= growing[-1][0].covers:
                continue
            growing.append((report, stamp))
    return growing


def _scaled(
    recorded: RecordedConversation, reports: Sequence[RecordedUsage], counted: Sequence[int]
) -> tuple[float, list[int]]:
    """Return the ratio of the provider's tokens to ours, and the sizes that give the prompts it reported."""
    grown = 0
    ours = 0
    pairs: list[tuple[int, int, float]] = []
    for before, now in pairwise(reports):
        mine, stamps_or_none = sum(counted[before.covers : now.covers]), now.prompt - before.prompt
        compacted = bisect_right(recorded.boundaries, now.covers) > bisect_right(recorded.boundaries, before.covers)
        if compacted or stamps_or_none <= 0 or not mine:
            continue
        pairs.append((before.covers, now.covers, stamps_or_none / mine))
        if mine >= FEW and LEAST <= stamps_or_none / mine <= MOST:
            grown, ours = grown + stamps_or_none, ours + mine
    ratio = grown / ours if ours else 1.0
    sizes = [round(size * ratio) for size in counted]
    for start, stop, scale in pairs:
        sizes[start:stop] = [round(size * scale) for size in counted[start:stop]]
    return ratio, sizes


def _answers(messages: Sequence[Message], counted: Sequence[int]) -> list[Beat]:
    """Return a call for each run of the assistant's messages."""
    beats: list[Beat] = []
    for place, message in enumerate(messages):
        if message.role != "assistant" or not place:
            continue
        if messages[place - 1].role == "assistant" and beats:
            beats[-1] = Beat(beats[-1].covers, beats[-1].output + counted[place])
        else:
            beats.append(Beat(place, counted[place]))
    return beats
