"""Run as a program: does each write to a store again and again, killed a point later each time, and says what was left.

    python -m tests.stores.killed URL

Each run is a process of its own (forked, so that it starts at once) that ends itself by SIGKILL at its point: after
a statement that writes, at a commit, after it. Another process then opens the store and reads all of it. Writes one JSON
line a point: the write, and what was left.
"""

import gc
import json
import os
import signal
import sys
from functools import partial

from sqlalchemy import event

from refold.sessions import MemoryStore, Session, open_store
from tests.sessions.talks import answer, summarize, user

AHEAD = (
    20  # sessions made by one process: its statements are compiled once; ids are words, none the beginning of another
)

READS = ("SELECT", "PRAGMA", "SHOW", "BEGIN")


def watch(engine, at):
    """Kill this process at a point; points are counted from 1.

    A point is what may have changed something: a statement that writes, and the commit and the end of a transaction
    that wrote. Between two of them a reader sees the same, whatever this process read meanwhile.
    """
    seen, wrote = 0, False

    def point():
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(connection, cursor, text, *_):
        nonlocal wrote
        if not text.lstrip().upper().startswith(READS):
            wrote = True
            point()

    def commit(*_):  # called before it takes place
        if wrote:
            point()

    def checkin(*_):
        nonlocal wrote
        if wrote:
            wrote = False
            point()

    for name, watcher in (("after_cursor_execute", statement), ("commit", commit), ("checkin", checkin)):
        event.listen(engine, name, watcher)


def opened(store, id):
    return Session(store, id, policy="opal", window=4_000)


def begin(session):
    said = [
        each
        for number in range(4)
        for each in (user(f"{session.id} step {number} " + "and so on " * 40), answer(f"done {number}"))
    ]
    session.append(said)


def append(session):
    session.append([user(f"{session.id} more"), user(f"{session.id} and more")])


def compact(session):
    session.compact(force=True, summarize=summarize)


def renew(session):
    session.configure(policy="vibe")
    session.compact(force=True, summarize=summarize)


def rewind(session):
    session.rewind(session.ids[3])


def report(session):
    session.report({"prompt_tokens": 77})


def delete(session):
    session.store.delete(session.id)


DEEDS = {each.__name__: each for each in (begin, append, compact, renew, rewind, report, delete)}


def attempt(url, deed, at):
    store = open_store(url)
    session = opened(store, f"{deed}-{at:03}")
    watch(store._database.engine, at)
    DEEDS[deed](session)


def prepare(url, deed, at):
    """Make ready the sessions of the runs to this point and to the next ones."""
    with open_store(url) as store:
        for number in range(at, at + AHEAD):
            begin(opened(store, f"{deed}-{number:03}"))


def tell(url, deed, last):
    """Say what each run left."""
    with open_store(url) as store:
        for at in range(1, last + 1):
            sys.stdout.write(json.dumps([deed, left(store, f"{deed}-{at:03}")]) + "\n")
    sys.stdout.flush()


def left(store, id):
    """What is left of a session: messages, plans, billed tokens, how often it goes on as another, and words found."""
    heads = [head.id for head in store.sessions() if id in (head.id, head.parent)]
    if not heads or store.load(heads[0]).head.messages == 0:
        return ["nothing", len(store.search(id, limit=100))]
    newest = next(name for name in heads if not store.load(name).head.next)
    session = opened(store, newest)
    found = [len(session.search(word)) for word in ("step", "more")]
    return [len(session.messages), len(session.plans), session.billed.prompt, len(heads) - 1, *found]


def forked(act):
    """Run a function in a process of its own; return how that ended."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException as error:  # a fault in the child must be seen by the parent
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def warm(url):
    """Load what every run needs, so that a fork has it at once; no connection survives this."""
    session = opened(MemoryStore(), "warm")
    begin(session)
    compact(session)
    open_store(url).close()


def main(url):
    warm(url)
    gc.collect()
    gc.freeze()  # a collection in a child would copy what it shares with this process
    for deed in DEEDS:
        at, ended = 0, -1
        while ended != 0:
            if deed != "begin" and at % AHEAD == 0:
                assert forked(partial(prepare, url, deed, at + 1)) == 0
            at += 1
            ended = forked(partial(attempt, url, deed, at))
            assert ended in (0, signal.SIGKILL), ended
        assert forked(partial(tell, url, deed, at)) == 0


if __name__ == "__main__":
    main(sys.argv[1])
