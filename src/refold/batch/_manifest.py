"""The folder of a batch's results: Parquet files, and a manifest that says which file is in which of them.

    batch.json               the settings, their hash, the version of the columns and of the code
    manifest/<task>.json     the files of a finished task with hashes of their contents; written after its results
    results/<task>.parquet   their rows

A task is finished when its entry in the manifest is there. A file that has changed is replayed in a new task; the entry
of the latest run holds, and the rows of older ones are taken out of their Parquet file at the end of the run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold.batch._packages import needed
from refold.batch._rows import clean, digest_of
from refold.batch._schema import SCHEMA_VERSION, parquet_of
from refold.batch._settings import described
from refold.batch._settings import digest_of as settings_digest
from refold.batch._storage import NO_VERSION, storage_of
from refold.core._decoders import decoder
from refold.errors import UsageError
from refold.replay._parallel import version

if TYPE_CHECKING:
    from refold.batch._inputs import InputFile
    from refold.batch._settings import BatchSettings
    from refold.batch._shard import ReplayedShard

__all__ = ["Entry", "FinishedFile", "ResultFolder"]

HEAD, MANIFEST, RESULTS = "batch.json", "manifest", "results"


class BatchHead(Struct, frozen=True):
    """What all results of a folder have in common."""

    schema: int
    code: str
    settings_hash: str
    settings: dict[str, Any]


class FinishedFile(Struct, frozen=True):
    """A file of a finished task: its path as in the rows, the hash of its content ("": was not read), its version."""

    path: str
    digest: str
    version: str
    rows: int
    errors: int


class Entry(Struct, frozen=True):
    """A finished task: its name, the number of the run that finished it, and its files."""

    name: str
    run: int
    files: tuple[FinishedFile, ...]


_decode_entry = decoder(Entry)
_decode_head = decoder(BatchHead)


class ResultFolder:
    """The results of a batch in a folder of any storage."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.storage, self._path = storage_of(name)
        self._entries: dict[str, Entry] = {}
        self._run = 1

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The finished tasks, the latest last."""
        return tuple(sorted(self._entries.values(), key=lambda entry: (entry.run, entry.name)))

    def records(self) -> dict[str, FinishedFile]:
        """Return each file that has results, as the latest of its entries has it."""
        return {record.path: record for entry in self.entries for record in entry.files}

    def replaced(self) -> list[tuple[str, str]]:
        """Return the tasks and files whose rows a later task has replaced, but which are still there."""
        latest = self._latest()
        return [
            (entry.name, record.path)
            for entry in self.entries
            for record in entry.files
            if latest[record.path] != entry.name
        ]

    def results(self, entry: Entry) -> str:
        """Return the path of the Parquet file of a finished task."""
        return f"{self._path}/{RESULTS}/{entry.name}.parquet"

    @contextmanager
    def written(self, settings: BatchSettings) -> Iterator[ResultFolder]:
        """Open the folder to write results of these settings; on a local disk no other process may at the same time.

        Raises:
            UsageError: its results are of other settings, of another version, or are being written.
        """
        head = self._head()
        values = described(settings)
        wanted = BatchHead(SCHEMA_VERSION, version(), settings_digest(values), values)
        if head is None:
            if self.storage.below(self._path):
                raise UsageError(f"{self.name}: this folder holds other files: name a new or an empty one")
        else:
            self._same(head, wanted)
        if self.storage.is_local:
            os.makedirs(self._path, exist_ok=True)
        with self._lock():
            if head is None:
                self.storage.write(f"{self._path}/{HEAD}", msgspec.json.format(msgspec.json.encode(wanted), indent=2))
            self.load()
            self._run = 1 + max((entry.run for entry in self.entries), default=0)
            self._remove_leftovers()
            yield self

    def opened(self) -> ResultFolder:
        """Open the folder to read its results.

        Raises:
            UsageError: there are none, or they are of another version of the columns.
        """
        head = self._head()
        if head is None:
            raise UsageError(
                f"{self.name}: no results of a batch are here: name the folder given to `refold batch --out`"
            )
        if head.schema != SCHEMA_VERSION:
            raise UsageError(self._other_columns(head))
        self.load()
        if not self._entries:
            raise UsageError(
                f"{self.name}: the batch has finished no task yet: run `refold batch` with this folder again"
            )
        return self

    def load(self) -> None:
        """Read the manifest."""
        self._entries = {}
        for path in self.storage.below(f"{self._path}/{MANIFEST}"):
            if path.endswith(".json"):
                try:
                    entry = _decode_entry(self.storage.read(path))
                except msgspec.MsgspecError as error:
                    raise UsageError(
                        f"{self.storage.url(path)}: damaged ({error}): remove this file and run again"
                    ) from None
                self._entries[entry.name] = entry

    def pending(self, files: Sequence[InputFile], *, retry: bool = False) -> list[InputFile]:
        """Return the files that have no results, or have changed since.

        A file whose storage tells another version is read, and has changed if its content has. One that could not be
        read is tried again; with `retry` all with an error are.
        """
        known = self.records()
        return [file for file in files if not self._is_finished(file, known.get(clean(file.path)), retry=retry)]

    def store(self, shard: ReplayedShard, files: Sequence[InputFile]) -> None:
        """Write the results of a task, then its entry in the manifest: from then on it is finished."""
        records = tuple(
            FinishedFile(clean(done.path), done.digest, file.version, done.rows, done.errors)
            for done, file in zip(shard.files, files, strict=True)
        )
        content = "\n".join(f"{each.digest} {each.path}" for each in records)
        name = f"{self._run:05}-{digest_of(content.encode())[:16]}"
        entry = Entry(name, self._run, records)
        self.storage.write(self.results(entry), shard.parquet)
        self._write_entry(entry)

    def tidy(self) -> None:
        """Remove the rows of files that a later task replayed again, and results that no entry names."""
        latest = self._latest()
        for entry in self.entries:
            current = tuple(record for record in entry.files if latest[record.path] == entry.name)
            if len(current) == len(entry.files):
                continue
            if current:
                self._drop_rows(entry, {record.path for record in current})
                self._write_entry(replace(entry, files=current))
            else:
                self.storage.remove(f"{self._path}/{MANIFEST}/{entry.name}.json")
                del self._entries[entry.name]
        self._remove_leftovers()

    def _latest(self) -> dict[str, str]:
        """Return by file the task whose rows hold."""
        return {record.path: entry.name for entry in self.entries for record in entry.files}

    def _head(self) -> BatchHead | None:
        try:
            content = self.storage.read(f"{self._path}/{HEAD}")
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise UsageError(f"{self.name}: this is a file: name a folder for the results") from None
        try:
            return _decode_head(content)
        except msgspec.MsgspecError as error:
            raise UsageError(f"{self.name}/{HEAD}: damaged ({error}): name another folder") from None

    def _same(self, head: BatchHead, wanted: BatchHead) -> None:
        if head.schema != wanted.schema:
            raise UsageError(self._other_columns(head))
        if head.settings_hash != wanted.settings_hash:
            other = [key for key, value in wanted.settings.items() if head.settings.get(key) != value]
            differences = "; ".join(
                f"{key} {_short(head.settings.get(key))}, now {_short(wanted.settings[key])}" for key in other
            )
            raise UsageError(
                f"{self.name}: holds results of other settings ({differences}): "
                "use the same ones, or name another folder"
            )
        if head.code != wanted.code:
            raise UsageError(f"{self.name}: holds results of another version of refold: name another folder")

    def _other_columns(self, head: BatchHead) -> str:
        return (
            f"{self.name}: holds results with columns of version {head.schema}, and this refold has version "
            f"{SCHEMA_VERSION}: name another folder"
        )

    def _is_finished(self, file: InputFile, record: FinishedFile | None, *, retry: bool) -> bool:
        if record is None or not record.digest or (retry and record.errors):
            return False
        if file.version != NO_VERSION and file.version == record.version:
            return True
        storage, path = storage_of(file.path)
        try:
            return digest_of(storage.read(path)) == record.digest
        except OSError:
            return False

    def _write_entry(self, entry: Entry) -> None:
        self.storage.write(f"{self._path}/{MANIFEST}/{entry.name}.json", msgspec.json.encode(entry))
        self._entries[entry.name] = entry

    def _drop_rows(self, entry: Entry, current: set[str]) -> None:
        pa, compute, parquet = needed("pyarrow"), needed("pyarrow.compute"), needed("pyarrow.parquet")
        path = self.results(entry)
        table = parquet.read_table(pa.BufferReader(self.storage.read(path)))
        rest = table.filter(compute.is_in(table["file"], value_set=pa.array(sorted(current))))
        self.storage.write(path, parquet_of(rest))

    def _remove_leftovers(self) -> None:
        """Remove what a run that was ended left: files half-written, and results that no entry names."""
        expected = {self.results(entry) for entry in self.entries}
        for folder in (RESULTS, MANIFEST):
            for path in self.storage.below(f"{self._path}/{folder}"):
                hidden = path.rpartition("/")[2].startswith(".")
                if hidden or (folder == RESULTS and path not in expected):
                    self.storage.remove(path)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        try:
            import fcntl
        except ImportError:  # on Windows nothing keeps a second run out
            fcntl = None  # type: ignore[assignment]
        if fcntl is None or not self.storage.is_local:
            yield
            return
        handle = os.open(self._path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"{self.name}: another process is writing results here: wait for it") from None
            yield
        finally:
            os.close(handle)


def _short(value: Any) -> str:
    text = "default" if value is None else ", ".join(value) if isinstance(value, dict) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
