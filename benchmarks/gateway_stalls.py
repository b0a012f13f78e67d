"""How long other clients wait while a gateway takes a message of 20 MB, or fifteen bodies that unpack to much more.

    python benchmarks/gateway_stalls.py
    python benchmarks/gateway_stalls.py --store postgresql://…

One client sends small requests without a pause. Its longest wait is printed for a second in which nothing else happens,
for one message of 20 MB in a conversation of its own, for the same conversation with one message more, and for fifteen
bodies at once of 60 KB that unpack to 60 MB: spaces, and one long message. What an idle machine adds is the first row;
a machine with less than two free cores adds much more.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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


class Others:
    """A client that sends small requests without end; `worst` are the longest waits in milliseconds since `reset`."""

    def __init__(self, url: str) -> None:
        self._caller = Caller(url)
        self._waits: list[float] = []
        self._ends = False
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        while not self._ends:
            number += 1
            self._waits.append(self._caller.ms(body(500, 1, number % 50)))
            time.sleep(PAUSE)

    def __enter__(self) -> Others:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        self._thread.join()

    def reset(self) -> None:
        self._waits = []

    def worst(self) -> str:
        waits = sorted(self._waits)
        return f"{waits[-1]:8.1f} ms of {len(waits):6,}, median {waits[len(waits) // 2]:.1f}" if waits else "no request"


def large(more: int) -> bytes:
    """A body with one output of 20 MB, and so many messages more."""
    dice = random.Random(1)
    lines = [f"{dice.randrange(10**8):08x}\n" for _ in range(1_000)]
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "".join(lines) * (SIZE // 9_000)},
        *[{"role": "user", "content": f"more {number}"} for number in range(more)],
    ]
    return json.dumps({"model": "gpt-4o", "messages": messages, "stream": True}).encode()


def post(url: str, data: bytes, encoding: str = "") -> int:
    """Send a request and return the status of its answer."""
    connection = Caller(url).connection
    headers = {"content-type": "application/json"} | ({"content-encoding": encoding} if encoding else {})
    connection.request("POST", "/v1/chat/completions", data, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", default="", metavar="PLACE", help="of the gateway; by default its memory")
    given = parser.parse_args()
    upstream = Process(UPSTREAM, given=EVENTS)
    gateway = Process(GATEWAY, upstream.url, given.store)
    blank = gzip.compress(b" " * 60_000_000)
    message = gzip.compress(b'{"model":"gpt-4o","messages":[{"role":"user","content":"%b"}]}' % (b" " * 60_000_000))
    try:
        with Others(gateway.url) as others, ThreadPoolExecutor(BOMBS) as pool:
            time.sleep(1)
            for name, bodies, encoding in (
                ("nothing else", [], ""),
                ("a message of 20 MB", [large(0)], ""),
                ("the same, resent", [large(1)], ""),
                (f"{BOMBS} bombs of spaces", [blank] * BOMBS, "gzip"),
                (f"{BOMBS} bombs of a message", [message] * BOMBS, "gzip"),
            ):
                others.reset()
                answers = list(pool.map(lambda each, encoding=encoding: post(gateway.url, each, encoding), bodies))
                time.sleep(1)
                print(f"{name:>24}  {others.worst()}; answered {sorted(set(answers))}", flush=True)
    finally:
        gateway.stop()
        upstream.stop()


if __name__ == "__main__":
    main()
