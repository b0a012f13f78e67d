"""Every call has exactly one result where the provider wants it, and every result its call."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core._call_results import Batch, CallResults, PlacedCall, PlacedResult, by_id
from refold.core.messages import Message, ToolCall, ToolResult, once
from refold.core.view import Constraints, Listing, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Batch", "CallResults", "Pairing", "PlacedCall", "PlacedResult", "joined", "server_pairs"]


def joined(first: Message, second: Message) -> bool:
    """Tell whether neighbors of one speaker are written as one message where roles alternate: one was edited."""
    return bool(first.native is None or second.native is None or first.patches or second.patches)


class Pairing(Struct, frozen=True):
    """Every call has one result right after its batch, in any order, and every result a call.

    Pairs are made by id inside a batch, where there are no ids by name and order; an id may come again in a later
    batch. `together`: the results stand in one message. `anywhere`: a result may stand in any later message, and must
    be of the call's kind (OpenAI Responses). `server`: calls that the provider answers itself have their result in
    the same message, or in a later one of the same batch. `first`: results
    stand before everything else in their message. `pending`: calls at the very end may await their results.
    """

    together: bool = False
    anywhere: bool = False
    server: bool = False
    first: bool = False
    pending: bool = True
    name: str = "pairing"

    def ledger(self, messages: Sequence[Message]) -> CallResults:
        """Return who answers whom; of the messages of a view it is found out once, and is not to be changed."""
        if not isinstance(messages, Listing):
            return by_id(messages) if self.anywhere else _by_batch(messages, self.together)
        question = "ledger", self.anywhere, self.together
        if question not in messages.found:
            messages.found[question] = self.ledger(tuple(messages))
        known: CallResults = messages.found[question]
        return known

    def open_calls(self, messages: Sequence[Message]) -> tuple[ToolCall, ...]:
        """Return the calls at the very end that still await their results."""
        return tuple(placed.call for placed in self.ledger(messages).pending)

    def cuts(self, messages: Sequence[Message]) -> set[int]:
        """Return the positions that no pair of call and result spans."""
        ledger = self.ledger(messages)
        apart = {id(placed.call) for placed, _ in ledger.apart}
        pairs = [pair for batch in ledger.batches for pair in batch.pairs if id(pair[0].call) not in apart]
        spans = [(placed.place, found.place) for placed, found in pairs] + ledger.links
        spans += [(placed.place, found.place) for placed, found in ledger.late]
        spans += [(kept.place, found.place) for kept, found in ledger.twice if self._near(ledger, kept, found)]
        if self.server:
            spans += server_pairs(messages)[0]
        steps = [0] * (len(messages) + 2)
        for start, stop in spans:
            steps[start + 1] += 1
            steps[stop + 1] -= 1
        cuts: set[int] = set()
        level = 0
        for place in range(len(messages) + 1):
            level += steps[place]
            if not level:
                cuts.add(place)
        return cuts

    def constraints(self, messages: Sequence[Message]) -> Constraints:
        """Return what cuts do not say: pairs whose halves stand far apart, and halves whose other one is not here."""
        ledger = self.ledger(messages)
        fixed = {placed.place for placed in ledger.deferred} | {found.place for found in ledger.stored}
        waiting = {id(placed.call) for placed in ledger.pending} if self.pending else set()
        tail: int | None = None
        for batch in ledger.batches if waiting else ():
            if any(id(placed.call) in waiting for placed in batch.open):
                fixed |= {place for placed, found in batch.pairs for place in (placed.place, found.place)}
                fixed |= {placed.place for placed in batch.open}
                tail = batch.first if tail is None else min(tail, batch.first)
        apart = tuple((placed.place, found.place) for placed, found in ledger.apart)
        return Constraints(apart, frozenset(fixed), ledger.head, tail)

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return calls without result, results without call, results twice or too late."""
        ledger = self.ledger(messages)
        waiting = {id(placed.call) for placed in ledger.pending} if self.pending else set()
        late = {id(placed.call) for placed, _ in ledger.late}
        found = [
            _violation(messages, placed.place, f"call {_called(placed.call)} has no result", placed.call.call_id)
            for batch in ledger.batches
            for placed in batch.open
            if id(placed.call) not in waiting and id(placed.call) not in late
        ]
        for placed, (place, result) in ledger.late:
            fault = "stands too late" if placed.call.kind == result.kind else f"is of another kind ({result.kind})"
            text = f"the result of call {_called(placed.call)} {fault}"
            found.append(_violation(messages, place, text, result.call_id))
        for _, (place, result) in ledger.twice:
            found.append(_violation(messages, place, f"a second result for call {_called(result)}", result.call_id))
        for place, result in ledger.orphans:
            found.append(_violation(messages, place, f"result {_called(result)} has no call", result.call_id))
        if self.server:
            for spot in server_pairs(messages)[1]:
                kind, part = ("call", spot.call) if isinstance(spot, PlacedCall) else ("result", spot.result)
                text = f"{kind} {_called(part)} has no partner beside it"
                found.append(_violation(messages, spot.place, text, part.call_id))
        if self.first:
            found += [
                _violation(messages, place, "results do not come first in their message", "")
                for place, message in enumerate(messages)
                if _buried(message)
            ]
        return tuple(sorted(found, key=lambda violation: violation.at))

    @staticmethod
    def _near(ledger: CallResults, kept: PlacedResult, found: PlacedResult) -> bool:
        return found.place <= kept.place + 1 or any(
            batch.start <= kept.place < batch.stop and found.place < batch.stop for batch in ledger.batches
        )


