"""Fills a store with the sample conversations of the demo, as an agent would have appended them over some hours.

    python -m tools.page_store PLACE

`make demo-page`, the pictures of the page in the docs and `tools/try_page.py` show it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from refold._samples import SampleConversation, conversations
from refold.sessions import Session
from refold.sessions._stores.engines import SQLite
from refold.sessions._stores.sql import SQLStore

MODEL = "claude-sonnet-4-5"
WINDOWS = {"long-session": 200_000, "small": 32_000, "mail": 32_000}
NAMES = {"long-session": "orderdesk", "mail": "mailbox", "small": "shipping"}
STEP = 12  # messages that are appended together
PAUSE = 75.0  # seconds between two writes
WORKING = 480  # messages of a copy of the long session that is in the middle of its work


class Clock:
    """A clock that goes on by a fixed time with each look."""

    def __init__(self, start: float) -> None:
        self.now = start

    def __call__(self) -> float:
        """Return the time."""
        self.now += PAUSE
        return self.now


def fill(place: Path, start: float) -> None:
    """Write the samples into a store at a place, from a time on."""
    with SQLStore(SQLite(place, 10.0), Clock(start)) as store:
        for name, sample, count in chosen():
            session = Session(
                store, name, format=sample.format, policy="refold", window=WINDOWS[sample.name], model=MODEL,
                system=sample.system, tools=sample.tools,
            )  # fmt: skip
            for place_of in range(0, count, STEP):
                session.append(sample.messages[place_of : min(place_of + STEP, count)])
                if session.needs_compaction():
                    session.compact()


def chosen() -> Iterator[tuple[str, SampleConversation, int]]:
    """Yield the conversations with their names, and how many messages of each."""
    for sample in conversations():
        if sample.name == "long-session":
            yield "orderdesk-morning", sample, WORKING
        yield NAMES[sample.name], sample, len(sample.messages)


if __name__ == "__main__":
    wanted = Path(sys.argv[1])
    for name in (wanted, *wanted.parent.glob(f"{wanted.name}-*")):  # with the files that SQLite keeps next to it
        name.unlink(missing_ok=True)
    fill(wanted, time.time() - 4 * 3600)
