"""Renders the templates of the page, with autoescape always on."""

from __future__ import annotations

import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from refold._inspect.ages import ago
from refold._page.text_of_others import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

__all__ = ["address", "id_of", "load_templates", "page", "slug"]

PLAIN_ID = re.compile(r"(?!~)[\w.:@-]+", re.ASCII)
MARK = "~"  # begins an id of other characters
THOUSAND, MILLION = 1_000, 1_000_000


def load_templates() -> None:
    """Compile all templates, which takes a while and is remembered."""
    for name in _environment.list_templates(["html"]):
        _environment.get_template(name)


def page(request: Request, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """Return a template as a response."""
    text = _environment.get_template(template).render(
        request=request, url=lambda path, **query: address(request, path, **query), **values
    )
    return HTMLResponse(text, status)


def address(request: Request, path: str, **query: object) -> str:
    """Return the address of a path of the page, wherever the page is mounted; None leaves a parameter out."""
    parameters = {name: value for name, value in query.items() if value is not None}
    return f"{request.scope.get('root_path', '')}{path}{'?' + urlencode(parameters) if parameters else ''}"


def slug(id: str) -> str:
    """Return the id of a conversation as a part of a path; any text may be one."""
    return quote(id) if PLAIN_ID.fullmatch(id) else MARK + urlsafe_b64encode(id.encode()).decode().rstrip("=")


def id_of(part: str) -> str:
    """Return the id that a part of a path stands for; empty where it is none."""
    if not part.startswith(MARK):
        return part
    try:
        return urlsafe_b64decode(part[1:] + "=" * (-len(part[1:]) % 4)).decode()
    except (Error, ValueError):
        return ""


def number(value: float) -> str:
    """Return a number with its thousands apart."""
    return f"{round(value):,}"


def short(value: float) -> str:
    """Return a number of tokens in three digits or so: 950, 12.3k, 1.2M."""
    for unit, name in ((MILLION, "M"), (THOUSAND, "k")):
        if abs(value) >= unit:
            amount = value / unit
            return f"{amount:.0f}{name}" if abs(amount) >= 100 else f"{amount:.1f}{name}"
    return f"{value:.0f}"


def stamp(then: float) -> str:
    """Return a time as text for machines."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then))


def clock(then: float) -> str:
    """Return a time for people, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(then))


def dollars(value: float) -> str:
    """Return US dollars, with a sign in front of what was lost."""
    digits = 2 if abs(value) >= 1 else 4
    return f"{'−' if value < 0 else ''}${abs(value):,.{digits}f}"


def many(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _filters() -> Mapping[str, Any]:
    named = (visible, number, short, ago, stamp, clock, dollars, many, slug)
    return {function.__name__: function for function in named}


_environment = Environment(
    loader=PackageLoader("refold._page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
_environment.filters.update(_filters())
