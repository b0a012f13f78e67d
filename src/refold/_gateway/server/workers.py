"""Several worker processes on one socket, each of them a gateway.

This process listens and starts them; the system gives each new connection to one that waits for it. They know of each
other's conversations through the store, as replicas on several machines do. A worker that dies is replaced. A signal
goes to all of them, and this process ends with the last.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from multiprocessing.connection import wait
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._gateway.observability.logs import LogFormat, log_event, start_log
from refold._gateway.observability.shared_figures import SharedFigures, retire
from refold._gateway.server.serving import Serving, address_of, listening_socket
from refold.errors import RefoldError, UsageError

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

    from refold._gateway.settings import GatewaySettings

__all__ = ["Workers", "share"]

STARTED = 3.0  # seconds after which a worker that ends has been at work
AGAIN = 1.0  # seconds before another try where a worker that is to replace one could not start
LOOK = 0.5  # seconds between two looks at the signals


class Workers:
    """A gateway of several processes. `url` is its address."""

    def __init__(self, settings: GatewaySettings, count: int, log_level: str, log_format: LogFormat) -> None:
        if settings.store in (None, "memory"):
            raise UsageError("workers share conversations through the store: name a file or a database with --store")
        self._settings = share(settings, count)
        self._count = count
        self._log = log_level, log_format
        self._socket = listening_socket(settings.host, settings.port)
        self._processes: dict[int, tuple[SpawnProcess, float]] = {}
        self._started = 0
        self._served = False  # a worker has been at work, so the settings can be used
        self._ending = False
        self.url = address_of(settings, self._socket)

    def run(self) -> None:
        """Serve until a signal ends it, and all workers have answered the requests that they had by then.

        Raises:
            UsageError: a worker could not be started.
        """
        with TemporaryDirectory(prefix="refold-") as folder:
            before = {number: signal.signal(number, self._end) for number in (signal.SIGTERM, signal.SIGINT)}
            try:
                for _ in range(self._count):
                    self._start(Path(folder))
                self._watch(Path(folder))
            finally:
                self._stop()
                self._socket.close()
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _start(self, folder: Path) -> None:
        number, self._started = self._started, self._started + 1
        process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(self._settings, self._socket, folder, number, *self._log), name=f"refold-{number}"
        )
        process.start()
        self._processes[number] = process, monotonic()
        if self._ending:  # the signal came before this one could be told
            self._stop()

    def _watch(self, folder: Path) -> None:
        while self._processes:
            wait([process.sentinel for process, _ in self._processes.values()], LOOK)
            for number, (process, begun) in list(self._processes.items()):
                if process.is_alive():
                    continue
                del self._processes[number]
                retire(folder, number)
                if self._ending:
                    continue
                short = monotonic() - begun < STARTED
                self._served = self._served or not short
                if not self._served:
                    raise UsageError(f"a worker ended with {process.exitcode} when it was started: see its message")
                log_event(logging.ERROR, "worker replaced", worker=number, exit_code=process.exitcode)
                if short:  # the store may be down; the others have what they need
                    sleep(AGAIN)
                self._start(folder)

    def _end(self, *_: object) -> None:
        self._ending = True
        self._stop()

    def _stop(self) -> None:
        for process, _ in self._processes.values():
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGTERM)


def share(settings: GatewaySettings, count: int) -> GatewaySettings:
    """Return the settings of each of so many workers, which together use what one may."""
    connections = max(settings.connections // count, 1) if settings.connections else 0  # 0 is no limit
    memory, bodies = settings.memory // count, settings.body_memory // count
    return replace(settings, memory=memory, body_memory=bodies, connections=connections)


def _work(
    settings: GatewaySettings, listener: socket.socket, folder: Path, number: int, log_level: str, log_format: LogFormat
) -> None:
    start_log(log_level, log_format)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        serving = Serving(settings, listener)
        serving.gateway.metrics.share(SharedFigures(folder, number))
        serving.run()
    except RefoldError as error:
        sys.stderr.write(f"refold: {error}\n")
        sys.exit(2)


def _end_with_parent() -> None:
    """End this worker like a signal does once the process that has started it is gone, killed or not."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
