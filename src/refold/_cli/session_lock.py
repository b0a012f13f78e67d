"""One chat at a time on a session: a lock that ends with its process, however that ends."""

from __future__ import annotations

import os
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from refold.errors import WriteConflict

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["held"]


@contextmanager
def held(folder: Path, store: str, session: str) -> Iterator[None]:
    """Hold a session of a store.

    Raises:
        WriteConflict: another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # where there is none, writes that cross still collide in the store
        yield
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = blake2b(f"{store}\n{session}".encode(), digest_size=12).hexdigest()
    handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            raise WriteConflict(
                f"session {session} is open in another chat (process {holder}): leave that one first, or begin another"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
