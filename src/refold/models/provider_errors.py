"""Classifies provider errors and their remedy: overflow, rate limit, wrong parameters, unaccepted reasoning.

Every row of `overflow.json` carries a sample that it must recognise, a near miss that it must not, and a public source.
What looks like a full window and is not (a rate limit, a bad parameter, an expired key) is told apart first; words that
an error quotes of the request count for nothing. A verdict is "certain" where a code of the provider says it, or words
of its own under a status that agrees; else "likely": a general wording, a fault of the server (500 and above), or the
status alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from refold.core._decoders import decoder
from refold.errors import UsageError
from refold.models._error_text import ErrorText, read_error
from refold.models._usage_report import reported

__all__ = [
    "Confidence",
    "ErrorPattern",
    "Kind",
    "ProviderError",
    "Remedy",
    "classify_error",
    "classify_response",
    "is_overflow",
    "rows",
]

Kind: TypeAlias = Literal[
    "context_overflow", "request_too_large", "rate_limit", "invalid_max_tokens", "invalid_request", "auth",
    "reasoning_invalid", "reasoning_missing", "other"
]  # fmt: skip
Remedy: TypeAlias = Literal[
    "compact", "reduce_max_tokens", "strip_media", "wait", "drop_reasoning", "restore_reasoning", "none"
]
Confidence: TypeAlias = Literal["certain", "likely"]

MAX_QUOTED = 500  # characters of the provider's words that are passed on
LARGEST = 1_000_000_000
CUT_SHORT = {"length", "max_tokens", "max_output_tokens", "incomplete"}
WITH_FIGURES = {"context_overflow", "rate_limit", "invalid_max_tokens"}  # kinds whose numbers are tokens
REFUSED = {400, 422}  # statuses of a request that the provider read and did not take
GENERIC = {"compatible", "mistral-exceeded"}  # rows of words that a rate limit may have too
ACCESS = {401, 403}  # statuses of a key or a permission, whatever else the words say
MESSAGE = re.compile(r"\bmessages\.(\d+)\.content")
ITEM = re.compile(r"\b((?:rs|cmp)_[\w.]+)|encrypted content (?!for item|could)([^\s.]{4}\.\.\.[^\s.]{4})")
WINDOW_FULL = {"model_context_window_exceeded", "context_length_exceeded", "context_window_exceeded"}


class ProviderError(Struct, frozen=True):
    """What a refusal means: its kind and remedy, and figures in tokens where the words give them, else None.

    `requested` is input and answer together, `input` the input alone where it was told apart. The limit of a rate limit
    is that of a period, never a window. `provider` is whose wording it is, empty when many share it. `remedy` is what
    makes the next attempt succeed. `position` is the message that the words name, counted from 0, and `item` the item
    of the Responses API, by its id or by both ends of its encrypted content ("gAAA...DQ==").
    """

    kind: Kind
    remedy: Remedy = "none"
    provider: str = ""
    limit: int | None = None
    requested: int | None = None
    message: str = ""
    status: int = 0
    input: int | None = None
    confidence: Confidence = "likely"
    position: int | None = None
    item: str = ""


class ErrorPattern(Struct, frozen=True):
    """One wording: whose it is, how to recognise it, a sample, a near miss, and where it was seen or documented.

    A `weak` one is believed only when nothing speaks of a rate limit. `limit` and `requested` are what the sample says;
    where `tokens` is false its numbers are characters. `source` is owner/name#number of an issue, a file, or a page.
    """

    name: str
    provider: str
    pattern: str
    sample: str
    miss: str
    source: str
    kind: Kind
    limit: int | None = None
    requested: int | None = None
    remedy: Remedy | None = None
    weak: bool = False
    tokens: bool = True


class _ErrorTable(Struct, frozen=True, forbid_unknown_fields=True):
    auth: tuple[ErrorPattern, ...]
    rate_limit: tuple[ErrorPattern, ...]
    parameters: tuple[ErrorPattern, ...]
    reasoning: tuple[ErrorPattern, ...]
    overflow: tuple[ErrorPattern, ...]
    large: tuple[ErrorPattern, ...]
    figures: tuple[str, ...]
    bare: tuple[ErrorPattern, ...]


class _Figures(NamedTuple):
    limit: int | None = None
    requested: int | None = None
    input: int | None = None


def classify_error(error: object) -> ProviderError:
    """Return what a refusal means, from an exception with its causes, a response, a body, JSON or plain text.

    Errors that gateways wrap in strings of JSON or print as Python dictionaries are opened, however deep. The patterns
    and their public sources are the rows of `overflow.json`. An error that no row recognizes, and None, have the kind
    "other" and the remedy "none"; nothing is raised.

    Added in 0.1.0.
    """
    if isinstance(error, ProviderError):
        return error
    facts = read_error(error)
    text = facts.text
    if not text and not facts.status:
        return ProviderError("other")
    row = _row(text, facts)
    kind = row.kind if row else _by_status(facts.status, text)
    figures = _figures(text, facts) if kind in WITH_FIGURES and (row is None or row.tokens) else _Figures()
    position, item = _named(text) if kind == "reasoning_invalid" else (None, "")
    return ProviderError(
        kind,
        _remedy(kind, figures),
        row.provider if row else "",
        figures.limit,
        figures.requested,
        max(facts.words, key=len, default="")[:MAX_QUOTED],
        facts.status,
        figures.input,
        _confidence(row, facts),
        position,
        item,
    )


def is_overflow(error: object) -> bool:
    """Tell whether a request was refused because it does not fit, so that a compaction helps."""
    return classify_error(error).kind in {"context_overflow", "request_too_large"}


def classify_response(response: object, window: int | None = None) -> ProviderError:
    """Return whether a reply came from a window that was full: of the kind "context_overflow" then, else "other".

    An error inside a body of status 200 counts, a stop for a full window, more reported input than the window holds
    (the server cut it in silence), and a stop for length right at the window's end. The words of the reply never count.
    """
    if not isinstance(response, Mapping):
        return ProviderError("other")
    if response.get("error"):
        return classify_error(response["error"])
    reason, prompt, answer = _stop(response), *_used(response)
    full = reason in WINDOW_FULL
    if window and not full:
        full = prompt > window or (reason in CUT_SHORT and prompt + answer >= window)
    if not full:
        return ProviderError("other", message=reason)
    return ProviderError(
        "context_overflow",
        "compact",
        "",
        window,
        prompt or None,
        reason or "more input than the window",
        confidence="certain" if reason in WINDOW_FULL else "likely",
    )


def rows() -> tuple[ErrorPattern, ...]:
    """Return every wording known, in the order of their groups."""
    table = _table()
    return (*table.auth, *table.rate_limit, *table.parameters, *table.reasoning, *table.overflow, *table.large)


def _row(text: str, facts: ErrorText) -> ErrorPattern | None:
    """Return the wording that decides, by what each would be mistaken for."""
    access = facts.status in ACCESS
    if access and (row := _first(_compiled("auth"), text)):
        return row
    if not access and (row := _first(_compiled("reasoning"), text)):
        return row
    strong = _first(_compiled("overflow"), text)
    if strong is not None and strong.weak and facts.status >= 500:
        strong = None  # a fault of the server in words of many meanings
    rate = _first(_compiled("rate_limit"), text)
    if rate and (facts.status == 429 or strong is None or strong.weak or strong.name in GENERIC):
        return rate
    if strong is None and facts.status in REFUSED and (row := _bare(facts)):
        return row
    if (strong is None or strong.weak) and (row := _first(_compiled("parameters"), text)):
        return row
    if strong and not access and facts.status != 429:
        return strong
    return next((row for group in ("large", "auth", "parameters") if (row := _first(_compiled(group), text))), None)


def _bare(facts: ErrorText) -> ErrorPattern | None:
    """Return the row of a few words that alone are the reason of a refusal.

    Where there is a sentence, it decides and not the codes beside it.
    """
    sentences = [word for word in facts.words if word not in facts.codes] or facts.words
    return next(
        (row for pattern, row in _compiled("bare") if any(pattern.match(word.strip()) for word in sentences)), None
    )


def _confidence(row: ErrorPattern | None, facts: ErrorText) -> Confidence:
    """Return how sure a verdict is: a code of the provider decides, then words of its own that the status agrees to."""
    if row is None or row.weak:
        return "likely"
    if any(re.search(row.pattern, code, re.I) for code in facts.codes):
        return "certain"
    return "likely" if facts.status >= 500 and row.kind != "rate_limit" else "certain"


def _named(text: str) -> tuple[int | None, str]:
    """Return the position of the message and the item that a refusal of reasoning names."""
    place, item = MESSAGE.search(text), ITEM.search(text)
    return (int(place[1]) if place and len(place[1]) < 7 else None), ((item[1] or item[2]) if item else "")


def _by_status(status: int, text: str) -> Kind:
    match status:
        case 401 | 403:
            return "auth"
        case 429 | 529:
            return "rate_limit"
        case 413:
            return "request_too_large"
        case _:
            return "invalid_request" if "invalid_request" in text.lower() else "other"


def _remedy(kind: Kind, figures: _Figures) -> Remedy:
    match kind:
        case "context_overflow":
            alone = figures.input is not None and figures.limit is not None and figures.input < figures.limit
            return "reduce_max_tokens" if alone else "compact"
        case "rate_limit":  # above the limit of a minute by itself: no waiting helps
            return "compact" if (figures.requested or 0) > (figures.limit or LARGEST) else "wait"
        case "request_too_large":
            return "strip_media"
        case "invalid_max_tokens":
            return "reduce_max_tokens"
        case "reasoning_invalid":
            return "drop_reasoning"
        case "reasoning_missing":
            return "restore_reasoning"
        case _:
            return "none"


def _figures(text: str, facts: ErrorText) -> _Figures:
    for pattern in _patterns():
        if match := pattern.search(text):
            groups = {name: _number(value) for name, value in match.groupdict().items() if value}
            limit, requested, input_tokens = groups.get("limit"), groups.get("requested"), groups.get("input")
            answer = groups.get("output")
            if requested is None and input_tokens is not None:
                requested = input_tokens + (answer or 0)
            if input_tokens is None and requested is not None and answer is not None:
                input_tokens = requested - answer
            return _Figures(facts.figures.get("limit", limit), facts.figures.get("requested", requested), input_tokens)
    return _Figures(facts.figures.get("limit"), facts.figures.get("requested"))


def _number(text: str) -> int | None:
    digits = text.replace(",", "").replace("_", "")
    return int(digits) if digits.isdigit() and len(digits) <= 10 else None


def _stop(response: Mapping[str, object]) -> str:
    places: list[object] = [response]
    for name in ("choices", "candidates", "incomplete_details"):
        inner = response.get(name)
        places += inner[:1] if isinstance(inner, list) else [inner]
    for place in places:
        if isinstance(place, Mapping):
            for name in ("finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason", "reason"):
                if isinstance(reason := place.get(name), str) and reason:
                    return reason.lower()
    return ""


def _used(response: Mapping[str, object]) -> tuple[int, int]:
    try:
        report = reported(response)
    except UsageError:
        return 0, 0
    return report.prompt, report.completion


def _first(patterns: tuple[tuple[re.Pattern[str], ErrorPattern], ...], text: str) -> ErrorPattern | None:
    return next((row for pattern, row in patterns if pattern.search(text)), None)


_decode = decoder(_ErrorTable)


@cache
def _table() -> _ErrorTable:
    return _decode(files(__package__).joinpath("overflow.json").read_bytes())


@cache
def _compiled(group: str) -> tuple[tuple[re.Pattern[str], ErrorPattern], ...]:
    chosen: tuple[ErrorPattern, ...] = getattr(_table(), group)
    return tuple((re.compile(row.pattern, re.I), row) for row in chosen)


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.I) for pattern in _table().figures)
