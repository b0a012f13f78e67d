"""Compares policies at equal sizes: the past of a cut recording is compacted, and its future judges the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.messages import texts
from refold.replay._bounds import Bounds, bounds
from refold.replay._fake_summarizer import FakeHandlers
from refold.replay._quality import CutPoint, Quality, judged
from refold.replay._validity import fitted, new_violations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.policy import Policy
    from refold.replay._timeline import Timeline

__all__ = ["SIZES", "Limits", "Place", "SizedResult", "label", "limits", "places_of", "results_at_sizes"]

SIZES: tuple[int | float, ...] = (0.10, 0.25, 0.50)  # of the history
SHARES = (0.4, 0.6, 0.8)  # of a recording's tokens, where it is cut
SMALLEST = 500  # tokens of a budget that can hold anything
LEAST = 0.95  # a budget above this share of the history asks for nothing


class Place(Struct, frozen=True):
    """A cut with the budgets to judge it at: what each is called, and its tokens.

    `fixed` are the tokens of system messages, which nothing may touch: they come on top of every budget. `chars` are
    the characters of a token.
    """

    cut: CutPoint
    fixed: int
    chars: float
    sizes: tuple[tuple[str, int], ...]


class SizedResult(Struct, frozen=True, array_like=True):
    """What a policy preserved at a cut and size: the share of the budget it used, and figures; None where none fit."""

    cut: int
    size: str
    used: float = 0.0
    quality: Quality | None = None


class Limits(Struct, frozen=True, array_like=True):
    """What any choice could have preserved at a cut and size."""

    cut: int
    size: str
    bounds: Bounds


def label(size: int | float) -> str:
    """Return what a size is called: 10%, 15k."""
    if isinstance(size, float):
        return f"{100 * size:g}%"
    return f"{size / 1_000:g}k" if size >= 1_000 else f"{size}"


def places_of(line: Timeline, sizes: Sequence[int | float]) -> tuple[Place, ...]:
    """Return the places to judge: cuts before an answer at these shares of the tokens, with the sizes that ask much.

    A budget too small to hold anything, or one that nearly everything fits into, is left out.
    """
    messages = line.transcript.messages
    total = sum(line.counted[message.id] for message in messages)
    collected: list[Place] = []
    waiting, before, fixed = list(SHARES), 0, 0
    for length, message in enumerate(messages):
        if waiting and length and before >= waiting[0] * total and message.role == "assistant":
            waiting.pop(0)
            if place := _place(CutPoint.at(messages, length, length), before, fixed, sizes):
                collected.append(place)
        before += line.counted[message.id]
        fixed += line.counted[message.id] if message.role == "system" else 0
    return tuple(collected)


def _place(cut: CutPoint, before: int, fixed: int, sizes: Sequence[int | float]) -> Place | None:
    """Return a cut with the sizes that are small for a history of so many tokens; None where no size is."""
    free = before - fixed
    wanted = [(label(size), int(size * free) if isinstance(size, float) else size) for size in sizes]
    some = tuple((name, tokens) for name, tokens in wanted if SMALLEST <= tokens <= free * LEAST)
    chars = sum(len(text) for message in cut.history for text in texts(message))
    return Place(cut, fixed, chars / before, some) if some and cut.needed else None


def results_at_sizes(line: Timeline, policy: Policy, places: Sequence[Place]) -> tuple[SizedResult, ...]:
    """Return what a policy holds at each place and size."""
    stand_ins = FakeHandlers(line.transcript.messages, line.counter)
    collected: list[SizedResult] = []
    for place in places:
        history = place.cut.history
        for name, tokens in place.sizes:
            handlers = stand_ins.handlers(len(history))
            fit = fitted(policy, line, history, len(history), place.fixed + tokens, handlers)
            if fit is None:
                collected.append(SizedResult(place.cut.call, name))
                continue
            broken = new_violations(line.format, fit.messages, history)
            quality = judged(place.cut, fit.messages, fit.tokens, broken)
            collected.append(SizedResult(place.cut.call, name, round((fit.tokens - place.fixed) / tokens, 4), quality))
    return tuple(collected)


def limits(places: Sequence[Place]) -> tuple[Limits, ...]:
    """Return the oracle, its bound and the floors at each place and size."""
    collected_limits: list[Limits] = []
    for place in places:
        history = [message for message in place.cut.history if message.role != "system"]
        collected_limits += [
            Limits(place.cut.call, name, bounds(place.cut.needed, history, tokens, place.chars))
            for name, tokens in place.sizes
        ]
    return tuple(collected_limits)
