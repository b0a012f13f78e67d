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

__all__ = ["Planning"]

LARGE = 4 * 1024 * 1024  # bytes of a request, whose plan no thread makes, and no smaller one waits for
AT_ONCE = 2  # plans at a time in threads: more take as long all together, and each takes turns from the event loop
SUMMARIES = 32  # plans at a time of a gateway with a summarizer, for which each of them waits
LARGE_TASKS = 16  # plans after which the process for large ones is replaced, which gives its memory back
TASKS = 4_000  # and that for the others, whose memory grows little
PATIENCE = 300  # seconds for one plan, many times what the largest takes, after which the process is ended
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
            Exception: what `best_plan` raises.
        """
        loop = asyncio.get_running_loop()
        process = self._large if size >= LARGE else self._usual
        # a summarizer holds connections, which no other process can use; and nobody waits until a process has started
        if process is not None and not self._summarizes and (size >= LARGE or process.is_ready()):
            with suppress(_NotPlanned):
                return await loop.run_in_executor(process.thread, process.made_plan, work)
        return await loop.run_in_executor(self._threads, copy_context().run, _plan_and_forget, work)

    def close(self) -> None:
        """End the threads, and the processes if there are any."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in (self._large, self._usual):
            if process is not None:
                process.close()


class _NotPlanned(Exception):
    """A plan that the other process could not be asked for, or that it did not live to make."""


class _PlanningProcess:
    """A process that makes one plan at a time, started for the first and replaced after so many."""

    def __init__(self, tasks: int) -> None:
        self.thread = ThreadPoolExecutor(1, "refold-plans")  # waits for the process
        self._tasks = tasks
        self._left = 0  # plans until it is replaced
        self._running: tuple[SpawnProcess, Connection] | None = None
        self._starting = False

    def is_ready(self) -> bool:
        """Tell whether the process has started, and start it if there is none."""
        if self._running is None and not self._starting:
            self._starting = True
            self.thread.submit(self._started)
        return self._running is not None

    def made_plan(self, work: PlanningInput) -> BestPlan:
        """Return the best plan. It waits, so it is called in the thread.

        Raises:
            _NotPlanned: the process cannot be sent this, as with policies of others, or it was killed.
            TimeoutError: the process has hung, and was ended; the next plan is made by another.
            Exception: what `best_plan` raises.
        """
        try:
            process, connection = self._started()
        except (EOFError, OSError) as error:
            raise _NotPlanned from error
        hangs = Event()

        def give_up() -> None:
            hangs.set()
            process.kill()

        patience = Timer(PATIENCE, give_up)  # not `poll`: it may hang before it has read all of a large request
        patience.daemon = True  # a gateway that ends does not wait for it
        patience.start()
        try:
            connection.send(work)
            outcome: BestPlan | Exception = connection.recv()
        except (EOFError, OSError) as error:
            self._end()
            if hangs.is_set():
                raise TimeoutError(f"a plan was not made within {PATIENCE} seconds") from error
            raise _NotPlanned from error
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
        """End the process, with the plan that it is making."""
        self.thread.shutdown(wait=False, cancel_futures=True)
        if self._running is not None:
            self._running[0].kill()  # and the thread ends with it

    def _started(self) -> tuple[SpawnProcess, Connection]:
        if self._running is None:
            try:
                context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
                connection, theirs = context.Pipe()
                process = context.Process(target=_make_plans, args=(theirs,), name="refold-plans", daemon=True)
                process.start()
                theirs.close()
                connection.recv()
                self._running, self._left = (process, connection), self._tasks
            finally:
                self._starting = False
        return self._running

    def _end(self) -> None:
        if self._running is not None:
            process, connection = self._running
            self._running = None
            connection.close()
            process.kill()  # it holds nothing, and may be one that hangs
            process.join()  # else it stays as a zombie


def _make_plans(connection: Connection) -> None:
    """Make the plans that come over a connection, until it ends.

    Ctrl-C, which a terminal sends to every process, is left to the gateway: it waits for plans under way.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICE)
    load_vocabularies()
    with suppress(EOFError, OSError):
        connection.send(None)
        while True:
            connection.send(_outcome(connection.recv_bytes()))


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
