"""What the conformance tests share: a run of a policy, and counters of one token a character."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.core._engine import planning
from refold.core.counting import CharCounter
from refold.core.messages import Message, Text, text_of
from refold.core.needs import Answer, Need, Provided, Refused, SummaryNeed

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.core.edits import Edit
    from refold.core.plan import Plan
    from refold.core.policy import Policy, Stage
    from refold.core.view import View

CHARACTERS = CharCounter(1)


class Asked:
    """Answers summaries with given texts in turn (None refuses), other needs by kind; keeps what was asked."""

    def __init__(self, *texts: str | None, files: dict[str, str] | None = None) -> None:
        self.texts, self.files = list(texts), files or {}
        self.needs: list[Need] = []

    def __call__(self, need: Need) -> Answer:
        self.needs.append(need)
        if isinstance(need, SummaryNeed):
            text = self.texts.pop(0) if self.texts else None
            return Provided(text) if text else Refused("scripted refusal")
        path = getattr(need, "path", None)
        if path in self.files:
            return Provided(self.files[path])
        return Refused("nobody was given to ask", "absent")

    @property
    def summaries(self) -> list[SummaryNeed]:
        return [need for need in self.needs if isinstance(need, SummaryNeed)]


def absent(need: Need) -> Answer:
    return Refused("nobody was given to ask", "absent")


def drive(policy: Policy, view: View, answer: Callable[[Need], Answer] = absent) -> Plan:
    run = planning(policy, view)
    try:
        needs = next(run)
        while True:
            needs = run.send(tuple(answer(need) for need in needs))
    except StopIteration as end:
        return end.value.plan


def after(policy: Policy, view: View, answer: Callable[[Need], Answer] = absent) -> View:
    return view.after(drive(policy, view, answer).edits)


def stage_edits(stage: Stage, view: View, answer: Callable[[Need], Answer] = absent) -> tuple[Edit, ...]:
    return stage.edits(view, tuple(answer(need) for need in stage.needs(view)))


def shown(view: View) -> list[str]:
    """Every message of a view as one text: its words, and those of its results."""
    return [_words(message) for message in view.messages]


def _words(message: Message) -> str:
    results = [result.text for result in message.results]
    return "\n".join([text_of(message), *results] if any(isinstance(p, Text) for p in message.parts) else results)
