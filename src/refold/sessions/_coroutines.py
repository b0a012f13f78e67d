"""The coroutines of a session, for code inside an event loop; the store works in a thread."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from refold import aio
from refold._compaction.options import check_names
from refold.errors import StoreError
from refold.sessions._session_options import SessionRunOptions, SessionSettings
from refold.sessions._stores.leases import owner_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from typing import Unpack

    from refold.core.budget import Usage
    from refold.core.messages import MessageId
    from refold.core.plan import Plan
    from refold.sessions._context_stats import CompactionStats
    from refold.sessions._state import Billed
    from refold.sessions._stores.protocol import Store

__all__ = ["LEASE", "SessionCoroutines"]

LEASE = 900.0  # seconds a compaction may take; more than V12's time-out of one call

Found = TypeVar("Found")


class SessionCoroutines:
    """The coroutines of a `Session`; through them, tasks of one event loop may share a session."""

    def __init__(self) -> None:
        self._turn = Lock()  # one store access of this object at a time, in whichever thread

    @classmethod
    async def aopen(
        cls,
        store: Store,
        id: str | None = None,
        *,
        format: str | None = None,
        must_exist: bool = False,
        in_flight: bool = False,
        observers: Sequence[Callable[[Any], object]] = (),
        **settings: Unpack[SessionSettings],
    ) -> Self:
        """Return `Session(store, id, …)`, which loads from the store, without blocking the event loop."""
        make: Any = cls  # the class that is made of it and of `Standing`
        own = {"format": format, "must_exist": must_exist, "in_flight": in_flight, "observers": observers}
        opened: Self = await _threaded(partial(make, store, id, **own, **settings))
        return opened

    async def aappend(self: Any, messages: Sequence[Any]) -> tuple[MessageId, ...]:
        """Do what `append` does."""
        ids: tuple[MessageId, ...] = await self._alone(partial(self.append, messages))
        return ids

    async def areport(self: Any, usage: Usage | Mapping[str, Any] | Any) -> Billed:
        """Do what `report` does."""
        billed: Billed = await self._alone(partial(self.report, usage))
        return billed

    async def arefresh(self: Any) -> None:
        """Do what `refresh` does."""
        await self._alone(self.refresh)

    async def arewind(self: Any, to: str | int = -1) -> None:
        """Do what `rewind` does."""
        await self._alone(partial(self.rewind, to))

    async def acompact(
        self: Any,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> CompactionStats | None:
        """Do what `compact` does, awaiting the summarizer; what is appended meanwhile stays and follows the summary."""
        check_names("Session.acompact", options, SessionRunOptions)
        await self.arefresh()
        if not self.messages:
            return None
        async with _leasing(self.store, self.id):
            await self.arefresh()
            expect = self._log.known.revision
            request = self._request(instructions, options)
            result = await aio.acompact(self.messages, **request, observers=(self._early,))
            previous, before = self.id, len(self._seen())
            with self._telling_failure():
                await self._alone(partial(self._record, result.plan, expect, self._renewal(result.plan)))
            done: CompactionStats = self._done(result.plan, previous, before)
            return done

    async def aplan(
        self: Any,
        instructions: str | None = None,
        **options: Unpack[SessionRunOptions],
    ) -> Plan:
        """Do what `plan` does, awaiting the summarizer."""
        check_names("Session.aplan", options, SessionRunOptions)
        return await aio.aplan(self.messages, **self._request(instructions, options))

    async def _alone(self, work: Callable[[], Found]) -> Found:
        """Do work in a thread, after what this object's other tasks do there."""

        def locked() -> Found:
            with self._turn:
                return work()

        return await _threaded(locked)


async def _threaded(work: Callable[[], Found]) -> Found:
    import asyncio  # kept out of `import refold`

    return await asyncio.to_thread(work)


@asynccontextmanager
async def _leasing(store: Store, session: str) -> AsyncIterator[None]:
    """Hold the compaction of a session, as `heads.leasing` does."""
    owner = owner_here()
    await _threaded(partial(store.lease, session, owner, LEASE))
    try:
        yield
    finally:
        with suppress(StoreError):
            await _threaded(partial(store.release, session, owner))
