"""What the gateway adds to a call, beside a bare pass-through of the same server stack, in one run.

    python benchmarks/gateway.py                         latency, throughput, known bodies
    python benchmarks/gateway.py --storm 120             and 200 conversations at once for two minutes, with faults
    python benchmarks/gateway.py --json --calls 300

Upstream, bare pass-through and gateway are processes of their own on the loopback interface. The bare pass-through is
uvicorn with httptools and uvloop, a raw ASGI application and aiohttp, which reads the body, forwards it and streams the
answer. Calls go to both in turn, one connection each. `fresh` bodies were never seen before; `resent` ones were sent
before, with one exchange less. Times are milliseconds over the bare pass-through, at the median and the 99th percentile.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import subprocess
import sys
from statistics import median, quantiles
from time import perf_counter
from urllib.parse import urlsplit

import aiohttp

SIZES = {"small": 500, "50 KB": 50_000, "800 KB": 800_000, "4 MB": 4_000_000}
EVENTS = (
    b"".join(b'data: {"choices":[{"delta":{"content":"word %d "}}]}\n\n' % n for n in range(41)) + b"data: [DONE]\n\n"
)

UPSTREAM = """
import asyncio, re, sys
EVENTS = sys.stdin.buffer.read()
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(EVENTS)
class Protocol(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.got, self.need = transport, bytearray(), 0
    def data_received(self, data):
        self.got += data
        while True:
            if not self.need:
                end = self.got.find(b"\\r\\n\\r\\n")
                if end < 0: return
                self.need = end + 4 + int(re.search(rb"(?i)content-length: (\\d+)", self.got[:end])[1])
            if len(self.got) < self.need: return
            del self.got[: self.need]
            self.need = 0
            self.transport.write(HEAD + EVENTS)
async def main():
    server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", 0)
    print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
import uvloop
uvloop.run(main())
"""

BARE = """
import socket, sys
import aiohttp, uvicorn
HOP = {b"host", b"content-length", b"connection", b"keep-alive", b"transfer-encoding"}
class Bare:
    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_read=720),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"))
            await send({"type": "lifespan.startup.complete"}); await receive(); await self.session.close()
            await send({"type": "lifespan.shutdown.complete"}); return
        parts, more = [], True
        while more:
            message = await receive(); parts.append(message.get("body", b"")); more = message.get("more_body", False)
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in HOP]
        async with self.session.post(
            sys.argv[1] + scope["path"], headers=headers, data=b"".join(parts), allow_redirects=False
        ) as answer:
            headers = [(name, value) for name, value in answer.raw_headers if name.lower() not in HOP - {b"content-length"}]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            async for chunk in answer.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listening.bind(("127.0.0.1", 0))
listening.listen(2048)
config = uvicorn.Config(
    Bare(), log_config=None, log_level="critical", access_log=False, lifespan="on", ws="none", http="httptools",
    loop="uvloop", server_header=False, date_header=False, proxy_headers=False)
