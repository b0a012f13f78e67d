"""What the gateway adds to calls of a known conversation while it compacts others, beside a bare pass-through.

    python benchmarks/gateway_plans.py
    python benchmarks/gateway_plans.py --clients 0    and while it compacts none

One client sends the requests of a conversation of 50 KB, in turn to a bare pass-through (`benchmarks/gateway_servers.py`)
and to a gateway. Meanwhile two others, processes of their own, send it conversations of 250 KB that it has never seen and
that are above the trigger, ten a second each at most: each is read, counted, planned, stored and sent. Times are
milliseconds of a call. On two cores these clients and the plans take more than is left; the difference between the two
columns is what counts.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
from pathlib import Path
from statistics import quantiles

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.gateway import Caller, body
from benchmarks.gateway_servers import BARE, EVENTS, GATEWAY, UPSTREAM, Process

WINDOW = 64_000  # tokens
TURNS = 60  # of a conversation that is compacted
WORDS = [
    "alpha",
    "build",
    "test",
    "failed",
    "src/app.py",
    "line",
    "error",
    "value",
    "return",
    "config",
    "server",
    "PASS",
]
PAUSE, SHORT_PAUSE = 0.1, 0.002  # seconds between two calls of a client
SEED = 77_777


def large() -> bytes:
    """A conversation of 250 KB above the trigger, of calls with results of 60 lines."""
    dice = random.Random(SEED)
    messages: list[dict[str, object]] = [{"role": "user", "content": f"Repair the build of module {SEED}."}]
    for number in range(TURNS):
        function = {"name": "run", "arguments": json.dumps({"command": f"make test-{number} FILE=mod_{number % 7}.py"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        lines = [f"{' '.join(dice.choices(WORDS, k=9))} {dice.randrange(10**6)}" for _ in range(60)]
        messages.append({"role": "assistant", "content": f"I look at module {number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "\n".join(lines)})
    return json.dumps({"model": "gpt-4o", "messages": messages, "stream": True}).encode()


def send_large_conversations(url: str, client: int) -> None:
    """Send new conversations without end, one after the other."""
    caller, data, number = Caller(url), large(), client * 100_000
    while True:
        number += 1
        caller.ms(data.replace(b"%d" % SEED, b"%d" % number))
        time.sleep(PAUSE)


def measured(gateway: Process, bare: Process, seconds: float) -> dict[str, list[float]]:
    """Return the milliseconds of the calls of a known conversation, by server, which take turns."""
    callers = {"bare": Caller(bare.url), "gateway": Caller(gateway.url)}
    times: dict[str, list[float]] = {name: [] for name in callers}
    number, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        number += 1
        data = body(50_000, 1, number % 200)
        for name in list(callers)[:: 1 if number % 2 else -1]:
            times[name].append(callers[name].ms(data))
            time.sleep(SHORT_PAUSE)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=2, help="that send conversations to be compacted")
    given = parser.parse_args()
    upstream = Process(UPSTREAM, given=EVENTS)
    bare, gateway = Process(BARE, upstream.url), Process(GATEWAY, upstream.url, str(WINDOW))
    context = multiprocessing.get_context("spawn")
    clients = [
        context.Process(target=send_large_conversations, args=(gateway.url, number), daemon=True)
        for number in range(given.clients)
    ]
    try:
        for client in clients:
            client.start()
        time.sleep(3)  # the gateway's process for plans starts with the first of them
        used = gateway.seconds()
        times = measured(gateway, bare, given.seconds)
        used = gateway.seconds() - used
    finally:
        for client in clients:
            client.terminate()
        for process in (gateway, bare, upstream):
            process.stop()
    parts = {name: quantiles(each, n=1_000) for name, each in times.items()}
    print(f"{len(times['gateway'])} calls; the gateway's own process used {used:.1f} s of {given.seconds:g}")
    print("ms              bare   gateway     added")
    for name, place in {"median": 499, "p90": 899, "p99": 989, "p99.9": 998}.items():
        bare_ms, gateway_ms = parts["bare"][place], parts["gateway"][place]
        print(f"{name:>10} {bare_ms:9.2f} {gateway_ms:9.2f} {gateway_ms - bare_ms:9.2f}")


if __name__ == "__main__":
    main()
