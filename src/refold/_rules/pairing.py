"""Every call has exactly one result where the provider wants it, and every result its call.

Four rules share the name "pairing". `GroupPairing` and `IdPairing` differ in where a result may stand, which
`call_index` works out; what follows from the index is the same for both and is in their base, `Pairing`:

- cuts: no range may begin or end between a call and its result, nor between other items that belong together. Late and
  duplicate results count with their call, so that a plan never parts what a repair would bring together.
- constraints: what cuts cannot say. Halves of a distant pair leave together; deferred and stored calls do not leave;
  while calls at the end are pending, their group stays and remains the end.
- violations: calls without result, results without call, duplicate and late results.

`ServerPairing` pairs calls that the provider answers itself, inside one answer of the model, and `ResultsFirst` has
results precede other content of their message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold._rules.base import CutAnywhere
from refold._rules.call_index import CallIndex, PlacedCall, PlacedResult, index_by_group, index_by_id, newest_group
from refold.core.messages import Message, ToolCall, ToolResult, memoized
from refold.core.view import Constraints, Listing, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["GroupPairing", "IdPairing", "Pairing", "ResultsFirst", "ServerPairing"]


class Pairing(Struct, frozen=True, kw_only=True):
    """Every call has one result, and every result a call: what both ways of pairing have in common.

    `pending`: calls at the very end may await their results.
    """

    pending: bool = True
    name: str = "pairing"

    def index(self, messages: Sequence[Message]) -> CallIndex:
        """Return which result answers which call; it is worked out once for the messages of a view, and not changed."""
        if not isinstance(messages, Listing):
            return self._index(messages)
        question = "call index", self
        if question not in messages.computed:
            messages.computed[question] = self._index(tuple(messages))
        index: CallIndex = messages.computed[question]
        return index

    def _index(self, messages: Sequence[Message]) -> CallIndex:
        raise NotImplementedError

    def open_calls(self, messages: Sequence[Message]) -> tuple[ToolCall, ...]:
        """Return the calls at the very end that still await their results."""
        return tuple(placed.call for placed in self.index(messages).pending)

    def cuts(self, messages: Sequence[Message]) -> set[int]:
        """Return the positions that no pair of call and result spans."""
        index = self.index(messages)
        distant = {id(placed.call) for placed, _ in index.distant}
        pairs = [pair for group in index.groups for pair in group.pairs if id(pair[0].call) not in distant]
        spans = [(call.position, result.position) for call, result in [*pairs, *index.late]]
        spans += index.links
        spans += [
            (counting.position, duplicate.position)
            for counting, duplicate in index.duplicates
            if _is_near(index, counting, duplicate)
        ]
        return _uncut(spans, len(messages))

    def constraints(self, messages: Sequence[Message]) -> Constraints:
        """Return what cuts do not say: pairs whose halves stand far apart, and halves whose other one is not here."""
        index = self.index(messages)
        fixed = {placed.position for placed in index.deferred} | {placed.position for placed in index.stored}
        waiting = self._waiting(index)
        tail: int | None = None
        for group in index.groups if waiting else ():
            if any(id(placed.call) in waiting for placed in group.open):
                fixed |= {placed.position for pair in group.pairs for placed in pair}
                fixed |= {placed.position for placed in group.open}
                tail = group.first if tail is None else min(tail, group.first)
        distant = tuple((call.position, result.position) for call, result in index.distant)
        return Constraints(distant, frozenset(fixed), index.head, tail)

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return calls without result, results without call, results twice or too late."""
        index = self.index(messages)
        accepted = self._waiting(index) | {id(placed.call) for placed, _ in index.late}
        violations = [
            _violation(messages, position, f"call {_label(call)} has no result", call.call_id)
            for group in index.groups
            for position, call in group.open
            if id(call) not in accepted
        ]
        for (_, call), (position, result) in index.late:
            fault = "stands too late" if call.kind == result.kind else f"is of another kind ({result.kind})"
            text = f"the result of call {_label(call)} {fault}"
            violations.append(_violation(messages, position, text, result.call_id))
        for _, (position, result) in index.duplicates:
            text = f"a second result for call {_label(result)}"
            violations.append(_violation(messages, position, text, result.call_id))
        for position, result in index.orphans:
            violations.append(_violation(messages, position, f"result {_label(result)} has no call", result.call_id))
        return tuple(sorted(violations, key=lambda violation: violation.at))

    def _waiting(self, index: CallIndex) -> set[int]:
        """Return the identities of the calls that may await their results."""
        return {id(placed.call) for placed in index.pending} if self.pending else set()


class GroupPairing(Pairing, frozen=True, kw_only=True):
    """The results of a group of calls stand directly behind it, in any order.

    Pairs are made by id inside a group, where there are no ids by name and order; an id may come again in a later
    group. `together`: the results stand in one message.
    """

    together: bool = False

    def constraints(self, messages: Sequence[Message]) -> Constraints:
        """Return what cuts do not say: the newest group, while calls of it are pending.

        Nothing before that group matters, so the rest of a long list is not indexed.
        """
        first = newest_group(messages, together=self.together)
        if first is None:
            return Constraints()
        newest = super().constraints(messages[first:])
        tail = None if newest.tail is None else first + newest.tail
        return Constraints(fixed=frozenset(first + position for position in newest.fixed), tail=tail)

    def _index(self, messages: Sequence[Message]) -> CallIndex:
        return index_by_group(messages, together=self.together)


