"""The page of one conversation: its figures, its context over time, its compactions, and its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from refold import policies
from refold._counting import counter_for
from refold._inspect.message_labels import full_text
from refold._page.cards import done_card, running_card
from refold._page.changes import acts_of
from refold._page.conversations import title_of
from refold._page.figures import PER_CHARACTER, calls_between, figures_of, points_of
from refold._page.overview import positive
from refold._page.parts import STATUSES, Gap, meanings_of, message_card, reasons_of
from refold._page.templating import id_of, page

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request

    from refold._page.conversations import Conversations
    from refold._page.figures import Figures, SizePoint
    from refold._page.history import History, ViewRow
    from refold._page.parts import MessageCard
    from refold.core.messages import Message

__all__ = ["ROUTES", "history_of", "tool_names"]

PAGE_SIZE = 60  # places of the view on one page
PLOTTED = 1_200  # points: more than a screen has columns
TABLED = 40  # points of the table that stands for the plot
WHOLE = 200_000  # characters of an original that are part of a page


class MessageWindow(Struct, frozen=True):
    """The places of the view on one page: from where, of how many, and what stands there."""

    start: int
    total: int
    items: tuple[MessageCard | Gap, ...]

    @property
    def previous(self) -> int | None:
        """Where the page before begins."""
        return max(self.start - PAGE_SIZE, 0) if self.start else None

    @property
    def next(self) -> int | None:
        """Where the page after begins."""
        return self.start + len(self.items) if self.start + len(self.items) < self.total else None


async def history_of(request: Request) -> History:
    """Return the history of the conversation that the path names.

    Raises:
        SessionNotFound: the viewer has none of that id.
    """
    conversations: Conversations = request.app.state.conversations
    return await conversations.history(id_of(request.path_params["id"]), request.state.viewer.sees)


async def conversation_page(request: Request) -> Response:
    """Return the page of a conversation."""
    conversations: Conversations = request.app.state.conversations
    history = await history_of(request)
    originals = request.query_params.get("show") == "originals"
    start = positive(request, "from", 0) - 1

    pulse = await conversations.pulse(history.head.id, request.state.viewer.sees)

    def work() -> Response:
        points = points_of(history)
        figures = figures_of(history, points)
        return page(
            request, "conversation.html", title=title_of(history), history=history, figures=figures,
            window=_window(history, figures, start, originals=originals), statuses=STATUSES, originals=originals,
            pulse=pulse, running=running_card(history, pulse), done=done_card(history),
            acts=acts_of(history), policy_names=policies.names(), table=_sampled(points, TABLED),
            compactions=_compactions(history, figures, points),
            meanings=meanings_of(history.state.plans.values()),
        )  # fmt: skip

    return await conversations.run(work)


async def plotted(request: Request) -> Response:
    """Return the data of the plot: sizes over time, limits, and what happened when."""
    conversations: Conversations = request.app.state.conversations
    history = await history_of(request)

    def work() -> Response:
        points = points_of(history)
        figures = figures_of(history, points)
        chosen = _sampled(points, PLOTTED)
        limits = figures.limits
        return JSONResponse(
            {
                "tokens": [point.tokens for point in chosen],
                "messages": [point.messages for point in chosen],
                "at": [point.at for point in chosen],
                "kinds": [point.kind for point in chosen],
                "limits": {"window": limits.window, "trigger": limits.trigger, "goal": limits.goal},
                "break_even": _break_even(chosen, figures),
            }
        )

    return await conversations.run(work)


async def one_message(request: Request) -> Response:
    """Return one message in full: the original, or as it is sent."""
    conversations: Conversations = request.app.state.conversations
    history, message, sent = await _message_of(request)

    def work() -> Response:
        ids, text = history.state.ids, full_text(message)
        return page(
            request, "message.html", history=history, message=message, sent=sent, text=text[:WHOLE],
            position=ids.index(message.id) if message.id in ids else None, known=message.id in history.sizes,
            rest=max(len(text) - WHOLE, 0),
        )  # fmt: skip

    return await conversations.run(work)


async def text_of_message(request: Request) -> Response:
    """Return all that a message says as a file of plain text."""
    conversations: Conversations = request.app.state.conversations
    _, message, _ = await _message_of(request)
    body = await conversations.run(lambda: full_text(message).encode("utf-8", "replace"))
    name = f'attachment; filename="{message.id.replace(":", "-")}.txt"'
    return Response(body, headers={"content-disposition": name}, media_type="text/plain")


async def _message_of(request: Request) -> tuple[History, Message, bool]:
    """Return the message that the path names, and whether it is as it is sent; one that a plan made is nothing else."""
    history, id = await history_of(request), request.path_params["message"]
    conversations: Conversations = request.app.state.conversations
    sent = request.query_params.get("as") == "sent" or id not in history.sizes
    message = await conversations.run(lambda: history.sent(id) if sent else history.messages([id]).get(id))
    if message is None:
        raise HTTPException(404)
    return history, message, sent


class CompactionRow(Struct, frozen=True):
    """A row of the table of compactions: a plan, the point at which it was made, and what it has cost and saved."""

    number: int
    point: SizePoint
    active: bool
    calls: int
    dollars: float | None


def _compactions(history: History, figures: Figures, points: Sequence[SizePoint]) -> list[CompactionRow]:
    paid = {each.plan.id: each for each in figures.paid}
    rate, numbers, rows = _rate(figures), history.numbers, list[CompactionRow]()
    for point in points:
        if point.plan is not None:
            since = paid.get(point.plan.id)
            dollars = since.net * rate if since is not None and rate is not None else None
            calls = since.calls if since is not None else 0
            rows.append(CompactionRow(numbers[point.plan.id], point, since is not None, calls, dollars))
    return rows


def _rate(figures: Figures) -> float | None:
    """Return US dollars for one token of input."""
    total = sum(each.net for each in figures.paid)
    return figures.dollars / total if figures.dollars is not None and total else None


def _window(history: History, figures: Figures, start: int, *, originals: bool) -> MessageWindow:
    """Return a page of the view, the last one by default; only its messages are read."""
    rows = history.view(history.state)
    places = {id: place for place, id in enumerate(history.state.ids)}
    groups = [[row] for row in rows if row.message.id in places] if originals else _grouped(rows)
    first = max(len(groups) - PAGE_SIZE, 0) if start < 0 else min(start, max(len(groups) - 1, 0))
    chosen = groups[first : first + PAGE_SIZE]
    ids = [group[0].message.id for group in chosen if len(group) == 1 and group[0].message.id in places]
    messages = history.messages(ids)
    called = tool_names(messages.values())
    counter = counter_for(figures.limits.model or None, None, history.head.format)
    items: list[MessageCard | Gap] = []
    for group in chosen:
        row = group[0]
        if row.hidden and not originals:
            size = sum(history.sizes.get(each.message.id, 0) for each in group)
            items.append(Gap(places[row.message.id], len(group), round(size * PER_CHARACTER), reasons_of(group)))
        else:
            items.append(message_card(row, messages.get(row.message.id), places.get(row.message.id), counter, called))
    return MessageWindow(first, len(groups), tuple(items))


def tool_names(messages: Iterable[Message]) -> dict[str, str]:
    """Return the names of the tools that some messages call, by the ids of the calls."""
    return {call.call_id: call.name for message in messages for call in message.calls}


def _grouped(rows: Sequence[ViewRow]) -> list[list[ViewRow]]:
    """Return the places of the view, each run of those left out as one."""
    groups: list[list[ViewRow]] = []
    for row in rows:
        if row.hidden and groups and groups[-1][0].hidden:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _sampled(points: Sequence[SizePoint], most: int) -> list[SizePoint]:
    """Return about so many points, with all at which the context shrank or was told to."""
    stride = max(len(points) // most, 1)
    last = len(points) - 1
    return [
        point for place, point in enumerate(points)
        if place % stride == 0 or place == last or point.kind in ("before", "plan", "rewound")
    ]  # fmt: skip


def _break_even(points: Sequence[SizePoint], figures: Figures) -> list[dict[str, object]]:
    """Return where each active compaction has paid: the place among the points, and the plan."""
    marks: list[dict[str, object]] = []
    for each in figures.paid:
        start = next((place for place, point in enumerate(points) if point.plan is each.plan), None)
        if start is None or not each.pays_from:
            continue
        paid = next(
            (
                place
                for place in range(start, len(points))
                if calls_between(points[start], points[place], exact=figures.exact_calls) >= each.pays_from
            ),
            None,
        )
        if paid is not None:
            marks.append({"place": paid, "plan": each.plan.id})
    return marks


CONVERSATION = "/c/{id}"
ROUTES = (
    Route(CONVERSATION, conversation_page),
    Route(CONVERSATION + "/plot.json", plotted),
    Route(CONVERSATION + "/m/{message}", one_message),
    Route(CONVERSATION + "/m/{message}/text", text_of_message),
)
