"""What a track gives an adapter: the messages to send, and which of the framework's own each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from refold.core.plan import Plan

__all__ = ["TrackedView", "WrittenItem"]

Item = TypeVar("Item")


class WrittenItem(Struct, Generic[Item], frozen=True):
    """What a function wrote for native messages and the item that they are from."""

    write: Callable[[list[Any], Item | None], Iterable[Item]]
    natives: list[Any]
    item: Item | None
    items: tuple[Item, ...]

    def is_for(self, write: object, natives: list[Any], item: Item | None) -> bool:
        """Tell whether it is of the very same native messages, and of an item with the same fields."""
        same = self.write is write and len(self.natives) == len(natives) and all(map(is_, self.natives, natives))
        if not same or self.item is item:
            return same
        try:
            return bool(self.item == item)
        except Exception:  # an array in a field, whose comparison has no truth
            return False


class TrackedView(Struct, Generic[Item], frozen=True):
    """The messages to send now, native, and their relation to the messages of the framework.

    `origins` says for each of `messages` which of `items`, the framework's list, it is or was written from: the index,
    or None for a message that a plan made. Where an item has several native messages they share an index. `plans` are
    the plans that this call made, oldest first, `dropped` those that no longer fit a history that the framework edited.
    `untouched` says for each of `messages` whether no plan changed it, `counts` how many native messages each item has.
    `written` has what `as_items` wrote last for this conversation, by the id of the first native message.

    Added in 0.1.0.
    """

    messages: list[Any]
    origins: tuple[int | None, ...]
    untouched: tuple[bool, ...]
    items: list[Item]
    counts: list[int]
    plans: tuple[Plan, ...] = ()
    dropped: tuple[Plan, ...] = ()
    written: dict[int, WrittenItem[Item]] = {}

    def as_items(self, write: Callable[[list[Any], Item | None], Iterable[Item]] | None = None) -> list[Item]:
        """Return the messages to send as the framework's own.

        An item that no plan touched is the very same object. `write` is called for the others, with the native
        messages that an item has now and the item itself, or with one message that a plan made and None; it returns
        the framework's messages for them, by default the native ones. It is not called again for what is as before:
        what it returned is returned again by later calls, so nobody may change it in place. Items that were converted
        to no native message stay where they are.
        """
        out: list[Item] = []
        written: dict[int, WrittenItem[Item]] = {}
        messages, origins, untouched, end = self.messages, self.origins, self.untouched, len(self.messages)
        start = passed = 0  # messages before `start` are done; items before `passed` are in `out`, or a plan hides them
        while start < end:
            origin, stop, item = origins[start], start + 1, None
            if origin is not None:
                while stop < end and origins[stop] == origin:
                    stop += 1
                if passed < origin:
                    out += self._unconverted(passed, origin)
                passed, item = origin + 1, self.items[origin]
            if origin is not None and stop - start == self.counts[origin] and all(untouched[start:stop]):
                out.append(self.items[origin])
            elif write is None:
                out += messages[start:stop]
            else:
                natives = messages[start:stop]
                known = self.written.get(id(natives[0]))
                if known is None or not known.is_for(write, natives, item):
                    known = WrittenItem(write, natives, item, tuple(write(natives, item)))
                written[id(natives[0])] = known
                out += known.items
            start = stop
        self.written.clear()
        self.written.update(written)
        return out + self._unconverted(passed, len(self.items))

    def _unconverted(self, start: int, stop: int) -> list[Item]:
        counts = self.counts[start:stop]
        if 0 not in counts:
            return []
        return [item for item, count in zip(self.items[start:stop], counts, strict=True) if not count]
