"""The ledger of calls and results: which result answers which call, also where a result may stand anywhere."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct

from refold.core.messages import Message, Opaque, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Batch", "CallResults", "PlacedCall", "PlacedResult", "by_id", "unrequested"]

Key: TypeAlias = "tuple[str, str]"


class PlacedCall(NamedTuple):
    """A call and the position of its message."""

    place: int
    call: ToolCall


class PlacedResult(NamedTuple):
    """A result and the position of its message."""

    place: int
    result: ToolResult


class Batch(Struct):
    """The calls of one answer of the model, and the messages from `start` up to `stop` that may hold their results."""

    first: int
    start: int
    stop: int
    calls: list[PlacedCall] = []
    pairs: list[tuple[PlacedCall, PlacedResult]] = []
    open: list[PlacedCall] = []


class CallResults(Struct):
    """Who answers whom: batches in order, and the results that stand in the wrong place.

    `late` are results of a call that was still open but whose place was earlier, or that takes results of another kind;
    `twice` are further results of a call that has one (beside the one that counts); `orphans` have no call at all.
    `apart` are pairs between whose halves the conversation went on, `deferred` calls that may stay open for long,
    `stored` results of calls that the provider keeps, of which those up to `head` begin the list, as may answers to
    stored requests; `links` are positions of other items that belong together.
    """

    batches: list[Batch] = []
    late: list[tuple[PlacedCall, PlacedResult]] = []
    twice: list[tuple[PlacedResult, PlacedResult]] = []
    orphans: list[PlacedResult] = []
    pending: list[PlacedCall] = []
    apart: list[tuple[PlacedCall, PlacedResult]] = []
    deferred: list[PlacedCall] = []
    stored: list[PlacedResult] = []
    links: list[tuple[int, int]] = []
    head: int = 0

    @property
    def whole(self) -> bool:
        """Tell whether every call has its one result in its place, and every result its call."""
        return not (self.late or self.twice or self.orphans or any(batch.open for batch in self.batches))


def by_id(messages: Sequence[Message]) -> CallResults:
    """Return who answers whom, by id and kind, in order where an id comes again or there is none."""
    work = _Pairs()
    for place, message in enumerate(messages):
        work.take(place, message)
    return work.finished()


def unrequested(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return the positions of answers to requests for approval (MCP) that are not there.

    The provider may keep the request of an answer that begins the list, or that stands behind an anchor or a reference.
    """
    requests: set[Any] = set()
    found: list[int] = []
    begun = False
    for place, message in enumerate(messages):
        for part in message.opaques:
            native: Any = message.native if isinstance(message.native, dict) else {}
            if part.anchor or part.kind == "item_reference":
                return tuple(found)
            if part.kind == "mcp_approval_request":
                requests.add(native.get("id"))
            elif part.kind == "mcp_approval_response" and begun and native.get("approval_request_id") not in requests:
                found.append(place)
        begun = begun or message.role in ("user", "assistant")
    return tuple(found)


