"""Plots as PNG images, rendered from SVG by resvg, an optional dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["png_of", "ready"]

WIDTH = 1_200  # pixels, twice what the plot is drawn for


def ready() -> ModuleType:
    """Return what draws pictures.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import resvg_py
    except ImportError:
        raise UsageError("PNG pictures need one more package: pip install 'refold[plots]'") from None
    return resvg_py


def png_of(svg: str) -> bytes:
    """Return a plot in one palette as a PNG picture.

    Raises:
        UsageError: what draws it is not installed.
    """
    return bytes(ready().svg_to_bytes(svg_string=svg, width=WIDTH))
