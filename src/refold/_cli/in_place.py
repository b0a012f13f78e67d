"""Compacts session files in place: the agent resumes the compacted conversation, the original is kept beside it."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold._cli import options
    from refold._cli.files import InputConversation
    from refold._compaction.result import Result

__all__ = ["compacted_in_place"]

SUFFIX = ".orig"


def compacted_in_place(
    files: tuple[str, ...],
    backup: str | None,
    how: options.ReadOptions,
    work: Callable[[InputConversation], Result],
    report: Callable[[InputConversation, Result, str], bytes],
    *,
    as_json: bool,
) -> int:
    """Compact session files where they are; of several, one that cannot be done is noted and passed over.

    Raises:
        UsageError: a file that is no session of its own, a backup that would be overwritten, or options that make no
            sense here.
    """
    from refold._cli import files as reading
    from refold._cli import show
    from refold.errors import BrokenConversation, CannotFit, OutsideError, UsageError

    if how.kind or how.format or how.lenient or how.select:
        raise UsageError("--in-place writes a session's main conversation as it is: leave out the options on reading")
    named = [each.path for each in reading.expanded(files)]
    if reading.STDIN in named:
        raise UsageError("standard input has no place to write to: name a file")
    if backup is not None and len(named) > 1:
        raise UsageError("--backup names one file: compact one session at a time")
    backups = {path: backup or path + SUFFIX for path in named}
    for path, place in backups.items():
        _refuse_overwriting(path, place)
    failed = 0
    for path in named:
        try:
            with show.working(f"Compacting {path}", alone=len(named) == 1):
                _compact(path, backups[path], work, report, as_json=as_json)
        except (BrokenConversation, CannotFit, OutsideError, UsageError) as error:
            if len(named) == 1:
                raise
            show.note(f"refold: {path}: {error}")
            failed = 1
    return failed


def _compact(
    path: str,
    backup: str,
    work: Callable[[InputConversation], Result],
    report: Callable[[InputConversation, Result, str], bytes],
    *,
    as_json: bool,
) -> None:
    from msgspec.structs import replace

    from refold import transcripts
    from refold._cli import show
    from refold._cli.files import InputConversation
    from refold.errors import UnreadableTranscript

    source, stamp = _read(path)
    try:
        recorded = replace(transcripts.continued(source), path=path)
    except UnreadableTranscript as error:
        raise UnreadableTranscript(str(error).replace("<bytes>", path)) from None
    talk = InputConversation(recorded, path, source, path)
    result = work(talk)
    sizes, plan = result.sizes, result.plan
    if not plan.empty:
        content = transcripts.with_compaction(
            source, list(result.messages), plan=plan.id, before=sizes.before, after=sizes.after
        )
        _replace(path, source, stamp, content, backup)
    if as_json:
        click.echo(report(talk, result, path), err=True)
    elif plan.empty:
        show.note(f"{path}: nothing to do, left as it was")
    else:
        did = f"{sizes.before:,} -> {sizes.after:,} tokens by {', '.join(plan.stages_used)}"
        show.note(f"{path}: {did}; the original is {backup}")


def _read(path: str) -> tuple[bytes, os.stat_result]:
    """Return the content of a file, and how it was before it was read: what is appended meanwhile is noticed so."""
    from refold.errors import UnreadableTranscript

    try:
        stamp = os.stat(path)
        return Path(path).read_bytes(), stamp
    except FileNotFoundError:
        raise UnreadableTranscript(f"{path}: no such file; check the name") from None


def _refuse_overwriting(path: str, backup: str) -> None:
    from refold.errors import UsageError

    if os.path.lexists(backup):
        raise UsageError(
            f"{backup} is there already and would be lost: move it away, or name another place for the original of "
            f"{os.path.basename(path)} with --backup"
        )


def _replace(path: str, source: bytes, stamp: os.stat_result, content: bytes, backup: str) -> None:
    """Give the session's file the name of the backup, and its own name to a file with the new content.

    Neither is ever half there. An agent that has the session open goes on writing into the backup, where nothing is
    lost; if it wrote meanwhile, the session gets its own file back.
    """
    from refold._files import write_atomically

    session = os.path.realpath(path)
    _refuse_changed(path, session, stamp)
    _back_up(session, source, stamp, backup)
    try:
        write_atomically(Path(session), content)
    except BaseException:
        if _is_as(session, stamp):
            os.unlink(backup)
        raise
    if not _is_as(backup, stamp):
        os.replace(backup, session)
    _refuse_changed(path, backup if os.path.lexists(backup) else session, stamp)


def _refuse_changed(path: str, place: str, stamp: os.stat_result) -> None:
    from refold.errors import UsageError

    if not _is_as(place, stamp):
        raise UsageError(f"{path} was changed while it was compacted: end the agent's session first, then try again")


def _is_as(place: str, stamp: os.stat_result) -> bool:
    now = os.stat(place)
    return (now.st_size, now.st_mtime_ns) == (stamp.st_size, stamp.st_mtime_ns)


def _back_up(session: str, source: bytes, stamp: os.stat_result, backup: str) -> None:
    """Link the session's file under the name of the backup, which fails where there is one; else copy it."""
    try:
        os.link(session, backup)
    except FileExistsError:
        _refuse_overwriting(session, backup)
    except OSError:  # another file system, or one without links
        handle, partial = tempfile.mkstemp(prefix=".refold-", dir=os.path.dirname(os.path.abspath(backup)))
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(source)
            os.chmod(partial, stamp.st_mode & 0o777)
            os.utime(partial, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            _name_new(partial, backup, session)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)


def _name_new(partial: str, backup: str, path: str) -> None:
    """Give a file its name, unless there is one of that name: a link fails then, also where it was made just now."""
    try:
        os.link(partial, backup)
    except FileExistsError:
        _refuse_overwriting(path, backup)
    except OSError:  # a file system without links
        _refuse_overwriting(path, backup)
        os.replace(partial, backup)
