"""What was done to each file: created, edited how often, read, and in which of the user's turns last."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import plain_name, reads, writes
from refold._condense.digest.previous import earlier_entries
from refold._condense.digest.turns import turns_at
from refold.core.messages import ToolCall, memoized

if TYPE_CHECKING:
    from refold.core.transcript import Transcript

__all__ = ["CHANGED", "READ", "FileRecord", "file_log"]

CHANGED, READ = "Files changed", "Files read"  # the sections of a digest
CREATORS = frozenset({"write", "write_file", "writefile", "create_file", "write_to_file", "fs_write"})
RECORDED = re.compile(r"(.+) \((created)?(?:, )?(?:(\d+) edits?)?(?:, )?(?:turn (\d+))?\)", re.S)


class FileRecord(Struct, frozen=True):
    """What was done to a file: whether it was created, how often it was edited, and in which turn that was last.

    A read after a change leaves the turn of the change.
    `first` orders files by when they were first touched.
    """

    path: str
    created: bool = False
    edits: int = 0
    turn: int = 0
    first: int = 0

    @property
    def changed(self) -> bool:
        """Tell whether the file was created or edited."""
        return self.created or self.edits > 0

    @property
    def line(self) -> str:
        """The record as a line of a digest: of a file that was only read its path."""
        if not self.changed:
            return self.path
        created = "created" if self.created else ""
        edits = f"{self.edits} edits" if self.edits > 1 else "1 edit" if self.edits and created else ""
        turn = f"turn {self.turn}" if self.turn else ""
        done = ", ".join(filter(None, (created, edits, turn)))
        return f"{self.path} ({done})" if done else self.path


@memoized
def file_log(transcript: Transcript) -> tuple[FileRecord, ...]:
    """Return what was done to each file, by the last time that something was, with what earlier digests tell of it.

    Calls whose result is an error count for nothing.
    """
    failed = {result.call_id for message in transcript.messages for result in message.results if result.is_error}
    failed.discard("")
    log = _earlier(transcript)
    order = count(len(log))
    for message, turn in zip(transcript.messages, turns_at(transcript), strict=True):
        for call in message.calls:
            if call.call_id in failed:
                continue
            if ref := reads(call):
                record = log.pop(ref.path) if ref.path in log else FileRecord(ref.path, first=next(order))
                log[ref.path] = record if record.changed else replace(record, turn=turn)
            for path in writes(call):
                if path not in log and _creates(call, path):
                    log[path] = FileRecord(path, created=True, turn=turn, first=next(order))
                else:
                    record = log.pop(path) if path in log else FileRecord(path, first=next(order))
                    log[path] = replace(record, edits=record.edits + 1, turn=turn)
    return tuple(log.values())


def _earlier(transcript: Transcript) -> dict[str, FileRecord]:
    """Return what earlier digests tell; those of the previous release name only paths."""
    earlier = earlier_entries(transcript)
    log = {path: FileRecord(path) for path in earlier.lines(READ)}
    for line in earlier.lines(CHANGED):
        match = RECORDED.fullmatch(line)
        path, created, edits, turn = match.groups() if match else (line, None, None, None)
        log[path] = FileRecord(path, bool(created), int(edits or (0 if created else 1)), int(turn or 0))
    return {path: replace(record, first=number) for number, (path, record) in enumerate(log.items())}


def _creates(call: ToolCall, path: str) -> bool:
    """Tell whether a call that changes a file makes a new one, as far as its own words say."""
    text = call.arguments
    return (
        plain_name(call.name) in CREATORS
        or f"*** Add File: {path}" in text
        or ('"command"' in text and re.search(r'"command"\s*:\s*"create"', text) is not None)
    )
