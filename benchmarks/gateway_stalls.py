"""How long other clients wait while a gateway takes messages of 20 and 60 MB, or bodies that are all but a request.

    python benchmarks/gateway_stalls.py
    python benchmarks/gateway_stalls.py --store postgresql://…

One client, a process of its own, sends small requests without a pause. Its longest wait is printed for a second in which
nothing else happens, for one message of 20 MB in a conversation of its own, for the same conversation with one message
more, for a message of 60 MB, for a body of 16 MB that is millions of numbers, and for fifteen bodies at once of 60 KB
that unpack to 60 MB: spaces, one long message, and numbers. What an idle machine adds is the first row; a machine with
less than two free cores adds much more, so each row also says how much processor time the gateway used in how many
seconds. On two free cores all of it takes a minute. A row ends after 40 seconds whether its requests were answered or not.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import random
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.gateway import Caller, body
from benchmarks.gateway_servers import EVENTS, UPSTREAM, Process

GATEWAY = """
import sys
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
gateway = Serving(GatewaySettings(
    upstreams={"openai": sys.argv[1]}, port=0, window=16_000, background=False, store=sys.argv[2] or None))
print(gateway.url, flush=True)
gateway.run()
"""
BOMBS = 15
SIZE = 20_000_000
PAUSE = 0.002  # seconds between two small requests
LONGEST_ROW = 40.0  # seconds


def send_small_requests(url: str, control: Connection) -> None:
    """Send small requests without end; whenever asked, return the waits since the last time, in milliseconds."""
    caller, waits, number = Caller(url), list[float](), 0
    while True:
        if control.poll():
            if not control.recv():
                return
            control.send(waits)
            waits = []
        number += 1
        waits.append(caller.ms(body(500, 1, number % 50)))
        time.sleep(PAUSE)


class Others:
    """A client that sends small requests without end, in a process of its own."""

    def __init__(self, url: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._control, theirs = context.Pipe()
        self._client = context.Process(target=send_small_requests, args=(url, theirs), daemon=True)
        self._client.start()

    def waits(self) -> list[float]:
        """Return the waits since the last call, in milliseconds, the longest last."""
        self._control.send(True)
        waits: list[float] = self._control.recv()
        return sorted(waits)

    def stop(self) -> None:
        self._control.send(False)
        self._client.join()


def large(more: int, size: int = SIZE) -> bytes:
    """A body with one output of 20 MB or another size, and so many messages more."""
    dice = random.Random(1)
    lines = [f"{dice.randrange(10**8):08x}\n" for _ in range(1_000)]
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "".join(lines) * (size // 9_000)},
        *[{"role": "user", "content": f"more {number}"} for number in range(more)],
    ]
    return json.dumps({"model": "gpt-4o", "messages": messages, "stream": True}).encode()


def post(url: str, data: bytes, encoding: str = "") -> int:
    """Send a request and return the status of its answer."""
    connection = Caller(url).connection
    connection.timeout = LONGEST_ROW
    headers = {"content-type": "application/json"} | ({"content-encoding": encoding} if encoding else {})
    connection.request("POST", "/v1/chat/completions", data, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def outcome(answers: list[Future[int]]) -> str:
    """Return what came of requests: how many were answered in time, and how."""
    done = [each for each in answers if each.done() and not each.exception()]
    return f"answered {len(done)} of {len(answers)} {sorted({each.result() for each in done})}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", default="", metavar="PLACE", help="of the gateway; by default its memory")
    given = parser.parse_args()
    upstream = Process(UPSTREAM, given=EVENTS)
    gateway = Process(GATEWAY, upstream.url, given.store)
    others, pool = Others(gateway.url), ThreadPoolExecutor(BOMBS)
    blank = gzip.compress(b" " * 60_000_000, 1)
    message = gzip.compress(b'{"model":"gpt-4o","messages":[{"role":"user","content":"%b"}]}' % (b" " * 60_000_000), 1)
    numbers = b'{"model":"gpt-4o","messages":[0%b]}' % (b",0" * 8_000_000)
    packed = gzip.compress(b'{"model":"gpt-4o","messages":[0%b]}' % (b",0" * 30_000_000), 1)
    begun = time.monotonic()
    try:
        for name, bodies, encoding in (
            ("nothing else", [], ""),
            ("a message of 20 MB", [large(0)], ""),
            ("the same, resent", [large(1)], ""),
            ("a message of 60 MB", [large(0, 3 * SIZE)], ""),
            ("a body of numbers", [numbers], ""),
            (f"{BOMBS} bombs of spaces", [blank] * BOMBS, "gzip"),
            (f"{BOMBS} bombs of a message", [message] * BOMBS, "gzip"),
            (f"{BOMBS} bombs of numbers", [packed] * BOMBS, "gzip"),
        ):
            print(f"[{time.monotonic() - begun:5.0f} s] {name} ...", file=sys.stderr, flush=True)
            others.waits()
            at, used = time.monotonic(), gateway.seconds()
            answers = [pool.submit(post, gateway.url, each, encoding) for each in bodies]
            wait(answers, LONGEST_ROW)
            time.sleep(1)
            spent, used, waits = time.monotonic() - at, gateway.seconds() - used, others.waits()
            print(
                f"{name:>24}  {waits[-1]:8.1f} ms of {len(waits):6,}, median {waits[len(waits) // 2]:.1f}; "
                f"{outcome(answers)}; processor {used:.1f} s in {spent:.1f}",
                flush=True,
            )
    finally:
        others.stop()
        gateway.stop()
        upstream.stop()
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
