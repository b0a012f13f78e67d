"""The shared part of both OpenAI protocols: error texts, names, and lengths of ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold.testing.judge._problem import Mismatch, Path, Problem, indexed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SDK", "empty", "named", "short", "worded"]

SDK = "openai SDK, types"
NAMES = "https://platform.openai.com/docs/api-reference/chat/create (tools.function.name)"
NAME = re.compile(r"[a-zA-Z0-9_-]+")
MOST_NAME = 64  # "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."


def worded(fault: Mismatch) -> Problem:
    """Return a difference from the types in OpenAI's words."""
    at = indexed(fault.at)
    match fault.kind:
        case "missing":
            text = f"Missing required parameter: '{at}'."
        case "unknown":
            text = f"Unknown parameter: '{at}'."
        case "tag" | "value":
            *first, last = [f"'{value}'" for value in fault.expected] or ["''"]
            known = f"{', '.join(first)}, and {last}" if first else last
            text = f"Invalid value: '{fault.got}'. Supported values are: {known}."
        case _:
            wanted = _either([_kind(name) for name in fault.expected if name != "null"])
            text = f"Invalid type for '{at}': expected {wanted}, but got {_kind(fault.got)} instead."
    return Problem(fault.rule, text, fault.at, SDK)


def empty(at: Path) -> Problem:
    """Return the refusal of an empty array."""
    text = (
        f"Invalid '{indexed(at)}': empty array. Expected an array with minimum length 1, but got an empty array "
        "instead."
    )
    return Problem("content", text, at, SDK)


def named(name: object, at: Path) -> Iterator[Problem]:
    """Yield what is wrong with the name of a function."""
    if not isinstance(name, str):
        return
    if not name:
        text = (
            f"Invalid '{indexed(at)}': empty string. Expected a string with minimum length 1, but got an empty string "
            "instead."
        )
        yield Problem("names", text, at, NAMES)
    elif not NAME.fullmatch(name):
        text = (
            f"Invalid '{indexed(at)}': string does not match pattern. Expected a string that matches the pattern "
            f"'^{NAME.pattern}$'."
        )
        yield Problem("names", text, at, NAMES)
    else:
        yield from short(name, at, MOST_NAME, "names")


def short(text: object, at: Path, most: int, rule: str = "ids") -> Iterator[Problem]:
    """Yield that a string is too long."""
    if isinstance(text, str) and len(text) > most:
        message = (
            f"Invalid '{indexed(at)}': string too long. Expected a string with maximum length {most}, but got a "
            f"string with length {len(text)} instead."
        )
        yield Problem(rule, message, at, NAMES if rule == "names" else SDK)


def _kind(name: str) -> str:
    article = "an" if name[:1] in "aeio" else "a"
    return name if name == "null" else f"{article} {name}"


def _either(names: list[str]) -> str:
    if len(names) < 2:
        return names[0] if names else "null"
    return f"one of {', '.join(names[:-1])} or {names[-1]}"
