"""What the docs say of the folders, and of who may import whom."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import refold
from tools.parts.words import first, table

__all__ = ["PARTS"]


def _layout(path: Path) -> str:
    rows = []
    for module in sorted(iter_modules(refold.__path__), key=lambda each: (not each.ispkg, each.name)):
        name = f"{module.name}/" if module.ispkg else f"{module.name}.py"
        said = first(import_module(f"refold.{module.name}").__doc__)
        rows.append((f"[`{name}`](../src/refold/{name})", said))
    return table(("in `src/refold/`", "what it is"), rows)


def _imports(path: Path) -> str:
    layers = import_module("tests.test_architecture").LAYERS
    return table(
        ("layer", "modules"),
        [(str(number), ", ".join(f"`{name}`" for name in names)) for number, names in enumerate(layers, 1)],
    )


PARTS: dict[str, Callable[[Path], str]] = {
    "imports": _imports,
    "layout": _layout,
}
