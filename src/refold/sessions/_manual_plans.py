"""Manual plans: a range of messages condensed to a summary, or truncated to a marker (N08)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold._compaction.request import request_for
from refold._text.surrogates import repair_surrogates
from refold.core._engine import sizes_of
from refold.core.budget import Budget
from refold.core.edits import Hide
from refold.core.messages import Note
from refold.core.plan import Plan, StepRecord, base_of, sealed
from refold.core.view import Cause
from refold.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.options import Options
    from refold.core.messages import MessageId
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["MARKER", "condense_plan", "truncate_plan", "view_to_tag"]

MARKER = "[Earlier conversation history was truncated to fit within context limits]"  # N06


def condense_plan(view: View, first: MessageId, last: MessageId, summary: str, format: str) -> Plan:
    """Return the plan that replaces the messages from `first` to `last` by a summary."""
    return _replace_range(view, first, last, summary, Note("summary"), "condense", format)


def truncate_plan(view: View, first: MessageId, last: MessageId, marker: str, format: str) -> Plan:
    """Return the plan that replaces the messages from `first` to `last` by a marker."""
    return _replace_range(view, first, last, marker, Note("marker"), "truncate", format)


def view_to_tag(natives: Sequence[Any], transcript: Transcript, options: Options) -> View:
    """Return the view in which a range is selected; that works also where no window or model is set."""
    if not natives:
        raise UsageError("the session has no messages to tag")
    if not (options.budget or options.window or options.model):
        options = replace(options, budget=Budget(10**9))
    return request_for(natives, options, transcript=transcript).view


def _replace_range(
    view: View, first: MessageId, last: MessageId, text: str, note: Note, label: str, format: str
) -> Plan:
    ids = [message.id for message in view.messages]
    if first not in ids or last not in ids or ids.index(first) > ids.index(last):
        raise UsageError(
            f"{first} to {last} is not a range of the view: name two of its messages, the earlier one first"
        )
    hidden = tuple(ids[ids.index(first) : ids.index(last) + 1])
    edits = (view.insert("user", repair_surrogates(text), note, before=first), Hide(hidden))
    done = view.after(edits)
    sizes = sizes_of(view, done)
    return sealed(
        Plan(
            policy="manual",
            fingerprint="",
            cause=Cause.MANUAL,
            base=base_of(view),
            sizes=replace(sizes, goal=sizes.after),
            edits=done.edits,
            steps=(StepRecord(label, "Hide", 0, len(done.edits), sizes.before, sizes.after),),
            format=format,
        )
    )
