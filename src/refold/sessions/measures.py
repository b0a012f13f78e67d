"""The meters of a session: one of what is shown, and one of the originals where plans make the two differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from refold.meter import Meter

if TYPE_CHECKING:
    from refold.request import Options

__all__ = ["Measures"]


class Measures:
    """Counts each message once, under one set of options."""

    def __init__(self, options: Options, format: str | None) -> None:
        self._options = asdict(replace(options, format=format, plans=()))
        self.shown = Meter(**self._options)
        self._whole: Meter | None = None

    def originals(self, *, planned: bool) -> Meter:
        """Return a meter of the originals: the same one while no plan is in force."""
        if not planned:
            return self.shown
        if self._whole is None:
            self._whole = Meter(**self._options)
        return self._whole
