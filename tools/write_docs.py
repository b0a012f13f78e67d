"""Writes what the docs take from the code: tables and trees between markers, pictures, and the golden plans.

    python tools/write_docs.py            write what is out of date, and say what it was
    python tools/write_docs.py --check    write nothing; exit 1 when something is out of date

A part stands between `<!-- generated:NAME -->` and `<!-- /generated -->`; NAME is a key of PARTS in one of
the modules of tools/parts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from refold.policies import names  # noqa: E402
from tests.golden import cases  # noqa: E402
from tools import pictures  # noqa: E402
from tools.parts import commands, differential, layout, policies, shapes, tables  # noqa: E402

__all__ = ["PARTS", "main", "outdated"]

MARK = re.compile(r"(<!-- generated:([\w-]+) -->\n)(.*?)(<!-- /generated -->)", re.S)
PICTURES = ROOT / "docs" / "pictures"
PARTS = dict(
    sorted(part for group in (commands, differential, layout, policies, shapes, tables) for part in group.PARTS.items())
)


def main(arguments: Sequence[str]) -> int:
    """Write what is out of date, or with `--check` only say it; return the exit code."""
    found = dict(outdated())
    for path, content in found.items():
        print(f"out of date: {path.relative_to(ROOT)}")
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return 1 if found and "--check" in arguments else 0


def outdated() -> Iterator[tuple[Path, bytes]]:
    """Yield each file whose content is not what the code gives, with what it should be."""
    for path, content in (*_golden(), *_pages()):
        if not path.exists() or path.read_bytes() != content:
            yield path, content


def _golden() -> Iterator[tuple[Path, bytes]]:
    yield PICTURES / "process.svg", pictures.process().encode()
    for name in names():
        for case in cases.CASES:
            made = cases.made(name, case)
            yield cases.path(name, case), cases.wire(made.plan)
            if case in policies.telling(name):
                picture = pictures.before_and_after(made.plan, made.messages, made.counter)
                yield PICTURES / f"{name}-{case}.svg", picture.encode()


def _pages() -> Iterator[tuple[Path, bytes]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        yield path, _rewritten(path).encode()


def _rewritten(path: Path) -> str:
    return MARK.sub(lambda found: f"{found[1]}{_part(found[2], path)}{found[4]}", path.read_text("utf-8"))


def _part(name: str, path: Path) -> str:
    if name not in PARTS:
        raise SystemExit(f"{path.relative_to(ROOT)}: no generated part is called {name}; there are {', '.join(PARTS)}")
    return f"\n{PARTS[name](path).strip()}\n\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
