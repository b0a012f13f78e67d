"""One module for each family of peers, one class for each row; nothing of a peer is imported before it is made."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.base import Peer


def peers() -> list[type[Peer]]:
    """Return the rows of the table, in the order of modules and classes."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*_peers.py"))
    return [peer for name in names for peer in import_module(f"adapters.{name}").PEERS]
