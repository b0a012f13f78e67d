"""One message as the page shows it: what became of it and why, and its parts, each shortened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold import policies
from refold._condense.pins import pins_in
from refold._inspect.message_labels import kind, text_of_part
from refold._inspect.plan_table import PLACEHOLDER
from refold._text.printable import clean
from refold.core.edits import patched
from refold.core.messages import Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from refold._page.history import ViewRow
    from refold.core.counting import Counter
    from refold.core.messages import Message, MessageId, Part
    from refold.core.plan import Plan

__all__ = [
    "STATUSES",
    "Gap",
    "MessageCard",
    "PartExcerpt",
    "Status",
    "meanings_of",
    "message_card",
    "reasons_of",
    "status_of",
]

MOST, LINES = 1_200, 24  # characters and lines shown of a part; the whole is behind a link
PARTS = 40  # shown of a message
POINTER = "recall b2:"  # how a text that stands for an original names it


class Status(Struct, frozen=True):
    """What became of a message: a name for style sheets, a sign, a word, and what it means."""

    name: str
    sign: str
    word: str
    meaning: str


STATUSES = {
    each.name: each
    for each in (
        Status("kept", "=", "kept", "sent word for word"),
        Status("selected", "¶", "selected", "the lines that are needed again are left, with a marker for the rest"),
        Status("pointer", "↗", "pointer", "a line that names the original stands for the text"),
        Status("cleared", "∅", "cleared", "a short note stands for the text"),
        Status("trimmed", "−", "trimmed", "a part of it is left out, such as thinking; the rest is sent word for word"),
        Status("changed", "±", "changed", "something was added or replaced"),
        Status("summarised", "Σ", "summarised", "made by a compaction: it tells of the messages that are left out"),
        Status("made", "+", "inserted", "made by a compaction: a marker or a note"),
        Status("hidden", "⋯", "left out", "not sent; the original is in the store"),
    )
}  # fmt: skip
SUMMARIES = ("summary", "digest", "outline")


class PartExcerpt(Struct, frozen=True):
    """A part of a message: its kind, a heading, the beginning of its text, and how many characters follow."""

    kind: str
    heading: str
    text: str
    rest: int


class MessageCard(Struct, frozen=True):
    """A message of the view, or an original with what became of it; `position` is None where a plan made it.

    `reasons` are the steps of plans that touched it, `must_hold` the sentences of it that state a constraint;
    `more` parts follow those that are shown.
    """

    id: MessageId
    position: int | None
    role: str
    status: Status
    reasons: tuple[tuple[int, str], ...]
    parts: tuple[PartExcerpt, ...]
    more: int
    tokens: int
    tokens_before: int | None
    must_hold: tuple[str, ...]


class Gap(Struct, frozen=True):
    """A run of originals that are left out: their first position, how many, and the steps that did it."""

    first: int
    count: int
    tokens: int
    reasons: tuple[tuple[int, str], ...]


def status_of(old: Message | None, new: Message, *, hidden: bool) -> Status:
    """Return what became of a message, by what its plans put in the place of its parts."""
    if hidden:
        return STATUSES["hidden"]
    if old is None:
        return STATUSES["summarised" if new.note is not None and new.note.kind in SUMMARIES else "made"]
    if not new.patches:
        return STATUSES["kept"]
    standing = _parts(new)  # a later plan may have replaced what an earlier one put there
    put = [patch.to for patch in new.patches if patch.to is not None and replace(patch.to, at=()) in standing]
    if not put:
        return STATUSES["trimmed"]
    if len(new.parts) > len(old.parts):
        return STATUSES["changed"]
    texts = [text_of_part(part) for part in put]
    if max(map(len, texts)) > PLACEHOLDER or any(isinstance(part, ToolCall) for part in put):
        return STATUSES["selected"]
    return STATUSES["pointer" if any(POINTER in text for text in texts) else "cleared"]


def _parts(message: Message) -> list[Part]:
    """Return the parts of a message, those inside results included, without their places."""
    inner = [part for result in message.parts if isinstance(result, ToolResult) for part in result.content]
    return [replace(part, at=()) for part in (*message.parts, *inner)]


def message_card(
    row: ViewRow, original: Message | None, position: int | None, counter: Counter, called: Mapping[str, str]
) -> MessageCard:
    """Return a place of the view as it is shown; `called` names the tools of calls by their ids."""
    new = (
        row.message if original is None else patched(original, row.message.patches) if row.message.patches else original
    )
    status = status_of(original, new, hidden=row.hidden)
    source = original if row.hidden and original is not None else new
    changed = original is not None and new is not original
    return MessageCard(
        id=row.message.id, position=position, role=source.role, status=status,
        reasons=reasons_of([row]), parts=tuple(_part(part, called) for part in source.parts[:PARTS]),
        more=max(len(source.parts) - PARTS, 0),
        tokens=0 if row.hidden else counter.message(new),
        tokens_before=counter.message(original) if original is not None and (changed or row.hidden) else None,
        must_hold=pins_in(original) if original is not None and original.role in ("user", "system") else (),
    )  # fmt: skip


def reasons_of(rows: Sequence[ViewRow]) -> tuple[tuple[int, str], ...]:
    """Return the steps that touched some places, each once, with the number of its plan."""
    return tuple(sorted({each for row in rows for each in row.by}))


def meanings_of(plans: Iterable[Plan]) -> dict[str, str]:
    """Return what the steps of some plans do, by their names; those of policies of the user are not known."""
    meanings: dict[str, str] = {}
    for name in dict.fromkeys(plan.policy for plan in plans):
        if name in policies.names():
            used = {label for plan in plans if plan.policy == name for label in plan.stages_used}
            steps = [step for step in policies.find(name).steps if step.name in used]
            meanings |= {step.name: (type(step.stage).__doc__ or "").partition("\n")[0] for step in steps}
    return meanings


def _part(part: Part, called: Mapping[str, str]) -> PartExcerpt:
    match part:
        case Text():
            heading = ""
        case Reasoning():
            heading = "thinking"
        case ToolCall(name=name):
            heading = f"call of {clean(name, 80)}"
        case ToolResult(name=name, call_id=call_id, is_error=is_error):
            tool = clean(called.get(call_id) or name, 80)
            heading = f"{'error' if is_error else 'result'} of {tool}" if tool else "error" if is_error else "result"
        case _:
            heading = kind(part)
    text = text_of_part(part)
    cut = "\n".join(text[:MOST].split("\n", LINES)[:LINES])
    return PartExcerpt(kind(part), heading, cut, len(text) - len(cut))
