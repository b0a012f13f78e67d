"""Output files: native messages in the provider's shape, written to a temporary file and renamed."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from refold import formats
from refold._cli.files import STDIN
from refold._files import write_atomically
from refold.core._json import encoded
from refold.errors import BadMessages, UsageError
from refold.formats._base import put
from refold.transcripts._source import SUFFIXES, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._cli.files import InputConversation, Named

__all__ = ["dumped", "native", "places", "writable", "write"]


def writable(out: str, *, create_folders: bool = False) -> None:
    """Refuse a place that cannot be written, before any work is done; with `create_folders` its folder need not exist.

    Raises:
        UsageError: the folder is not there, or it or the file is not writable, or the place is a folder.
    """
    if out == STDIN:
        return
    if not out:
        raise UsageError("the place to write to is empty: name a file, or `-` for standard output")
    folder = os.path.dirname(os.path.abspath(out))
    while create_folders and not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if os.path.isdir(out):
        raise UsageError(f"{out}: this is a folder: name a file in it")
    if not os.path.isdir(folder):
        raise UsageError(f"{out}: there is no folder {folder}: make it, or name another place")
    if not os.access(folder, os.W_OK) or (os.path.exists(out) and not os.access(out, os.W_OK)):
        raise UsageError(f"{out}: not writable: check the permissions, or name another place")


def places(named: Sequence[Named], out: str) -> dict[str, str]:
    """Return where the result of each file goes: OUT for one, a place below the folder OUT for several.

    Raises:
        UsageError: several files and no folder, or a place that cannot be written.
    """
    if len(named) == 1 and not named[0].within:
        name = os.path.basename(named[0].path)
        place = os.path.join(out, name) if os.path.isdir(out) and named[0].path != STDIN else out
        writable(place)
        return {named[0].path: place}
    if out == STDIN or (os.path.exists(out) and not os.path.isdir(out)):
        raise UsageError(f"{out}: several files, or a folder of them, cannot go into one place: name a folder with -o")
    if not os.path.isdir(out) and os.path.splitext(out)[1] in SUFFIXES:  # meant as a file, not as a folder to make
        raise UsageError(f"{out}: several files, or a folder of them, cannot go into one file: name a folder with -o")
    tails = [os.path.relpath(each.path, each.within) if each.within else os.path.basename(each.path) for each in named]
    if len(set(tails)) < len(tails):
        raise UsageError(f"two of the files would have the same name in {out}: write them one at a time")
    conversation = {each.path: os.path.join(out, tail) for each, tail in zip(named, tails, strict=True)}
    for place in conversation.values():
        writable(place, create_folders=True)
    return conversation


def native(talk: InputConversation, messages: list[Any]) -> Any:
    """Return what a conversation is written as: its own request body, one with system and tools, or the list."""
    conversation = talk.recorded
    shape = formats.find(conversation.format)
    body = load(talk.source).value if conversation.kind == "plain" and _is_object(talk.source) else None
    if isinstance(body, dict):
        try:
            opened = formats.open_body(shape, body)
        except BadMessages:
            opened = None
        if opened is not None and len(opened.messages) == len(conversation.messages):
            return formats.close_body(shape, opened, messages)
    if not conversation.system and not conversation.tools:
        return messages
    rest: Any = {}
    if conversation.system and shape.body.system:
        rest = put(rest, shape.body.system[0], conversation.system)
    rest = put(rest, shape.body.messages, messages)
    return put(rest, shape.body.tools[0], conversation.tools) if conversation.tools and shape.body.tools else rest


def dumped(value: object, *, lines: bool = False) -> bytes:
    """Return a value as JSON; a list as a message a line, where lines are asked for."""
    if lines:
        rows = value if isinstance(value, list) else [value]
        return b"".join(encoded(row) + b"\n" for row in rows)
    content = encoded(value)
    try:
        return msgspec.json.format(content, indent=2) + b"\n"
    except (msgspec.DecodeError, RecursionError):  # NaN, which Python writes and strict readers refuse
        return content + b"\n"


def write(out: str, content: bytes) -> None:
    """Write a file whole or not at all: beside it first, then renamed over it; `-` is standard output."""
    if out == STDIN:
        if sys.stdout is None:
            raise UsageError("standard output is closed: name a file with -o")
        stream = sys.stdout.buffer
        stream.write(content)
        stream.flush()
        return
    try:
        write_atomically(Path(os.path.realpath(out)), content)
    except OSError as error:  # told by the name that the user gave, not by that of the file beside
        raise OSError(error.errno, error.strerror, out) from None


def _is_object(source: str | bytes) -> bool:
    """Tell by its first bytes whether a file may hold one object; lists, which may be long, are not read again."""
    if isinstance(source, str):
        with open(source, "rb") as stream:
            source = stream.read(64)
    return source[:64].removeprefix(codecs.BOM_UTF8).lstrip()[:1] not in (b"[", b"")
