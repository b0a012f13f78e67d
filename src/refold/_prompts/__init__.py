"""The texts that are sent to summarizers: one `.md` file each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["names", "text"]


@cache
def text(name: str) -> str:
    """Return a prompt by its file name without `.md`.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return (files("refold._prompts") / f"{name}.md").read_text("utf-8").strip()


@cache
def names() -> tuple[str, ...]:
    """Return the names of all prompts, sorted."""
    return tuple(
        sorted(file.name.removesuffix(".md") for file in files("refold._prompts").iterdir() if file.name[-3:] == ".md")
    )
