"""URLs without their secrets, for messages and tables."""

from __future__ import annotations

import re

__all__ = ["without_query_secrets", "without_secrets"]

SECRET = re.compile(r"passw|pwd|secret|token|credential|signature|apikey|(?:^|[_-])(?:key|sig|auth)$", re.I)
ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
HIDDEN = "***"


def without_secrets(url: str) -> str:
    """Return a URL without its user and password, and with `***` for the secrets of its query."""
    scheme, sign, rest = url.partition("://") if "://" in url else ("", "", url)
    return without_query_secrets(f"{scheme}{sign}{rest.rpartition('@')[2]}")


def without_query_secrets(url: str) -> str:
    """Return a URL with `***` for the values of its query that their names call secrets (`password`, `api_key`)."""
    base, mark, query = url.partition("?")
    return base + mark + "&".join(map(_hidden, query.split("&")))


def _hidden(part: str) -> str:
    name, sign, value = part.partition("=")
    decoded = ESCAPE.sub(lambda code: chr(int(code[1], 16)), name)
    return f"{name}={HIDDEN}" if sign and value and SECRET.search(decoded) else part
