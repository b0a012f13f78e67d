"""A file's JSON values with their line numbers, however they are laid out.

One value, a value a line, pretty-printed values one after another: all are met under any file
name. Decoding is msgspec's; Python's own decoder takes what msgspec refuses and real files hold
(lone surrogates, NaN).
"""

from __future__ import annotations

import codecs
import errno
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from refold.core._json import Json
from refold.errors import UnreadableTranscript
from refold.transcripts._skipped import SkippedItems

__all__ = ["SUFFIXES", "Document", "load"]

SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj")  # of the files in a folder that may be transcripts
TASK = "api_conversation_history.json"  # in the folder of a task of Cline's
# How files begin that hold no text, what they are, and what to do.
CONTAINERS = (
    (b"\x1f\x8b", "is compressed by gzip; unpack it first (`gunzip`)"),
    (b"\x28\xb5\x2f\xfd", "is compressed by Zstandard; unpack it first (`zstd -d`)"),
    (b"PK\x03\x04", "is a zip archive; unpack it first (`unzip`)"),
    (
        b"SQLite format 3\0",
        "is an SQLite database; export a session from it (`refold sessions export`, `opencode export`) and read that",
    ),
)
_decode = msgspec.json.Decoder().decode
_scan = json.JSONDecoder().raw_decode
_REMEDY = "repair or remove the line, or read leniently to skip it"


