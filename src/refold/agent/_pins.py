"""The last step of a policy in an agent: the task and users' constraints stay in view, whatever the others did."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from refold._condense.pins import CONSTRAINTS, instruction_text, lost
from refold._condense.view_positions import leading
from refold._text.graphemes import boundary_before
from refold.core.messages import Note, text_of
from refold.core.policy import Pure, Step, When

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.needs import Answer
    from refold.core.policy import Policy
    from refold.core.view import View

__all__ = ["RestorePins", "with_pins"]

HEADING = "[From earlier in this conversation, word for word]"
TASK = 2_000  # characters of the first request


class RestorePins(Pure, frozen=True):
    """Say again, at the head of the view, the first request and the constraints that the other steps took out of it.

    Together they have at most `share` of the input budget; then the newest constraints are kept. Always read from the
    originals, so nothing is quoted from a quotation. Does nothing where nothing is missing or there is no room.
    """

    grows: ClassVar[bool] = True

    share: float = 0.1

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return one message to insert, or nothing."""
        if not view.edits or not view.messages:
            return ()
        task = _task(view)
        visible_text = instruction_text(view.messages)
        missing = [pin.text for pin in lost(view) if pin.role == "user" and pin.text not in task]
        blocks = [f"First request: {task}"] if task and task not in visible_text else []
        place = leading(view)
        before = view.messages[place].id if place < len(view.messages) else None
        room = min(int(view.budget.input * self.share), view.budget.input - view.tokens)
        for first in range(len(missing) + 1):
            constraints = [f"{CONSTRAINTS}:", *(f"- {text}" for text in missing[first:])] if missing[first:] else []
            if not blocks and not constraints:
                return ()
            insert = view.insert("user", "\n".join([HEADING, *blocks, *constraints]), Note("restored"), before=before)
            if view.counter.message(insert.message) <= room:
                return (insert,)
        return ()


def with_pins(policy: Policy) -> Policy:
    """Return a policy with the step behind its own, in its answer to an overflow too."""
    after = policy.after_overflow
    steps = (*policy.steps, Step(RestorePins(), When.DUE, "pins"))
    return replace(policy, steps=steps, after_overflow=after if after is None else with_pins(after))


def _task(view: View) -> str:
    """Return what the first user message of the transcript says, up to a length."""
    for message in view.transcript.messages:
        if message.role == "user" and message.note is None and (text := text_of(message).strip()):
            return text[: boundary_before(text, TASK)]
    return ""
