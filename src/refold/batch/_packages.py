"""The optional packages of a batch, with one error for one that is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from refold.errors import UsageError

__all__ = ["needed"]


def needed(module: str, extra: str = "batch") -> Any:
    """Return a module of an optional package.

    Raises:
        UsageError: it is not installed; the message names the extra that has it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # the package is there, and something that it needs is not
        raise UsageError(
            f"a batch needs the package {module.partition('.')[0]}: pip install 'refold[{extra}]'"
        ) from None
