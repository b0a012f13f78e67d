"""Leases: one process at a time works on a session.

Two kinds, because they have to outlive different things:

- A *compaction lease* is a row in the store (session, owner, taken, until). It works between machines. It is short and
  renewed from a thread as long as its owner works, so a killed owner blocks others for `LEASE` seconds at most; not
  even that if it was a process of this machine, which an owner's name tells. Times are those of the store's clock. A
  lease only saves work: an owner that was paused and wakes after another took its place cannot write over that one's
  plan, because a plan is recorded only on the revision that it was made for. Sessions take the lease while a plan is
  made; the gateway waits for it.
- A *chat lock* is a lock on a file, which the operating system ends with the process, however that ends. A chat takes
  it for as long as it runs, also for a session that no store has yet.
"""

from __future__ import annotations

import os
import platform
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from hashlib import blake2b
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from refold.errors import StoreError, WriteConflict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from refold.sessions._stores.protocol import Store

__all__ = [
    "acompaction_lease",
    "chat_lock",
    "check_lease",
    "compaction_lease",
    "lease_owner",
    "run_in_thread",
]

LEASE = 4.0  # seconds for which an owner that was killed blocks others
BEATS = 4  # renewals in that time
LEEWAY = 1.0  # seconds by which a clock may be set back before a lease counts as one of another time
PAUSE = 0.05  # seconds between two attempts to take a lease that another process has
T = TypeVar("T")


def lease_owner() -> str:
    """Return a new name for an owner of leases, from which others can tell whether its process still runs."""
    return f"{platform.node()}/{os.getpid()}/{os.urandom(4).hex()}"


def check_lease(session: str, owner: str, current: str, taken: float, until: float, now: float) -> None:
    """Refuse a lease that another owner has; `current` is the owner in the store, or "", since and until when.

    Raises:
        WriteConflict: another one has it, its time is not over, and its process may still run.
    """
    if current and current != owner and taken - LEEWAY <= now < until and not _has_ended(current):
        raise WriteConflict(f"session {session} is being compacted by {current}: wait until that is done, then refresh")


def _has_ended(owner: str) -> bool:
    """Tell whether an owner was a process of this machine that no longer runs."""
    machine, _, process = owner.rpartition("/")[0].rpartition("/")
    if machine != platform.node() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def compaction_lease(store: Store, session: str, seconds: float = LEASE) -> Iterator[None]:
    """Be the only one that compacts a session; the lease is renewed until the block ends.

    Raises:
        WriteConflict: another owner has the lease.
    """
    owner = lease_owner()
    store.lease(session, owner, seconds)
    ended = _renewed(store, session, owner, seconds)
    try:
        yield
    finally:
        ended.set()
        with suppress(StoreError):  # it ends by itself, and what happened inside matters more
            store.release(session, owner)


def _renewed(store: Store, session: str, owner: str, seconds: float) -> Event:
    """Renew a lease until the returned event is set, from a thread: neither planning nor an event loop delays it."""
    ended = Event()

    def renew() -> None:
        while not ended.wait(seconds / BEATS):
            try:
                store.lease(session, owner, seconds)
                if ended.is_set():  # and released while this took it again
                    store.release(session, owner)
            except WriteConflict:  # somebody took our place
                return
            except StoreError:
                continue

    Thread(target=renew, name="refold-lease", daemon=True).start()
    return ended


async def run_in_thread(work: Callable[[], T]) -> T:
    """Do work in a thread. Cancellation is raised when the work is done, so that nothing is left half done."""
    import asyncio  # slow to import, and many programs need none of it

    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


@asynccontextmanager
async def acompaction_lease(
    store: Store,
    session: str,
    seconds: float = LEASE,
    *,
    wait: float = 0.0,
    run: Callable[[Callable[[], None]], Awaitable[None]] = run_in_thread,
) -> AsyncIterator[None]:
    """Be the only one that compacts a session; the lease is renewed until the block ends.

    Args:
        store: where the session is stored.
        session: its id.
        seconds: after which the lease ends when nobody renews it.
        wait: seconds to wait for another owner to release it.
        run: does a store's work without blocking the event loop.

    Raises:
        WriteConflict: another owner has the lease for longer than `wait`.
    """
    import asyncio

    owner = lease_owner()
    end, ended = monotonic() + wait, Event()
    try:
        while True:
            try:
                await run(partial(store.lease, session, owner, seconds))
                break
            except WriteConflict:
                if monotonic() >= end:
                    raise
            await asyncio.sleep(PAUSE)
        ended = _renewed(store, session, owner, seconds)
        yield
    finally:
        ended.set()
        with suppress(StoreError):  # it ends by itself, and what happened inside matters more
            await run(partial(store.release, session, owner))


@contextmanager
def chat_lock(folder: Path, store: str, session: str) -> Iterator[None]:
    """Be the only chat on a session of a store, by a lock file in a folder that is created when it is missing.

    Raises:
        WriteConflict: a chat of another process has it.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows, where conflicting writes are still refused by the store
        yield
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = blake2b(f"{store}\n{session}".encode(), digest_size=12).hexdigest()
    handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            raise WriteConflict(
                f"session {session} is open in another chat (process {owner}): leave that one first, or begin another"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