class _Pairs:
    """The ledger in the making."""

    def __init__(self) -> None:
        self.ledger = CallResults()
        self.open: dict[Key, deque[tuple[Batch, PlacedCall, int]]] = {}
        self.paired: dict[Key, PlacedResult] = {}
        self.served: dict[Key, deque[int]] = {}  # calls that the provider answers in an item of its own
        self.programs: dict[str, int] = {}
        self.batch: Batch | None = None
        self.round = 0  # grows where the conversation goes on: with a user's message, and with calls after results
        self.answered = False
        self.quiet = 0  # position after the last message that ends all waiting
        self.begun = False  # something of the model's stands before; a list without that continues a stored one
        self.unread = False  # a reference stands before, to an item that may be any call

    def take(self, place: int, message: Message) -> None:
        for part in message.parts:
            match part:
                case ToolCall(server=True, kind="program" | "tool_search"):
                    self.served.setdefault(_key(part), deque()).append(place)
                    self.programs[part.call_id] = place
                case ToolCall(server=False):
                    self._call(place, part)
                case ToolResult(server=True, kind="program" | "tool_search"):
                    self._served(place, part)
                case ToolResult(server=False):
                    self._result(place, part)
                case Opaque(kind="item_reference"):
                    self.unread = True
                case Opaque(kind="mcp_approval_response") if not self.begun:
                    self.ledger.head = place + 1
                case Opaque(last=True):  # it closes the list, and what is open then gets no result
                    self.quiet = place
        if message.role in ("user", "system"):
            self.quiet = place + 1
            self.round += 1
        self.begun = self.begun or message.role in ("user", "assistant")

    def finished(self) -> CallResults:
        ledger = self.ledger
        for waiting in self.open.values():
            for of, placed, _ in waiting:
                (ledger.deferred if placed.call.deferred else of.open).append(placed)
        ledger.pending = [placed for of in ledger.batches for placed in of.open if self._awaits(placed)]
        return ledger

    def _awaits(self, placed: PlacedCall) -> bool:
        """Tell whether an open call awaits its result: it stands at the end, and is no answered call once more."""
        answer = self.paired.get(_key(placed.call))
        return placed.place >= self.quiet and (answer is None or answer.place < placed.place)

    def _stored(self, found: PlacedResult) -> bool:
        """Tell whether the call of a result may be one that the provider stores, and take it for that."""
        if not self.begun:
            self.ledger.head = found.place + 1
        elif not self.unread:
            return False
        self.ledger.stored.append(found)
        return True

    def _call(self, place: int, call: ToolCall) -> None:
        if self.answered:
            self.round, self.answered = self.round + 1, False
        batch = self.batch
        if batch is None or batch.stop != place:
            batch = self.batch = Batch(place, place + 1, place + 1)
            self.ledger.batches.append(batch)
        batch.start = batch.stop = place + 1
        placed = PlacedCall(place, call)
        batch.calls.append(placed)
        waiting = batch, placed, self.round
        self.open.setdefault(_key(call), deque()).append(waiting)
        if call.caller in self.programs:
            self.ledger.links.append((self.programs[call.caller], place))

    def _result(self, place: int, result: ToolResult) -> None:
        self.answered = True
        key, found = _key(result), PlacedResult(place, result)
        waiting = self.open.get(key) or self._by_item(key)
        if waiting:
            of, placed, began = waiting.popleft()
            of.pairs.append((placed, found))
            self.paired[key] = found
            if began != self.round:
                self.ledger.apart.append((placed, found))
        elif key in self.paired:
            self.ledger.twice.append((self.paired[key], found))
        elif (other := self._of_other_kind(result)) is not None:
            self.ledger.late.append((other, found))
        elif not self._stored(found):
            self.ledger.orphans.append(found)

    def _of_other_kind(self, result: ToolResult) -> PlacedCall | None:
        """Return the open call with the id of a result that is of a kind the call does not take."""
        taken = {id(placed.call) for placed, _ in self.ledger.late}
        fitting = (placed for queue in self.open.values() for _, placed, _ in queue if id(placed.call) not in taken)
        return next((placed for placed in fitting if result.call_id and placed.call.call_id == result.call_id), None)

    def _by_item(self, key: Key) -> deque[tuple[Batch, PlacedCall, int]] | None:
        """Return the waiting calls that a result names by the id of their item, as local shell output does."""
        return next((queue for queue in self.open.values() if queue and (queue[0][1].call.item, key[1]) == key), None)

    def _served(self, place: int, result: ToolResult) -> None:
        if waiting := self.served.get(_key(result)):
            self.ledger.links.append((waiting.popleft(), place))
        elif not self._stored(found := PlacedResult(place, result)):
            self.ledger.orphans.append(found)


def _key(part: ToolCall | ToolResult) -> Key:
    return part.call_id or part.name, part.kind
