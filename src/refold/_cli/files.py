"""Files in: names, folders and patterns become conversations; standard input is `-`."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from refold import transcripts
from refold._cli import show
from refold.errors import UnreadableTranscript, UsageError
from refold.transcripts import RecordedConversation
from refold.transcripts._selection import selected, with_format
from refold.transcripts._source import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._cli.options import ReadOptions

__all__ = [
    "STDIN",
    "InputConversation",
    "Named",
    "conversations",
    "expanded",
    "only",
    "placed",
    "read",
    "standard_input",
]

STDIN = "-"
NOTES = 5  # about one file; a damaged one may have thousands


class Named(Struct, frozen=True):
    """A file to read; `within` is the folder it was found in, "" where the user named the file itself."""

    path: str
    within: str = ""


class InputConversation(Struct, frozen=True):
    """A conversation, the path it was named by, its file (the bytes, from standard input), and what to call it."""

    recorded: RecordedConversation
    path: str
    source: str | bytes
    label: str


def expanded(names: Sequence[str]) -> list[Named]:
    """Return the files that names stand for: themselves, all JSON below a folder, all a pattern matches.

    Raises:
        UnreadableTranscript: a folder or pattern without a file.
        UsageError: an empty name.
    """
    conversations: dict[str, Named] = {}
    for name in names:
        for each in _expanded(name):
            conversations.setdefault(each.path, each)
    return list(conversations.values())


def conversations(names: Sequence[str], how: ReadOptions, doing: str = "Reading") -> Iterator[InputConversation]:
    """Yield the conversations of all files; a file of a folder that is no transcript is passed over with a note.

    Raises:
        UnreadableTranscript: a file the user named is none, or no file of a folder is one.
    """
    named = expanded(names)
    some = False
    for each in show.progress(named, doing):
        try:
            conversations = read(each.path, how, alone=len(named) == 1)
        except UnreadableTranscript as error:
            if not each.within:
                raise
            show.note(f"passed over: {error}")
            continue
        some = True
        yield from conversations
    if not some:
        raise UnreadableTranscript(
            f"{', '.join(names)}: no transcript in {show.many(len(named), 'file')}: name another place"
        )


def only(name: str, how: ReadOptions) -> InputConversation:
    """Return the one conversation meant by a name.

    Raises:
        UsageError: the name stands for several.
    """
    if how.select == "all":
        raise UsageError("--select all is for commands that take several conversations: name one")
    named = expanded([name])
    if len(named) > 1:
        raise UsageError(f"{name}: {len(named)} files, and this takes one: name one of them, as {named[0].path}")
    return read(named[0].path, how)[0]


def read(path: str, how: ReadOptions, *, alone: bool = True) -> list[InputConversation]:
    """Return the selected conversations of one file; one that is read `alone` gets a spinner and a hint.

    Raises:
        UsageError: standard input is closed.
        UnreadableTranscript: no transcript, or none of that kind or selection.
        UnknownFormat: a format named that is not there, or is not that of the messages.
    """
    label = "standard input" if path == STDIN else path
    source = standard_input() if path == STDIN else path
    try:
        with show.working(f"Reading {label}", alone=alone):
            conversations = transcripts.read(source, lenient=how.lenient, kind=how.kind)
    except UnreadableTranscript as error:
        message = str(error).replace("<bytes>", label).replace("read leniently", "read with --lenient")
        raise UnreadableTranscript(message) from None
    notes = conversations[0].notes if how.lenient else ()
    limit = NOTES if alone else 1
    for note in notes[:limit]:
        show.note(f"{label}: {note}")
    if len(notes) > limit:
        show.note(f"{label}: and {len(notes) - limit:,} more; `refold stats --lenient` lists them all")
    if alone and how.select is None and len(conversations) > 1:
        show.note(f"{label}: holds {len(conversations)} conversations, this is the first: --select 2, or --select all")
    chosen = selected(conversations, how.select, label)
    return [
        InputConversation(
            with_format(item, how.format, label), path, source, f"{label}#{item.name}" if len(chosen) > 1 else label
        )
        for item in chosen
    ]


def standard_input() -> bytes:
    """Return all that comes from standard input.

    Raises:
        UsageError: it is closed.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed: name a file")
    return sys.stdin.buffer.read()


def placed(error: UsageError, label: str) -> UsageError:
    """Return an error that begins with the conversation it is about."""
    return error if str(error).startswith(label) else type(error)(f"{label}: {error}")


def _expanded(name: str) -> list[Named]:
    if not name:
        raise UsageError("the name of the file is empty: name a file, a folder, a pattern, or `-`")
    if name == STDIN or os.path.isfile(name):
        return [Named(name)]
    if os.path.isdir(name):
        if not os.access(name, os.R_OK | os.X_OK):
            raise UnreadableTranscript(f"{name}: this folder cannot be read: check the permissions")
        below = sorted(str(path) for path in Path(name).rglob("*") if path.suffix in SUFFIXES and path.is_file())
        if not below:
            raise UnreadableTranscript(f"{name}: no {', '.join(SUFFIXES)} file in this folder: name another")
        return [Named(path, name) for path in below]
    if glob.has_magic(name):
        matched = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
        if not matched:
            raise UnreadableTranscript(f"{name}: no file matches this pattern: check the folder and the ending")
        return [Named(path, _root(name)) for path in matched]
    return [Named(name)]


def _root(pattern: str) -> str:
    """Return the folder that a pattern starts from."""
    fixed = pattern[: min(place for place, char in enumerate(pattern) if char in "*?[")]
    return os.path.dirname(fixed) or "."
