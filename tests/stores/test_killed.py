import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path

import pytest

from refold.sessions import Session, open_store
from tests.forked import begin
from tests.sessions.talks import user
from tests.stores.worker import append_until_killed, compact_until_killed

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked to start quickly")

# Of a session of 8 messages: messages, plans, billed tokens, how often it went on as another, words found.
BEFORE = [8, 0, 0, 0, 4, 0]
AFTER = {
    "begin": BEFORE,
    "append": [10, 0, 0, 0, 4, 2],
    "compact": [8, 1, 0, 0, 4, 0],
    "renew": [8, 1, 0, 1, 4, 0],
    "rewind": [4, 0, 0, 0, 4, 0],
    "report": [8, 0, 77, 0, 4, 0],
    "delete": ["nothing", 0],
}


def test_a_kill_at_any_point_of_any_write_leaves_all_of_it_or_nothing(database_url):
    ran = subprocess.run(
        [sys.executable, "-m", "tests.stores.killed", database_url],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    left = {deed: [] for deed in AFTER}
    for line in ran.stdout.splitlines():
        deed, state = json.loads(line)
        left[deed].append(state)
    for deed, states in left.items():
        before = ["nothing", 0] if deed == "begin" else BEFORE
        assert len(states) >= 5
        assert states[0] == before
        assert states[-1] == AFTER[deed]
        changed = states.index(AFTER[deed])
        assert states == [before] * changed + [AFTER[deed]] * (len(states) - changed)


def test_what_was_said_to_be_kept_is_there_after_a_kill_at_any_moment(database_url):
    dice, kept = random.Random(7), 0
    for _ in range(8):
        ours, its = Pipe(duplex=False)
        writer = begin(append_until_killed, database_url, its)
        its.close()
        said = [ours.recv()]
        assert said == [kept]
        time.sleep(dice.random() * 0.05)
        writer.kill()
        writer.join()
        with suppress(EOFError):
            while True:
                said.append(ours.recv())
        assert said == list(range(kept, kept + len(said)))
        with open_store(database_url) as store:
            session = Session(store, "s", policy="opal", window=100_000)
            assert session.messages == [user(f"message {number}") for number in range(len(session.messages))]
            assert len(session.messages) - len(said) - kept in (0, 1)  # one more may be kept and not yet said
            kept = len(session.messages)
            assert len(store.search("message", limit=10_000)) == kept


def test_a_process_that_was_killed_while_compacting_holds_nobody_up(database_url):
    with open_store(database_url) as store:
        session = Session(store, "s", policy="opal", window=4_000)
        session.append([user(f"message {number} " + "and so on " * 40) for number in range(8)])
        killed = begin(compact_until_killed, database_url)
        killed.join()
        assert killed.exitcode == -signal.SIGKILL
        assert session.compact(force=True, summarize=lambda request: "All of it.").compacted
