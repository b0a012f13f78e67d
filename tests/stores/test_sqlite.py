import os
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from refold.errors import StoreCorrupt, StoreLocked
from refold.sessions import Session, SQLStore, open_store
from refold.sessions._stores.engines import SQLite
from tests.stores.contract import Contract
from tests.stores.messages import chained


class TestSQLite(Contract):
    @pytest.fixture
    def store(self, clock, tmp_path):
        with SQLStore(SQLite(tmp_path / "new" / "sessions.db", 5), clock) as store:
            yield store

    def test_the_files_and_a_folder_made_for_them_are_readable_by_their_owner_only(self, store, said, tmp_path):
        folder = tmp_path / "new"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        files = list(folder.iterdir())
        assert {file.name for file in files} >= {"sessions.db", "sessions.db-wal"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    def test_every_commit_is_on_the_disk(self, store):
        with store._database.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path):
    path = tmp_path / "sessions.db"
    open_store(path).close()
    path.chmod(0o644)
    open_store(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_device_is_refused_and_stays_as_it_is():
    before = os.stat(os.devnull).st_mode
    with pytest.raises(StoreCorrupt, match="is not a database"):
        open_store(os.devnull)
    assert os.stat(os.devnull).st_mode == before


def test_of_a_deleted_session_no_file_holds_a_word_nor_its_summary(tmp_path):
    with open_store(tmp_path / "sessions.db") as store:
        kept, gone = (Session(store, format="openai-chat", policy="opal", window=3_000, max_output=100) for _ in "ab")
        kept.append([{"role": "user", "content": "ordinary"}])
        for number in range(12):
            gone.append([{"role": "user", "content": f"confidential{number} " + "word " * 300}])
            gone.append([{"role": "assistant", "content": "Noted."}])
        assert gone.compact(force=True, summarize=lambda need: "undisclosed summary " * 9).compacted
        assert b"undisclosed" in _written(tmp_path)
        store.delete(gone.id)
        left = _written(tmp_path)
        assert b"ordinary" in left
        assert b"confidential" not in left
        assert b"undisclosed" not in left


def _written(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_the_mask_of_the_process_does_not_matter(tmp_path):
    before = os.umask(0)
    try:
        open_store(tmp_path / "deep" / "er" / "sessions.db").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "deep" / "er").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "deep" / "er" / "sessions.db").stat().st_mode) == 0o600


def test_a_store_opened_again_holds_what_was_written(tmp_path):
    said = chained("one", "two")
    with open_store(tmp_path / "s.db") as store:
        store.append("a", said, store.create("a", "openai-chat").tip)
    with open_store(f"sqlite:///{tmp_path / 's.db'}") as store:
        assert list(store.load("a").natives) == [message.id for message in said]


def test_threads_of_one_process_wait_for_each_other_for_longer_than_for_another_process(tmp_path):
    def slow():
        time.sleep(0.1)
        return time.time()

    with open_store(tmp_path / "sessions.db", timeout=0.4) as store, ThreadPoolExecutor(12) as pool:
        store._clock = slow  # read within each transaction
        heads = list(pool.map(lambda number: store.create(f"s{number}", "openai-chat"), range(12)))
    assert {head.id for head in heads} == {f"s{number}" for number in range(12)}


def test_threads_that_wait_for_each_other_give_up_soon_when_another_process_holds_the_file(tmp_path):
    with open_store(tmp_path / "sessions.db", timeout=0.2) as store, ThreadPoolExecutor(12) as pool:
        with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            tries = [pool.submit(store.create, f"s{number}", "openai-chat") for number in range(12)]
            assert {type(each.exception()) for each in tries} == {StoreLocked}
            assert time.monotonic() - begun < 1.5  # and not the timeout for each of them
        assert store.create("after", "openai-chat").id == "after"


def test_a_search_in_a_session_takes_no_longer_than_one_in_the_whole_store(tmp_path):
    store = open_store(tmp_path / "s.db")
    Session(store, "s").append([{"role": "user", "content": f"common word, message {place}"} for place in range(3_000)])

    def seconds(sessions):
        started = time.process_time()
        assert len(store.search("common", sessions, 20)) == 20
        return time.process_time() - started

    everywhere, within = (min(seconds(sessions) for _ in range(3)) for sessions in ((), ("s",)))
    assert within < 5 * everywhere