class IdPairing(Pairing, frozen=True, kw_only=True):
    """A result may stand anywhere behind its call, and must be of the call's kind (OpenAI Responses)."""

    def _index(self, messages: Sequence[Message]) -> CallIndex:
        return index_by_id(messages)


class ServerPairing(Struct, frozen=True):
    """Calls that the provider answers itself have their result in the same answer of the model.

    An answer is a message, or several where calls of ours stand between. A call may stay open while calls of ours in
    the same answer await results, and in the last message (a paused turn).
    """

    name: str = "pairing"

    def cuts(self, messages: Sequence[Message]) -> set[int]:
        """Return the positions that no pair of call and result spans."""
        return _uncut(self._pairs(messages)[0], len(messages))

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the calls without result, and the results without call."""
        violations: list[Violation] = []
        for half in self.unpaired(messages):
            kind, part = ("call", half.call) if isinstance(half, PlacedCall) else ("result", half.result)
            text = f"{kind} {_label(part)} has no partner beside it"
            violations.append(_violation(messages, half.position, text, part.call_id))
        return tuple(sorted(violations, key=lambda violation: violation.at))

    def unpaired(self, messages: Sequence[Message]) -> list[PlacedCall | PlacedResult]:
        """Return the calls without result, and the results without call."""
        return self._pairs(messages)[1]

    @staticmethod
    def _pairs(messages: Sequence[Message]) -> tuple[list[tuple[int, int]], list[PlacedCall | PlacedResult]]:
        spans: list[tuple[int, int]] = []
        unpaired: list[PlacedCall | PlacedResult] = []
        if not any(map(_has_server_parts, messages)):
            return spans, unpaired
        open_: dict[str, list[PlacedCall]] = {}
        for position, message in enumerate(messages):
            for part in message.parts if message.role == "assistant" else ():
                match part:
                    case ToolCall(server=True):
                        open_.setdefault(part.call_id or part.name, []).append(PlacedCall(position, part))
                    case ToolResult(server=True):
                        if waiting := open_.get(part.call_id or part.name):
                            spans.append((waiting.pop(0).position, position))
                        else:
                            unpaired.append(PlacedResult(position, part))
                    case _:
                        pass
            if any(open_.values()) and position + 1 < len(messages) and _ends_answer(messages, position):
                unpaired.extend(placed for waiting in open_.values() for placed in waiting)
                open_ = {}
        return spans, unpaired


class ResultsFirst(CutAnywhere, frozen=True):
    """Results stand before everything else in their message (Anthropic); edited messages are written in that order."""

    name: str = "pairing"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the user's messages in which something stands before results."""
        text = "results do not come first in their message"
        return tuple(
            _violation(messages, position, text, "")
            for position, message in enumerate(messages)
            if message.results and message.role == "user" and message.native is not None and not message.patches
            if _results_follow(message)
        )


def _uncut(spans: Iterable[tuple[int, int]], length: int) -> set[int]:
    """Return the positions, 0 to `length`, that no span crosses; a span is the positions of two messages."""
    steps = [0] * (length + 2)
    for start, stop in spans:
        steps[start + 1] += 1
        steps[stop + 1] -= 1
    cuts: set[int] = set()
    level = 0
    for position in range(length + 1):
        level += steps[position]
        if not level:
            cuts.add(position)
    return cuts


def _is_near(index: CallIndex, counting: PlacedResult, duplicate: PlacedResult) -> bool:
    """Tell whether a duplicate stands directly behind the result that counts, or among the results of its group."""
    return duplicate.position <= counting.position + 1 or any(
        group.start <= counting.position < group.stop and duplicate.position < group.stop for group in index.groups
    )


@memoized
def _has_server_parts(message: Message) -> bool:
    """Tell whether a message holds calls that the provider answers, or such answers."""
    return len(message.calls) + len(message.results) < sum(
        isinstance(part, ToolCall | ToolResult) for part in message.parts
    )


def _ends_answer(messages: Sequence[Message], position: int) -> bool:
    """Tell whether what the model says after this message belongs to another answer."""
    message, after = messages[position], messages[position + 1]
    return message.role == "user" or (message.role == "assistant" and not message.calls and after.role != "assistant")


@memoized
def _results_follow(message: Message) -> bool:
    """Tell whether something stands before a result of a message."""
    kinds = [isinstance(part, ToolResult) for part in message.parts]
    return not all(kinds[: sum(kinds)])


def _label(part: ToolCall | ToolResult) -> str:
    return f"{part.call_id} ({part.name})" if part.call_id and part.name else part.call_id or part.name or "without id"


def _violation(messages: Sequence[Message], position: int, text: str, call_id: str) -> Violation:
    return Violation("pairing", text, (position,), (messages[position].id,), (call_id,) if call_id else ())
