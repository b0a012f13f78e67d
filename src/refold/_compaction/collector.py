"""Pauses the collector of cyclic garbage while a pass runs.

A pass makes a million small objects that live to its end and hardly a cycle, and the collector would look at all of
them again and again: that took a tenth to two thirds of a pass over a million tokens (`benchmarks/speed.py --shapes`).
The collector is one for the whole process, so passes on several threads are counted: it goes on when the last of them
ends a step. While a model writes a summary, it works.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["uncollected"]

T = TypeVar("T")
Yielded = TypeVar("Yielded")
Sent = TypeVar("Sent")


class _Pauses:
    """How many steps run now, and whether the collector worked before the first of them."""

    def __init__(self) -> None:
        self.lock, self.running, self.worked = Lock(), 0, False

    @contextmanager
    def pause(self) -> Iterator[None]:
        with self.lock:
            if not self.running:
                self.worked = gc.isenabled()
                gc.disable()
            self.running += 1
        try:
            yield
        finally:
            with self.lock:
                self.running -= 1
                if not self.running and self.worked:
                    gc.enable()


_pauses = _Pauses()


def uncollected(steps: Generator[Yielded, Sent, T]) -> Generator[Yielded, Sent, T]:
    """Run a generator with the collector paused; what it yields is performed with the collector at work."""
    advance = partial(next, steps)
    while True:
        try:
            with _pauses.pause():
                request = advance()
        except StopIteration as done:
            returned: T = done.value
            return returned
        try:
            advance = partial(steps.send, (yield request))
        except Exception as error:
            advance = partial(steps.throw, error)
