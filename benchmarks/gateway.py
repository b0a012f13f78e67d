"""What the gateway adds to a call, beside a bare pass-through of the same server stack, in one run.

    python benchmarks/gateway.py                         latency, throughput, known bodies
    python benchmarks/gateway.py --litellm PYTHON        and the LiteLLM proxy, from an environment of its own
    python benchmarks/gateway.py --only throughput --litellm PYTHON
    python benchmarks/gateway.py --storm 120             and 200 conversations at once for two minutes, with faults
    python benchmarks/gateway.py --before CHECKOUT       and the gateway of revision e976836, from a checkout of it
    python benchmarks/gateway.py --json --calls 300

The environment of LiteLLM is made apart, so that its packages stay out of this one:

    python -m venv /tmp/litellm && /tmp/litellm/bin/pip install 'litellm[proxy]'
    python benchmarks/gateway.py --litellm /tmp/litellm/bin/python

Upstream, bare pass-through, gateways and LiteLLM are processes of their own on the loopback interface. The bare
pass-through is uvicorn with httptools and uvloop, a raw ASGI application and a session of aiohttp, which reads the
body, forwards it and streams the answer. `gateway` is far below its trigger; `sticky` has compacted the conversation
before, and applies the plan again to every request. Answers are streams of 42 events with a usage report.

Latency: calls go to all in turn, one connection each. `fresh` bodies were never seen before; `resent` ones were sent
before, with one exchange less. Milliseconds over the bare pass-through, at the median and the 99th percentile.
Throughput: 16 clients, each with a conversation of its own that grows by an exchange with every call; the servers take
turns, and the median of five rounds counts. Where there are two cores, the servers have one, clients and upstream the
other. The processor time of the server is the figure that other work on the machine changes least.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.gateway_servers import GATEWAY, Process, servers

SIZES = {"small": 500, "50 KB": 50_000, "800 KB": 800_000, "4 MB": 4_000_000}
CLIENTS = 16
ROUNDS = 5
ROUND = {"litellm": 100}  # calls of one round; of the others `CALLS`
CALLS = 3_000
SELDOM = 6  # of so many calls one goes to LiteLLM as well, which takes its time
DONE = {"gateway": b"x-refold-done: forwarded", "sticky": b"x-refold-done: compacted"}  # stands in every response
DONE |= {"before": DONE["gateway"], "sticky, before": DONE["sticky"]}
HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nhost: %s\r\naccept: application/json\r\naccept-encoding: gzip, deflate\r\n"
    "user-agent: OpenAI/Python\r\nauthorization: Bearer sk-none\r\ncontent-type: application/json\r\n"
)


def body(size: int, seed: int, exchanges: int = 0) -> bytes:
    """A body of about so many bytes, of messages of 4 KB; with exchanges at its end that a longer body adds."""
    dice = random.Random(seed)
    words = [f"{dice.randrange(10**8):08x}\n" for _ in range(997)]
    messages = [{"role": "system", "content": f"You are agent {seed}."}]
    while sum(len(message["content"]) for message in messages[1:]) < size - 300 or len(messages) < 2:
        start = dice.randrange(500)
        role = "user" if len(messages) % 2 else "assistant"
        messages.append({"role": role, "content": "".join(words[start : start + min(size, 4_000) // 9])})
        if len(messages) > size // 3_900 + 1:
            break
    for number in range(exchanges):
        messages += [{"role": "assistant", "content": f"done {number}"}, {"role": "user", "content": f"next {number}"}]
    return json.dumps({"model": "gpt-4o", "messages": messages, "stream": True}).encode()


class Caller:
    """One kept connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port)

    def ms(self, data: bytes) -> float:
        start = perf_counter()
        self.connection.request("POST", "/v1/chat/completions", data, {"content-type": "application/json"})
        answer = self.connection.getresponse()
        got = answer.read()
        spent = perf_counter() - start
        assert answer.status == 200, got[:200]
        assert got.endswith(b"data: [DONE]\n\n")
        return spent * 1000


def latency(urls: dict[str, str], size: int, calls: int, kind: str) -> dict[str, tuple[float, float]]:
    """Return median and 99th percentile of the milliseconds of a call, by server."""
    callers = {name: Caller(url) for name, url in urls.items()}
    times: dict[str, list[float]] = {name: [] for name in urls}
    for number in range(calls):
        data = body(size, number + size, 0) if kind == "fresh" else body(size, 10**6 + size, number + 1)
        names = list(urls) if number % 2 else list(urls)[::-1]
        for name in names:
            if name == "litellm" and number % SELDOM:
                continue
            times[name].append(callers[name].ms(data))
    return {name: (median(each[2:]), quantiles(each[2:], n=100)[98]) for name, each in times.items()}


