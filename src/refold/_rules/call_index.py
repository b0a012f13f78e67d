"""Indexes which result answers which call, in two ways: by group, or by id.

Theory of operation. A call of the model and its result are different messages, and providers connect them in one of two
ways. Both give the same value, a `CallIndex`, so that rules and repairs do not depend on the way.

By group (`index_by_group`: Anthropic, Bedrock, Gemini, OpenAI chat). The calls of one answer are a group. Their results
stand directly behind it, in any order: in `tool` messages of their own, or (`together`) in one message of the user.

    assistant: call a, call b   | first ..... one group
    tool: result b              | start
    tool: result a              |
    user: ...                   | stop

Inside a group a call takes the result with its id; a call or result without an id is matched by the tool's name, in
order. A result in any other place is a stray. Strays are sorted out last, against the calls that stand before them:
the result of a call that is still open is late, one of an answered call is a duplicate, any other is an orphan. Calls
of the last group are pending where nothing but results follows them.

By id (`index_by_id`: OpenAI Responses). A result may stand anywhere behind its call, and must have its id and its kind.
One pass keeps a queue of open calls for each id: an id that comes again is answered in order. In addition

- calls that the provider answers in items of their own (programs, tool search) and the items they lead to are links:
  they leave only together;
- a result whose call the provider stores is no orphan: where nothing of the model stands before it, or a reference to
  an item that may be any call does;
- a pair between whose halves the conversation went on (a user's message, or calls after results) is distant: it spans
  too much to be uncuttable, so its halves may be far apart but leave together;
- a call is pending where no message of the user, of the system, or item that must be last stands behind it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct

from refold.core.messages import OLLAMA, Message, Opaque, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CallGroup",
    "CallIndex",
    "PlacedCall",
    "PlacedResult",
    "index_by_group",
    "index_by_id",
    "joined",
    "newest_group",
]

Key: TypeAlias = "tuple[str, str]"  # of a call or result: id (or name), and kind


class PlacedCall(NamedTuple):
    """A call and the position of its message."""

    position: int
    call: ToolCall


class PlacedResult(NamedTuple):
    """A result and the position of its message."""

    position: int
    result: ToolResult


class CallGroup(Struct):
    """The calls of one answer of the model, and the messages from `start` up to `stop` that may hold their results."""

    first: int
    start: int
    stop: int
    calls: list[PlacedCall] = []
    pairs: list[tuple[PlacedCall, PlacedResult]] = []
    open: list[PlacedCall] = []


class CallIndex(Struct):
    """Which result answers which call: groups in order, and the results that stand in the wrong place.

    `late` are results of a call that was still open but whose place was earlier, or that takes results of another kind;
    `duplicates` are further results of an answered call, each behind the one that counts; `orphans` have no call at
    all; `pending` are open calls at the end, which await their results. Only by id: `distant` are pairs between whose
    halves the conversation went on, `deferred` calls that may stay open for long, `stored` results of calls that the
    provider keeps, of which those before `head` begin the list, as may answers to stored requests; `links` are
    positions of other items that belong together.
    """

    groups: list[CallGroup] = []
    late: list[tuple[PlacedCall, PlacedResult]] = []
    duplicates: list[tuple[PlacedResult, PlacedResult]] = []
    orphans: list[PlacedResult] = []
    pending: list[PlacedCall] = []
    distant: list[tuple[PlacedCall, PlacedResult]] = []
    deferred: list[PlacedCall] = []
    stored: list[PlacedResult] = []
    links: list[tuple[int, int]] = []
    head: int = 0

    @property
    def complete(self) -> bool:
        """Tell whether every call has its one result in its place, and every result its call."""
        return not (self.late or self.duplicates or self.orphans or any(group.open for group in self.groups))


def joined(first: Message, second: Message) -> bool:
    """Tell whether neighbors of one speaker are written as one message where roles alternate: one was edited."""
    return bool(first.native is None or second.native is None or first.patches or second.patches)


def index_by_group(messages: Sequence[Message], *, together: bool) -> CallIndex:
    """Return the index of results that stand directly behind the group of their calls.

    Inside a group results are matched by id, and by name and order where there are no ids; an id may come again in a
    later group. `together`: the results of a group share one message.
    """
    index = CallIndex()
    strays: list[PlacedResult] = []
    surplus: list[PlacedResult] = []  # results that stand behind the newest group and belong to none of its calls
    position = 0
    while position < len(messages):
        message = messages[position]
        if message.role != "assistant" or not message.calls:
            strays.extend(PlacedResult(position, result) for result in message.results)
            position += 1
            continue
        if single := _single_call_group(messages, position, together):
            index.groups.append(single)
            position, surplus = single.stop, []
            continue
        group = _group_at(messages, position, together)
        results = [PlacedResult(at, result) for at in range(group.start, group.stop) for result in messages[at].results]
        surplus = _match(group, results)
        strays.extend(surplus)
        index.groups.append(group)
        position = group.stop
    _sort_strays(index, strays)
    last = index.groups[-1] if index.groups else None
    ends = last is not None and last.stop == len(messages) and not surplus
    if last and ends and all(message.role == "tool" for message in messages[last.start :]):
        index.pending = last.open
    return index


def newest_group(messages: Sequence[Message], *, together: bool) -> int | None:
    """Return where the newest group begins if nothing but results follows its calls, else None."""
    first = len(messages) - 1
    while first >= 0 and messages[first].role == "tool":
        first -= 1
    if first < 0 or messages[first].role != "assistant":
        return None
    start = first if messages[first].calls else None
    while (
        together and first > 0 and messages[first - 1].role == "assistant" and joined(*messages[first - 1 : first + 1])
    ):
        first -= 1
        start = first if messages[first].calls else start
    return start


def index_by_id(messages: Sequence[Message]) -> CallIndex:
    """Return the index of results that stand anywhere behind their call, by id and kind.

    Where an id comes again, or there is none, results answer in order.
    """
    indexer = _IdIndexer()
    for position, message in enumerate(messages):
        indexer.add(position, message)
    return indexer.finished()


def _single_call_group(messages: Sequence[Message], position: int, together: bool) -> CallGroup | None:
    """Return the group of one call whose one result follows at once, which most are; None where it is another.

    `_group_at` and `_match` give the same; most groups are of this kind, and these few comparisons cost less.
    """
    calls, after = messages[position].calls, position + 1
    if len(calls) != 1 or after == len(messages) or len(results := messages[after].results) != 1:
        return None
    call, result, role = calls[0], results[0], messages[after].role
    if not call.call_id or call.call_id != result.call_id or role == "assistant" or not (together or role == "tool"):
        return None
    if after + 1 < len(messages):
        following = messages[after + 1].role
        if following == "tool" or (together and following != "assistant"):
            return None
    placed = PlacedCall(position, call)
    return CallGroup(position, after, after + 1, [placed], [(placed, PlacedResult(after, result))])


def _group_at(messages: Sequence[Message], first: int, together: bool) -> CallGroup:
    """Return the group that begins with a message, with the range in which its results may stand, unmatched."""
    calls = [PlacedCall(first, call) for call in messages[first].calls]
    start, end = first + 1, len(messages)
    if not together:
        stop = start
        while stop < end and messages[stop].role == "tool":
            stop += 1
        return CallGroup(first, start, stop, calls)
    while start < end and messages[start].role == "assistant" and joined(messages[start - 1], messages[start]):
        calls.extend(PlacedCall(start, call) for call in messages[start].calls)
        start += 1
    stop = start
    if stop < end and messages[stop].role != "assistant":
        stop += 1
        while stop < end and messages[stop].role != "assistant" and joined(messages[stop - 1], messages[stop]):
            stop += 1
    return CallGroup(first, start, stop, calls)


def _match(group: CallGroup, results: list[PlacedResult]) -> list[PlacedResult]:
    """Pair the calls of a group with the results in its range; return the results that are left over."""
    ids = [placed.call.call_id for placed in group.calls]
    if all(ids) and len(set(ids)) == len(ids) and ids == [placed.result.call_id for placed in results]:
        group.pairs = list(zip(group.calls, results, strict=True))
        return []
    by_id: dict[str, deque[PlacedResult]] = {}
    for placed in results:
        if placed.result.call_id:
            by_id.setdefault(placed.result.call_id, deque()).append(placed)
    unmatched: list[PlacedCall] = []
    for call in group.calls:
        if call.call.call_id and (waiting := by_id.get(call.call.call_id)):
            group.pairs.append((call, waiting.popleft()))
        else:
            unmatched.append(call)
    paired = {id(placed) for _, placed in group.pairs}
    left = [placed for placed in results if id(placed) not in paired]
    for call in unmatched:
        for placed in left:
            both_have_ids = call.call.call_id and placed.result.call_id  # then a name alone pairs nothing
            in_order = call.call.kind == OLLAMA and not placed.result.name
            if (placed.result.name == call.call.name or in_order) and not both_have_ids:
                group.pairs.append((call, placed))
                left.remove(placed)
                break
        else:
            group.open.append(call)
    return left


def _sort_strays(index: CallIndex, strays: list[PlacedResult]) -> None:
    """Sort results out of place: late, duplicate, or without any call, by the groups that stand before each."""
    open_: dict[str, deque[PlacedCall]] = {}
    answered: dict[str, PlacedResult] = {}
    groups = iter(index.groups)
    group = next(groups, None)
    for stray in sorted(strays, key=lambda stray: stray.position):
        while group is not None and group.first < stray.position:
            for placed in group.open:
                open_.setdefault(placed.call.call_id or placed.call.name, deque()).append(placed)
            for placed, answer in group.pairs:
                answered[placed.call.call_id or placed.call.name] = answer
            group = next(groups, None)
        key = stray.result.call_id or stray.result.name
        if waiting := open_.get(key):
            index.late.append((waiting.popleft(), stray))
        elif key in answered:
            index.duplicates.append((answered[key], stray))
        else:
            index.orphans.append(stray)


class _OpenCall(NamedTuple):
    """A call that awaits its result: its group, and the round of the conversation in which it was made."""

    group: CallGroup
    placed: PlacedCall
    round: int


class _IdIndexer:
    """Builds an index by id, message by message."""

    def __init__(self) -> None:
        self.index = CallIndex()
        self.open: dict[Key, deque[_OpenCall]] = {}
        self.answered: dict[Key, PlacedResult] = {}
        self.served: dict[Key, deque[int]] = {}  # calls that the provider answers in an item of its own
        self.programs: dict[str, int] = {}
        self.group: CallGroup | None = None
        self.round = 0  # grows where the conversation goes on: with a user's message, and with calls after results
        self.after_results = False
        self.quiet = 0  # position after the last message that ends all waiting
        self.begun = False  # something of the model's stands before; a list without that continues a stored one
        self.reference: int | None = None  # position of the first reference, to an item that may be any call

    def add(self, position: int, message: Message) -> None:
        """Take the next message."""
        for part in message.parts:
            match part:
                case ToolCall(server=True, kind="program" | "tool_search"):
                    self.served.setdefault(_key(part), deque()).append(position)
                    self.programs[part.call_id] = position
                case ToolCall(server=False):
                    self._add_call(position, part)
                case ToolResult(server=True, kind="program" | "tool_search"):
                    if waiting := self.served.get(_key(part)):
                        self.index.links.append((waiting.popleft(), position))
                    elif not self._add_stored(placed := PlacedResult(position, part)):
                        self.index.orphans.append(placed)
                case ToolResult(server=False):
                    self._add_result(position, part)
                case Opaque(kind="item_reference") if self.reference is None:
                    self.reference = position
                case Opaque(kind="mcp_approval_response") if not self.begun:
                    self.index.head = position + 1
                case Opaque(last=True):  # it closes the list, and what is open then gets no result
                    self.quiet = position
        if message.role in ("user", "system"):
            self.quiet = position + 1
            self.round += 1
        self.begun = self.begun or message.role in ("user", "assistant")

    def finished(self) -> CallIndex:
        """Return the index: what is open now stays open."""
        index = self.index
        for waiting in self.open.values():
            for open_call in waiting:
                deferred = open_call.placed.call.deferred
                (index.deferred if deferred else open_call.group.open).append(open_call.placed)
        self._settle_other_kinds()
        late = {id(placed.call) for placed, _ in index.late}
        for placed, answer in index.late:
            known = self.answered.get(_key(placed.call), answer)
            self.answered[_key(placed.call)] = max(known, answer, key=lambda placed: placed.position)
        open_ = [placed for group in index.groups for placed in group.open if placed.position >= self.quiet]
        if any(id(placed.call) not in late and self._is_unanswered(placed) for placed in open_):
            index.pending = [placed for placed in open_ if id(placed.call) not in late]  # all, so that none is closed
        return index

    def _settle_other_kinds(self) -> None:
        """Take results of another kind from calls that got one of their own: those had a call that is not here."""
        index = self.index
        answered = {id(placed.call) for group in index.groups for placed, _ in group.pairs}
        strays = [answer for placed, answer in index.late if id(placed.call) in answered]
        if strays:
            index.late = [(placed, answer) for placed, answer in index.late if id(placed.call) not in answered]
            for answer in strays:
                stored = self.reference is not None and self.reference < answer.position
                (index.stored if stored else index.orphans).append(answer)
            index.stored.sort(key=lambda placed: placed.position)
            index.orphans.sort(key=lambda placed: placed.position)

    def _is_unanswered(self, placed: PlacedCall) -> bool:
        """Tell whether an open call is no answered call once more."""
        answer = self.answered.get(_key(placed.call))
        return answer is None or answer.position < placed.position

    def _add_stored(self, placed: PlacedResult) -> bool:
        """Add a result whose call may be one that the provider stores; return False where it cannot be."""
        if not self.begun:
            self.index.head = placed.position + 1
        elif self.reference is None:
            return False
        self.index.stored.append(placed)
        return True

    def _add_call(self, position: int, call: ToolCall) -> None:
        if self.after_results:
            self.round, self.after_results = self.round + 1, False
        group = self.group
        if group is None or group.stop != position:
            group = self.group = CallGroup(position, position + 1, position + 1)
            self.index.groups.append(group)
        group.start = group.stop = position + 1
        placed = PlacedCall(position, call)
        group.calls.append(placed)
        self.open.setdefault(_key(call), deque()).append(_OpenCall(group, placed, self.round))
        if call.caller in self.programs:
            self.index.links.append((self.programs[call.caller], position))

    def _add_result(self, position: int, result: ToolResult) -> None:
        self.after_results = True
        key, answer = _key(result), PlacedResult(position, result)
        waiting = self.open.get(key) or self._named_by_item(key)
        if waiting:
            group, placed, round = waiting.popleft()
            group.pairs.append((placed, answer))
            self.answered[key] = answer
            if round != self.round:
                self.index.distant.append((placed, answer))
        elif key in self.answered:
            self.index.duplicates.append((self.answered[key], answer))
        elif (other := self._of_other_kind(result)) is not None:
            self.index.late.append((other, answer))
        elif not self._add_stored(answer):
            self.index.orphans.append(answer)

    def _of_other_kind(self, result: ToolResult) -> PlacedCall | None:
        """Return the open call with the id of a result that is of a kind the call does not take."""
        late = {id(placed.call) for placed, _ in self.index.late}
        calls = (each.placed for queue in self.open.values() for each in queue if id(each.placed.call) not in late)
        return next((placed for placed in calls if result.call_id and placed.call.call_id == result.call_id), None)

    def _named_by_item(self, key: Key) -> deque[_OpenCall] | None:
        """Return the waiting calls that a result names by the id of their item, as local shell output does."""
        queues = (queue for queue in self.open.values() if queue)
        return next((queue for queue in queues if (queue[0].placed.call.item, key[1]) == key), None)


def _key(part: ToolCall | ToolResult) -> Key:
    return part.call_id or part.name, part.kind
