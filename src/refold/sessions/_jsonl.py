"""Export and import of sessions as JSONL: one line per message or entry, complete enough to continue from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold.core.transcript import ROOT, chain
from refold.errors import RefoldError, UnreadableTranscript, WriteConflict
from refold.sessions._entries import (
    Appended,
    Configured,
    Noted,
    Planned,
    Renewed,
    Rewound,
    SessionOpened,
    UsageEntry,
    body_of,
    entry_of,
)
from refold.sessions._message_json import stored_messages
from refold.sessions._state import SessionState
from refold.sessions._stores.head import new_id
from refold.sessions._stores.protocol import Write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from refold.core.messages import MessageId
    from refold.sessions._stores.protocol import Store, StoredEntry

__all__ = ["export_session", "import_session"]

VERSION = 2  # 2: settings


def export_session(store: Store, session: str) -> Iterator[str]:
    """Yield a session's lines: a header, each message as received, each other entry; also of sessions it continues.

    Raises:
        SessionNotFound: the session is not in the store.
    """
    parts = [store.load(session)]
    while isinstance(first := parts[-1].entries[0].entry, SessionOpened) and first.parent:
        parts.append(store.load(first.parent, 0, first.at))
    head = parts[0].head
    yield json.dumps({"refold_session": VERSION, "id": head.id, "format": head.format, "created": head.created})
    for part in reversed(parts):
        for recorded in part.entries:
            yield from _lines(recorded, part.natives)


def import_session(store: Store, lines: Iterable[str], id: str | None = None) -> str:
    """Write an exported session into a store, all of it or nothing, and return its id.

    `id` is the new id: by default the exported one, or a generated one where that is taken.

    Raises:
        UnreadableTranscript: a line is damaged; the message has its number.
        WriteConflict: there is a session with this id already.
    """
    reader: _LineReader | None = None
    own = ""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            if reader is None:
                own, reader = _read_header(json.loads(line))
            else:
                reader.read_line(line)
        except (ValueError, KeyError, TypeError, AttributeError, RefoldError) as error:
            match error:
                case KeyError():
                    reason = f"no {error}"
                case TypeError() | AttributeError():
                    reason = "a value in it has another type"
                case _:
                    reason = str(error)
            raise UnreadableTranscript(f"line {number} is not a line of an exported session: {reason}") from error
    if reader is None:
        raise UnreadableTranscript("line 1 is missing: this is not an exported session")
    taken = {head.id for head in store.sessions() if head.seq > 1}
    if id in taken:
        raise WriteConflict(f"there is a session {id} in {store.name} already: give another id")
    chosen = id or (own if own not in taken else new_id())
    head = store.create(chosen, reader.format.name)
    if reader.writes:
        first, *rest = reader.writes
        store.write(chosen, (replace(first, tip=ROOT, revision=head.revision), *rest))
    return chosen


class _LineReader:
    """Reads the lines after the header; checks each against those before it."""

    def __init__(self, format: str) -> None:
        self.format = formats.find(format)
        self.state = SessionState()
        self.writes: list[Write] = []

    def read_line(self, line: str) -> None:
        """Read one line."""
        fields = json.loads(line)
        if "id" in fields:
            self._message(fields)
            return
        entry = entry_of(json.dumps(fields["entry"]))
        if not isinstance(entry, Planned | Rewound | UsageEntry | Configured):
            raise ValueError(f"an entry of kind {type(entry).__name__} is not exported")
        self.state.apply(entry)
        self.state.chain(self.state.tip)
        self.writes.append(Write(entry))

    def _message(self, fields: Mapping[str, Any]) -> None:
        text = fields["text"] if "text" in fields else json.dumps(fields["message"])
        native = json.loads(text)
        id = chain(self.state.tip, self.format.identity(native))
        if id != fields["id"]:
            raise ValueError(f"message {fields['id']} was changed, or is not at its place")
        under = fields.get("under")
        entry = Appended((id,), None if under is None else tuple(under), fields.get("settings", ""))
        self._append_write(Write(entry, tuple(stored_messages([self.format.read(native, id)], [text]))))
        self.state.apply(entry)

    def _append_write(self, write: Write) -> None:
        """Append to the last entry where that appends too: one entry for messages in a row, produced under the same."""
        entry = write.entry
        assert isinstance(entry, Appended)
        last = self.writes[-1] if self.writes else None
        before = last.entry if last is not None else None
        if last is None or not isinstance(before, Appended) or replace(before, ids=entry.ids) != entry:
            self.writes.append(write)
            return
        joined = replace(entry, ids=(*before.ids, *entry.ids))
        self.writes[-1] = Write(joined, (*last.messages, *write.messages))


def _read_header(header: Mapping[str, Any]) -> tuple[str, _LineReader]:
    if header["refold_session"] > VERSION:
        raise ValueError(f"it has version {header['refold_session']}, this release reads up to {VERSION}")
    return str(header["id"]), _LineReader(header["format"])


def _lines(recorded: StoredEntry, natives: Mapping[MessageId, str]) -> Iterator[str]:
    match recorded.entry:
        case Appended(ids=ids, under=under, settings=settings):
            produced = ("" if under is None else f',"under":{json.dumps(under)}') + (
                f',"settings":{json.dumps(settings)}' if settings else ""
            )
            for id in ids:
                yield _line(id, natives[id], produced)
        case SessionOpened() | Noted() | Renewed():
            pass
        case entry:
            yield f'{{"entry":{body_of(entry)},"at":{recorded.at!r}}}'


def _line(id: MessageId, native: str, produced: str) -> str:
    """Return a message's line with its JSON text as received, or as a string where it runs over several lines.

    `produced` are the fields that say under what it was produced.
    """
    field = f'"text":{json.dumps(native)}' if len(native.splitlines()) > 1 else f'"message":{native}'
    return f'{{"id":{json.dumps(id)},{field}{produced}}}'
