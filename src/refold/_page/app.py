"""The page as an ASGI application: routes, sign-in, and the headers that every response has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from refold import policies
from refold._counting import counter_for
from refold._page import acting, compare, contents, conversation, overview, reporting, watching
from refold._page.access import SignIn, cookie_name, is_of_another_site
from refold._page.forms import read_form
from refold._page.reports import Reports
from refold._page.templating import address, load_templates, page
from refold.errors import RefoldError, SessionNotFound, StoreCorrupt, StoreError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from refold._page.access import Viewer, Viewers
    from refold._page.conversations import Conversations

__all__ = ["load", "page_app"]

STATIC = Path(__file__).parent / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
SAFE = ("GET", "HEAD")
SPLIT_WORD = "xqzjvkw8f3kq"  # a word that no vocabulary has whole, so that the table of its pieces is made as well
VOCABULARIES = ("gpt-4o", "claude-sonnet-4-5")  # models, one of each vocabulary that most conversations have


def page_app(conversations: Conversations, viewers: Viewers, key: bytes, public_url: str = "") -> ASGIApp:
    """Return the page over some conversations, for the viewers who have a token; `key` signs their sessions.

    It may be mounted under a path, which is the `root_path` of its scope. `public_url` is the address of a proxy
    through which browsers come. No header tells that: whoever reaches this server without it could send it too.
    """
    app = Starlette(
        routes=[
            Route("/sign-in", _sign_in, methods=["POST"]),
            Route("/sign-out", _sign_out, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
            *overview.ROUTES,
            *conversation.ROUTES,
            *acting.ROUTES,
            *watching.ROUTES,
            *reporting.ROUTES,
            *compare.ROUTES,
            *contents.ROUTES,
        ],
        middleware=[Middleware(_Guard)],
        exception_handlers=dict.fromkeys((HTTPException, RefoldError, Exception), _error),
    )
    app.router.redirect_slashes = False
    public = urlsplit(public_url)
    by_https, host = public.scheme == "https", public.netloc.lower().rpartition("@")[2]
    host = host.removesuffix(":443" if by_https else ":80")  # which no browser writes in the `Origin` of its scheme
    app.state.is_public_by_https, app.state.public_host = by_https, host
    app.state.watchers, app.state.reports = Counter[str](), Reports()
    app.state.conversations, app.state.sign_in = conversations, SignIn(viewers, key)
    return app


def load() -> None:
    """Load what the first view of a process needs, before somebody asks: templates, a policy, vocabularies."""
    load_templates()
    policies.find("refold")
    for model in VOCABULARIES:
        counter_for(model).text(SPLIT_WORD)


class _Guard:
    """Lets viewers pass, asks all others for a token, and sets the headers of security."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in more if each[0] not in present)]
            await send(message)

        request = Request(scope, receive)
        try:
            response = self._refusal(request)
        except HTTPException as error:
            response = await _error(request, error)
        await (self._app if response is None else response)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Return the response to a request that does not pass; None for one that does."""
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))  # by which routes are found, too
        if request.method not in SAFE and is_of_another_site(
            dict(request.scope["headers"]), request.app.state.public_host
        ):
            return page(request, "error.html", 403, title="Not from here", text="Another site sent this request.")
        if path.startswith("/static/") or path == "/sign-in":
            return None
        sign_in: SignIn = request.app.state.sign_in
        token = request.query_params.get("token")
        if token is not None and request.method in SAFE:
            viewer = sign_in.by_token(request, token)
            rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
            return _unknown(request) if viewer is None else _opened(request, viewer, path, rest)
        # The cookie first: a proxy may add an `Authorization` of its own, which would count as a wrong token.
        viewer = sign_in.by_cookie(request) or sign_in.by_token(request, _header_token(request))
        if viewer is None:
            return _unknown(request)
        sign_in.check_rate(viewer)
        request.state.viewer = viewer
        return None


def _header_token(request: Request) -> str:
    bearer = request.headers.get("authorization", "")
    return request.headers.get("x-refold-token") or (bearer[7:] if bearer[:7].lower() == "bearer " else "")


def _opened(request: Request, viewer: Viewer, path: str, query: list[tuple[str, str]]) -> Response:
    """Return the redirect to an address without the token, with the cookie of a new session."""
    where = request.scope.get("root_path", "") + (path or "/") + (f"?{urlencode(query)}" if query else "")
    response = RedirectResponse(where if where.startswith("/") and where[:2] != "//" else "/", 303)
    sign_in: SignIn = request.app.state.sign_in
    secure = request.url.scheme == "https" or request.app.state.is_public_by_https
    response.set_cookie(
        cookie_name(request), sign_in.cookie(viewer), httponly=True, samesite="strict", secure=secure,
        path=request.scope.get("root_path") or "/",
    )  # fmt: skip
    return response


def _unknown(request: Request) -> Response:
    return page(request, "sign_in.html", 401)


async def _sign_in(request: Request) -> Response:
    try:
        values = await read_form(request)
    except HTTPException:
        return _unknown(request)
    sign_in: SignIn = request.app.state.sign_in
    viewer = sign_in.by_token(request, values.get("token", [""])[0].strip())
    return _unknown(request) if viewer is None else _opened(request, viewer, "/", [])


async def _sign_out(request: Request) -> Response:
    response = RedirectResponse(address(request, "/"), 303)
    response.delete_cookie(cookie_name(request), path=request.scope.get("root_path") or "/")
    return response


async def _error(request: Request, error: Exception) -> Response:
    match error:
        case SessionNotFound():
            return page(request, "error.html", 404, title="Not found", text="There is no such conversation.")
        case HTTPException(status_code=404):
            return page(request, "error.html", 404, title="Not found", text="There is nothing at this address.")
        case HTTPException():
            response = page(request, "error.html", error.status_code, title="Not possible", text=error.detail)
            response.headers.update(error.headers or {})
            return response
        case StoreCorrupt():
            text = "What the store has of this cannot be read: it is damaged, or encrypted with another secret."
            return page(request, "error.html", 503, title="The store is damaged", text=text)
        case StoreError():
            text = f"The store could not be used ({type(error).__name__}). Try again."
            return page(request, "error.html", 503, title="The store does not answer", text=text)
        case RefoldError():
            return page(request, "error.html", 400, title="Not possible", text=str(error))
        case _:
            return page(request, "error.html", 500, title="A fault of the page", text=type(error).__name__)
