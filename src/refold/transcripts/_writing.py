"""Writes a compaction into a session file, so that the agent itself resumes the compacted conversation."""

from __future__ import annotations

import codecs
import functools
import importlib
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

from refold.core._json import encoded
from refold.errors import UnreadableTranscript, UsageError
from refold.transcripts._conversation import beginning_at
from refold.transcripts._reading import read_document
from refold.transcripts._source import load
from refold.transcripts._writers.base import WrittenCompaction

if TYPE_CHECKING:
    from refold.transcripts._conversation import RecordedConversation

__all__ = ["WRITABLE", "continued", "with_compaction"]

WRITABLE = ("claude-code", "codex", "pi")


def continued(source: bytes) -> RecordedConversation:
    """Return the main conversation of a session file as a compaction that is written back begins with it.

    Unlike `read`, it leaves out what stands before a compaction that `with_compaction` has written.

    Raises:
        UnreadableTranscript: no session, a broken line, or a kind that is not written.

    Added in 0.1.0.
    """
    document = load(source)
    recorded = read_document(document)[0]
    return beginning_at(recorded, _writer(recorded.kind).continued(document, recorded))


def with_compaction(
    source: bytes, messages: list[Any], *, plan: str, before: int, after: int, at: datetime | None = None
) -> bytes:
    """Return the content of a session file with a compaction at its end; all that was in it stays.

    The agent marks it as a compaction of its own where the format lets our messages stand: Claude Code by a boundary,
    Codex by a replacement history; for pi it is a branch of the session's tree.

    Args:
        source: the content of the file.
        messages: the compacted messages of `continued(source)`, in its format.
        plan: the id of the plan that was applied.
        before: the size before, in tokens.
        after: the size after, in tokens; the agent takes it for the size of its context.
        at: the time that the entries get; now by default.

    Raises:
        UnreadableTranscript: no session, a broken line, or a kind that is not written.
        UsageError: there are no messages.

    Added in 0.1.0.
    """
    document = load(source)
    recorded = read_document(document)[0]
    if not messages:
        raise UsageError("there are no messages to write: a session that is resumed needs one")
    if source.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or isinstance(document.value, list):
        raise UnreadableTranscript(
            "this session is not a line of UTF-8 an entry, as its agent writes it, so no line can be added: convert "
            "it, or write the messages with -o"
        )
    compaction = WrittenCompaction(plan, before, after, at or datetime.now(UTC))
    lines = _writer(recorded.kind).entries(document, messages, compaction)
    end = b"" if source.endswith(b"\n") else b"\n"
    return b"".join((source, end, *(encoded(line) + b"\n" for line in lines)))


@functools.cache
def _writer(kind: str) -> ModuleType:
    if kind not in WRITABLE:
        raise UnreadableTranscript(
            f"a session of {kind} cannot be written back: {', '.join(WRITABLE)} can; write the messages with -o"
        )
    return importlib.import_module(f"refold.transcripts._writers.{kind.replace('-', '_')}")
