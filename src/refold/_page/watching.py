"""Watches one conversation: the card of its compactions as server-sent events, whichever process compacts it."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from refold._page.cards import done_card, running_card
from refold._page.conversation import CONVERSATION, history_of
from refold._page.templating import page
from refold.errors import RefoldError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from refold._page.cards import Pulse
    from refold._page.conversations import Conversations

__all__ = ["ROUTES"]

PAUSE = 0.4  # seconds between two looks
LASTS = 60.0  # seconds of a stream; a browser opens the next, with a session that is still in force
QUIET = 15.0  # seconds after which a line without meaning shows that the stream lives
WATCHERS, OF_ONE = 100, 25  # streams of a process at a time, and of a viewer: none can take those of all


async def watched(request: Request) -> Response:
    """Return the events of a conversation: the card whenever it is another."""
    conversations: Conversations = request.app.state.conversations
    history = await history_of(request)
    watchers = request.app.state.watchers
    if watchers.total() >= WATCHERS or watchers[request.state.viewer.id] >= OF_ONE:
        raise HTTPException(503, "Too many pages are open.")
    known = request.headers.get("last-event-id") or request.query_params.get("known", "")
    events = _events(request, conversations, history.head.id, known)
    return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _events(request: Request, conversations: Conversations, id: str, known: str) -> AsyncIterator[bytes]:
    viewer, end, quiet = request.state.viewer, monotonic() + LASTS, monotonic() + QUIET
    request.app.state.watchers[viewer.id] += 1
    try:
        yield b"retry: 1000\n\n"
        while monotonic() < end and not conversations.draining:
            pulse = await conversations.pulse(id, viewer.sees)
            if pulse.key != known:
                known = pulse.key
                yield await _card(request, conversations, id, pulse)
                quiet = monotonic() + QUIET
            elif monotonic() > quiet:
                yield b": \n\n"
                quiet = monotonic() + QUIET
            await asyncio.sleep(PAUSE)
    except RefoldError:
        pass  # it was deleted, or the store does not answer: the browser asks again
    finally:
        request.app.state.watchers[viewer.id] -= 1


async def _card(request: Request, conversations: Conversations, id: str, pulse: Pulse) -> bytes:
    history = await conversations.history(id, request.state.viewer.sees)

    def work() -> bytes:
        card = page(
            request, "card.html", history=history, running=running_card(history, pulse), done=done_card(history)
        )
        lines = [b"event: card", b"id: " + pulse.key.encode()]
        lines += [b"data: " + line for line in bytes(card.body).splitlines()]
        return b"\n".join(lines) + b"\n\n"

    return await conversations.run(work)


ROUTES = (Route(CONVERSATION + "/events", watched),)
