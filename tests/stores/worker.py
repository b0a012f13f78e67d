"""What processes do that tests of stores begin: see tests/forked.py."""

import os
import signal
from itertools import count

from sqlalchemy import event

from refold.errors import WriteConflict
from refold.sessions import Session, open_store
from refold.sessions._stores.engines import SQLite
from refold.sessions._stores.sql import SQLStore
from tests.sessions.talks import user


def append_by_turns(url, name, turns, pipe):
    """Append to the session that others append to, each time again until it is its turn; send how often it was not."""
    with open_store(url, timeout=60) as store:
        session = Session(store, "shared", format="openai-chat", policy="opal", window=100_000)
        collisions = 0
        for number in range(turns):
            while True:
                try:
                    session.append([user(f"{name} says {number}"), user(f"{name} adds {number}")])
                    break
                except WriteConflict:
                    collisions += 1
                    session.refresh()
    pipe.send(collisions)


def append_until_killed(url, pipe):
    """Append one message after the other, and send the number of each that is kept."""
    session = Session(open_store(url), "s", policy="opal", window=100_000)
    for number in count(len(session.messages)):
        session.append([user(f"message {number}")])
        pipe.send(number)


def compact_until_killed(url):
    """Kill this process while it compacts the session."""
    session = Session(open_store(url), "s", policy="opal", window=4_000)
    session.compact(force=True, summarize=lambda request: os.kill(os.getpid(), signal.SIGKILL))


def open_and_close(url):
    """Open a store, which makes it where there is none."""
    open_store(url, timeout=60).close()


def open_until_killed(path, at):
    """Open a store, and kill this process once it has run as many statements."""
    where, left = SQLite(path, 5), at

    def point(*_):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(where.engine, "after_cursor_execute", point)
    SQLStore(where).close()
