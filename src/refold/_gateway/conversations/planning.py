"""Makes plans beside the event loop: in a process of its own, or in a thread.

Python runs one thread at a time. A thread that plans gives way every half millisecond, but not within one pass of a
regular expression: while two threads planned conversations of 250 KB, every tenth request of others took 15 ms, and
within one pass over a message of 20 MB no other thread runs for seconds. A plan is a pure value of what it is made
from, so a gateway that has its process for itself makes plans in another one. That one holds nothing between two plans,
and ends with the gateway, which it notices by the end of their connection.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Event, Timer
from typing import TYPE_CHECKING

from refold._gateway.conversations.best_plan import BestPlan, best_plan
from refold._gateway.conversations.budgets import load_vocabularies
from refold._text.text_cache import forget_texts

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from refold._gateway.conversations.best_plan import PlanningInput

__all__ = ["Planning", "PlanningHung", "PlanningKilled"]

LARGE = 4 * 1024 * 1024  # bytes of a request, whose plan no thread makes, and no smaller one waits for
AT_ONCE = 2  # plans at a time in threads: more take as long all together, and each takes turns from the event loop
SUMMARIES = 32  # plans at a time of a gateway with a summarizer, for which each of them waits
LARGE_TASKS = 16  # plans after which the process for large ones is replaced, which gives its memory back
TASKS = 4_000  # and that for the others, whose memory grows little
PATIENCE = 300  # seconds for one plan, many times what the largest takes, after which the process is ended
LATER = 1  # second after that in which the process ends by itself, where no gateway does it
NICE = 5  # by how much the processes yield to those that serve requests


class Planning:
    """Makes plans; it has a process of its own for large conversations, and with `apart` another one for all others.

    Its threads are its own too: plans that wait for a model keep nobody from the store, or from the name of a host.
    """

    def __init__(self, *, summarizes: bool, apart: bool) -> None:
        self._summarizes = summarizes
        self._threads = ThreadPoolExecutor(SUMMARIES if summarizes else AT_ONCE, "refold-plan")
        self._large = _PlanningProcess(LARGE_TASKS)
        self._usual = _PlanningProcess(TASKS) if apart else None

    async def made_plan(self, work: PlanningInput, size: int) -> BestPlan:
        """Return the best plan for a request of so many bytes.

        Raises:
            PlanningKilled: something ended the process of a large one, twice.
            PlanningHung: the process has hung, and was ended.
            Exception: what `best_plan` raises.
        """
        loop = asyncio.get_running_loop()
        process = self._large if size >= LARGE else self._usual
        # a summarizer holds connections, which no other process can use; and nobody waits until a process has started
        if process is not None and not self._summarizes and (size >= LARGE or process.is_ready()):
            try:
                return await loop.run_in_executor(process.thread, process.made_plan, work)
            except PlanningKilled:
                if size >= LARGE:  # perhaps for its memory, which in a thread would be the gateway's own
                    return await loop.run_in_executor(process.thread, process.made_plan, work)
            except _NotPlanned:
                pass
        return await loop.run_in_executor(self._threads, copy_context().run, _plan_and_forget, work)

    def close(self) -> None:
        """End the threads, and the processes if there are any."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in (self._large, self._usual):
            if process is not None:
                process.close()


class _NotPlanned(Exception):
    """A plan that the other process could not be asked for."""


class PlanningHung(Exception):  # a fault of what is planned, most likely, which hangs again
    """The other process did not make a plan in time."""


class PlanningKilled(Exception):  # neither a fault of the request nor of the gateway
    """The other process did not live to make a plan."""


class _PlanningProcess:
    """A process that makes one plan at a time, started for the first and replaced after so many."""

    def __init__(self, tasks: int) -> None:
        self.thread = ThreadPoolExecutor(1, "refold-plans")  # waits for the process
        self._tasks = tasks
        self._left = 0  # plans until it is replaced
        self._running: tuple[SpawnProcess, Connection] | None = None
        self._starting = False
        self._closed = False

    def is_ready(self) -> bool:
        """Tell whether the process has started, and start it if there is none."""
        if self._running is None and not self._starting:
            self._starting = True
            self.thread.submit(self._started)
        return self._running is not None and not self._starting

    def made_plan(self, work: PlanningInput) -> BestPlan:
        """Return the best plan. It waits, so it is called in the thread.

        Raises:
            _NotPlanned: the process cannot be sent this, as with policies of others.
            PlanningKilled: the process was killed, or could not be started.
            PlanningHung: the process has hung, and was ended; the next plan is made by another.
            Exception: what `best_plan` raises.
        """
        hangs = Event()

        def give_up() -> None:
            hangs.set()
            self._kill()

        patience = Timer(PATIENCE, give_up)  # not `poll`: it may hang before it has read all of a large request
        patience.daemon = True  # a gateway that ends does not wait for it
        patience.start()
        try:
            connection = self._started()
            connection.send(work)
            outcome: BestPlan | Exception = connection.recv()
        except (EOFError, OSError) as error:
            self._end()
            if hangs.is_set():
                raise PlanningHung from error
            raise PlanningKilled from error
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise _NotPlanned from error
        finally:
            patience.cancel()
        self._left -= 1
        if not self._left:
            self._end()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self) -> None:
        """End the process, with the plan that it is making, or while it starts."""
        self._closed = True
        self.thread.shutdown(wait=False, cancel_futures=True)
        self._kill()  # and what the thread does ends with it
        if (running := self._running) is not None:
            running[0].join(1)  # else it stays as a zombie where the thread did nothing

    def _started(self) -> Connection:
        try:
            if self._running is None:
                self._starting = True
                context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
                connection, theirs = context.Pipe()
                process = context.Process(target=_make_plans, args=(theirs, PATIENCE), name="refold-plans", daemon=True)
                process.start()
                theirs.close()
                self._running, self._left = (process, connection), self._tasks
                if self._closed:
                    self._kill()
                connection.recv()
            return self._running[1]
        except (EOFError, OSError):
            self._end()
            raise
        finally:
            self._starting = False

    def _kill(self) -> None:
        if (running := self._running) is not None:
            running[0].kill()  # it holds nothing, and may be one that hangs

    def _end(self) -> None:
        if self._running is not None:
            process, connection = self._running
            self._running = None
            connection.close()
            process.kill()
            process.join()


def _make_plans(connection: Connection, patience: float) -> None:
    """Make the plans that come over a connection, until it ends, or one of them takes too long.

    Ctrl-C, which a terminal sends to every process, is left to the gateway: it waits for plans under way.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    load_vocabularies()
    with suppress(EOFError, OSError):
        connection.send(None)
        while True:
            sent = connection.recv_bytes()
            signal.setitimer(signal.ITIMER_REAL, patience + LATER)  # ends this process though the gateway was killed
            outcome = _outcome(sent)
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.send(outcome)


def _outcome(sent: bytes) -> BestPlan | Exception:
    try:
        return _plan_and_forget(pickle.loads(sent))  # noqa: S301 - from the gateway itself
    except Exception as error:
        return error


def _plan_and_forget(work: PlanningInput) -> BestPlan:
    """Make a plan; what is remembered of its texts helps no other conversation, and took 80 MB of a busy gateway."""
    try:
        return best_plan(work)
    finally:
        forget_texts()
