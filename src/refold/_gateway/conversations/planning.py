"""Makes plans beside the event loop: in a thread, or in a process of its own where the conversation is very large.

Python runs one thread at a time. A conversation of usual size is planned in a thread, which gives way every few
milliseconds; but within one pass of a regular expression over a message of 20 MB no other thread runs, and all other
clients wait for seconds. A plan is a pure value of what it is made from, so such a one is made in another process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold._gateway.conversations.best_plan import best_plan

if TYPE_CHECKING:
    from refold._gateway.conversations.best_plan import BestPlan, PlanningInput

__all__ = ["Planning"]

LARGE = 4 * 1024 * 1024  # bytes of a request, from which on a process of its own makes the plan
TASKS = 16  # plans after which that process is replaced, which gives its memory back


class Planning:
    """Makes plans; it has a process of its own from the first large conversation on."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def made_plan(self, work: PlanningInput, format: str, size: int) -> BestPlan:
        """Return the best plan for a request of so many bytes.

        Raises:
            Exception: what `best_plan` raises.
        """
        if size >= LARGE and work.handlers.summarize is None:  # that holds connections, which no other process can use
            try:
                return await self._in_process(work, format)
            except (BrokenProcessPool, PicklingError, AttributeError, TypeError):
                self.close()  # a policy of others that cannot be sent to a process, or a process that was killed
        return await asyncio.to_thread(best_plan, work)

    async def _in_process(self, work: PlanningInput, format: str) -> BestPlan:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
            self._pool = ProcessPoolExecutor(1, context, max_tasks_per_child=TASKS)
        natives = [message.native for message in work.messages]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, _best_plan, replace(work, messages=()), natives, format)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _best_plan(work: PlanningInput, natives: list[Any], format: str) -> BestPlan:
    messages = formats.read(formats.find(format), natives).messages
    return best_plan(replace(work, messages=messages))
