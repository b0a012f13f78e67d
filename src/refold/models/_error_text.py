"""Extracts status, codes, messages and figures from an error of any kind: exception, response body or text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from refold._text.embedded_json import embedded_values, unescaped, without_quotations
from refold.core._json import is_whole

__all__ = ["ErrorText", "read_error"]

DEEPEST = 20  # levels of causes and nested bodies; a body within three strings of JSON is 12 deep
MOST = 300  # values looked at: an error may carry the whole request
HEAD, TAIL = 6_000, 2_000  # characters kept of one text; the reason is at its beginning or its end
NOT_ABOUT_THE_REQUEST = frozenset({401, 403})  # as all statuses from 500 on: what they quote of it is none of theirs

CODES = ("code", "type", "error_type", "status", "reason", "__type", "Code", "error_code")
STATUS = ("status_code", "status", "http_status", "statusCode", "code")
WORDS = ("message", "Message", "error", "errors", "detail", "details", "msg", "body", "error_message", "errorMessage",
         "description", "responseBody", "data", "response", "raw", "metadata", "cause", "Error", "args",
         "upstream_error", "last_error", "error_description", "innererror", "inner_error", "originalError",
         "previous_errors", "base_resp", "status_msg", "external_model_error", "external_model_message")  # fmt: skip
ATTRIBUTES = ("message", "body", "response", "error", "code", "type", "status_code", "status", "http_status", "detail",
              "text", "content")  # fmt: skip
FIGURES = {"n_ctx": "limit", "n_prompt_tokens": "requested", "max_context_length": "limit"}


_LEADING = re.compile(
    r"\W*(?:api |http )?(?:error|status)?(?: code)?:? ?([45]\d\d)\b(?! (?:tokens|input|char|byte|output|model))", re.I
)


class ErrorText(Struct):
    """The words of an error in the order met, its HTTP status, 0 when unknown, and figures given as fields.

    `codes` are those of the words that stand in a field for codes, and the names of exceptions.
    """

    status: int = 0
    words: list[str] = []
    figures: dict[str, int] = {}
    codes: list[str] = []

    @property
    def text(self) -> str:
        """All words, each once, bounded, without escapes and without what they quote of the request."""
        strictly = self.status in NOT_ABOUT_THE_REQUEST or self.status >= 500
        words = (without_quotations(unescaped(each), strictly=strictly) for each in self.words)
        return clipped("\n".join(dict.fromkeys(words)))


def read_error(error: object) -> ErrorText:
    """Read an exception with its causes, a response, a mapping, JSON or plain text; never raises, never fetches."""
    error_text = ErrorText()
    seen: dict[int, object] = {}  # the values too: an object that is freed leaves its id to another
    waiting: list[tuple[object, int]] = [(error, 0)]
    while waiting and len(seen) < MOST:
        value, depth = waiting.pop(0)
        if value is None or id(value) in seen or depth > DEEPEST:
            continue
        seen[id(value)] = value
        waiting += [(inner, depth + 1) for inner in _read(value, error_text)]
    if not error_text.status and (leading := next(filter(None, map(_LEADING.match, error_text.words)), None)):
        error_text.status = int(leading[1])
    return error_text


def clipped(text: str) -> str:
    """Return a text bounded to what patterns are run over."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _read(value: object, error_text: ErrorText) -> Iterator[object]:
    match value:
        case bool() | int() | float():
            pass
        case bytes() | bytearray():
            yield bytes(value).decode("utf-8", "replace")
        case str():
            inner = embedded_values(value)
            if inner and inner != (value,):
                yield from inner
            else:
                error_text.words.append(clipped(value))
        case Mapping():
            yield from _mapping(value, error_text)
        case list() | tuple():
            yield from value[:20]
        case BaseException():
            yield from _exception(value, error_text)
        case _:
            yield from _attributes(value, error_text)


def _mapping(value: Mapping[object, object], error_text: ErrorText) -> Iterator[object]:
    for name in STATUS:
        _status(value.get(name), error_text)
    codes = [code for name in CODES if isinstance(code := value.get(name), str)]
    error_text.words += codes
    error_text.codes += codes
    for name, meaning in FIGURES.items():
        if isinstance(figure := value.get(name), int) and figure > 0:
            error_text.figures.setdefault(meaning, figure)
    metadata = value.get("ResponseMetadata")  # botocore
    if isinstance(metadata, Mapping):
        _status(metadata.get("HTTPStatusCode"), error_text)
    yield from (value[name] for name in WORDS if name in value)


def _exception(value: BaseException, error_text: ErrorText) -> Iterator[object]:
    error_text.words.append(type(value).__name__)
    error_text.codes.append(type(value).__name__)
    try:
        text = str(value)
    except Exception:
        text = ""
    yield text
    yield from _attributes(value, error_text)
    yield value.__cause__
    yield value.__context__
    if isinstance(value, BaseExceptionGroup):
        yield from value.exceptions[:20]


def _attributes(value: object, error_text: ErrorText) -> Iterator[object]:
    for name in STATUS:
        _status(_attribute(value, name), error_text)
    for name in ATTRIBUTES:
        inner = _attribute(value, name)
        if isinstance(inner, (str, bytes, Mapping, list, tuple)) or (name in {"response", "error", "body"} and inner):
            yield inner


def _attribute(value: object, name: str) -> object:
    """Return an attribute, None when there is none or reading it fails (a streamed response not read yet)."""
    try:
        inner = getattr(value, name, None)
    except Exception:
        return None
    return None if callable(inner) else inner


def _status(value: object, error_text: ErrorText) -> None:
    if isinstance(value, str) and value.isdigit() and len(value) == 3:
        value = int(value)
    if not error_text.status and is_whole(value) and 100 <= value <= 599:
        error_text.status = int(value)
