"""Pauses the collector of cyclic garbage while a pass runs.

A pass makes a million small objects that live to its end and hardly a cycle, and the collector would look at all of
them again and again: that took a tenth to two thirds of a pass over a million tokens (`benchmarks/speed.py --shapes`).
The collector is one for the whole process, so passes on several threads are counted: it goes on when the last of them
ends a step, and after `LONGEST` in any case, since on a busy server there is always one more. While a model writes a
summary, it works.
"""

from __future__ import annotations

import gc
import os
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["pause"]

LONGEST = 10.0  # seconds: a pass over a million tokens takes a few


class _Pauses:
    """How many steps run now, whether the collector worked before the first of them, and since when it does not."""

    def __init__(self) -> None:
        self.lock, self.running, self.worked, self.since = Lock(), 0, False, 0.0

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Run one step with the collector paused."""
        with self.lock:
            if gc.isenabled():
                gc.disable()
                self.worked, self.since = True, monotonic()
            elif not self.running:
                self.worked = False
            self.running += 1
        try:
            yield
        finally:
            with self.lock:
                self.running = max(self.running - 1, 0)  # a process forked in a step has begun anew
                if self.worked and (not self.running or monotonic() - self.since > LONGEST):
                    gc.enable()

    def begin_anew(self) -> None:
        """Forget the steps of the threads that a forked process does not have, and the lock that one may hold."""
        if self.running and self.worked:
            gc.enable()
        self.lock, self.running = Lock(), 0


_pauses = _Pauses()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_pauses.begin_anew)

pause = _pauses.pause
