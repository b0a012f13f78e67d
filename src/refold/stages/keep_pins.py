"""Sentences of the person that set a limit return to a view that has lost them, word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.pins import lost
from refold._condense.view_positions import leading
from refold.core.messages import Note
from refold.core.policy import Policy, Step, When
from refold.stages.close_calls import CloseCalls
from refold.stages.repair import Repair

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.needs import Answer, Need
    from refold.core.view import View

__all__ = ["KeepPins", "keeping_pins"]


class KeepPins(Struct, frozen=True):
    """Repeat in one message of ours the user's constraints that the view no longer contains.

    Only what fits into the input budget, in the order in which it was stated.
    """

    grows: ClassVar[bool] = True

    heading: str = "[Said earlier by the person and still in force, word for word]"

    def needs(self, view: View) -> tuple[Need, ...]:
        """Return no needs."""
        return ()

    def edits(self, view: View, answers: tuple[Answer, ...] = ()) -> tuple[Edit, ...]:
        """Return the message, or nothing where nothing is lost or nothing has room."""
        position = leading(view)
        before = next((message.id for message in view.messages[position:] if message.note is None), None)
        room = view.budget.input - view.tokens
        room -= view.counter.message(view.insert("user", self.heading, Note("restored")).message)
        lines = [self.heading]
        for pin in lost(view):
            line = f'- "{pin.text}" (turn {pin.turn})'
            room -= view.counter.text(f"\n{line}")
            if room < 0:
                break
            lines.append(line)
        if len(lines) == 1:
            return ()
        return (view.insert("user", "\n".join(lines), Note("restored"), before=before),)


def keeping_pins(policy: Policy) -> Policy:
    """Return a policy that keeps pins, after an overflow too: `KeepPins` stands before the repairs at its end."""
    steps = policy.steps
    if any(isinstance(step.stage, KeepPins) for step in steps):
        return policy
    end = len(steps)
    while end and isinstance(steps[end - 1].stage, CloseCalls | Repair):
        end -= 1
    after = keeping_pins(policy.after_overflow) if policy.after_overflow is not None else None
    steps_with_pins = (*steps[:end], Step(KeepPins(), When.DUE, "keep pins"), *steps[end:])
    return replace(policy, steps=steps_with_pins, after_overflow=after)
