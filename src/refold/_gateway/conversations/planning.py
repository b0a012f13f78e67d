"""Makes plans beside the event loop: in a thread, or in a process of its own where the conversation is very large.

Python runs one thread at a time. A conversation of usual size is planned in a thread, which gives way every few
milliseconds; but within one pass of a regular expression over a message of 20 MB no other thread runs, and all other
clients wait for seconds. A plan is a pure value of what it is made from, so such a one is made in another process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextvars import copy_context
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold._gateway.conversations.best_plan import best_plan
from refold._text.text_cache import forget_texts

if TYPE_CHECKING:
    from refold._gateway.conversations.best_plan import BestPlan, PlanningInput

__all__ = ["Planning"]

LARGE = 4 * 1024 * 1024  # bytes of a request, from which on a process of its own makes the plan
AT_ONCE = 2  # plans at a time in threads: more take as long all together, and each takes turns from the event loop
SUMMARIES = 32  # plans at a time of a gateway with a summarizer, for which each of them waits
TASKS = 16  # plans after which that process is replaced, which gives its memory back


class Planning:
    """Makes plans; it has a process of its own from the first large conversation on.

    Its threads are its own too: plans that wait for a model keep nobody from the store, or from the name of a host.
    """

    def __init__(self, *, summarizes: bool) -> None:
        self._threads = ThreadPoolExecutor(SUMMARIES if summarizes else AT_ONCE, "refold-plan")
        self._pool: ProcessPoolExecutor | None = None

    async def made_plan(self, work: PlanningInput, format: str, size: int) -> BestPlan:
        """Return the best plan for a request of so many bytes.

        Raises:
            Exception: what `best_plan` raises.
        """
        loop = asyncio.get_running_loop()
        if size >= LARGE and work.handlers.summarize is None:  # that holds connections, which no other process can use
            pool = self._pool = self._pool or self._new_pool()
            natives = [message.native for message in work.messages]
            try:
                return await loop.run_in_executor(pool, _best_plan, replace(work, messages=()), natives, format)
            except BrokenProcessPool:  # its process was killed; others may have a new one by now
                if self._pool is pool:
                    self._pool = None
            except (PicklingError, AttributeError, TypeError):
                pass  # a policy of others that cannot be sent to a process
        return await loop.run_in_executor(self._threads, copy_context().run, _plan_and_forget, work)

    def close(self) -> None:
        """End the threads, and the process if there is one."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
        return ProcessPoolExecutor(1, context, initializer=_ignore_interrupt, max_tasks_per_child=TASKS)


def _ignore_interrupt() -> None:
    """Leave Ctrl-C, which a terminal sends to every process, to the gateway: it waits for plans under way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _plan_and_forget(work: PlanningInput) -> BestPlan:
    """Make a plan; what is remembered of its texts helps no other conversation, and took 80 MB of a busy gateway."""
    try:
        return best_plan(work)
    finally:
        forget_texts()


def _best_plan(work: PlanningInput, natives: list[Any], format: str) -> BestPlan:
    messages = formats.read(formats.find(format), natives).messages
    return best_plan(replace(work, messages=messages))
