"""`refold sessions`: the commands about stored sessions, one module each."""

from __future__ import annotations

import rich_click as click

from refold._cli.groups import LazyGroup

NAMES = ("list", "show", "search", "rewind", "export", "import", "delete")
MODULES = {"import": "import_"}  # the other is no name of a module


@click.group("sessions", cls=LazyGroup, modules={name: f"sessions.{MODULES.get(name, name)}" for name in NAMES})
def command() -> None:
    """List, show, search, rewind, export, import or delete sessions."""
