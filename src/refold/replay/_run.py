"""One recorded conversation replayed under one policy, call by call, without a model.

The policy compacts where it would have, from what the provider would have reported; its plans stay in force. Each call
is priced by its longest live beginning; what the agent would have had to read again is charged. A real agent may take
another path after a compaction, so the calls and answers are those of the recording and only the requests differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._compaction.driver import run_sync
from refold._compaction.options import Options
from refold._compaction.request import Request, gauged, request_for
from refold.core._engine import due, planning
from refold.core.break_even import PastCompaction
from refold.core.budget import Breakdown, Never, Usage
from refold.core.edits import fold
from refold.core.plan import past_compactions
from refold.core.policy import When
from refold.core.token_units import EstimatedTokens, ReportedTokens
from refold.core.transcript import Transcript
from refold.errors import BadBudget
from refold.replay._equal_size import Limits, SizedResult
from refold.replay._fake_summarizer import FakeHandlers
from refold.replay._quality import CutPoint, Quality, judged
from refold.replay._refetch import Refetching
from refold.replay._repeated_compaction import Cycles
from refold.replay._validity import new_violations
from refold.replay.pricing import CallTokens, Spent, Tariff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.plan import Plan
    from refold.core.policy import Policy
    from refold.replay._timeline import Beat, Timeline

__all__ = ["NONE", "ReplayedCompaction", "Run", "replayed"]

NONE = "none"  # the name of doing nothing
FETCH = 100  # tokens of output that a call to read something again takes


class ReplayedCompaction(Struct, frozen=True, array_like=True):
    """One compaction: before which call, the prompt before and after, and the cached tokens it had written again.

    `pays_from` is the call after it from which on it pays, by its plan; 0 where that is not known.
    """

    call: int
    before: int
    after: int
    rewritten: int
    pays_from: int = 0


class Run(Struct, frozen=True):
    """A conversation under a policy: tokens of each prompt, US dollars so far after each call, and the sums.

    `refetches` and `refetch` are how often something had to be read again and what that cost, `summaries` and
    `summary` how often a model was asked for a summary and what that cost; `spent` contains neither. `damage` is
    what cached text written again cost, which it does. `broken` counts provider rules that compactions broke,
    `over` the calls above the window. `quality` is what was judged at the cuts. `at_sizes` is what the policy
    preserved at equal sizes, `limits` what any choice could have preserved there (with the run of doing nothing),
    `cycles` what five compactions in a row left.
    """

    file: str
    policy: str
    window: int
    context: tuple[int, ...]
    dollars: tuple[float, ...]
    compactions: tuple[ReplayedCompaction, ...]
    spent: Spent
    tokens: CallTokens
    refetches: int = 0
    refetch_tokens: int = 0
    refetch: float = 0.0
    summaries: int = 0
    summary: float = 0.0
    damage: float = 0.0
    broken: int = 0
    over: int = 0
    quality: tuple[Quality, ...] = ()
    at_sizes: tuple[SizedResult, ...] = ()
    limits: tuple[Limits, ...] = ()
    cycles: Cycles | None = None

    @property
    def bill(self) -> float:
        """US dollars of all calls, of summaries, and of what had to be read again."""
        return self.spent.dollars + self.summary + self.refetch

    @property
    def peak(self) -> int:
        """The largest prompt."""
        return max(self.context, default=0)

    @property
    def mean(self) -> int:
        """The mean prompt."""
        return round(sum(self.context) / len(self.context)) if self.context else 0


def replayed(
    line: Timeline, policy: Policy | None, tariff: Tariff, options: Options, *, file: str = "",
    cuts: Sequence[CutPoint] = (), fetches: bool = True,
) -> Run:  # fmt: skip
    """Replay a conversation under a policy, or under none.

    `options` say the window, budget and goal; their policy is not looked at. `cuts` are where the view is judged;
    `fetches=False` leaves out what had to be read again.

    Raises:
        BadBudget: system prompt and tools alone are above the input budget, or the budget cannot be.
    """
    walk = _Walk(line, policy, tariff, options, {cut.call: cut for cut in cuts}, fetches=fetches)
    for number, beat in enumerate(line.beats):
        walk.call(number, beat)
    walk.end()
    return walk.run(file)


class _Walk:
    """The state of a replay between two calls."""

    def __init__(
        self, line: Timeline, policy: Policy | None, tariff: Tariff, options: Options, cuts: dict[int, CutPoint],
        *, fetches: bool,
    ) -> None:  # fmt: skip
        self._line, self._tariff, self._cuts = line, tariff, cuts
        self._quality: list[Quality] = []
        self._options = replace(options, policy=policy or options.policy, format=line.format.name)
        self._request = _request(line, self._options)
        self._policy = policy and self._request.policy
        self._every = policy is not None and any(step.when is When.EVERY_CALL for step in policy.steps)
        self._estimate = self._request.view.size  # the policy's own count, kept while no edit touches a message
        self._view: list[Message] = []
        self._estimated = self._prompt = 0  # of the view: by the policy's counter, in the provider's tokens
        self._usage: Usage | None = None
        self._sent: list[Message] = []
        self._live, self._long = line.warm, False
        self._seconds: float | None = None
        self._known = 0
        self._refetching = Refetching(line.transcript.messages) if fetches and policy else None
        self._context: list[int] = []
        self._dollars: list[float] = []
        self._compactions: list[ReplayedCompaction] = []
        self._past: list[tuple[int, PastCompaction]] = []
        self._spent, self._read, self._written, self._output = Spent(), 0, 0, 0
        self._fetched: list[int] = []
        self._refetch = self._damage = self._summary = 0.0
        self._broken = self._over = self._invalid = 0
        self._stand_ins = FakeHandlers(
            line.transcript.messages, line.counter, window=self._request.view.budget.input, ratio=line.ratio
        )

    def call(self, number: int, beat: Beat) -> None:
        """Take in what is new, compact where it is due, and send."""
        fresh = self._grow(beat.covers)
        expired = self._expired(beat)
        if expired:
            self._live = 0
        if self._policy is not None:
            self._compact(number, fresh, expired=expired)
        if (cut := self._cuts.get(number)) is not None:
            self._quality.append(judged(cut, self._view, self._prompt, self._invalid))
        prompt = self._prompt + self._line.fixed
        self._send(prompt, beat)
        self._over += prompt > self._request.view.budget.window
        self._usage = Usage(prompt, beat.output, covers=len(self._view))

    def end(self) -> None:
        """Charge what the last answer needed read again."""
        for place in range(self._known, len(self._line.transcript)):
            if self._line.transcript.messages[place].role != "assistant":
                break
            if self._refetching and (tokens := self._refetching.passed(place)):
                self._fetch(tokens)
        if self._dollars:
            self._dollars[-1] = self._bill()

    def run(self, file: str) -> Run:
        """Return the sums."""
        return Run(
            file=file, policy=self._policy.name if self._policy else NONE, window=self._request.view.budget.window,
            context=tuple(self._context), dollars=tuple(self._dollars), compactions=tuple(self._compactions),
            spent=self._spent, tokens=CallTokens(sum(self._context), self._read, self._written, self._output),
            refetches=len(self._fetched), refetch_tokens=sum(self._fetched), refetch=self._refetch,
            summaries=len(self._stand_ins.calls), summary=self._summary, damage=self._damage, broken=self._broken,
            over=self._over, quality=tuple(self._quality),
        )  # fmt: skip

    def _bill(self) -> float:
        return round(self._spent.dollars + self._summary + self._refetch, 6)

    def _grow(self, covers: int) -> int:
        """Put the messages up to the next call into the view; return their tokens."""
        messages = self._line.transcript.messages[self._known : covers]
        before = self._prompt
        for place, message in enumerate(messages, self._known):
            self._view.append(message)
            self._estimated += self._estimate(message)
            self._prompt += self._line.size(message)
            tokens = self._refetching.passed(place) if self._refetching else 0
            if tokens:
                self._fetch(tokens)
        self._known = covers
        return self._prompt - before

    def _fetch(self, tokens: int) -> None:
        """Charge what has to be read again: one more call, with what it brings."""
        size = self._prompt + self._line.fixed
        spent = self._tariff.spent(self._split(size + tokens, size, FETCH), long=self._long)
        self._fetched.append(tokens)
        self._refetch += spent.dollars

    def _compact(self, number: int, fresh: int, *, expired: bool) -> None:
        calls_before = len(self._stand_ins.calls)
        plan = self._planned()
        for request in self._stand_ins.calls[calls_before:]:  # sent apart, so nothing of it is in the cache
            self._summary += self._tariff.spent(request).dollars
        if plan is None or plan.empty:
            return
        self._past += past_compactions([plan])
        before, was = self._prompt, self._sent
        tip = self._view[-1].id if self._view else None
        self._view = list(fold(self._view, [plan.edits], [tip]))
        self._estimated = sum(map(self._estimate, self._view))
        self._prompt = sum(map(self._line.size, self._view))
        shared = self._shared(was)
        rewritten = 0 if expired or not was else max(self._prompt + self._line.fixed - shared - fresh, 0)
        self._live = min(self._live, shared)
        if_cached = CallTokens(rewritten, rewritten)
        again = CallTokens(rewritten, 0, rewritten if self._tariff.writes_apart else 0)
        self._damage += self._tariff.spent(again, long=self._long).dollars - self._tariff.spent(if_cached).dollars
        fixed = self._line.fixed
        pays_from = (plan.break_even.calls if plan.break_even else None) or 0
        sizes = before + fixed, self._prompt + fixed
        self._compactions.append(ReplayedCompaction(number, *sizes, rewritten, pays_from))
        self._invalid = new_violations(self._line.format, self._view, self._line.transcript.messages[: self._known])
        self._broken += self._invalid
        if self._refetching:
            self._refetching.compacted(self._view)

    def _planned(self) -> Plan | None:
        """Return the plan of a policy before this call, None where nothing is due."""
        policy, budget = self._request.policy, self._request.view.budget
        if isinstance(policy.trigger, Never) and not self._every:
            return None
        counter = self._request.view.counter
        estimated = self._line.fixed + counter.per_conversation + self._estimated
        since = sum(map(self._estimate, self._view[self._usage.covers or 0 :])) if self._usage else 0
        view = gauged(
            replace(
                self._request.view, transcript=Transcript(self._line.transcript.messages[: self._known]),
                start=tuple(self._view), usage=self._usage, prices=self._tariff.shares, compactions=tuple(self._past),
            ),
            policy, EstimatedTokens(estimated), EstimatedTokens(since),
        )  # fmt: skip
        is_due = due(policy, view)
        if not (is_due or self._every):
            return None
        handlers = self._stand_ins.handlers(self._known)
        planned = run_sync(planning(policy, view, is_due=is_due), handlers)
        plan = planned.plan
        exact = self._request.exact
        if plan.empty or plan.sizes.after > plan.sizes.limit or counter is exact:
            return plan
        sizes = sum(map(self._line.count, planned.view.messages))
        if sizes + exact.per_conversation + self._line.fixed <= budget.input:
            return plan
        recounted = replace(
            self._request.view, transcript=view.transcript, start=view.start, counter=exact, estimates={},
            prices=view.prices, compactions=view.compactions,
        )  # fmt: skip
        recounted = replace(recounted, measured=ReportedTokens(recounted.estimated))
        return run_sync(planning(policy, recounted), handlers).plan

    def _shared(self, was: list[Message]) -> int:
        """Return the tokens that the view and the last request begin with."""
        tokens = self._line.fixed
        for old, new in zip(was, self._view, strict=False):
            if old is not new and (old.id != new.id or old.patches != new.patches):
                break
            tokens += self._line.size(new)
        return tokens

    def _send(self, prompt: int, beat: Beat) -> None:
        tokens = self._split(prompt, self._live, beat.output)
        self._spent += self._tariff.spent(tokens, long=beat.long)
        self._read, self._written = self._read + tokens.read, self._written + tokens.written
        self._output += tokens.output
        self._context.append(prompt)
        self._dollars.append(self._bill())
        self._sent, self._live = list(self._view), prompt
        self._seconds, self._long = beat.seconds, beat.long

    def _split(self, prompt: int, live: int, output: int) -> CallTokens:
        """Return a call as tokens: its live beginning is read, in whole steps, and the rest written where that is."""
        rules = self._tariff.rules
        cached = min(live, prompt)
        read = cached // rules.step * rules.step if cached >= rules.least else 0
        written = prompt - read if self._tariff.writes_apart and prompt >= rules.least else 0
        return CallTokens(prompt, read, written, output)

    def _expired(self, beat: Beat) -> bool:
        if beat.seconds is None or self._seconds is None:
            return False
        rules = self._tariff.rules
        return beat.seconds - self._seconds > (rules.life_long if self._long else rules.life)


def _request(line: Timeline, options: Options) -> Request:
    """Return the request a replay starts from: no message yet, and the fixed part as the provider counted it."""
    request = request_for((), options)
    if line.fixed >= request.view.budget.input:
        raise BadBudget(
            f"system prompt and tools alone take {line.fixed:,} of {request.view.budget.input:,} tokens of input: "
            "name a larger window"
        )
    return replace(request, view=replace(request.view, overhead=Breakdown(system=line.fixed)))
