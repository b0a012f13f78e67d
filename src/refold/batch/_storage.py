"""Files of any storage that fsspec knows: local paths, `memory://`, `s3://` and others by the user's own packages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from refold._files import write_atomically
from refold.batch._packages import needed
from refold.errors import UsageError

__all__ = ["Storage", "content_of", "real_path", "storage_of", "version_of"]

LOCAL = "file"
PART = ".part"  # the ending of a file that is being written
NO_VERSION = ""  # of a file whose storage does not say when it changed


class Storage:
    """The files of one storage; paths are those of the storage itself, `url` is what a user would write."""

    def __init__(self, filesystem: Any) -> None:
        self.filesystem = filesystem
        protocols = filesystem.protocol
        self.is_local = LOCAL in ((protocols,) if isinstance(protocols, str) else protocols)

    def url(self, path: str) -> str:
        """Return a path as a user would write it: local ones without a protocol."""
        return path if self.is_local else str(self.filesystem.unstrip_protocol(path))

    def below(self, folder: str) -> dict[str, dict[str, Any]]:
        """Return all files below a folder with what the storage says of each, sorted by path."""
        if not self.filesystem.isdir(folder):
            return {}
        self.filesystem.invalidate_cache()
        files: dict[str, dict[str, Any]] = self.filesystem.find(folder, detail=True)
        return dict(sorted(files.items()))

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        content: bytes = self.filesystem.cat_file(path)
        return content

    def write(self, path: str, content: bytes) -> None:
        """Write a file whole or not at all: under a temporary name, then renamed."""
        if self.is_local:
            write_atomically(Path(path), content)
            return
        folder, _, name = path.rpartition("/")
        part = f"{folder}/.{name}{PART}"
        self.filesystem.makedirs(folder, exist_ok=True)
        self.filesystem.pipe_file(part, content)
        self.filesystem.mv(part, path)

    def remove(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        if self.filesystem.exists(path):
            self.filesystem.rm_file(path)


def storage_of(name: str) -> tuple[Storage, str]:
    """Return the storage that a path or URL leads to, and the path in it.

    Raises:
        UsageError: fsspec is not installed, or no package for that protocol is.
    """
    fsspec = needed("fsspec")
    try:
        filesystem, path = fsspec.url_to_fs(os.path.expanduser(name))
    except ImportError as error:
        raise UsageError(f"{name}: this storage needs one more package ({error}): install it") from None
    except ValueError as error:
        raise UsageError(f"{name}: {error}: check what is before ://") from None
    return Storage(filesystem), str(path)


def real_path(url: str) -> str:
    """Return the one path of a local file or folder that all its names lead to; a URL as it is."""
    return url if "://" in url else os.path.realpath(url)


def content_of(name: str) -> bytes:
    """Return the content of the file that a path or URL names."""
    storage, path = storage_of(name)
    return storage.read(path)


def version_of(details: dict[str, Any]) -> str:
    """Return what changes when a file changes, by what its storage says of it without reading it.

    Object stores have a hash, file systems a time; a storage that has neither gives "".
    """
    for key in ("ETag", "etag", "md5Hash", "checksum", "mtime", "LastModified", "last_modified", "updated"):
        if details.get(key):
            return f"{details.get('size')} {details[key]}"
    return NO_VERSION
