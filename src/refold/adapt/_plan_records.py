"""Plans as records in the state of a track: each without the ids and file lists that the plans before it have too."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold.core.edits import Insert
from refold.core.plan import Plan, PlanId, sealed
from refold.errors import UnreadablePlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Note

__all__ = ["PlanRecord", "Runs", "items_of", "plan_of", "record_of", "runs_of"]

Runs: TypeAlias = tuple[tuple[int, int] | str, ...]
"""A list of texts: ranges of another list, and texts that it does not have."""


class PlanRecord(Struct, frozen=True, omit_defaults=True):
    """A plan, with the lists that grow from plan to plan apart, as runs of those of the plans before it.

    `earlier` are runs of the ids of these plans. `files` are the files that the notes of the plan's messages list, read
    and modified, as runs of those that the newest note before lists.
    """

    plan: Plan
    earlier: Runs = ()
    files: tuple[tuple[Runs, Runs], ...] = ()


def record_of(plan: Plan, before: Sequence[Plan]) -> PlanRecord:
    """Return the record of a plan that follows others."""
    known = _files(before)
    files = tuple((runs_of(note.read, known), runs_of(note.modified, known)) for note in _notes(plan))
    short = replace(_with_files(plan, [((), ())] * len(files)), earlier=())
    return PlanRecord(short, runs_of(plan.earlier, [each.id for each in before]), files)


def plan_of(record: PlanRecord, before: Sequence[Plan]) -> Plan:
    """Return the plan of a record that follows others.

    Raises:
        UnreadablePlan: it was changed after it was written, or follows other plans.
    """
    plan, known = record.plan, _files(before)
    if record.earlier:
        plan = replace(plan, earlier=tuple(map(PlanId, items_of(record.earlier, [each.id for each in before]))))
    if record.files:
        plan = _with_files(
            plan, [(items_of(read, known), items_of(modified, known)) for read, modified in record.files]
        )
    if sealed(plan).id != plan.id:
        raise UnreadablePlan(f"plan {plan.id} in this state does not match its id: it was changed after it was made")
    return plan


def runs_of(items: Sequence[str], known: Sequence[str]) -> Runs:
    """Return items as runs of known ones."""
    places = {item: place for place, item in enumerate(known)}
    runs: list[tuple[int, int] | str] = []
    for item in items:
        place = places.get(item)
        if place is None:
            runs.append(item)
        elif runs and not isinstance(runs[-1], str) and runs[-1][1] == place:
            runs[-1] = runs[-1][0], place + 1
        else:
            runs.append((place, place + 1))
    return tuple(runs)


def items_of(runs: Runs, known: Sequence[str]) -> tuple[str, ...]:
    """Return the items that runs of known ones stand for."""
    return tuple(item for run in runs for item in ([run] if isinstance(run, str) else known[slice(*run)]))


def _notes(plan: Plan) -> list[Note]:
    return [edit.message.note for edit in plan.edits if isinstance(edit, Insert) and edit.message.note]


def _files(plans: Sequence[Plan]) -> tuple[str, ...]:
    """Return the files that the newest note lists."""
    notes = (note for plan in reversed(plans) for note in reversed(_notes(plan)))
    return next(((*note.read, *note.modified) for note in notes if note.read or note.modified), ())


def _with_files(plan: Plan, files: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]) -> Plan:
    """Return a plan whose notes list other files."""
    rest, edits = iter(files), []
    for edit in plan.edits:
        new = edit
        if isinstance(edit, Insert) and edit.message.note and (lists := next(rest, None)) is not None:
            note = replace(edit.message.note, read=lists[0], modified=lists[1])
            new = replace(edit, message=replace(edit.message, note=note))
        edits.append(new)
    return replace(plan, edits=tuple(edits))
