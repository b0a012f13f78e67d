from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe

from refold.sessions import Session, open_store
from refold.sessions._entries import kind_of
from tests.depth import deep
from tests.forked import begin
from tests.sessions.talks import summarize, talk, user
from tests.stores.worker import append_by_turns

PROCESSES, TURNS = 8, 6
SESSIONS = deep(60, 200)


def test_eight_processes_on_one_session_collide_loudly_and_lose_nothing(database_url):
    pipes = [Pipe(duplex=False) for _ in range(PROCESSES)]
    workers = [begin(append_by_turns, database_url, f"worker{n}", TURNS, pipes[n][1]) for n in range(PROCESSES)]
    for worker in workers:
        worker.join(80)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    collisions = sum(ours.recv() for ours, _ in pipes)
    with open_store(database_url) as store:
        said = [message["content"] for message in Session(store, "shared", window=100_000).messages]
        kinds = Counter(kind_of(each.entry) for each in store.load("shared").entries)
        assert kinds["appended"] == PROCESSES * TURNS
        assert 1 <= kinds["configured"] <= PROCESSES  # who began at the same moment says the same settings once more
    assert Counter(said) == Counter(
        f"worker{n} {verb} {number}" for n in range(PROCESSES) for number in range(TURNS) for verb in ("says", "adds")
    )
    pairs = list(zip(said[::2], said[1::2], strict=True))
    assert all(first.replace("says", "adds") == second for first, second in pairs)
    for n in range(PROCESSES):
        own = [first for first, _ in pairs if first.startswith(f"worker{n} ")]
        assert own == [f"worker{n} says {number}" for number in range(TURNS)]
    assert collisions > 0


def test_many_sessions_at_once_lose_nothing(database_url):
    with open_store(database_url, timeout=60) as store:

        def converse(number):
            session = Session(store, f"s{number}", policy="opal", window=1_000)
            session.append([user(f"I am {number}"), *talk(6)])
            session.report({"prompt_tokens": number + 1})
            done = session.compact(force=True, summarize=summarize)
            session.append([user(f"still {number}")])
            return done.compacted

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(converse, range(SESSIONS)))
        assert len(store.sessions()) == SESSIONS
        for number in range(SESSIONS):
            session = Session(store, f"s{number}", policy="opal", window=1_000)
            assert session.messages == [user(f"I am {number}"), *talk(6), user(f"still {number}")]
            assert (len(session.plans), session.billed.prompt) == (1, number + 1)


def test_sessions_that_begin_alike_are_stored_by_several_at_once_and_found(database_url):
    with open_store(database_url, timeout=60) as one, open_store(database_url, timeout=60) as two:

        def started(store, name, number):
            Session(store, f"{name}{number}", window=100_000).append([user(f"we are {number} zebra"), *talk(20)])

        with ThreadPoolExecutor(2) as pool:
            for number in range(10):
                for begun in [pool.submit(started, store, name, number) for store, name in ((one, "a"), (two, "b"))]:
                    begun.result()
        assert len(one.search("zebra", limit=100)) == 10
