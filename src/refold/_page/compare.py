"""Two points in time of a conversation side by side: what the model was sent at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.routing import Route

from refold._counting import counter_for
from refold._page.conversation import history_of, tool_names
from refold._page.conversations import title_of
from refold._page.figures import points_of
from refold._page.overview import positive
from refold._page.parts import message_card
from refold._page.templating import page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from refold._page.conversations import Conversations
    from refold._page.figures import SizePoint
    from refold._page.history import History, ViewRow
    from refold._page.parts import MessageCard

__all__ = ["ROUTES"]

PAGE_SIZE = 30  # places of the comparison on one page
CHOICES = 60  # points in time that are offered, with those at which a compaction began or ended


class Choice(Struct, frozen=True):
    """A point in time that can be chosen: after so many entries of the log."""

    step: int
    name: str
    point: SizePoint


class Pair(Struct, frozen=True):
    """A place of both views: what it was at each point, None where it was not there."""

    first: MessageCard | None
    second: MessageCard | None


class SameRun(Struct, frozen=True):
    """A run of places that are the same at both points; `hidden` of them are left out of both."""

    same: int
    hidden: int


async def compared(request: Request) -> Response:
    """Return two points in time side by side, by default before and after the newest compaction."""
    conversations: Conversations = request.app.state.conversations
    history = await history_of(request)
    start = positive(request, "from", 1) - 1

    def work() -> Response:
        points = points_of(history)
        choices = choices_of(points)
        newest = next((point.step for point in reversed(points) if point.plan is not None), len(history.events))
        first, second = (
            min(positive(request, name, default), len(history.events))
            for name, default in (("a", newest - 1), ("b", newest))
        )
        groups = _grouped(history, first, second)
        chosen = groups[start : start + PAGE_SIZE]
        return page(
            request, "compare.html", title=title_of(history), history=history, choices=choices, first=first,
            second=second, pairs=_pairs(history, chosen), start=start, total=len(groups), size=PAGE_SIZE,
            sides=[point_at(points, step) for step in (first, second)],
        )  # fmt: skip

    return await conversations.run(work)


def choices_of(points: Sequence[SizePoint]) -> list[Choice]:
    """Return the points in time that are offered: all compactions and rewinds, and some between."""
    stride = max(len(points) // CHOICES, 1)
    choices: dict[int, Choice] = {}
    number = 0
    for place, point in enumerate(points):
        after = f"after {point.messages:,} message{'' if point.messages == 1 else 's'}"
        match point.kind:
            case "before":
                choices[point.step - 1] = Choice(point.step - 1, f"{after}, before compaction {number + 1}", point)
            case "plan":
                number += 1
                choices[point.step] = Choice(point.step, f"{after}, compaction {number} done", point)
            case "rewound":
                choices[point.step] = Choice(point.step, f"{after}, rewound", point)
            case _ if place % stride == 0 or place == len(points) - 1:
                choices.setdefault(point.step, Choice(point.step, after, point))
    return sorted(choices.values(), key=lambda choice: choice.step)


def point_at(points: Sequence[SizePoint], step: int) -> SizePoint | None:
    """Return the last point at or before a step of the log."""
    return next((point for point in reversed(points) if point.step <= step and point.kind != "before"), None)


def _grouped(history: History, first: int, second: int) -> list[tuple[ViewRow | None, ViewRow | None] | SameRun]:
    """Return the places of both views in order, those that are the same as runs."""
    left, right = (history.view(history.at(step)) for step in (first, second))
    places = {row.message.id: place for place, row in enumerate(right)}
    known = {row.message.id for row in left}
    groups: list[tuple[ViewRow | None, ViewRow | None] | SameRun] = []
    reached = 0

    def add(one: ViewRow | None, other: ViewRow | None) -> None:
        if one is not None and other is not None and _is_same(one, other):
            run = groups.pop() if groups and isinstance(groups[-1], SameRun) else SameRun(0, 0)
            assert isinstance(run, SameRun)
            groups.append(SameRun(run.same + 1, run.hidden + one.hidden))
        else:
            groups.append((one, other))

    for row in left:
        place = places.get(row.message.id)
        if place is None or place < reached:
            add(row, None)
            continue
        for other in right[reached:place]:
            if other.message.id not in known:
                add(None, other)
        add(row, right[place])
        reached = place + 1
    for other in right[reached:]:
        if other.message.id not in known:
            add(None, other)
    return groups


def _is_same(one: ViewRow, other: ViewRow) -> bool:
    if one.hidden or other.hidden:
        return one.hidden and other.hidden
    return one.message.patches == other.message.patches


def _pairs(history: History, groups: Sequence[tuple[ViewRow | None, ViewRow | None] | SameRun]) -> list[Pair | SameRun]:
    rows = [row for group in groups if not isinstance(group, SameRun) for row in group if row is not None]
    messages = history.messages(list({row.message.id: None for row in rows}))
    places = {id: place for place, id in enumerate(history.state.ids)}
    counter = counter_for(history.state.settings.get("model"), None, history.head.format)
    names = tool_names(messages.values())

    def card(row: ViewRow | None) -> MessageCard | None:
        if row is None:
            return None
        id = row.message.id
        return message_card(row, messages.get(id), places.get(id), counter, names)

    return [group if isinstance(group, SameRun) else Pair(card(group[0]), card(group[1])) for group in groups]


ROUTES = (Route("/c/{id}/compare", compared),)
