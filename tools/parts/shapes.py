"""What the docs say of stages, selectors, formats and rules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

from refold import _rules as rules
from refold import formats, stages
from refold.core import policy, view
from tools.parts.words import (
    first,
    modules,
    options,
    prose,
    sentence,
    table,
)

__all__ = ["PARTS"]


def _stages(path: Path) -> str:
    return "\n\n".join(_stage(found) for found in _structs(stages) if hasattr(found, "needs"))


def _selectors(path: Path) -> str:
    found = [each for each in _structs(stages) if each.__module__.endswith(".selectors") and callable(each)]
    return "\n\n".join(_stage(each, asks=False) for each in found if each.__name__ != "TextTarget")


def _stage(found: type[Struct], *, asks: bool = True) -> str:
    file = found.__module__.rpartition(".")[2]
    said = f"Asks for {_asks(found)}. " if asks else ""
    grows = "May make the view larger. " if getattr(found, "grows", False) else ""
    rows = [(f"`{name}`", f"`{kind}`", default) for name, kind, default in options(found)]
    listed = table(("option", "type", "default"), rows) if rows else "No options."
    source = f"[{file}.py](../src/refold/stages/{file}.py)"
    return f"### {found.__name__}\n\n{prose(found)}\n\n{said}{grows}{source}\n\n{listed}"


def _asks(found: type[Struct]) -> str:
    if issubclass(found, policy.Pure):
        return "nothing"
    source = inspect.getsource(import_module(found.__module__))
    words = {
        r"\b(?:ask|need_of)\(": "a summary (`SummaryNeed`)",
        r"\bFileNeed\(": "files (`FileNeed`)",
        r"\bArchiveNeed\(": "an archive (`ArchiveNeed`)",
        r"\bCountNeed\(": "an exact count (`CountNeed`)",
    }
    return ", ".join(said for pattern, said in words.items() if re.search(pattern, source)) or "nothing"


def _formats(path: Path) -> str:
    rows = []
    for name in formats.names():
        found = formats.find(name)
        traits = found.traits
        rows.append(
            (
                f"`{name}`",
                sentence(type(found)),
                ", ".join(dict.fromkeys(f"`{rule.name}`" for rule in found.rules)),
                "joined in one message" if traits.results_together else "one message each",
                "stays" if traits.system_in_list else "becomes a user message",
                "joined" if traits.alternates else "stay apart",
                "yes" if traits.assistant_last else "no",
            )
        )
    head = ("format", "", "rules", "results of a tool-call group", "system message in the list",
            "neighbours of one role",
            "assistant may be last")  # fmt: skip
    return table(head, rows)


def _rules(path: Path) -> str:
    rows = []
    for module in modules(rules):
        name = module.__name__.rpartition(".")[2]
        used = [each for each in formats.names() if any(type(r).__module__ == module.__name__ for r in _own(each))]
        if not used:
            continue  # a helper of the rules
        file = f"[`{name}`](../src/refold/_rules/{name}.py)"
        rows.append((file, first(module.__doc__), ", ".join(f"`{each}`" for each in used)))
    return table(("rule", "what it demands", "formats"), rows)


def _own(name: str) -> tuple[view.Rule, ...]:
    return formats.find(name).rules


def _structs(package: Any) -> Iterator[type[Struct]]:
    """Yield the public values of a package that are callable or have edits: stages and selectors."""
    for module in modules(package):
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name)
            own = inspect.isclass(found) and issubclass(found, Struct) and found.__module__ == module.__name__
            if own and (hasattr(found, "edits") or module.__name__.endswith(".selectors")):
                yield found


PARTS: dict[str, Callable[[Path], str]] = {
    "formats": _formats,
    "rules": _rules,
    "selectors": _selectors,
    "stages": _stages,
}
