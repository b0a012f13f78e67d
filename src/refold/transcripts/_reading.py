"""Reads a transcript of any kind; the kind is detected from the content, not from the file name."""

from __future__ import annotations

import bisect
import functools
import importlib
import os
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from refold._text.suggestions import did_you_mean
from refold.core._json import Json
from refold.errors import UnreadableTranscript
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._source import Document, load

__all__ = ["detect", "kinds", "read", "read_document"]

Source = str | os.PathLike[str] | bytes
_MISSHAPEN = (KeyError, TypeError, ValueError, AttributeError, IndexError)
_READERS = "refold.transcripts._readers"  # a package with a module for each kind
_LAST = "plain"  # takes any list of messages, so every other kind is tried first


class _KindReader(Struct, frozen=True):
    kind: str
    matches: Callable[[Document], bool]
    read: Callable[[Document], Iterable[RecordedConversation]]


@functools.cache
def _readers() -> dict[str, _KindReader]:
    package = importlib.import_module(_READERS)
    names = sorted(
        (module.name for module in pkgutil.iter_modules(package.__path__)), key=lambda name: (name == _LAST, name)
    )
    modules = {name.replace("_", "-"): importlib.import_module(f"{_READERS}.{name}") for name in names}
    return {kind: _KindReader(kind, module.matches, module.read) for kind, module in modules.items()}


def kinds() -> tuple[str, ...]:
    """Return the names of all kinds that can be read, sorted."""
    return tuple(sorted(_readers()))


def detect(source: Source) -> str:
    """Return the kind of a transcript, detected by its content; broken lines are skipped.

    Raises UnreadableTranscript where there is no such file, or no kind matches.
    """
    return _reader(load(source, lenient=True), None).kind


def read(source: Source, *, lenient: bool = False, kind: str | None = None) -> list[RecordedConversation]:
    """Read every conversation of a file: a path, or the file's bytes.

    `lenient` skips broken lines and notes their numbers; otherwise the first of them is an error.
    `kind` (one of `kinds()`) overrides detection. The main conversation comes first.

    Raises UnreadableTranscript, which names the file, the line and the remedy.
    """
    if kind is not None and kind not in _readers():
        raise UnreadableTranscript(
            f"there is no kind {kind!r}{did_you_mean(kind, kinds())}; known are {', '.join(kinds())}"
        )
    return read_document(load(source, lenient=lenient), kind)


def read_document(document: Document, kind: str | None = None) -> list[RecordedConversation]:
    """Read every conversation of a file that was parsed already."""
    reader = _reader(document, kind)
    try:
        every = [_sound(item, document) for item in reader.read(document)]
    except _MISSHAPEN as error:
        raise UnreadableTranscript(
            f"{document.path}: looks like {reader.kind}, but a field is not what that kind has there "
            f"({type(error).__name__}: {error}); name another kind if it is one"
        ) from error
    conversations = [item for item in every if item.messages]
    if not conversations:
        raise UnreadableTranscript(
            f"{document.path}: read as {reader.kind}, it holds no message ({_seen(document)}); "
            "name another file or kind"
        )
    empty = tuple(
        note for item in every if not item.messages for note in (f"{item.name}: no message in it", *item.notes)
    )
    first = msgspec.structs.replace(conversations[0], notes=conversations[0].notes + empty + document.notes)
    return [msgspec.structs.replace(item, path=document.path) for item in (first, *conversations[1:])]


def _reader(document: Document, kind: str | None) -> _KindReader:
    if kind is not None:
        reader = _readers()[kind]
        if _matches(reader, document):
            return reader
        others = [other.kind for other in _readers().values() if _matches(other, document)]
        hint = f"it looks like {others[0]}" if others else f"it holds {_seen(document)}"
        raise UnreadableTranscript(f"{document.path}: this is not {kind}: {hint}; leave the kind out to have it told")
    for reader in _readers().values():
        if _matches(reader, document):
            return reader
    if document.value in ([], {"messages": []}):
        raise UnreadableTranscript(f"{document.path}: the list of messages is empty; there is no conversation in it")
    raise UnreadableTranscript(
        f"{document.path}: not a transcript of a known kind: it holds {_seen(document)}; known are "
        f"{', '.join(kinds())}: a list of messages in a provider's shape is one, too"
    )


def _sound(item: RecordedConversation, document: Document) -> RecordedConversation:
    """Refuse a conversation in which something is no object, or leave that out where reading is lenient."""
    wrong = [at for at, message in enumerate(item.messages) if not isinstance(message, dict)]
    if not wrong:
        return item
    what = f"message {wrong[0]} of {item.name} is a {type(item.messages[wrong[0]]).__name__}, not an object"
    if not document.lenient:
        raise UnreadableTranscript(f"{document.path}: {what}; repair or remove it, or read leniently to skip it")
    messages = [message for message in item.messages if isinstance(message, dict)]
    usage = tuple(
        msgspec.structs.replace(report, covers=report.covers - bisect.bisect_left(wrong, report.covers))
        for report in item.usage
    )
    return msgspec.structs.replace(
        item,
        messages=messages,
        usage=usage,
        boundaries=tuple(at - bisect.bisect_left(wrong, at) for at in item.boundaries),
        notes=(*item.notes, f"{what}, skipped ({len(wrong)} in all)"),
    )


def _matches(reader: _KindReader, document: Document) -> bool:
    """Ask a reader; a file whose fields are not even of the expected types is not of its kind."""
    try:
        return reader.matches(document)
    except _MISSHAPEN:
        return False


def _seen(document: Document) -> str:
    """Say what a file holds, for someone who must find out why it is no transcript."""
    value: Any = document.value
    if value is None:
        keys = [item for item in document.values if isinstance(item, dict)]
        first = f", the first with the keys {_keys(keys[0])}" if keys else ""
        return f"{len(document.values)} JSON {'value' if len(document.values) == 1 else 'values'}{first}"
    if isinstance(value, dict):
        return f"an object with the keys {_keys(value)}"
    if isinstance(value, list):
        inner = f", the first with the keys {_keys(value[0])}" if value and isinstance(value[0], dict) else ""
        return f"a list of {len(value)}{inner}"
    return "one text" if isinstance(value, str) else "one truth value" if isinstance(value, bool) else "one number"


def _keys(value: Json) -> str:
    role = f", its role {value['role']!r}" if isinstance(value.get("role"), str) else ""
    return ", ".join(list(value)[:8]) + (", …" if len(value) > 8 else "") + role if value else "(none)"
