"""Finds policies by name: those of this package, one a file, those of other packages, and files of the caller."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from refold._text.suggestions import did_you_mean
from refold.core.budget import Exactly, Never
from refold.core.policy import Policy
from refold.errors import UnknownPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from refold.core.budget import Limit

__all__ = ["find", "names", "threshold"]

ENTRY_POINTS = "refold.policies"


def find(name: str) -> Policy:
    """Return a policy by its name, by the name of an entry point in the group `refold.policies`, or by a path.

    A path ends in `.py` and names a file that has a `POLICY`; the file is run.

    Raises:
        UnknownPolicy: no policy of that name, or a file without one.
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name in names():
        return _policy_in(import_module(f"refold.policies.{name.replace('-', '_')}").__dict__, name)
    entry = _entry_points().get(name)
    if entry is None:
        known = tuple(sorted({*names(), *_entry_points()}))
        raise UnknownPolicy(f"there is no policy {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")
    loaded = entry.load()
    return loaded if isinstance(loaded, Policy) else _policy_in(getattr(loaded, "__dict__", {}), name)


@cache
def names() -> tuple[str, ...]:
    """Return the names of the policies that come with refold, sorted."""
    files = Path(__file__).parent.glob("[a-z]*.py")
    return tuple(sorted(file.stem.replace("_", "-") for file in files))


def threshold(tokens: int) -> Limit:  # V01
    """Return a trigger at a number of tokens; zero or less never fires."""
    return Exactly(tokens, inclusive=True) if tokens > 0 else Never()


def _from_file(path: Path) -> Policy:
    if not path.is_file():
        raise UnknownPolicy(f"there is no file {path}: name a Python file that has a POLICY")
    space: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), space)  # noqa: S102 - the caller's own file, by its path
    return _policy_in(space, str(path))


def _policy_in(space: Mapping[str, object], name: str) -> Policy:
    policy = space.get("POLICY")
    if not isinstance(policy, Policy):
        raise UnknownPolicy(f"{name} has no POLICY: assign a refold Policy to that name")
    return policy


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
