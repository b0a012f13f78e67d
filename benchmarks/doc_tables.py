"""Tables in Markdown, and the marks between which pages of `docs/` have them."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["table", "write"]


def table(head: Sequence[str], body: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table, all but its first columns aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---" * left + "|---:" * (len(head) - left) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(cells) + " |" for cells in body)])


def write(page: Path, made: Mapping[str, str]) -> None:
    """Put each text between the marks of its name.

    Raises:
        SystemExit: the page has no such marks.
    """
    text = page.read_text("utf-8")
    for name, new in made.items():
        pattern = rf"(<!-- measured:{name} -->\n).*?(<!-- /measured -->)"
        text, count = re.subn(pattern, lambda found, new=new: f"{found[1]}{new}\n{found[2]}", text, flags=re.S)
        if count != 1:
            sys.exit(f"{page} has no place for {name}: add <!-- measured:{name} --> and <!-- /measured -->")
    page.write_text(text, "utf-8")
