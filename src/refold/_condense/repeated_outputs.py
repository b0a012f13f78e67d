"""Keeps the markers of superseded outputs honest: one says that the same comes again later only where it does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import reads
from refold._condense.call_outline import CLEARED
from refold._condense.placeholders import content_replaced, is_pointer

if TYPE_CHECKING:
    from refold._condense.fit_draft import Draft
    from refold.core.messages import ToolCall, ToolResult

__all__ = ["correct_markers"]

MARKER = re.compile(r"\[output (repeated|outdated): [^\]\n]*\]")  # as `stages.supersede` writes it
OUTDATED = "[output outdated: the file was changed after this]"  # also where nothing shows how it is now


def correct_markers(draft: Draft) -> None:
    """Make plain pointers of the markers whose later copy has left the view, too, or is cut."""
    later: set[object] = set()
    for position in range(len(draft.base) - 1, -1, -1):
        if draft.hidden[position]:
            continue
        message = draft.messages[position]
        for result in reversed(message.results):
            call = draft.view.call_of(draft.base[position], result)
            if call is None:
                continue
            marker = MARKER.match(result.text) if is_pointer(message, result) else None
            if marker is None and not is_pointer(message, result) and _is_whole(draft, position, result):
                later.update(_subjects(call))
            elif marker and later.isdisjoint(_subjects(call)):
                opening = CLEARED if marker[1] == "repeated" else OUTDATED
                draft.change(position, content_replaced(result, f"{opening}{result.text[marker.end() :]}"))


def _is_whole(draft: Draft, position: int, result: ToolResult) -> bool:
    """Tell whether an output stands in the draft as it was, without a line left out."""
    transcript, before = draft.view.transcript, draft.base[position]
    original = transcript.messages[transcript.index[before.id]] if before.id in transcript.index else before
    return any(each.at == result.at and each.text == result.text for each in original.results)


def _subjects(call: ToolCall) -> tuple[object, ...]:
    """Return what an output that stands for another one has in common with it: the call, or the file that it reads."""
    ref = reads(call)
    return ((call.name, call.arguments), ref.path) if ref else ((call.name, call.arguments),)
