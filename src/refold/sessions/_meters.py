"""The meters of a session: one of what is shown, and one of the originals where plans make the two differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from refold._compaction.meter import Meter
from refold._compaction.options import MeterOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.options import Options
    from refold._compaction.request import Request
    from refold.core._native import Messages
    from refold.core.messages import Message

__all__ = ["SessionMeters"]


class SessionMeters:
    """Counts each message once, under one set of options."""

    def __init__(self, options: Options, format: str | None) -> None:
        known = asdict(replace(options, format=format))
        self._options: MeterOptions = {name: known[name] for name in MeterOptions.__optional_keys__}  # type: ignore[assignment]
        self.shown = Meter(**self._options)
        self._whole: _Folded | None = None

    def originals(self, start: Sequence[Message], *, planned: bool) -> Meter:
        """Return a meter of the originals: the same one while no plan is in force. `start` is the view as it is now."""
        if not planned:
            return self.shown
        if self._whole is None:
            self._whole = _Folded(**self._options)
        self._whole.start = tuple(start)
        return self._whole


class _Folded(Meter):
    """A meter that knows what the plans in force fold to, so that a request costs the view and not the plans."""

    start: tuple[Message, ...] = ()

    def request(self, messages: Messages, options: Options, start: tuple[Message, ...] | None = None) -> Request:
        return super().request(messages, options, self.start)
