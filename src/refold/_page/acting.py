"""The acts of a viewer: each is asked once, with what it costs, then done by a form, and can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from refold import policies
from refold._page.acts import CompactionForm
from refold._page.changes import change_of, dollars_of
from refold._page.conversation import CONVERSATION, history_of
from refold._page.conversations import title_of
from refold._page.figures import limits_of
from refold._page.forms import checked_form, form_token
from refold._page.parts import STATUSES
from refold._page.templating import address, page, slug
from refold.errors import SessionNotFound, StoreCorrupt, StoreError, WriteConflict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from refold._page.changes import Proposal
    from refold._page.conversations import Conversations
    from refold._page.history import History

__all__ = ["ROUTES"]

FIELDS = ("message", "off", "plan", "policy", "step")  # of the question, which its form repeats
LONGEST_FOCUS = 4_000  # characters


def _asking(kind: str) -> Route:
    """Return the route of an act: the question with what it costs, and what the form of the question does."""

    async def respond(request: Request) -> Response:
        conversations: Conversations = request.app.state.conversations
        history = await history_of(request)
        values = await _form(request) if request.method == "POST" else dict(request.query_params)
        change = await conversations.run(lambda: change_of(kind, values, history))
        if request.method != "POST":
            hidden = {name: value for name, value in values.items() if name in FIELDS}
            return await conversations.run(lambda: _question(request, history, kind, change, hidden))
        acts, by = conversations.acts, request.state.viewer.name
        if change.to is not None:
            await acts.rewind(history, change.to, by, forward=change.forward)
        else:
            await acts.configure(history, change.settings, by)
        return _back(request, history.head.id)

    return Route(f"{CONVERSATION}/{kind}", _guarded(respond), methods=["GET", "POST"])


def _question(request: Request, history: History, kind: str, change: Proposal, hidden: Mapping[str, str]) -> Response:
    return page(
        request, "act.html", history=history, title=title_of(history), kind=kind, change=change, hidden=hidden,
        form_token=form_token(request),
    )  # fmt: skip


async def compaction(request: Request) -> Response:
    """Ask what a compaction should be like, show its plan, and make it."""
    conversations: Conversations = request.app.state.conversations
    history = await history_of(request)
    values = await _form(request) if request.method == "POST" else dict(request.query_params)
    form = _compaction_form(values)
    if request.method == "POST":
        id = await conversations.acts.compact(history, form, request.state.viewer.name)
        if not id:
            raise HTTPException(409, "There is nothing in this conversation that could be made smaller.")
        return _back(request, id)
    previewed = "preview" in values
    preview = await conversations.acts.preview(history, form) if previewed else None
    economy = preview.plan.break_even if preview is not None else None

    def work() -> Response:
        limits = limits_of(history)
        return page(
            request, "compact.html", history=history, title=title_of(history), form=form, limits=limits,
            names=policies.names(), previewed=previewed, preview=preview, statuses=STATUSES, economy=economy,
            cost=dollars_of(economy.cost, limits.model) if economy else "",
            saves=dollars_of(economy.saving, limits.model) if economy else "", form_token=form_token(request),
        )  # fmt: skip

    return await conversations.run(work)


def _compaction_form(values: Mapping[str, str]) -> CompactionForm:
    goal = values.get("goal", "").replace(",", "").strip()
    policy = values.get("policy", "")
    if goal and not (goal.isascii() and goal.isdecimal() and 0 < len(goal) < 10):
        raise HTTPException(400, "The size afterwards is a number of tokens.")
    if policy and policy not in policies.names():
        raise HTTPException(400, "There is no policy of that name.")
    return CompactionForm(values.get("focus", "").strip()[:LONGEST_FOCUS], int(goal) if goal else None, policy,
                values.get("model", "").strip()[:200])  # fmt: skip


def _guarded(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler whose conflicts and failures of the store are told with what to do."""

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except WriteConflict:
            text = "Somebody else works on this conversation, or has changed it: look at it again. Nothing was done."
            return page(request, "error.html", 409, title="The conversation is in use", text=text)
        except (SessionNotFound, StoreCorrupt):
            raise
        except StoreError as error:
            text = f"The store cannot be written ({type(error).__name__}): it can only be read. Nothing was done."
            return page(request, "error.html", 503, title="The store cannot be written", text=text)

    return guarded


async def _form(request: Request) -> dict[str, str]:
    return {name: value[0] for name, value in (await checked_form(request)).items()}


def _back(request: Request, id: str) -> Response:
    return RedirectResponse(address(request, f"/c/{slug(id)}") + "#acts", 303)


ROUTES = (
    *(_asking(kind) for kind in ("rewind", "pin", "policy", "undo")),
    Route(f"{CONVERSATION}/compact", _guarded(compaction), methods=["GET", "POST"]),
)
