"""Reads how long a provider asks clients to wait: from a header of its error, or from the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from math import isfinite

from refold.models._error_text import read_error

__all__ = ["retry_after"]

DEEPEST = 8  # causes of an error that are looked at
AMOUNT = r"(\d+(?:\.\d+)?)"
WORDS = re.compile(rf"(?:try again|retry) (?:in|after) (?:{AMOUNT}h)?(?:{AMOUNT}m(?!s))?(?:{AMOUNT} ?(ms|s)\b)?", re.I)


def retry_after(error: object, now: Callable[[], float]) -> float | None:
    """Return the seconds that a refusal asks to wait, None where it asks for none.

    `retry-after-ms` and `retry-after` (seconds or a date) are read from the headers of an SDK's error and its causes,
    else "try again in 1m20.5s" from its words. `now` is the clock, in seconds since 1970, for a date.
    """
    for headers in _headers(error):
        seconds = _number(headers.get("retry-after-ms"), 1 / 1000)
        if seconds is None:
            seconds = _number(headers.get("retry-after"), 1)
        if seconds is None:
            seconds = _until(headers.get("retry-after"), now)
        if seconds is not None:
            return seconds
    return _in_words(read_error(error).text)


def _headers(error: object) -> Iterator[Mapping[str, object]]:
    for _ in range(DEEPEST):
        for holder in (getattr(error, "response", None), error):
            headers = getattr(holder, "headers", None)
            if isinstance(headers, Mapping):
                yield headers
        error = getattr(error, "__cause__", None)
        if error is None:
            return


def _number(value: object, unit: float) -> float | None:
    try:
        number = float(str(value)) * unit
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _until(value: object, now: Callable[[], float]) -> float | None:
    from email.utils import parsedate_to_datetime  # brings sockets with it

    try:
        date = parsedate_to_datetime(str(value))
    except ValueError:
        return None
    known = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(known.timestamp() - now(), 0.0)


def _in_words(text: str) -> float | None:
    for match in WORDS.finditer(text):
        hours, minutes, amount, unit = match.groups()
        if hours or minutes or amount:
            small = float(amount or 0) * (0.001 if (unit or "").lower() == "ms" else 1)
            return float(hours or 0) * 3600 + float(minutes or 0) * 60 + small
    return None
