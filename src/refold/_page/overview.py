"""The list of conversations, and the search over their originals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from refold._page.templating import page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from refold._page.conversations import Conversations

__all__ = ["ROUTES"]

ROWS = 50
HITS = 50
LONGEST_QUERY = 400  # characters, as the form allows


async def listed(request: Request) -> Response:
    """Return the list, or the rows alone for a page that is open."""
    conversations: Conversations = request.app.state.conversations
    number = positive(request, "page", 1)
    rows, total = await conversations.rows(request.state.viewer.sees, (number - 1) * ROWS, ROWS)
    pages = max((total + ROWS - 1) // ROWS, 1)
    part = request.headers.get("hx-request") == "true"
    template, sees = "rows.html" if part else "overview.html", request.state.viewer.sees
    return await conversations.run(
        lambda: page(request, template, rows=rows, total=total, number=number, pages=pages, sees=sees)
    )


async def searched(request: Request) -> Response:
    """Return the originals that hold the words of a query."""
    conversations: Conversations = request.app.state.conversations
    query = request.query_params.get("q", "").strip()[:LONGEST_QUERY]
    hits, whole = await conversations.search(query, request.state.viewer.sees, HITS) if query else ([], True)
    return page(request, "search.html", query=query, hits=hits, most=HITS, whole=whole)


def positive(request: Request, name: str, default: int) -> int:
    """Return a parameter that is a number from 1 on, else the default."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text) else default


ROUTES = (Route("/", listed), Route("/search", searched))
