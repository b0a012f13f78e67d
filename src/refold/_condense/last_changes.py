"""Tells whether a file was changed after a message: what was read or said of it before may not hold any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.call_facts import is_shell, reads, writes
from refold._condense.file_views import command_of, took_effect
from refold._condense.shell_commands import files_displayed, plain_path
from refold._condense.text_calls import text_result
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.messages import MessageId, ToolCall
    from refold.core.transcript import Transcript

__all__ = ["files_displayed_by", "is_changed_after", "is_file_of_changed_after", "last_change", "stale_mark"]

STALE, SOME_STALE = "; the file was changed after this", "; changed after this: {}"


def is_changed_after(transcript: Transcript, message: MessageId, path: str) -> bool:
    """Tell whether a call behind a message changed a file; a path that ends in another names the same file.

    What a repair has written anew has no place in the transcript.
    """
    position, mine = transcript.index.get(message), f"/{plain_path(path)}".lower()
    return position is not None and any(
        at > position and (mine.endswith(other) or other.endswith(mine))
        for other, at in _changes(transcript).get(_name(path), {}).items()
    )


def is_file_of_changed_after(transcript: Transcript, message: MessageId, name: str) -> bool:
    """Tell whether a call behind a message changed a file that is named after something: `ResultTable` by its file."""
    return _last_by_stem(transcript).get(name.lower(), -1) > transcript.index.get(message, len(transcript.messages))


def last_change(transcript: Transcript, counts: Callable[[str], bool]) -> int:
    """Return the place of the last call that changed a file that counts, -1 where none did."""
    places = (files.items() for files in _changes(transcript).values())
    return max((at for files in places for path, at in files if counts(path)), default=-1)


def stale_mark(transcript: Transcript, message: MessageId, call: ToolCall | None) -> str:
    """Return the mark of an output that shows files as they were before a later change, nothing of any other."""
    files = files_displayed_by(call) if call else ()
    changed = [path for path in files if is_changed_after(transcript, message, path)]
    if not changed:
        return ""
    return STALE if len(files) == 1 else SOME_STALE.format(", ".join(changed))


@memoized
def files_displayed_by(call: ToolCall) -> tuple[str, ...]:
    """Return the files of which a call shows something, also as part of a line of commands."""
    if ref := reads(call):
        return (ref.path,)
    return files_displayed(command_of(call)) if is_shell(call) and not writes(call) else ()


@memoized
def _changes(transcript: Transcript) -> dict[str, dict[str, int]]:
    """Return where in a transcript each file was changed last, by its name and path, in small letters."""
    results = {result.call_id: result for message in transcript.messages for result in message.results}
    changes: dict[str, dict[str, int]] = {}
    for position, message in enumerate(transcript.messages):
        pair = text_result(transcript, position)
        calls = [(call, results.get(call.call_id) if call.call_id else None) for call in message.calls]
        for call, result in (*calls, *((pair,) if pair else ())):
            for path in writes(call) if result is None or took_effect(call, result) else ():
                changes.setdefault(_name(path), {})[f"/{plain_path(path)}".lower()] = position
    return changes


@memoized
def _last_by_stem(transcript: Transcript) -> dict[str, int]:
    """Return where in a transcript a file was changed last, by its name without what follows a period."""
    last: dict[str, int] = {}
    for name, places in _changes(transcript).items():
        stem = name.partition(".")[0]
        last[stem] = max(last.get(stem, -1), *places.values())
    return last


def _name(path: str) -> str:
    return plain_path(path).rstrip("/").rsplit("/", 1)[-1].lower()