def _by_batch(messages: Sequence[Message], together: bool) -> CallResults:
    ledger = CallResults()
    strays: list[PlacedResult] = []
    over: list[PlacedResult] = []  # results that stand behind the newest batch and belong to none of its calls
    place = 0
    while place < len(messages):
        message = messages[place]
        if message.role != "assistant" or not message.calls:
            strays.extend(PlacedResult(place, result) for result in message.results)
            place += 1
            continue
        if plain := _plain(messages, place, together):
            ledger.batches.append(plain)
            place, over = plain.stop, []
            continue
        batch = _batch(messages, place, together)
        results = [PlacedResult(at, result) for at in range(batch.start, batch.stop) for result in messages[at].results]
        over = _match(batch, results)
        strays.extend(over)
        ledger.batches.append(batch)
        place = batch.stop
    _settle(ledger, strays)
    last = ledger.batches[-1] if ledger.batches else None
    resting = last is not None and last.stop == len(messages) and not over
    if last and resting and all(message.role == "tool" for message in messages[last.start :]):
        ledger.pending = last.open
    return ledger


def _plain(messages: Sequence[Message], place: int, together: bool) -> Batch | None:
    """Return the batch of one call whose one result follows at once, which most are; None where it is another."""
    calls, after = messages[place].calls, place + 1
    if len(calls) != 1 or after == len(messages) or len(results := messages[after].results) != 1:
        return None
    call, result, role = calls[0], results[0], messages[after].role
    if not call.call_id or call.call_id != result.call_id or role == "assistant" or not (together or role == "tool"):
        return None
    if after + 1 < len(messages):
        following = messages[after + 1].role
        if following == "tool" or (together and following != "assistant"):
            return None
    placed = PlacedCall(place, call)
    return Batch(place, after, after + 1, [placed], [(placed, PlacedResult(after, result))])


def _batch(messages: Sequence[Message], first: int, together: bool) -> Batch:
    calls = [PlacedCall(first, call) for call in messages[first].calls]
    start, end = first + 1, len(messages)
    if together:
        while start < end and messages[start].role == "assistant" and joined(messages[start - 1], messages[start]):
            calls.extend(PlacedCall(start, call) for call in messages[start].calls)
            start += 1
    stop = start
    if not together:
        while stop < end and messages[stop].role == "tool":
            stop += 1
    elif stop < end and messages[stop].role != "assistant":
        stop += 1
        while stop < end and messages[stop].role != "assistant" and joined(messages[stop - 1], messages[stop]):
            stop += 1
    return Batch(first, start, stop, calls)


def _match(batch: Batch, results: list[PlacedResult]) -> list[PlacedResult]:
    """Pair a batch with the results that stand where its results belong; return the results left over."""
    if len(results) == len(batch.calls) and _in_order(batch.calls, results):
        batch.pairs = list(zip(batch.calls, results, strict=True))
        return []
    by_id: dict[str, deque[int]] = {}
    for number, found in enumerate(results):
        if found.result.call_id:
            by_id.setdefault(found.result.call_id, deque()).append(number)
    used: set[int] = set()
    open_: list[PlacedCall] = []
    for placed in batch.calls:
        numbers = by_id.get(placed.call.call_id) if placed.call.call_id else None
        if numbers:
            number = numbers.popleft()
            used.add(number)
            batch.pairs.append((placed, results[number]))
        else:
            open_.append(placed)
    by_name: dict[str, deque[int]] = {}
    for number, found in enumerate(results):
        if number not in used:
            by_name.setdefault(found.result.name, deque()).append(number)
    for placed in open_:
        numbers = by_name.get(placed.call.name)
        number = next((number for number in numbers or () if not _both_named(placed.call, results[number].result)), -1)
        if numbers and number >= 0:
            numbers.remove(number)
            used.add(number)
            batch.pairs.append((placed, results[number]))
        else:
            batch.open.append(placed)
    return [found for number, found in enumerate(results) if number not in used]