def talk(size: int, seed: int, host: str) -> Iterator[bytes]:
    """Yield the requests of one conversation, each with one exchange more."""
    start, _, end = body(size, seed).rpartition(b"]")
    head = (HEAD % host).encode()
    for number in range(10**6):
        data = start + b"]" + end
        yield b"%scontent-length: %d\r\n\r\n%s" % (head, len(data), data)
        start += b', {"role": "assistant", "content": "done %d"}, {"role": "user", "content": "next"}' % number


class Load:
    """So many calls, shared by all clients; every answer must say something in its head."""

    def __init__(self, calls: int, said: bytes) -> None:
        self.said = said
        self.unsent = self.unanswered = calls
        self.done = asyncio.get_running_loop().create_future()


class Client(asyncio.Protocol):
    """Sends the requests of a conversation one after the other, for as long as some of the load are left."""

    def __init__(self, requests: Iterator[bytes], load: Load) -> None:
        self.requests = requests
        self.load = load
        self.got = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.send()

    def send(self) -> None:
        if self.load.unsent > 0:
            self.load.unsent -= 1
            self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        self.got += data
        head = self.got[: self.got.find(b"\r\n\r\n")]  # that of LiteLLM is long
        chunked = b"\r\ntransfer-encoding: chunked" in head.lower()
        if not self.got.endswith(b"\r\n0\r\n\r\n" if chunked else b"data: [DONE]\n\n"):
            return
        assert self.got.startswith(b"HTTP/1.1 200"), self.got[:600]
        assert self.load.said in self.got, self.got[:600]
        self.got.clear()
        self.load.unanswered -= 1
        if not self.load.unanswered:
            self.load.done.set_result(None)
        self.send()


async def rate(server: Process, name: str, size: int, seed: int) -> tuple[float, float]:
    """Return calls a second, and microseconds of the server's processor time for each call."""
    loop = asyncio.get_running_loop()
    host = server.url.removeprefix("http://")
    address, _, port = host.partition(":")
    talks = [talk(size, seed * CLIENTS + number, host) for number in range(CLIENTS)]
    calls = ROUND.get(name, CALLS)
    for count in (CLIENTS, calls):  # the first calls compact where that is due, and are not measured
        load = Load(count, DONE.get(name, b""))
        begun, used = perf_counter(), server.seconds()
        clients = [partial(Client, each, load) for each in talks]
        made = [await loop.create_connection(each, address, int(port)) for each in clients]
        await asyncio.wait_for(load.done, 120)
        spent, used = perf_counter() - begun, server.seconds() - used
        for transport, _ in made:
            transport.abort()
    return calls / spent, used / calls * 1e6


def throughput(running: dict[str, Process], size: int, count: int) -> dict[str, tuple[float, float]]:
    """Return calls a second and microseconds a call by server, the median of rounds in which they take turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in running}
    for number in range(count):
        for place, (name, server) in enumerate(running.items()):
            found[name].append(uvloop.run(rate(server, name, size, 1_000 * number + place)))
    return {
        name: (median(each[0] for each in rounds), median(each[1] for each in rounds)) for name, rounds in found.items()
    }


def known(size: int = 4_000_000) -> dict[str, float]:
    """Return the milliseconds of the gateway's own work on a long body that it knows all but the end of."""
    from refold import formats
    from refold._gateway.conversations.budgets import Budgets
    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.settings import GatewaySettings
    from refold._gateway.wire.routes import DIALECTS

    tracker, shape = ConversationTracker(10**9), formats.find("openai-chat")
    bound = Budgets(GatewaySettings(window=10_000_000)).bound("gpt-4o", None)
    tracker.find(DIALECTS["chat"], shape, "", body(size, 1))
    parse, own = [], []
    for number in range(1, 20):
        data = body(size, 1, number)
        start = perf_counter()
        json.loads(data)
        parse.append(perf_counter() - start)
        start = perf_counter()
        conversation = tracker.find(DIALECTS["chat"], shape, "", data)
        assert conversation is not None
        conversation.most_tokens(DIALECTS["chat"])
        bound.due(0)
        own.append(perf_counter() - start)
        assert len(tracker) == 1
    return {"json.loads": median(parse) * 1000, "gateway": median(own) * 1000}


