"""The policies, one a file: whoever adds a file adds a policy."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from refold._text.suggestions import meant
from refold.core.budget import Exactly, Never
from refold.core.policy import Policy
from refold.errors import UnknownPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from refold.core.budget import Limit

__all__ = ["find", "names", "threshold"]

GROUP = "refold.policies"


def find(name: str) -> Policy:
    """Return a policy by its name, by the name of an entry point in the group `refold.policies`, or by a path.

    A path ends in `.py` and names a file that has a `POLICY`; the file is run.

    Raises:
        UnknownPolicy: no policy of that name, or a file without one.
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name in names():
        return _checked(import_module(f"{__name__}.{name.replace('-', '_')}").__dict__, name)
    entry = _entry_points().get(name)
    if entry is None:
        raise UnknownPolicy(f"there is no policy {name!r}{meant(name, _all())}; there are {', '.join(_all())}")
    found = entry.load()
    return found if isinstance(found, Policy) else _checked(getattr(found, "__dict__", {}), name)


@cache
def names() -> tuple[str, ...]:
    """Return the names of the policies that come with refold, sorted."""
    files = Path(__file__).parent.glob("[a-z]*.py")
    return tuple(sorted(file.stem.replace("_", "-") for file in files))


def threshold(tokens: int) -> Limit:
    """Return a trigger at a number of tokens; zero or less never fires (V01)."""
    return Exactly(tokens, inclusive=True) if tokens > 0 else Never()


def _from_file(path: Path) -> Policy:
    if not path.is_file():
        raise UnknownPolicy(f"there is no file {path}: name a Python file that has a POLICY")
    space: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), space)  # noqa: S102 - the caller's own file, by its path
    return _checked(space, str(path))


def _checked(space: Mapping[str, object], name: str) -> Policy:
    found = space.get("POLICY")
    if not isinstance(found, Policy):
        raise UnknownPolicy(f"{name} has no POLICY: assign a refold Policy to that name")
    return found


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _all() -> tuple[str, ...]:
    return tuple(sorted({*names(), *_entry_points()}))
