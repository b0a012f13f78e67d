"""Compares the policy `wolffish` with Wolffish's own compactor, decision by decision."""

from __future__ import annotations

import math
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import refold
from refold import formats
from refold.core.budget import Budget
from refold.core.edits import Insert, Rewrite, fold
from refold.core.messages import text_of
from tests.conformance import histories
from tests.conformance.differential import Decision, recorded_histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.plan import Plan
    from tests.conformance.histories import History

ROOM = 4_000_000

FRAMING = "a message's frame is not counted"
TEXTS = "each text is rounded up by itself"
CHARACTERS = "characters are counted, not UTF-16 units"
FIRST = "the first message of the user is protected, not the first message"
LINES = "one line break stands on each side of the label"
LABEL = re.compile(r"\n(\[TRUNCATED — [^\]\n]*\])\n")
DIFFERENCES = {
    FRAMING: "The original adds 30 characters a message, of which the description says nothing.",
    TEXTS: "The original adds up all characters first: less than a token a text.",
    CHARACTERS: "The original counts an emoji as the two units that its language stores it in.",
    LINES: "The original puts a blank line on each side: two characters more.",
    FIRST: "A system message in the list is not what the user asked for.",
}


def decisions() -> Iterator[Decision]:
    """Yield every decision of both."""
    for history, theirs in recorded_histories("wolffish"):
        messages = histories.openai(history.entries)
        meter = refold.Meter(policy="wolffish", budget=Budget(ROOM))
        tokens = meter.check(messages).tokens
        yield Decision(
            "estimate", history.name, tokens, theirs["tokens"], _sizes(history, messages, tokens, theirs["tokens"])
        )
        for budget, due in theirs["due"]:
            check = refold.check(messages, policy="wolffish", budget=Budget(budget))
            why = (FRAMING,) if check.due == (tokens > budget * 3 / 4) else ()
            yield Decision("due", f"{history.name} in {budget:,}", check.due, due, why)
        for run in theirs["runs"]:
            yield from _compacted(history, messages, meter, run)


def _sizes(history: History, messages: list[Any], ours: int, theirs: int) -> tuple[str, ...]:
    """Return the differences that make one estimate the other, to the token."""
    texts = [text for message in messages for text in _texts(message)]
    units = sum(len(text.encode("utf-16-le")) // 2 for text in texts)
    if theirs != math.ceil((units + 30 * len(messages)) / 1.5) or ours != sum(math.ceil(len(t) / 1.5) for t in texts):
        return ()
    astral = units != sum(map(len, texts))
    return (FRAMING, TEXTS, *((CHARACTERS,) if astral else ()))


def _texts(message: dict[str, Any]) -> list[str]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return [*filter(None, [message["content"]]), *(call["name"] + call["arguments"] for call in calls)]


def _compacted(history: History, messages: list[Any], meter: refold.Meter, run: dict[str, Any]) -> Iterator[Decision]:
    """Compare a run that has to save as many tokens: what is cut, in which order, to what, and what is appended."""
    summarize = (lambda _: histories.SUMMARY) if run["summary"] else None
    options = {"policy": "wolffish", "budget": Budget(ROOM), "meter": meter, "force": True, "redact": False}
    goal = meter.check(messages).tokens - run["excess"]
    plan = refold.plan(messages, goal=goal, summarize=summarize, **options)
    where = f"{history.name}, {run['excess']:,} tokens to save, {'with' if run['summary'] else 'without'} a summary"
    targets, texts = _cut(plan, messages)
    theirs = [target for target, _, _ in run["targets"]]
    first = next(place for place, message in enumerate(messages) if message["role"] == "user")
    others = [place for place in theirs if place != first]
    names = (FIRST,) if first and first in theirs and targets[: len(others)] == others else ()
    yield Decision("targets, in order", where, targets, theirs, names)
    if targets == theirs and theirs:
        digests = [_digest(text) for text in texts]
        spread = [_digest(LABEL.sub(r"\n\n\1\n\n", text)) for text in texts]
        yield Decision("cut texts", where, digests, run["texts"], (LINES,) if spread == run["texts"] else ())
    yield Decision("message appended", where, _appended(plan), run.get("added", []))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _cut(plan: Plan, messages: list[Any]) -> tuple[list[int], list[str]]:
    """Return the positions of the texts that the first truncation cut, in order, and what is left."""
    transcript = formats.read(formats.find("openai-chat"), messages)
    at = {message.id: place for place, message in enumerate(transcript.messages)}
    step = next((step for step in plan.steps if step.label == "truncate"), None)
    edits = plan.edits[step.start : step.stop] if step else ()
    targets = list(dict.fromkeys(at[edit.message] for edit in edits if isinstance(edit, Rewrite)))
    after = fold(transcript.messages, [edits])
    texts = [text_of(after[place]) or after[place].results[0].text for place in targets]
    return targets, texts


def _appended(plan: Plan) -> list[str]:
    step = next((step for step in plan.steps if step.label == "summary"), None)
    edits = plan.edits[step.start : step.stop] if step else ()
    return [edit.message.role for edit in edits if isinstance(edit, Insert)]