async def stormed(seconds: float, conversations: int = 200) -> dict[str, object]:
    """Return what came of so many conversations at once with faults at 5 % of the calls."""
    from benchmarks.gateway_load import Seen, Upstream, storm

    seen = Seen()
    async with Upstream(seen, share=0.05, seed=1) as upstream:
        gateway = await asyncio.to_thread(Process, GATEWAY, upstream.url, "16000")
        try:
            watch = asyncio.create_task(_watched(gateway, seen, seconds))
            await storm(gateway.url, seen, conversations, seconds)
            watch.cancel()
        finally:
            await asyncio.to_thread(gateway.stop)
    half = len(seen.memory) // 2
    return {
        "conversations": conversations,
        "seconds": seconds,
        "answers": seen.answers,
        "compacted": seen.compacted,
        "faults": dict(seen.faults),
        "errors at clients": dict(seen.errors),
        "wrong": seen.wrong[:5],
        "lost": seen.lost[:5],
        "MB resident, first half": round(max(seen.memory[:half], default=0) / 1e6),
        "MB resident, second half": round(max(seen.memory[half:], default=0) / 1e6),
    }


async def _watched(gateway: Process, seen: object, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds / 40)
        seen.memory.append(gateway.memory())  # type: ignore[attr-defined]


def measured(
    calls: int, storm_seconds: float, litellm: str, before: str, rounds: int, only: str = ""
) -> dict[str, Any]:
    """Measure everything asked for: `only` latency, throughput, or by default both and known bodies."""
    running = servers(litellm, before)
    found: dict[str, Any] = {"latency": {}, "throughput": {}, "memory": {}}
    asked = {name: server for name, server in running.items() if name != "upstream"}
    try:
        for name, size in SIZES.items() if only != "throughput" else ():
            count = calls if size < 100_000 else max(calls // 10, 20)
            for kind in ("fresh", "resent"):
                those = {name: server.url for name, server in asked.items() if not name.startswith("sticky")}
                if kind == "resent" and name == "50 KB":
                    those |= {name: server.url for name, server in asked.items() if name.startswith("sticky")}
                if size > 100_000:
                    those.pop("litellm", None)  # seconds a call
                found["latency"][f"{name}, {kind}"] = latency(those, size, count, kind)
        for name in ("small", "50 KB") if only != "latency" else ():
            those = {each: server for each, server in asked.items() if name != "small" or not each.startswith("sticky")}
            found["throughput"][name] = throughput(those, SIZES[name], rounds)
        found["memory"] = {name: server.memory() / 1e6 for name, server in asked.items() if name != "litellm"}
    finally:
        for process in reversed(running.values()):
            process.stop()
    if not only:
        found["known"] = known()
    if storm_seconds:
        found["storm"] = asyncio.run(stormed(storm_seconds))
    return found


def shown(found: dict[str, Any]) -> None:
    """Print the figures as tables."""
    print("ms                                      p50      p99   added p50   added p99")
    for case, by_server in found["latency"].items():
        bare = by_server["bare"]
        for server, (middle, high) in by_server.items():
            added = "" if server == "bare" else f"{middle - bare[0]:12.2f}{high - bare[1]:12.2f}"
            print(f"{case:>16} {server:>14} {middle:8.2f} {high:8.2f}{added}")
    print("\n16 clients                     calls/s   of bare   CPU us/call   of bare")
    for size, by_server in found["throughput"].items():
        bare = by_server["bare"]
        for server, (rate, used) in by_server.items():
            print(f"{size:>12} {server:>14} {rate:11,.0f} {rate / bare[0]:9.0%} {used:13,.0f} {bare[1] / used:9.0%}")
    print("\nMB resident: " + ", ".join(f"{name} {size:.0f}" for name, size in found["memory"].items()))
    if own := found.get("known"):
        print(f"\n4 MB, known: {own['gateway']:.2f} ms of work; json.loads takes {own['json.loads']:.2f}")
    for name, value in found.get("storm", {}).items():
        print(f"{name:>26}: {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=300, help="calls of each kind at small sizes")
    parser.add_argument("--litellm", default="", metavar="PYTHON", help="python of an environment with litellm[proxy]")
    parser.add_argument("--before", default="", metavar="CHECKOUT", help="a checkout of revision e976836")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of throughput in which servers take turns")
    parser.add_argument("--only", choices=["latency", "throughput"], default="")
    parser.add_argument("--storm", type=float, default=0, metavar="SECONDS", help="also 200 conversations under faults")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.calls, given.storm, given.litellm, given.before, given.rounds, given.only)
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        shown(found)


if __name__ == "__main__":
    main()
