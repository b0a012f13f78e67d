"""Files that only their owner may read."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["append_owned", "file_name", "owned_folder", "write_owned"]

FOLDER, FILE = 0o700, 0o600


def owned_folder(folder: Path) -> Path:
    """Return the folder, made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER)
    return folder


def file_name(id: str) -> str:
    """Return an id, which a user may have chosen, as a part of a file's name."""
    return "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in id)


def write_owned(path: Path, text: str) -> Path:
    """Write a whole file and return its path."""
    return _written(path, text, os.O_TRUNC)


def append_owned(path: Path, text: str) -> Path:
    """Write at the end of a file, which is made where it is missing, and return its path."""
    return _written(path, text, os.O_APPEND)


def _written(path: Path, text: str, how: int) -> Path:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | how, FILE)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
        if stat.S_IMODE(os.fstat(handle).st_mode) & 0o077:  # it was there, and others could read it
            os.fchmod(handle, FILE)
        file.write(text)
    return path
