"""Reads values inside texts: JSON in strings of JSON, printed Python dictionaries, and requests quoted in an error.

Gateways wrap the error of the provider behind them: as a string of JSON in their own JSON (Vertex, OpenRouter's
`metadata.raw`, Databricks), behind a prefix (LiteLLM, the SDKs), printed as a Python dictionary, or pasted between
quotes that were not escaped. Each call of `embedded_values` opens one level; the caller calls it again on the result.
"""

from __future__ import annotations

import json
import re

import msgspec

__all__ = ["embedded_values", "unescaped", "without_quotations"]

JSON_LIMIT = 1_000_000  # characters; a longer text is read as plain text
MAX_VALUES = 8  # positions of one text at which a JSON value is tried
MIN_QUOTATION = 16  # characters of a quotation that can hold an error message

_DECODER = json.JSONDecoder(strict=False)  # a line's end inside a string is common in pasted bodies
_START = re.compile(r"""\{\s*"|\[\s*[{"]""")
_PRINTED = re.compile(r"\{\s*'")
_LITERAL = re.compile(r"'((?:[^'\\]|\\.)*+)'|\"((?:[^\"\\]|\\.)*+)\"", re.S)
_PRINTED_STATUS = re.compile(r"'(?:status_code|status|code)':\s*'?([45]\d\d)\b")
_LEVEL = re.compile(r"\\(.)", re.S)
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([\"'`/])|[nrt])")
_MARKS = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{LEFT SINGLE QUOTATION MARK}": "'"})
_REQUEST_WORDS = (
    r"(?<!error )(?<!error_)\b(?:prompt|request|input|query|messages?|content|payload|body|text|question)\b"
)
_QUOTED = re.compile(rf"{_REQUEST_WORDS}[^\n\"“]{{0,24}}[\"“]([^\"“”]{{{MIN_QUOTATION},}}+)", re.I)
_ECHOED = re.compile(
    r"(?<!invalid )(?<!bad )\b(?:prompt|request|input|query|messages|payload|body)"
    r"(?: (?:was|is|body|text|received|sent|data|content))*\s*[:=]\s?(?=.{40})", re.I | re.S,
)  # fmt: skip
_SINGLE = re.compile(rf"(?<![\w])'(?!\w{{1,2}} )(.{{{MIN_QUOTATION},}}?)'(?!\w)", re.S)


def embedded_values(text: str) -> tuple[object, ...]:
    """Return the plain text and the values that a text is made of, in order; nothing where it is plain text alone.

    One level is opened: a value is what JSON holds, a string literal of a printed dictionary, or its status.
    """
    if len(text) > JSON_LIMIT:
        return ()
    whole = _decoded(text)
    if whole is not None:
        return (whole,)
    return _scanned(text) or (_scanned(_LEVEL.sub(r"\1", text)) if "\\" in text else ()) or _printed(text)


def unescaped(text: str) -> str:
    """Return a text without the escapes of the levels it was wrapped in."""
    return _ESCAPE.sub(_unescaped, text).translate(_MARKS) if "\\" in text else text.translate(_MARKS)


def without_quotations(text: str, *, strictly: bool = False) -> str:
    """Return a text without what it quotes of the request, whose words are not the provider's.

    `strictly` also drops what follows "prompt:" and the like, and quotations of every kind: for errors that are not
    about the request, which quote it in full.
    """
    rest = _QUOTED.sub(_emptied, text)
    if not strictly:
        return rest
    rest = _SINGLE.sub("''", rest)
    echo = _ECHOED.search(rest)
    return rest[: echo.end()] if echo else rest


def _emptied(match: re.Match[str]) -> str:
    start, stop = match.span(1)
    return match.string[match.start() : start] + match.string[stop : match.end()]


def _decoded(text: str) -> object:
    if text.lstrip()[:1] not in {"{", "[", '"'}:
        return None
    try:
        value: object = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    return value


def _scanned(text: str) -> tuple[object, ...]:
    """Return the pieces of a text in which JSON stands anywhere."""
    values: list[object] = []
    consumed = start_at = 0
    for _ in range(MAX_VALUES):
        start = _START.search(text, start_at)
        if start is None:
            break
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            start_at = start.start() + 1
            continue
        values += [words for words in (text[consumed : start.start()].strip(),) if words]
        values.append(value)
        consumed = start_at = end
    return (*values, text[consumed:].strip()) if values else ()


def _printed(text: str) -> tuple[object, ...]:
    """Return the pieces of a text in which a dictionary of Python's is printed: the words before it, then its texts."""
    start = _PRINTED.search(text)
    if start is None:
        return ()
    printed = text[start.start() :]
    literals = [_LEVEL.sub(r"\1", single or double) for single, double in _LITERAL.findall(printed)]
    status = _PRINTED_STATUS.search(printed)
    coded: tuple[object, ...] = ({"status": int(status[1])},) if status else ()
    return (text[: start.start()].strip(), *coded, *literals) if literals else ()


def _unescaped(match: re.Match[str]) -> str:
    code, mark = match.groups()
    if code is not None:
        return chr(int(code, 16))
    return mark if mark is not None else " "
