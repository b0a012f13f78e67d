"""Typed access to JSON values that may have any shape: a provider's, an agent's, a file's.

A value that is not of the requested type is read as an empty one, so reading needs no ladder of type checks and
never fails. Nothing is copied: what is returned is the value of the document itself, and what is unknown in it is
carried on untouched.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Json",
    "decoded",
    "encoded",
    "is_whole",
    "listing",
    "mapping",
    "objects",
    "placed_objects",
    "string",
    "string_of",
    "strings_within",
    "type_in_words",
]

Json: TypeAlias = dict[str, Any]
"""A JSON object."""


def mapping(value: object) -> Json:
    """Return a JSON object as it is, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return a JSON array as it is, an empty one for anything else."""
    return value if isinstance(value, list) else []


def objects(value: object) -> list[Json]:
    """Return the objects of a JSON array; none for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def placed_objects(value: object) -> list[tuple[int, Json]]:
    """Return the objects of a JSON array with their positions in it; none for anything else."""
    return [(place, entry) for place, entry in enumerate(listing(value)) if isinstance(entry, dict)]


def string_of(value: object) -> str:
    """Return a JSON string as it is, an empty one for anything else."""
    return value if isinstance(value, str) else ""


def string(container: Json, key: str) -> str:
    """Return the string at a key, an empty one where there is none."""
    return string_of(container.get(key))


def type_in_words(value: object) -> str:
    """Return the type of a JSON value as a message says it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"


def strings_within(value: object) -> Iterator[str]:
    """Yield the strings in a value, however deep, in no particular order; keys of objects are none."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as container:
                waiting += container.values()
            case list() | tuple() as container:
                waiting += container


def decoded(text: str) -> Any:
    """Return the value of a JSON text, also of one with lone surrogates or NaN; None where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def encoded(value: object) -> bytes:
    """Return a value as JSON, also one with lone surrogates or numbers beyond 64 bits, which `decoded` reads."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return json.dumps(value, separators=(",", ":")).encode()


def is_whole(value: object) -> TypeGuard[int]:
    """Tell whether a value is a JSON number without a fraction; `true` and `false` are none."""
    return isinstance(value, int) and not isinstance(value, bool)
