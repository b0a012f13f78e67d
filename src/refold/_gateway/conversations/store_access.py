"""Access to a store that may fail: what does not answer is left alone until a write succeeds.

A request must not wait again and again for a store that is full, locked, read-only or down. After the first failure
everything that would use the store fails at once (`run`), and a task tries a write every second (`RETRY`). When one
succeeds, `recovered` writes what was held in memory meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from refold._gateway.observability.logs import log_event
from refold.errors import SessionNotFound, StoreCorrupt, StoreError, WriteConflict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from refold._gateway.observability.metrics import Metrics
    from refold.sessions._stores.protocol import Store

__all__ = ["AT_ONCE", "StoreAccess", "finished"]

AT_ONCE = 16 * 1024  # bytes that are written to a store in memory without leaving the event loop
RETRY = 1.0  # seconds between two attempts to write to a store that has failed
CHECKED = 1.0  # seconds for which a write that succeeded proves that others would
T = TypeVar("T")


class StoreAccess:
    """Runs work on a store, in a thread unless it is in memory; `down` while the store fails."""

    def __init__(self, store: Store, metrics: Metrics, recovered: Callable[[], Awaitable[bool]]) -> None:
        self._store = store
        self._metrics = metrics
        self._recovered = recovered  # writes what was held; returns whether nothing is left
        self._retrying: asyncio.Task[None] | None = None
        self._checked = 0.0
        self.local = store.name == "memory"
        self.down = False

    async def run(self, work: Callable[[], T], size: int = 0) -> T:
        """Do work on the store, which takes so many bytes.

        Raises:
            StoreError: it failed; at once where the store is known to fail.
        """
        if self.local and size < AT_ONCE:
            return work()
        return await self._watched(lambda: finished(asyncio.to_thread(work)))

    async def version(self, session: str) -> tuple[float, int] | None:
        """Return the version of a session, which requests wait for.

        Raises:
            StoreError: the store failed; at once where it is known to fail.
        """
        return await self._watched(lambda: self._store.aversion(session))

    async def _watched(self, work: Callable[[], Awaitable[T]]) -> T:
        if self.down:
            raise StoreError(f"{self._store.name} does not work at present: a write is tried every {RETRY:g} s")
        try:
            return await work()
        except (SessionNotFound, WriteConflict):
            raise
        except StoreCorrupt:  # of one conversation; where it is the whole store, no write succeeds either
            self._metrics.store_failed()
            raise
        except StoreError as error:
            self._failed(error)
            raise

    async def check(self) -> None:
        """Write something, unless a write has succeeded just now.

        Raises:
            StoreError: the store cannot be written.
        """
        if self.local or (not self.down and monotonic() - self._checked < CHECKED):
            return
        await self.run(self._store.check_write)
        self._checked = monotonic()

    def retry(self) -> None:
        """Begin to try a write from time to time, until the store works and nothing is held any more."""
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.create_task(self._retry())

    async def close(self) -> None:
        """Stop trying, and close the store."""
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.wait((self._retrying,))
        await asyncio.to_thread(self._store.close)

    def _failed(self, error: StoreError) -> None:
        self._metrics.store_failed()
        if not self.down:
            self.down = True
            self._metrics.store_up.set(0)
            log_event(logging.ERROR, "store fails: plans are held in memory", kind=type(error).__name__)
        self.retry()

    async def works(self) -> bool:
        """Try a write; return whether it succeeded, after which the store is used again."""
        try:
            await finished(asyncio.to_thread(self._store.check_write))
        except StoreError:
            self._metrics.store_failed()
            return False
        if self.down:
            self.down = False
            self._metrics.store_up.set(1)
            log_event(logging.WARNING, "store works again: plans held in memory are written")
        return True

    async def _retry(self) -> None:
        while True:
            await asyncio.sleep(RETRY)
            if await self.works() and await self._recovered():
                return


async def finished(work: Awaitable[T]) -> T:
    """Wait for work in a thread; who is cancelled meanwhile waits all the same, and nobody else finds it half done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
