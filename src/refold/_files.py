"""Writes files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Write a file next to its place and rename it over what is there; the folder is made where it is missing.

    `mode` are the permission bits of a new file, by default what the process's umask leaves; a file that is there
    keeps its own, and its owner where this process is root. A pipe or a device is written to directly.

    Raises:
        OSError: it cannot be written; what was there is unchanged.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    there = path.stat() if path.exists() else None
    if there is not None:
        mode = there.st_mode & 0o777
    elif mode is None:
        mode = 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        if there is not None and hasattr(os, "chown"):
            with suppress(OSError):  # only root may give a file away
                os.chown(temporary, there.st_uid, there.st_gid)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
