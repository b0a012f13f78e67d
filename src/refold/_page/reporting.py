"""The pages of reports: a form that begins one, its progress, and its results as tables, plots and a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from refold._page.forms import checked_form, form_token
from refold._page.reports import KINDS, MOST_CHARACTERS, MOST_CONVERSATIONS, MOST_MESSAGES, subject_of
from refold._page.templating import address, page

if TYPE_CHECKING:
    from starlette.requests import Request

    from refold._page.conversations import Conversations
    from refold._page.reports import Report, Reports, Subject

__all__ = ["ROUTES"]

LISTED = 50
# A plot is an image of its own, with its colours inside: it may have a style, and nothing else.
PLOT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


async def reported(request: Request) -> Response:
    """Return the newest report of the viewer, or its progress alone for a page that is open, and the form for one."""
    conversations: Conversations = request.app.state.conversations
    report = _reports(request).of(request.state.viewer.id)
    values = {"report": report, "kinds": KINDS, "form_token": form_token(request)}
    if request.headers.get("hx-request") == "true":
        return await conversations.run(lambda: page(request, "report.html", **values))
    rows, _ = await conversations.rows(request.state.viewer.sees, 0, LISTED)
    chosen = set(request.query_params.getlist("id"))
    return await conversations.run(
        lambda: page(request, "reports.html", rows=rows, chosen=chosen, most=MOST_CONVERSATIONS, **values)
    )


async def begun(request: Request) -> Response:
    """Begin a report on the chosen conversations."""
    conversations: Conversations = request.app.state.conversations
    values = await checked_form(request)
    kind, ids = values.get("kind", ["replay"])[0], list(dict.fromkeys(values.get("id", [])))
    if kind not in KINDS:
        raise HTTPException(400, "There is no report of that kind.")
    if not 0 < len(ids) <= MOST_CONVERSATIONS:
        raise HTTPException(400, f"Choose 1 to {MOST_CONVERSATIONS} conversations.")
    reports, viewer = _reports(request), request.state.viewer
    busy = HTTPException(409, "A report is being made: wait until it is done, or cancel it.")
    if not reports.may_begin(viewer.id):
        raise busy
    histories = [await conversations.history(id, viewer.sees) for id in ids]
    if sum(len(history.state.ids) for history in histories) > MOST_MESSAGES:
        raise HTTPException(400, f"Choose conversations of {MOST_MESSAGES:,} messages together at most.")
    if sum(sum(history.sizes.values()) for history in histories) > MOST_CHARACTERS:
        raise HTTPException(400, f"Choose conversations of {MOST_CHARACTERS:,} characters together at most.")

    def work() -> list[Subject]:
        return [subject_of(history) for history in histories]

    subjects = await conversations.run(work)
    if not reports.may_begin(viewer.id):  # another form came first, while the conversations were read
        raise busy
    reports.begin(viewer.id, kind, subjects)
    return RedirectResponse(address(request, "/reports"), 303)


async def cancelled(request: Request) -> Response:
    """Cancel the report that is being made."""
    await checked_form(request)
    report = _reports(request).of(request.state.viewer.id)
    if report is not None:
        report.cancel()
    return RedirectResponse(address(request, "/reports"), 303)


async def file(request: Request) -> Response:
    """Return the report as one HTML file, to be kept."""
    conversations: Conversations = request.app.state.conversations
    report = _finished(request)
    body = await conversations.run(lambda: report.page.encode("utf-8", "replace"))
    name = 'attachment; filename="refold-report.html"'
    return Response(body, headers={"content-disposition": name}, media_type="text/html")


async def plot(request: Request) -> Response:
    """Return one plot of the report as an image."""
    conversations: Conversations = request.app.state.conversations
    report = _finished(request)
    svg = (await conversations.run(lambda: report.plots)).get(request.path_params["name"])
    if svg is None:
        raise HTTPException(404)
    body = svg.encode("utf-8", "replace")
    return Response(body, headers={"content-security-policy": PLOT_POLICY}, media_type="image/svg+xml")


def _finished(request: Request) -> Report:
    report = _reports(request).of(request.state.viewer.id)
    if report is None or not report.results:
        raise HTTPException(404)
    return report


def _reports(request: Request) -> Reports:
    reports: Reports = request.app.state.reports
    return reports


ROUTES = (
    Route("/reports", reported),
    Route("/reports", begun, methods=["POST"]),
    Route("/reports/cancel", cancelled, methods=["POST"]),
    Route("/reports/report.html", file),
    Route("/reports/plots/{name}.svg", plot),
)
