"""Context windows learned from provider errors, by model and endpoint, in memory or in a file of the user's."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from refold._files import write_atomically
from refold.core._decoders import decoder
from refold.errors import UsageError

__all__ = ["LearnedWindows"]

LEAST, LARGEST = 256, 100_000_000  # tokens: no model's window lies outside


class _Entry(Struct, frozen=True):
    model: str
    endpoint: str
    window: int


class _File(Struct, frozen=True):
    windows: tuple[_Entry, ...]
    version: int = 1


_decode = decoder(_File)


class LearnedWindows:
    """The true windows of models, as refusals told them; for several threads.

    With a `path` they are read from that JSON file and written to it, readable by its owner only; a file that cannot
    be written leaves them in memory.

    Raises:
        UsageError: the file is there and is none of ours; it is left as it is.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._lock = Lock()
        self._known = self._read()

    def get(self, model: str, endpoint: str = "") -> int | None:
        """Return the window of a model at an endpoint, None when no refusal told it."""
        return self._known.get(_key(model, endpoint))

    def window(self, model: str, endpoint: str = "", stated: int | None = None) -> int | None:
        """Return the window to reckon with: the smaller of the user's own and the learned one, None for neither."""
        return min((size for size in (stated, self.get(model, endpoint)) if size is not None), default=None)

    def learn(self, model: str, endpoint: str, window: int) -> None:
        """Remember a window; a number that cannot be one is passed over."""
        if not LEAST <= window <= LARGEST:
            return
        key = _key(model, endpoint)
        with self._lock:
            if self._known.get(key) == window:
                return
            self._known[key] = window
            if self._path is not None:
                self._write(self._path, key, window)

    def _read(self) -> dict[tuple[str, str], int]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            stored = _decode(self._path.read_bytes())
        except msgspec.DecodeError as error:
            raise UsageError(
                f"{self._path} holds no learned windows ({error}): name another file, or delete it"
            ) from None
        if stored.version > 1:
            raise UsageError(f"{self._path} was written by a later version of refold: name another file")
        return {(entry.model, entry.endpoint): entry.window for entry in stored.windows}

    def _write(self, path: Path, key: tuple[str, str], window: int) -> None:
        """Write what is known, with what another process wrote meanwhile, in one step."""
        try:
            self._known = self._read() | self._known | {key: window}
            body = _File(tuple(_Entry(*known, size) for known, size in sorted(self._known.items())))
            write_atomically(path, msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n", mode=0o600)
        except (OSError, UsageError):  # a call that was saved is worth more than the file
            return


def _key(model: str, endpoint: str) -> tuple[str, str]:
    """Return how a model and an endpoint are told from others: without what a URL may hold of a user's secrets."""
    place = urlsplit(endpoint)
    host = place.hostname or ""
    port = f":{place.port}" if place.port else ""
    return model.strip().lower(), f"{host}{port}{place.path.rstrip('/')}" if host else endpoint
