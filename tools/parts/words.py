"""Words and tables of Markdown, from docstrings and values."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from msgspec import NODEFAULT, Struct

__all__ = ["cut", "first", "joined", "modules", "options", "prose", "sentence", "shown", "table"]


def modules(package: Any) -> Iterator[Any]:
    for module in sorted(iter_modules(package.__path__), key=lambda module: module.name):
        if not module.name.startswith("_"):
            yield import_module(f"{package.__name__}.{module.name}")


def sentence(thing: Any) -> str:
    return first(thing.__doc__)


def first(docstring: str | None) -> str:
    return joined(inspect.cleandoc(docstring or "").split("\n\n")[0])


def prose(thing: Any) -> str:
    """Return a docstring as paragraphs, sections such as Raises in one line each."""
    return "\n\n".join(map(joined, inspect.cleandoc(thing.__doc__ or "").split("\n\n")))


def joined(text: str) -> str:
    return " ".join(text.split())


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shown(value: Any) -> str:
    """Return a value as one would write it: a struct with what differs from its defaults, sets sorted."""
    match value:
        case Struct():
            names, defaults = value.__struct_fields__, value.__struct_defaults__
            padded = (NODEFAULT,) * (len(names) - len(defaults)) + tuple(defaults)
            given = [
                f"{name}={shown(getattr(value, name))}"
                for name, default in zip(names, padded, strict=True)
                if getattr(value, name) != default
            ]
            return f"{type(value).__name__}({', '.join(given)})"
        case frozenset():
            return f"{{{', '.join(map(repr, sorted(value)))}}}" if value else "{}"
        case bool() | None:
            return repr(value)
        case int():
            return f"{value:_}"
        case str():
            return f'"{value}"'
        case _:
            return repr(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return joined(text).replace("|", "\\|")


def options(found: type[Struct]) -> Iterator[tuple[str, str, str]]:
    names, defaults = found.__struct_fields__, found.__struct_defaults__
    padded = (NODEFAULT,) * (len(names) - len(defaults)) + tuple(defaults)
    for name, default in zip(names, padded, strict=True):
        noted = (inspect.get_annotations(base) for base in found.__mro__)
        kind = next((known[name] for known in noted if name in known), "")
        yield name, str(kind), "*required*" if default is NODEFAULT else f"`{shown(default)}`"
