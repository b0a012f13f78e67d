"""What a compaction costs and saves, and from which call on it pays.

Theory of operation. All sums are tokens of input: a token that is read from the prompt cache counts `TokenPrices.read`,
one that is put into it `write`, a token of the answer `output`. A plan that makes a request of `before` tokens one of
`after`, and leaves the first `prefix` tokens as they were,

    costs, once      (write − read) × (after − prefix)          the rest of the new prefix is put into the cache
                   + 3 × (read × after + 100 × output)          three calls that read something again, and
                   + write × min(10,000, before − after)        what these bring: more where the session's own course
                                                                has shown that more is read again (`read_again`)
                   + output × thinking                          bound thinking of the open turn, which is lost
    saves, a call    read × (before − after)

so it pays from call `cost / saving` on. Whether that call comes is not known. A session goes on for about as many calls
as it had so far (measured: docs/replay.md), which is `Course.calls_left`. A compaction that the window does not force
waits (`reason_to_wait`) for three conditions:

1. Over half of the calls since the last compaction it would have paid. That is the interval of least cost
   (`LeastCost`): what the larger requests have cost since then has reached what a compaction costs.
2. Even if the session ended now it would raise the bill by no more than `WhenItPays.loss`. What earlier compactions
   have saved beyond their cost counts.
3. Where a turn of the user probably ends soon, before the window is full, the turn has ended: no thinking is lost
   there. What waiting for it costs is weighed against that thinking and a quarter of the compaction's own cost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold.core.messages import Text

if TYPE_CHECKING:
    from refold.core.budget import WhenItPays
    from refold.core.messages import Message

__all__ = [
    "BreakEven",
    "Course",
    "CourseCounter",
    "PastCompaction",
    "TokenPrices",
    "break_even",
    "course_of",
    "reason_to_wait",
]

MOST_CALLS = 400  # that a session is expected to go on; the longest recorded ones have 300 to 600
ANSWER = 100  # tokens of output that a call to read something again takes
BORDER = 0.25  # of what a compaction costs: worth the turn's border, where no call is cut off from what it follows
READ_AGAIN_CALLS, READ_AGAIN_TOKENS = 3, 10_000  # after a compaction, where nothing is known of the session's own
MOST_READ_AGAIN = 12  # calls; more are the habit of the agent, and fewer than usual may be chance
TELLING = 20  # calls after a compaction, from which on they tell how much is read again


class TokenPrices(Struct, frozen=True, omit_defaults=True):
    """Prices as shares of the price of an input token: read from the prompt cache, put into it, and output.

    The defaults are those of Claude models before 5.5.
    """

    read: float = 0.10
    write: float = 1.25
    output: float = 5.0


class PastCompaction(Struct, frozen=True):
    """A compaction in force: calls made before it, sizes before and after, its cost and what it saves a call."""

    calls: int
    before: int
    after: int
    cost: int
    saving: int


class Course(Struct, frozen=True):
    """The course of a session: calls so far, turns of the user, calls since the last turn began, compactions.

    `read_again` is how many calls are to be expected after a compaction that read something again, `expected` how many
    more calls there will be, where the caller knows.
    """

    calls: int = 0
    turns: int = 0
    in_turn: int = 0
    compactions: tuple[PastCompaction, ...] = ()
    read_again: int = 3
    expected: int | None = None

    @property
    def calls_left(self) -> int:
        """The calls that are to be expected: those the caller knows of, else as many as so far, at most 400."""
        return min(self.calls, MOST_CALLS) if self.expected is None else self.expected

    @property
    def since(self) -> int:
        """The calls since the last compaction, or all."""
        return self.calls - (self.compactions[-1].calls if self.compactions else 0)

    @property
    def unpaid(self) -> int:
        """What the compactions in force have cost beyond what they have saved so far; negative where they paid."""
        return sum(past.cost - past.saving * (self.calls - past.calls) for past in self.compactions)

    def bill(self, size: int, fixed: int, prices: TokenPrices) -> int:
        """Return what the calls so far would have cost uncompacted, without output, in tokens of input.

        `size` is that of the request now, `fixed` that of system prompt and tools; between two known sizes a request
        grows evenly.
        """
        read, start, calls, removed = 0.0, fixed, 0, 0
        for past in self.compactions:
            read += (past.calls - calls) * ((start + past.before) / 2 + removed)
            start, calls, removed = past.after, past.calls, removed + past.before - past.after
        read += (self.calls - calls) * ((start + size) / 2 + removed)
        return round(prices.read * read + prices.write * (size + removed))

    def calls_to_border(self, size: int, fixed: int, limit: int) -> float:
        """Return the calls until the open turn ends, 0 where none is open or the request reaches a limit before.

        A turn has as many calls as the earlier ones had, or half as many again as it has already.
        """
        ended = self.turns - 1
        if not self.in_turn or ended < 1 or self.since < 1:
            return 0.0
        ahead = max((self.calls - self.in_turn) / ended - self.in_turn, self.in_turn / 2)
        start = self.compactions[-1].after if self.compactions else fixed
        return ahead if size + ahead * max(size - start, 0) / self.since <= limit else 0.0


class BreakEven(Struct, frozen=True, omit_defaults=True):
    """What a compaction costs once, by cause, and what it saves with each later call, in tokens of input.

    `rewriting` is for the new prefix that is put into the prompt cache, `rereading` for what is read again, `thinking`
    for thinking that is lost. `calls_left` is how many calls are to be expected. `waits` is why a compaction does not
    take place yet; empty for one that does.
    """

    rewriting: int = 0
    rereading: int = 0
    thinking: int = 0
    saving: int = 0
    calls_left: int = 0
    waits: str = ""

    @property
    def cost(self) -> int:
        """What it costs once."""
        return self.rewriting + self.rereading + self.thinking

    @property
    def calls(self) -> int | None:
        """The call from which on it pays, counted from the next one; None where it saves nothing."""
        return max(ceil(self.cost / self.saving), 1) if self.saving > 0 else None

    @property
    def pays(self) -> bool:
        """Tell whether that call is to be expected."""
        return self.calls is not None and self.calls <= self.calls_left

    @property
    def sentence(self) -> str:
        """The figures in words."""
        start = f"costs {self.cost:,} tokens of input"
        if self.calls is None:
            return f"{start} and saves nothing later"
        more = "1 more call is" if self.calls_left == 1 else f"{self.calls_left:,} more calls are"
        return f"{start}, saves {self.saving:,} a call: pays from call {self.calls:,} on, {more} expected"


def course_of(messages: Sequence[Message], compactions: Iterable[tuple[int, PastCompaction]] = ()) -> Course:
    """Return the course of a conversation; `compactions` are those in force, each with the messages it was made for.

    A run of messages of the assistant is one call. Their `calls` are counted here.
    """
    return CourseCounter().course(messages, compactions)


class CourseCounter:
    """Counts the course of one conversation as it grows: what is new, and all again where it is another one."""

    def __init__(self) -> None:
        self._begin()

    def course(self, messages: Sequence[Message], compactions: Iterable[tuple[int, PastCompaction]] = ()) -> Course:
        """Return what `course_of` does, for the conversation so far; an id tells all that stands before it, too."""
        past, known, seen = list(compactions), self._past, self._seen
        grown = len(messages) >= seen and (not seen or messages[seen - 1].id == self._last)
        if not grown or past[: len(known)] != known or any(length < seen for length, _ in past[len(known) :]):
            self._begin()
        for each in past[len(self._past) :]:
            self._past.append(each)
            self._repeats.compacted(each[0])
        for position in range(self._seen, len(messages)):
            self._take(position, messages[position])
        if not past:
            return Course(self._calls, self._turns, self._in_turn)
        counted = (*self._counted, *(replace(each, calls=self._calls) for _, each in past[len(self._counted) :]))
        read_again = self._repeats.expected([*(each.calls for each in counted), self._calls])
        return Course(self._calls, self._turns, self._in_turn, counted, read_again)

    def _begin(self) -> None:
        self._past: list[tuple[int, PastCompaction]] = []
        self._seen, self._last = 0, ""
        self._repeats = _Repeats()
        self._counted: list[PastCompaction] = []
        self._calls = self._turns = self._in_turn = 0
        self._answering = False

    def _take(self, position: int, message: Message) -> None:
        while len(self._counted) < len(self._past) and self._past[len(self._counted)][0] <= position:
            self._counted.append(replace(self._past[len(self._counted)][1], calls=self._calls))
        if message.role == "assistant":
            if not self._answering:
                self._calls, self._in_turn = self._calls + 1, self._in_turn + 1
            self._repeats.take(position, message)
        elif message.role == "user" and _starts_turn(message):
            self._turns, self._in_turn = self._turns + 1, 0
        self._answering = message.role == "assistant"
        self._seen, self._last = position + 1, message.id


class _Repeats:
    """Counts calls of tools that repeat one from before the last compaction, each once."""

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._counts = [0]  # before the first compaction, and after each
        self._first: dict[tuple[str, str], int] = {}
        self._counted: set[tuple[int, tuple[str, str]]] = set()

    def compacted(self, length: int) -> None:
        """Take a compaction that was made for so many messages, before the first of those that it does not have."""
        self._lengths.append(length)
        self._counts.append(0)

    def take(self, position: int, message: Message) -> None:
        """Take the next message of the assistant."""
        segment = bisect_right(self._lengths, position)
        border = self._lengths[segment - 1] if segment else position
        for call in message.calls:
            key = call.name, call.arguments
            if self._first.setdefault(key, position) < border and (segment, key) not in self._counted:
                self._counted.add((segment, key))
                self._counts[segment] += 1

    def expected(self, calls: list[int]) -> int:
        """Return how many calls read again after a compaction, more than the agent does anyway; `calls` at each end."""
        usual = self._counts[0] / calls[0] if calls[0] else 0.0
        after = [
            count - usual * (stop - start)
            for count, start, stop in zip(self._counts[1:], calls, calls[1:], strict=False)
            if stop - start >= TELLING
        ]
        if not after:
            return READ_AGAIN_CALLS
        return min(max(round(sum(after) / len(after)), READ_AGAIN_CALLS), MOST_READ_AGAIN)


def _starts_turn(message: Message) -> bool:
    return message.note is None and not message.results and any(isinstance(part, Text) for part in message.parts)


def break_even(
    before: int, after: int, prefix: int, prices: TokenPrices, course: Course, *, thinking: int = 0, waits: str = ""
) -> BreakEven:
    """Return what it costs and saves to make a request of `before` tokens one of `after`.

    The first `prefix` tokens stay as they were, and `thinking` tokens of bound thinking in the open turn are lost.
    """
    left_out = max(before - after, 0)
    rewriting = max(prices.write - prices.read, 0.0) * max(after - prefix, 0)
    calls = course.read_again * (prices.read * after + ANSWER * prices.output)
    brought = min(READ_AGAIN_TOKENS * course.read_again // READ_AGAIN_CALLS, left_out)
    return BreakEven(
        rewriting=round(rewriting),
        rereading=round(calls + prices.write * brought),
        thinking=round(prices.output * thinking),
        saving=round(prices.read * left_out),
        calls_left=course.calls_left,
        waits=waits,
    )


def reason_to_wait(
    economy: BreakEven,
    trigger: WhenItPays,
    course: Course,
    prices: TokenPrices,
    *,
    size: int,
    fixed: int,
    limit: int,
) -> str:
    """Return why a compaction that the window does not force should wait; empty where it should not.

    Where the caller knows how many more calls there will be, that alone decides.
    """
    if economy.calls is None:
        return "it would save nothing"
    if course.expected is not None:
        return "" if economy.pays else f"it pays from call {economy.calls:,} on, {course.expected:,} are expected"
    if economy.cost > economy.saving * min(economy.calls_left, course.since) / 2:
        return f"it pays from call {economy.calls:,} on, and the last {course.since:,} calls would not have paid for it"
    bill = course.bill(size, fixed, prices)
    if course.unpaid + economy.cost > trigger.loss * bill:
        return f"it costs more than {trigger.loss:.0%} of the bill so far, if the session ends before it pays"
    ahead = course.calls_to_border(size, fixed, limit)
    if ahead and ahead * economy.saving <= economy.thinking + economy.cost * BORDER:
        return "the turn probably ends before the window is full"
    return ""