class Document(Struct, frozen=True):
    """The values of a file. `numbers[i]` is the line on which `values[i]` starts, counted from 1."""

    path: str
    values: list[Any]
    numbers: list[int]
    notes: tuple[str, ...] = ()
    lenient: bool = False

    @property
    def value(self) -> Any:
        """The one value of the file, or None where it holds several."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def lines(self) -> list[tuple[int, Any]]:
        """Line number and value, for kinds that are a value a line; a list in one value counts as lines (number 0)."""
        if isinstance(self.value, list):
            return [(0, item) for item in self.value]
        return list(zip(self.numbers, self.values, strict=True))

    @property
    def entries(self) -> list[Any]:
        """The list `messages` of the one value where there is such a list, else every value."""
        value = self.value
        if isinstance(value, dict) and isinstance(value.get("messages"), list):
            return list(value["messages"])
        return [row for _, row in self.lines]

    @property
    def objects(self) -> list[tuple[int, Json]]:
        """The lines that are objects."""
        return [(number, item) for number, item in self.lines if isinstance(item, dict)]


def load(source: str | os.PathLike[str] | bytes, *, lenient: bool = False) -> Document:
    """Read a path, or the bytes of a file, into a document.

    Raises UnreadableTranscript for no file, a folder, an empty, a compressed file or a database, bytes
    that are not UTF-8 and broken JSON, each with its place. Leniently, broken lines are skipped and noted.
    """
    path = "<bytes>" if isinstance(source, bytes) else os.fspath(source)
    raw = source if isinstance(source, bytes) else _bytes(path)
    for beginning, what in CONTAINERS:
        if raw.startswith(beginning):
            raise UnreadableTranscript(f"{path}: {what}")
    text, notes = _text(path, raw, lenient)
    if not text.strip():
        raise UnreadableTranscript(f"{path}: the file is empty ({len(raw)} bytes); there is no conversation in it")
    values, numbers, bad = _values(path, text, lenient)
    if not values:  # nothing could be saved: say where it first broke
        _values(path, text, lenient=False)
    skipped = SkippedItems()
    for number in bad:
        skipped.add("line that is not JSON, skipped", number)
    return Document(path, values, numbers, notes + skipped.notes(), lenient)


def _bytes(path: str) -> bytes:
    if os.path.isfile(task := os.path.join(path, TASK)):  # a task's folder of Cline's
        path = task
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise UnreadableTranscript(f"{path}: no such file; check the name") from None
    except IsADirectoryError:
        raise UnreadableTranscript(f"{path}: this is a folder; name one of the files in it") from None
    except (OSError, ValueError) as error:
        # Windows answers a folder with "permission denied"
        if isinstance(error, OSError) and error.errno == errno.EACCES and Path(path).is_dir():
            raise UnreadableTranscript(f"{path}: this is a folder; name one of the files in it") from None
        why = error.strerror if isinstance(error, OSError) else error
        raise UnreadableTranscript(f"{path}: cannot be opened ({why}); check the name and the permissions") from None


def _text(path: str, raw: bytes, lenient: bool) -> tuple[str, tuple[str, ...]]:
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return raw.decode(encoding), ()
    except UnicodeDecodeError as error:
        at = error.start
    if not lenient:
        line = raw.count(b"\n", 0, at) + 1
        column = at - (raw.rfind(b"\n", 0, at) + 1) + 1
        raise UnreadableTranscript(
            f"{path}:{line}:{column}: byte {at} is not {encoding[:6].upper().rstrip('-')}; "
            "convert the file to UTF-8, or read leniently to have such bytes replaced"
        )
    note = f"byte {at} and perhaps others are not UTF-8 and were replaced by U+FFFD"
    return raw.decode(encoding, errors="replace"), (note,)


def _values(path: str, text: str, lenient: bool) -> tuple[list[Any], list[int], list[int]]:
    lines = text.split("\n")
    first = next(index for index, line in enumerate(lines) if line and not line.isspace())
    is_json = _line(lines[first])[1]
    if not is_json or all(not line or line.isspace() for line in lines[first + 1 :]):
        # a layout over several lines, or a single line: the whole is one value, or nothing is
        whole, is_json = _line(text)
        if is_json:
            return [whole], [first + 1], []
    values: list[Any] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            value = _decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            value, is_json = _line(line)
            if not is_json:
                offset = sum(map(len, lines[: number - 1])) + number - 1
                return _scattered(path, text, offset, (values, numbers), lenient)
        values.append(value)
        numbers.append(number)
    return values, numbers, []


def _line(text: str) -> tuple[Any, bool]:
    """Decode one value; say whether it was one."""
    try:
        return _decode(text), True
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(text), True
    except (ValueError, RecursionError):
        return None, False


def _scattered(
    path: str, text: str, at: int, parsed: tuple[list[Any], list[int]], lenient: bool
) -> tuple[list[Any], list[int], list[int]]:
    """Go on from a line that is no value: objects may reach over lines, and log lines stand between them."""
    values, numbers = parsed
    bad: list[int] = []
    number = text.count("\n", 0, at) + 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        begin = at + len(text[at:end]) - len(text[at:end].lstrip())
        if begin == end:
            at, number = end + 1, number + 1
            continue
        try:
            value, stop = _scan(text, begin)
        except (ValueError, RecursionError) as error:
            value, stop = None, -1
            if not lenient:
                _refuse(path, number, text[at:end], error)
        if isinstance(value, dict | list):
            values.append(value)
            numbers.append(number)
            number += text.count("\n", at, stop)
            at = stop + (lenient and text.startswith(",", stop))  # what a broken list still holds
        elif stop >= 0 and not lenient:
            _refuse(path, number, text[at:end], None)
        else:
            bad.append(number)
            at, number = end + 1, number + 1
    return values, numbers, bad


def _refuse(path: str, number: int, line: str, error: Exception | None) -> NoReturn:
    column, what = 1, "not JSON"
    # damage in a value a line stops the decoder on the next line at the latest; a layout over lines goes further
    layout = line.strip() in ("{", "[") or (isinstance(error, json.JSONDecodeError) and error.lineno > number + 1)
    if isinstance(error, json.JSONDecodeError) and layout:
        number, column, what = error.lineno, error.colno, error.msg
    else:
        try:
            json.loads(line)
        except json.JSONDecodeError as of_line:
            column, what = of_line.colno, of_line.msg
        except (ValueError, RecursionError) as of_line:
            what = str(of_line)
    raise UnreadableTranscript(f"{path}:{number}:{column}: broken JSON ({what}); {_REMEDY}")
