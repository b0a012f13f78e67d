"""Marks what a view shows whole of a file as it was before a later change: what was read of it, what was written to it.

Of outputs that are cut, the line above them says it (`last_changes.stale_mark`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.call_facts import writes
from refold._condense.call_outline import PARTS
from refold._condense.file_views import FileWritten, changes_of
from refold._condense.last_changes import is_changed_after, stale_mark
from refold._condense.placeholders import is_pointer, text_replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold._condense.fit_draft import Draft
    from refold.core.messages import MessageId, ToolCall, ToolResult
    from refold.core.transcript import Transcript

__all__ = ["mark_outdated", "room_for_outdated"]

MARK = "[the file was changed after this]"
TOKENS = 10  # of the mark with its line break, at most
LONG = 240  # characters of what was read or written that is worth the mark


def room_for_outdated(draft: Draft) -> int:
    """Return the tokens that marks take of what a draft shows of files as they were before."""
    return TOKENS * sum(1 for _ in _outdated(draft))


def mark_outdated(draft: Draft, room: int) -> None:
    """Put the mark before the outputs of such calls, the newest first, as far as there is room."""
    for position, result in list(_outdated(draft)):
        patches = text_replaced(result, f"{MARK}\n{result.text}")
        before = draft.changed(position, patches)
        draft.change(position, patches)
        if draft.total > room:
            draft.restore(position, before)


def _is_outdated_text(transcript: Transcript, message: MessageId, call: ToolCall) -> bool:
    """Tell whether a call writes a file as a whole that was changed after it."""
    return bool(writes(call)) and any(
        isinstance(change, FileWritten) and is_changed_after(transcript, message, change.path)
        for change in changes_of(call)
    )


def _outdated(draft: Draft) -> Iterator[tuple[int, ToolResult]]:
    """Yield the visible outputs of calls that read or wrote a file before it was changed, newest first."""
    transcript = draft.view.transcript
    whole = {
        call.call_id: call for message in draft.remaining() for call in message.calls if len(call.arguments) >= LONG
    }
    for position in range(len(draft.base) - 1, -1, -1):
        message = draft.messages[position]
        for result in () if draft.hidden[position] else message.results:
            call = draft.view.call_of(draft.base[position], result)
            if call is None or is_pointer(message, result) or result.text.startswith((PARTS, MARK)):
                continue
            written = call.call_id in whole and _is_outdated_text(transcript, message.id, call)
            if written or (len(result.text) >= LONG and stale_mark(transcript, message.id, call)):
                yield position, result
