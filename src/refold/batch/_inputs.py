"""The files of a batch, and how they are shared out into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from refold.batch._storage import Storage, real_path, storage_of, version_of
from refold.errors import UnreadableTranscript
from refold.transcripts._source import SUFFIXES

__all__ = ["JUDGED", "InputFile", "files_of", "shards_of"]

MOST = 500  # files of a task
# Bytes of a task at one policy and costs alone: two seconds. With less, handing it out takes a share of the time; with
# more, a worker that dies takes more of its work with it.
ENOUGH = 2_000_000
JUDGED = 4  # times the work of costs alone
MOST_TASKS = 20_000  # each is two files of the results: more bytes a task then
EACH = 4  # tasks for each worker at least, so that none is idle at the end
MAGIC = frozenset("*?[")


class InputFile(Struct, frozen=True):
    """A file to replay: its path or URL, its size in bytes, and its version (see `version_of`)."""

    path: str
    size: int
    version: str


def files_of(names: Sequence[str]) -> list[InputFile]:
    """Return the files that paths, folders and patterns of any storage stand for, each once, sorted.

    A local file that several names lead to has the first of them. A folder stands for all JSON files below it.

    Raises:
        UnreadableTranscript: a folder or pattern without a file, or no such file.
        UsageError: a storage that is not known.
    """
    collected: dict[str, InputFile] = {}
    for name in names:
        for file in _files_of(name):
            collected.setdefault(real_path(file.path), file)
    return sorted(collected.values(), key=lambda file: file.path)


def _files_of(name: str) -> list[InputFile]:
    storage, path = storage_of(name)
    fs = storage.filesystem
    if fs.isdir(path):
        below = {each: details for each, details in storage.below(path).items() if each.endswith(SUFFIXES)}
        if not below:
            raise UnreadableTranscript(f"{name}: no {', '.join(SUFFIXES)} file in this folder: name another")
        return [_file(storage, each, details) for each, details in below.items()]
    if fs.exists(path):
        return [_file(storage, path, fs.info(path))]
    if MAGIC & set(path):
        matching = {each: details for each, details in fs.glob(path, detail=True).items() if details["type"] == "file"}
        if not matching:
            raise UnreadableTranscript(f"{name}: no file matches this pattern: check the folder and the ending")
        return [_file(storage, each, details) for each, details in matching.items()]
    raise UnreadableTranscript(f"{name}: no such file or folder: check the name")


def _file(storage: Storage, path: str, details: dict[str, object]) -> InputFile:
    size = details.get("size")
    return InputFile(storage.url(path), size if isinstance(size, int) else 0, version_of(details))


def shards_of(files: Sequence[InputFile], workers: int, work: int = 1) -> list[tuple[InputFile, ...]]:
    """Share files out into tasks of up to 500 files and about two seconds, by their bytes.

    `work` is how many times the work of a file is that of one policy's costs. A few files become a few tasks for each
    worker.
    """
    total = sum(file.size for file in files)
    enough = max(min(ENOUGH // work, ceil(total / (max(workers, 1) * EACH))), total // MOST_TASKS)
    shards: list[tuple[InputFile, ...]] = []
    shard: list[InputFile] = []
    size = 0
    for file in files:
        shard.append(file)
        size += file.size
        if len(shard) == MOST or size >= enough:
            shards.append(tuple(shard))
            shard, size = [], 0
    return [*shards, tuple(shard)] if shard else shards
