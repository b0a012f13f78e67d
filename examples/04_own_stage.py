"""A stage is a pure function from a view to edits; this one keeps only the failures of old test runs."""

import json
from pathlib import Path

from msgspec.structs import replace

import refold
from refold.core.edits import Edit, Rewrite
from refold.core.messages import Text
from refold.core.needs import Answer
from refold.core.policy import Pure, Step
from refold.core.view import View
from refold.policies import find


class KeepFailures(Pure, frozen=True):
    """Drop the lines of passed tests from all results but those of the newest `keep` messages."""

    keep: int = 10

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return one edit for each text that names passed tests."""
        old = view.messages[: -self.keep]
        texts = (
            (message.id, part)
            for message in old
            for result in message.results
            for part in result.content
            if isinstance(part, Text) and " PASSED" in part.text
        )
        return tuple(Rewrite(id, part.at, replace(part, text=failures(part.text))) for id, part in texts)


def failures(text: str) -> str:
    """Return a text without the lines of passed tests."""
    return "\n".join(line for line in text.split("\n") if " PASSED" not in line)


body = json.loads(Path(__file__).with_name("long-session.json").read_bytes())
default = find("refold")
policy = replace(default, name="failures-first", steps=(Step(KeepFailures(keep=20)), *default.steps))
result = refold.compact(body["messages"], policy=policy, budget=200_000)
for step in result.plan.steps:
    print(f"{step.label}: {step.before:,} -> {step.after:,} tokens, {step.stop - step.start} edits")