def _in_order(calls: Sequence[PlacedCall], results: Sequence[PlacedResult]) -> bool:
    """Tell whether the results stand in the order of the calls, each id once: then there is nothing to look for."""
    ids = [placed.call.call_id for placed in calls]
    return all(ids) and ids == [found.result.call_id for found in results] and len(set(ids)) == len(ids)


def _both_named(call: ToolCall, result: ToolResult) -> bool:
    """Tell whether both carry an id, so that a name alone pairs nothing."""
    return bool(call.call_id and result.call_id)


def _settle(ledger: CallResults, strays: list[PlacedResult]) -> None:
    """Say of results out of place whether they are late, second, or without any call."""
    open_: dict[str, deque[PlacedCall]] = {}
    paired: dict[str, tuple[int, PlacedResult]] = {}
    batches = iter(ledger.batches)
    batch = next(batches, None)
    for found in sorted(strays, key=lambda found: found.place):
        while batch is not None and batch.first < found.place:
            for placed in batch.open:
                open_.setdefault(_key(placed.call), deque()).append(placed)
            for placed, answer in batch.pairs:
                paired[_key(placed.call)] = (placed.place, answer)
            batch = next(batches, None)
        key = _key(found.result)
        if waiting := open_.get(key):
            ledger.late.append((waiting.popleft(), found))
        elif key in paired:
            ledger.twice.append((paired[key][1], found))
        else:
            ledger.orphans.append(found)


def server_pairs(messages: Sequence[Message]) -> tuple[list[tuple[int, int]], list[PlacedCall | PlacedResult]]:
    """Return the spans between calls that the provider answers and their results, and the halves that stand alone.

    A call may stay open while calls of ours in the same answer await results, and in the last message (a paused turn).
    """
    spans: list[tuple[int, int]] = []
    alone: list[PlacedCall | PlacedResult] = []
    if not any(map(_served, messages)):
        return spans, alone
    open_: dict[str, list[PlacedCall]] = {}
    for place, message in enumerate(messages):
        if message.role == "assistant":
            for part in message.parts:
                if isinstance(part, ToolCall) and part.server:
                    open_.setdefault(_key(part), []).append(PlacedCall(place, part))
                elif isinstance(part, ToolResult) and part.server:
                    if waiting := open_.get(_key(part)):
                        spans.append((waiting.pop(0).place, place))
                    else:
                        alone.append(PlacedResult(place, part))
        if any(open_.values()) and place + 1 < len(messages) and _ends_answer(messages, place):
            alone.extend(placed for waiting in open_.values() for placed in waiting)
            open_ = {}
    return spans, alone


@once
def _served(message: Message) -> bool:
    """Tell whether a message holds calls that the provider answers, or such answers."""
    return len(message.calls) + len(message.results) < sum(
        isinstance(part, ToolCall | ToolResult) for part in message.parts
    )


def _ends_answer(messages: Sequence[Message], place: int) -> bool:
    """Tell whether what the model says after this message belongs to another answer."""
    message, after = messages[place], messages[place + 1]
    return message.role == "user" or (message.role == "assistant" and not message.calls and after.role != "assistant")


def _buried(message: Message) -> bool:
    """Tell whether results stand behind something else; edited messages are put in order when they are written."""
    if message.role != "user" or message.native is None or message.patches or not message.results:
        return False
    kinds = [isinstance(part, ToolResult) for part in message.parts]
    return not all(kinds[: sum(kinds)])


def _key(part: ToolCall | ToolResult) -> str:
    return part.call_id or part.name


def _called(part: ToolCall | ToolResult) -> str:
    return f"{part.call_id} ({part.name})" if part.call_id and part.name else part.call_id or part.name or "without id"


def _violation(messages: Sequence[Message], place: int, text: str, call_id: str) -> Violation:
    return Violation("pairing", text, (place,), (messages[place].id,), (call_id,) if call_id else ())
