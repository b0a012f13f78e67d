"""The meters of a session: one of what is shown, and one of the originals where plans make the two differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from refold._compaction.meter import Meter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.request import Options, Request
    from refold.core.messages import Message

__all__ = ["SessionMeters"]


class SessionMeters:
    """Counts each message once, under one set of options."""

    def __init__(self, options: Options, format: str | None) -> None:
        self._options = asdict(replace(options, format=format, plans=()))
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

    def request(self, messages: Sequence[Any], options: Options, start: tuple[Message, ...] | None = None) -> Request:
        return super().request(messages, options, self.start)
