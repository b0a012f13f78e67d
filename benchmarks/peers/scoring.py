"""One row at one place: asked again until its exact size is at the goal, then judged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from cases import instructions_kept, read_back, size_of
from environments import Trouble
from msgspec import Struct
from recall import Text, texts

import refold
from refold.replay import _judge as judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cases import Cut
    from environments import Worker

    from refold.core.messages import Message

ASKS = 5  # tries with one goal
ENOUGH = 0.9  # of the goal: no further try
SLOW = 3.0  # seconds of a pass: no further try
AIM, AIM_STUCK = 0.98, 0.6  # of the goal, for the next try


class Run(Struct, frozen=True):
    """What one row made of one place with one goal; shares from 0 to 1, None where nothing was asked for."""

    peer: str
    agent: str
    session: str
    cut: int
    goal: str
    outcome: str  # "fits", "over", or what went wrong
    over_first: bool = False
    used: float = 0.0
    seconds: float = 0.0
    valid: bool = False
    faults: tuple[str, ...] = ()
    scores: dict[str, float | None] = {}


class Made(Struct, frozen=True):
    """The best of the tries: the largest result within the goal, or the first one above it."""

    messages: list[dict[str, Any]]
    kept: Sequence[Message]
    size: int
    seconds: float
    over_first: bool


def made_to_size(worker: Worker, request: dict[str, Any], goal: int, asks: int = ASKS) -> Made:
    """Ask for less while the result is above the goal and for more while it is far below, a few times.

    A peer counts by its own rule, or aims lower than it was told: what it keeps is compared at the same true size.
    """
    aim, best = goal, None
    sizes: list[int] = []
    for _ in range(asks):
        answer = worker.ask(request | {"budget": aim})
        request = {}  # the worker remembers the conversation
        kept = read_back(answer["messages"])
        size = size_of(kept)
        made = Made(answer["messages"], kept, size, answer["seconds"], bool(sizes and sizes[0] > goal) or size > goal)
        if best is None or (size <= goal and (best.size > goal or size > best.size)):
            best = made
        stuck = size in sizes  # whole messages or batches leave: a little less asked for changes nothing
        if ENOUGH <= size / goal <= 1 or (stuck and size <= goal) or answer["seconds"] > SLOW:
            break
        sizes.append(size)
        aim = max(int(aim * goal / max(size, 1) * (AIM_STUCK if stuck else AIM)), 1)
        if size <= goal:
            aim = min(aim, goal * 4)
    assert best
    return best


def run_at(worker: Worker, peer: str, cut: Cut, label: str, goal: int, request: dict[str, Any], asks: int) -> Run:
    """Return the judged result of a row at a place."""
    case = (peer, cut.agent, cut.session, cut.at, label)
    try:
        made = made_to_size(worker, request, goal, asks)
    except Trouble as trouble:
        return Run(*case, str(trouble)[:160])
    faults = faults_of(cut.before, made.messages)
    outcome = "fits" if made.size <= goal else "over"
    scores = judged(cut, made.kept) if outcome == "fits" else {}
    return Run(*case, outcome, made.over_first, made.size / goal, made.seconds, not faults, faults, scores)


def faults_of(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return what providers would refuse: rules broken anew, and a first word that is not the user's."""
    known = Counter(each.rule for each in refold.violations(before, format="openai-chat"))
    found = Counter(each.rule for each in refold.violations(after, format="openai-chat"))
    faults = [str(rule) for rule in found - known]
    spoken = next((message["role"] for message in after if message["role"] not in ("system", "developer")), None)
    return tuple(faults) if spoken == "user" else (*faults, "does not open with the user")


def judged(cut: Cut, kept: Sequence[Message]) -> dict[str, float | None]:
    """Return the figures of one result, by the judges of refold.replay and benchmarks/recall.py."""
    there = Text.of("\n".join(text for message in kept for text in texts(message)))
    lines = (line for message in kept for text in texts(message) for line in text.split("\n"))
    verbatim = Text.of("\n".join(line for line in lines if len(line.strip()) >= 20 and line in cut.lines))
    found = judge.recall(cut.needed, cut.history, kept)
    every, far = cut.names["all"], cut.names["far"]
    return {
        "all": sum(map(there.has, every)) / len(every),
        "far": sum(map(there.has, far)) / len(far) if far else None,
        "ctx": sum(map(verbatim.has, every)) / len(every),
        "frr": found.present if cut.needed else None,
        "lost": found.lost if cut.needed else None,
        "ear": judge.lines_kept(cut.anchors, kept) if cut.anchors else None,
    }


def instructed_run(worker: Worker, messages: list[dict[str, Any]], share: float, asks: int) -> dict[str, Any]:
    """Return what is kept of the standing instructions at a share of the size, and what the pass took."""
    goal = int(size_of(read_back(messages)) * share)
    try:
        made = made_to_size(worker, {"messages": messages}, goal, asks)
    except Trouble as trouble:
        return {"outcome": str(trouble)[:160]}
    return {
        "outcome": "fits" if made.size <= goal else "over",
        "kept": instructions_kept(made.kept),
        "used": made.size / goal,
        "ms": made.seconds * 1000,
        "faults": faults_of(messages, made.messages),
    }
