"""Tracks under which plans the responses of a conversation were produced, and which thinking in them is stale.

Theory of operation. Models that bind thinking accept it only behind the prefix it was produced behind
(`refold.core._preserved_thinking`). An answer stands right after the messages of the request that it answers, so its
position identifies that request. Two things determine what the gateway sends for the client's messages: the plans in
force, and whether the recall tool is among the tools. Both change seldom, so they are recorded by ranges of
positions. A range begins with the first request that is sent under other plans or tools than the one before, and is
written to the store before that request goes out, so that it holds after a restart and for every replica. A plan
under which nothing was sent has no range.

Changes by the client itself (its instructions, its tools, its history) are not examined.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from refold.core._preserved_thinking import Sent, bound_parts, stale_edits
from refold.core.edits import fold
from refold.core.plan import Base
from refold.core.transcript import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message, MessageId
    from refold.core.plan import Plan

__all__ = ["SentHistory", "SentRange", "StaleThinking", "StoredRange", "Under"]

# ids of the plans in force, whether the recall tool is offered, whether the model binds thinking
Under: TypeAlias = tuple[tuple[str, ...], bool, bool]
OFFERED = b"recall"
MOST = 10_000  # conversations forgotten that are remembered, at some 300 bytes each


class StoredRange(Struct, frozen=True, omit_defaults=True, tag="produced"):
    """A range as the store keeps it; `base` are the messages of the first request that was sent so."""

    base: Base
    plans: tuple[str, ...] = ()
    tool: bool = False
    binds: bool = True
    unknown: bool = False


class SentRange(Struct, frozen=True):
    """A range with the plans themselves; `unknown` where it is no longer known what it was sent under.

    `binds` is false for a model that does not bind thinking: it was sent all thinking.
    """

    base: Base
    plans: tuple[Plan, ...] = ()
    tool: bool = False
    binds: bool = True
    unknown: bool = False

    @property
    def under(self) -> Under | None:
        """What requests of this range were sent under, to be compared."""
        return None if self.unknown else (tuple([plan.id for plan in self.plans]), self.tool, self.binds)

    @property
    def written(self) -> StoredRange:
        """The range as the store keeps it."""
        return StoredRange(self.base, tuple(plan.id for plan in self.plans), self.tool, self.binds, self.unknown)


BEGINNING = SentRange(Base(0, ROOT))


class SentHistory:
    """The ranges of one conversation; `tool` is whether its requests offer the recall tool, None before the first."""

    def __init__(self, ranges: tuple[SentRange, ...] = (), tool: bool | None = None) -> None:
        self.ranges = ranges
        self.tool = tool
        self.saved = 0  # leading ranges that the store has
        self.viewed: Under | None = None  # what the view in memory was computed under
        self._behind: dict[MessageId, bytes] = {}
        self._cached: tuple[Under, int, tuple[Edit, ...]] | None = None  # what was stale, and of how many messages

    @property
    def unsaved(self) -> tuple[SentRange, ...]:
        """The ranges that the store does not have yet."""
        return self.ranges[self.saved :]

    def constant(self, under: Under) -> bool:
        """Tell whether every request so far was sent under the same, so that no thinking is stale."""
        ranges = self.ranges if self.ranges and not self.ranges[0].base.length else (BEGINNING, *self.ranges)
        return all(each.under == under for each in ranges)

    def covers(self, start: int, under: Under) -> bool:
        """Tell whether all answers from a position on were produced under the same as what is sent now."""
        if not self.ranges:
            return under[:2] == ((), False)  # and nothing can be stale, whatever the model
        return self.ranges[-1].base.length <= start and self.ranges[-1].under == under

    def sent(self, base: Base, plans: tuple[Plan, ...], tool: bool, binds: bool) -> None:
        """Note what a request with these messages is sent under."""
        earlier = [each for each in self.ranges if each.base.length < base.length]
        fresh = SentRange(base, plans, tool, binds)
        last = earlier[-1] if earlier else BEGINNING
        if len(earlier) == len(self.ranges) and last.under == fresh.under:
            return
        self.ranges = (*earlier, fresh)  # also where it is as before: it takes the place of what was sent last
        self.saved = min(self.saved, len(earlier))

    def offer(self, wanted: bool, *, first: bool) -> None:
        """Decide once whether the tool is offered; `first`: nothing of this conversation was sent from here before."""
        if self.tool is not None:
            return
        self.tool = self.ranges[-1].tool if self.ranges else wanted
        if self.tool and first and not self.ranges:
            self.ranges, self._behind, self._cached = (SentRange(BEGINNING.base, (), True),), {}, None

    def take(self, ranges: Sequence[StoredRange], known: Mapping[str, Plan], messages: Sequence[Message]) -> bool:
        """Take over what the store has of these messages; tell whether that is something new."""
        ranges_here = [
            SentRange(each.base, tuple(known[id] for id in each.plans), each.tool, each.binds, each.unknown)
            if all(id in known for id in each.plans)
            else SentRange(each.base, (), each.tool, each.binds, unknown=True)
            for each in ranges
            if _of(each.base, messages)
        ]
        self.saved = len(ranges_here)
        if [each.under for each in ranges_here] == [each.under for each in self.ranges] and [
            each.base for each in ranges_here
        ] == [each.base for each in self.ranges]:
            return False
        self.ranges, self._behind, self._cached = tuple(ranges_here), {}, None
        self.tool = ranges_here[-1].tool if ranges_here and self.tool is None else self.tool
        return True

    def forked(self, shared: int) -> SentHistory:
        """Return that of a conversation that has only so many messages in common."""
        return SentHistory(tuple(each for each in self.ranges if each.base.length < shared), self.tool)

    def stale(self, messages: Sequence[Message], plans: tuple[Plan, ...], tool: bool) -> tuple[Edit, ...]:
        """Return the edits that remove what cannot be sent from the view under plans."""
        now = SentRange(BEGINNING.base, plans, tool)
        under = tuple([plan.id for plan in plans]), tool, True
        known = self._cached
        if known is not None and known[0] == under and known[1] <= len(messages) and self.covers(known[1], under):
            return known[2]
        if self.constant(under) or not any(map(bound_parts, messages)):
            return ()
        edits = self._stale(messages, now)
        self._cached = under, len(messages), edits
        return edits

    def _stale(self, messages: Sequence[Message], now: SentRange) -> tuple[Edit, ...]:
        views: dict[Under | None, Sent] = {}

        def view_of(each: SentRange) -> Sent:
            under = each.under
            if under not in views:
                views[under] = Sent(()) if each.unknown else _sent(messages, each)
            return views[under]

        ranges = iter((BEGINNING, *self.ranges))
        current = next(ranges)
        following = next(ranges, None)

        def produced(place: int) -> Sent:
            nonlocal current, following
            while following is not None and following.base.length <= place:
                current, following = following, next(ranges, None)
            return view_of(current)

        return stale_edits(messages, produced, view_of(now), self._behind)


class StaleThinking:
    """The newest conversations that were deleted together with their plans, by id.

    The plans under which their thinking was produced are lost. Only the position where that begins is remembered, no
    text.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[tuple[SentRange, ...], int]] = OrderedDict()

    def add(self, id: str, production: SentHistory, sent: int) -> None:
        """Remember a conversation of which so many messages were in the last request."""
        ranges = production.ranges
        first = next((place for place, each in enumerate(ranges) if each.plans), None)
        if first is None:
            return
        remaining = (*ranges[:first], SentRange(ranges[first].base, unknown=True))
        self._known[id] = remaining, sent + 1  # the answer to the last request, too, was produced under plans
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def restore(self, id: str, production: SentHistory, messages: Sequence[Message]) -> None:
        """Let a conversation that comes again know from where to where its thinking is lost."""
        ranges, stop = self._known.pop(id, ((), 0))
        stop = min(stop, len(messages))
        fitting = [each for each in ranges if each.base.length < stop and _of(each.base, messages)]
        if fitting and not production.ranges:
            tool = any(each.tool for each in fitting)
            production.ranges = (*fitting, SentRange(Base(stop, messages[stop - 1].id), (), tool))

    def __contains__(self, id: str) -> bool:
        return id in self._known


def _sent(messages: Sequence[Message], each: SentRange) -> Sent:
    view = fold(messages, [plan.edits for plan in each.plans], [plan.base.tip for plan in each.plans])
    return Sent(view, OFFERED if each.tool else b"", whole=not each.binds)


def _of(base: Base, messages: Sequence[Message]) -> bool:
    return not base.length or (base.length <= len(messages) and messages[base.length - 1].id == base.tip)
