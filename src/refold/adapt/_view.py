"""What a track gives an adapter: the messages to send, and which of the framework's own each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from refold.core.plan import Plan

__all__ = ["TrackedView"]

Item = TypeVar("Item")


class TrackedView(Struct, Generic[Item], frozen=True):
    """The messages to send now, native, and their relation to the messages of the framework.

    `origins` says for each of `messages` which of `items`, the framework's list, it is or was written from: the index,
    or None for a message that a plan made. Where an item has several native messages they share an index. `plans` are
    the plans that this call made, oldest first, `dropped` those that no longer fit a history that the framework edited.
    `untouched` says for each of `messages` whether no plan changed it, `counts` how many native messages each item has.

    Added in 0.1.0.
    """

    messages: list[Any]
    origins: tuple[int | None, ...]
    untouched: tuple[bool, ...]
    items: list[Item]
    counts: list[int]
    plans: tuple[Plan, ...] = ()
    dropped: tuple[Plan, ...] = ()

    def as_items(self, write: Callable[[list[Any], Item | None], Iterable[Item]] | None = None) -> list[Item]:
        """Return the messages to send as the framework's own.

        An item that no plan touched is the very same object. `write` is called for the others, with the native
        messages that an item has now and the item itself, or with one message that a plan made and None; it returns
        the framework's messages for them, by default the native ones. Items that were converted to no native message
        stay where they are.
        """
        write = write or (lambda natives, item: natives)
        out: list[Item] = []
        passed = 0  # items before this one are in `out`, or a plan hides them
        entries = zip(self.origins, self.messages, self.untouched, strict=True)
        for origin, group in groupby(entries, key=lambda entry: entry[0]):
            members = list(group)
            natives = [native for _, native, _ in members]
            if origin is None:
                for native in natives:
                    out.extend(write([native], None))
                continue
            out.extend(self._unconverted(passed, origin))
            passed = origin + 1
            item = self.items[origin]
            if len(natives) == self.counts[origin] and all(same for _, _, same in members):
                out.append(item)
            else:
                out.extend(write(natives, item))
        out.extend(self._unconverted(passed, len(self.items)))
        return out

    def _unconverted(self, start: int, stop: int) -> Iterator[Item]:
        for _ in range(self.counts[start:stop].count(0)):
            start = self.counts.index(0, start) + 1
            yield self.items[start - 1]