print("http://127.0.0.1:%d" % listening.getsockname()[1], flush=True)
uvicorn.Server(config).run(sockets=[listening])
"""

GATEWAY = """
import sys
from refold.gateway.serving import Serving
from refold.gateway.settings import Settings
window = int(sys.argv[2])
gateway = Serving(Settings(upstreams={"openai": sys.argv[1]}, port=0, window=window, memory=256 * 1024 * 1024))
print(gateway.url, flush=True)
gateway.run()
"""


class Process:
    """A program in a process of its own, that says its address in its first line."""

    def __init__(self, program: str, *arguments: str, given: bytes = b"") -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(given)
        self.child.stdin.close()
        self.url = self.child.stdout.readline().decode().strip()

    def memory(self) -> int:
        """Return the bytes that are resident."""
        with open(f"/proc/{self.child.pid}/statm") as file:
            return int(file.read().split()[1]) * 4096

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait()


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
        assert got == EVENTS
        return spent * 1000


def latency(bare: str, gateway: str, size: int, calls: int) -> dict[str, tuple[float, ...]]:
    """Return for fresh and resent bodies: bare median, added median, bare p99, added p99."""
    callers = Caller(bare), Caller(gateway)
    found = {}
    for kind in ("fresh", "resent"):
        times: tuple[list[float], list[float]] = [], []
        for number in range(calls):
            seed = number if kind == "fresh" else 10**6
            data = body(size, seed + size, 0 if kind == "fresh" else number + 1)
            for place in (0, 1) if number % 2 else (1, 0):
                times[place].append(callers[place].ms(data))
        middle = [median(each[2:]) for each in times]
        high = [quantiles(each[2:], n=100)[98] for each in times]
        found[kind] = middle[0], middle[1] - middle[0], high[0], high[1] - high[0]
    return found


async def rate(url: str, data: list[bytes], seconds: float, clients: int = 16) -> float:
    """Return calls a second of so many clients at once."""
    done = 0
    until = perf_counter() + seconds

    async def client(session: aiohttp.ClientSession, number: int) -> None:
        nonlocal done
        while perf_counter() < until:
            async with session.post(f"{url}/v1/chat/completions", data=data[number % len(data)],
                                    headers={"content-type": "application/json"}) as answer:  # fmt: skip
                await answer.read()
            done += 1

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(client(session, number) for number in range(clients)))
    return done / seconds


def known(size: int = 4_000_000) -> dict[str, float]:
    """Return the milliseconds of the gateway's own work on a long body that it knows all but the end of."""
    from refold import formats
    from refold.gateway.budgets import Budgets
    from refold.gateway.dialects import DIALECTS
    from refold.gateway.reading import most
    from refold.gateway.settings import Settings
    from refold.gateway.tracks import Tracks

    tracks, shape = Tracks(10**9), formats.find("openai-chat")
    bound = Budgets(Settings(window=10_000_000)).bound("gpt-4o", None)
    tracks.find(DIALECTS["chat"], shape, "", body(size, 1))
    parse, own = [], []
    for number in range(1, 20):
        data = body(size, 1, number)
        start = perf_counter()
        json.loads(data)
        parse.append(perf_counter() - start)
        start = perf_counter()
        track = tracks.find(DIALECTS["chat"], shape, "", data)
        assert track is not None
        most(track, DIALECTS["chat"])
        bound.due(0)
        own.append(perf_counter() - start)
        assert len(tracks) == 1
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
        "conversations": conversations, "seconds": seconds, "answers": seen.answers, "compacted": seen.compacted,
        "faults": dict(seen.faults), "errors at clients": dict(seen.errors), "wrong": seen.wrong[:5], "lost": seen.lost[:5],
        "MB resident, first half": round(max(seen.memory[:half], default=0) / 1e6),
        "MB resident, second half": round(max(seen.memory[half:], default=0) / 1e6),
    }  # fmt: skip


async def _watched(gateway: Process, seen: object, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds / 40)
        seen.memory.append(gateway.memory())  # type: ignore[attr-defined]


def measured(calls: int, storm_seconds: float) -> dict[str, object]:
    """Measure everything asked for."""
    upstream = Process(UPSTREAM, given=EVENTS)
    bare, gateway = Process(BARE, upstream.url), Process(GATEWAY, upstream.url, "10000000")
    try:
        found: dict[str, object] = {"latency": {}, "throughput": {}}
        for name, size in SIZES.items():
            count = calls if size < 100_000 else max(calls // 10, 20)
            found["latency"][name] = latency(bare.url, gateway.url, size, count)  # type: ignore[index]
        for name in ("small", "50 KB"):
            data = [body(SIZES[name], number) for number in range(16)]
            rates = [[asyncio.run(rate(each.url, data, 3)) for each in (bare, gateway)] for _ in range(3)]
            found["throughput"][name] = [median(each) for each in zip(*rates, strict=True)]  # type: ignore[index]
    finally:
        for process in (gateway, bare, upstream):
            process.stop()
    found["known"] = known()
    if storm_seconds:
        found["storm"] = asyncio.run(stormed(storm_seconds))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=300, help="calls of each kind at small sizes")
    parser.add_argument("--storm", type=float, default=0, metavar="SECONDS", help="also 200 conversations under faults")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.calls, given.storm)
    if given.json:
        print(json.dumps(found, indent=1))
        return
    print("ms                       bare p50   added p50    bare p99   added p99")
    for size, kinds in found["latency"].items():  # type: ignore[attr-defined]
        for kind, figures in kinds.items():
            print(f"{size:>8} {kind:>10}    " + "   ".join(f"{figure:9.2f}" for figure in figures))
    for size, (bare, own) in found["throughput"].items():  # type: ignore[attr-defined]
        print(f"{size:>8}: {own:,.0f} requests a second, {own / bare:.0%} of the bare {bare:,.0f} (16 clients)")
    own = found["known"]
    print(f"    4 MB, known: {own['gateway']:.2f} ms of work; json.loads takes {own['json.loads']:.2f}")  # type: ignore[index]
    for name, value in found.get("storm", {}).items():  # type: ignore[attr-defined]
        print(f"{name:>26}: {value}")


if __name__ == "__main__":
    main()
