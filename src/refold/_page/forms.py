"""Forms of the page: read within limits, each with a token that no other page can know."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    from starlette.requests import Request

    from refold._page.access import SignIn

__all__ = ["checked_form", "form_token", "read_form"]

LONGEST = 65_536  # bytes: the focus of a summary, in which a character may take 12, and a few ids
TIMEOUT = 10.0  # seconds in which a form must arrive


async def read_form(request: Request) -> dict[str, list[str]]:
    """Return the values of a form.

    Raises:
        HTTPException: it is too long (413), or does not arrive (408).
    """
    body = b""
    try:
        async with asyncio.timeout(TIMEOUT):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST:
                    raise HTTPException(413, "This form is too long.")
    except (TimeoutError, ClientDisconnect):
        raise HTTPException(408, "This form did not arrive: send it again.") from None
    return parse_qs(body.decode("utf-8", "replace"))


async def checked_form(request: Request) -> dict[str, list[str]]:
    """Return the values of a form of this page.

    Raises:
        HTTPException: it is too long (413), does not arrive (408), or was not written for this viewer (403).
    """
    values = await read_form(request)
    sign_in: SignIn = request.app.state.sign_in
    if not sign_in.is_form_token(request.state.viewer, values.get("form", [""])[0]):
        raise HTTPException(403, "This form is not of your session: open the page and try again.")
    return values


def form_token(request: Request) -> str:
    """Return what a form of this page holds."""
    sign_in: SignIn = request.app.state.sign_in
    return sign_in.form_token(request.state.viewer)
