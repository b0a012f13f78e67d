"""A hook of MkDocs: pages keep the links that also work in the repository.

Pages of docs/ link to files outside it (`../README.md`, `../src/refold/api.py`). Every such file becomes a page or a
file of the site, and the links to it are rewritten.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, InclusionLevel

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\()(?![a-z]+:)([^)#\s]+)((?:#[^)\s]*)?\))")
TEXT = {".py": "python", ".toml": "toml", ".sh": "sh"}  # shown as a page; anything else is a file to download


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/ that pages link to, and those that they link to."""
    waiting = [ROOT / "README.md", *(DOCS / file.src_uri for file in files.documentation_pages())]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if DOCS not in path.parents:
            files.append(_added(path, config))
        if path.suffix != ".md":
            continue
        for target in _targets(path):
            if target not in seen and target.exists():  # MkDocs warns of what does not
                seen.add(target)
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page to where the site has their targets."""
    here = _source(page.file.src_uri)
    folder = PurePosixPath(page.file.src_uri).parent

    def rewritten(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(here.parent / link[2]))
        place = os.path.relpath(_place(target), folder) if target.exists() else link[2]
        return f"{link[1]}{place}{link[3]}"

    return LINK.sub(rewritten, markdown)


def _targets(page: Path) -> set[Path]:
    """The files of the repository that a page links to."""
    return {Path(os.path.normpath(page.parent / target)) for _, target, _ in LINK.findall(page.read_text("utf-8"))}


def _place(path: Path) -> str:
    """The path in the site's sources of a file of the repository."""
    if DOCS in path.parents:
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".md":
        return name
    return f"source/{name}.md" if path.is_dir() or path.suffix in TEXT else f"source/{name}"


def _source(place: str) -> Path:
    """The file of the repository behind a path in the site's sources: the inverse of `_place`."""
    if (DOCS / place).exists():
        return DOCS / place
    return ROOT / place.removeprefix("source/")


def _added(path: Path, config: MkDocsConfig) -> File:
    """A file outside docs/ as a file of the site."""
    place, name = _place(path), path.relative_to(ROOT).as_posix()
    if path.is_dir():
        rows = [f"- `{each.name}`{_summary(each)}" for each in sorted(path.iterdir()) if each.name[0] not in "_."]
        return _generated(place, f"# `{name}/`\n\n" + "\n".join(rows), config)
    if path.suffix in TEXT:
        return _generated(place, f"# `{name}`\n\n~~~~{TEXT[path.suffix]}\n{path.read_text('utf-8')}~~~~\n", config)
    if path.suffix == ".md" and path.parent == ROOT:  # in the navigation
        return File.generated(config, place, content=path.read_text("utf-8"))
    return _generated(place, path.read_bytes(), config)


def _generated(place: str, content: str | bytes, config: MkDocsConfig) -> File:
    return File.generated(config, place, content=content, inclusion=InclusionLevel.NOT_IN_NAV)


def _summary(path: Path) -> str:
    """The first sentence of a module's docstring, where there is one."""
    path = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) if path.suffix == ".py" and path.exists() else None
    return ": " + " ".join(text.partition("\n\n")[0].split()) if text else ""
