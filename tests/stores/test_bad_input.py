import os
import sqlite3
import threading

import pytest
from sqlalchemy import event, text

from refold.core.transcript import ROOT
from refold.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked, UsageError
from refold.sessions import Session, default_path, open_store
from tests.sessions.talks import summarize, talk, user
from tests.stores.messages import chained


@pytest.fixture
def written(tmp_path):
    """The path of a store with a session in it."""
    path = tmp_path / "sessions.db"
    with open_store(path) as store:
        session = Session(store, "s", policy="opal", window=4_000)
        session.append(talk(30))
        session.compact(force=True, summarize=summarize)
    return path


def change(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def test_a_file_that_is_no_database_is_named_and_not_written_over(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, this is a letter.")
    with pytest.raises(StoreCorrupt, match=r"letter\.txt.*left as it is"):
        open_store(path)
    assert path.read_text() == "Dear Sir or Madam, this is a letter."


def test_a_store_that_was_cut_off_is_named_and_not_written_over(written):
    whole = written.read_bytes()
    cut = whole[: len(whole) // 3]
    written.write_bytes(cut)
    with pytest.raises(StoreCorrupt, match=r"sessions\.db.*restore a copy"), open_store(written) as store:
        Session(store, "s", policy="opal", window=4_000)
    assert written.read_bytes()[: len(cut)] == cut


def test_a_page_that_was_overwritten_is_noticed(written):
    whole = bytearray(written.read_bytes())
    whole[4096:-4096] = b"\xa5" * (len(whole) - 8192)
    written.write_bytes(whole)
    with pytest.raises(StoreCorrupt, match=r"sessions\.db"), open_store(written) as store:
        Session(store, "s", policy="opal", window=4_000)


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE messages SET native = replace(native, 'Step 3', 'Stop 3')", ()),
        ("UPDATE messages SET native = '{' WHERE number = 2", ()),
        ("UPDATE entries SET body = '{}' WHERE seq = 2", ()),
        ("UPDATE entries SET body = 'x' WHERE kind = 'planned'", ()),
        ("UPDATE entries SET body = replace(body, 'were done', 'were not') WHERE kind = 'planned'", ()),
        ("DELETE FROM entries WHERE kind = 'appended'", ()),
        ("DELETE FROM held WHERE message = (SELECT id FROM messages WHERE number = 5)", ()),
        ("UPDATE sessions SET tip = ?", (ROOT,)),
    ],
)
def test_content_that_does_not_fit_together_is_named(written, statement, values):
    change(written, statement, *values)
    with open_store(written) as store, pytest.raises(StoreCorrupt, match=r"sessions\.db"):
        Session(store, "s", policy="opal", window=4_000)


def test_a_store_that_somebody_holds_is_waited_for_and_then_named(written):
    with open_store(written, timeout=0.2) as store:
        holder = sqlite3.connect(written, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        session = Session(store, "s", policy="opal", window=4_000)
        with pytest.raises(StoreLocked, match=r"sessions\.db.*try again"):
            session.append([user("x")])
        holder.execute("ROLLBACK")
        session.append([user("x")])
        holder.close()


def test_a_write_waits_for_a_holder_that_is_quick(written):
    with open_store(written, timeout=20) as store:
        holder = sqlite3.connect(written, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, lambda: holder.execute("COMMIT"))
        timer.start()
        Session(store, "s", policy="opal", window=4_000).append([user("x")])
        timer.join()
        holder.close()


def test_a_row_that_somebody_holds_on_a_server_is_waited_for_and_then_named(postgres_url):
    with open_store(postgres_url, timeout=0.2) as store:
        session = Session(store, "s", policy="opal", window=4_000)
        session.append(talk(1))
        with store._database.engine.connect() as holder, holder.begin():
            holder.execute(text("SELECT * FROM sessions FOR UPDATE"))
            with pytest.raises(StoreLocked, match="try again"):
                session.append([user("x")])
        session.append([user("x")])


def test_a_full_disk_keeps_what_was_written_before(written):
    with open_store(written) as store:
        session = Session(store, "s", policy="opal", window=4_000)
        before = session.messages
        event.listen(store._database.engine, "checkout", lambda native, *_: native.execute("PRAGMA max_page_count=1"))
        long = [user(f"{number} " + "long " * 20_000) for number in range(20)]
        with pytest.raises(StoreFull, match=r"sessions\.db.*make room"):
            session.append(long)
    with open_store(written) as store:
        again = Session(store, "s", policy="opal", window=4_000)
        assert again.messages[: len(before)] == before
        assert again.messages == session.messages
        again.append([user("room again")])


def test_a_full_disk_of_a_server_is_named(postgres_url):
    full = "BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END"
    with open_store(postgres_url) as store:
        session = Session(store, "s", policy="opal", window=4_000)
        session.append(talk(1))
        with store._database.engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE FUNCTION full_() RETURNS trigger LANGUAGE plpgsql AS $${full}$$")
            connection.exec_driver_sql(
                "CREATE TRIGGER full_ BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION full_()"
            )
        with pytest.raises(StoreFull, match="no space left"):
            session.append([user("x")])
        assert Session(store, "s", policy="opal", window=4_000).messages == talk(1)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"sessions\.db cannot be opened"):
        open_store(tmp_path / "file" / "sessions.db")
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(tmp_path)


def test_a_server_that_does_not_answer_is_named_without_its_password(tmp_path):
    with pytest.raises(StoreError, match="could not be used") as raised:
        open_store(f"postgresql://me:secret@/db?host={tmp_path}", timeout=1)
    assert "secret" not in str(raised.value)


def test_a_password_in_the_query_of_an_address_is_named_nowhere(tmp_path):
    with pytest.raises(StoreError, match="could not be used") as raised:
        open_store(f"postgresql://me@/db?host={tmp_path}&password=secret", timeout=1)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("url", ["postgresql://me:pass@word:secret@host/db", "postgresql//me:secret@://host"])
def test_an_address_that_cannot_be_read_is_refused_without_its_words(url):
    with pytest.raises(UsageError, match="postgresql://user:password@host") as raised:
        open_store(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://", "http://host/x"])
def test_another_kind_of_database_is_refused(url):
    with pytest.raises(UsageError, match="postgresql"):
        open_store(url)


def test_sessions_are_kept_under_the_platforms_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert tmp_path in default_path().parents
    with open_store() as store:
        store.append("a", chained("x"), store.create("a", "openai-chat").tip)
    assert default_path().exists()
    assert os.path.getsize(default_path()) > 0


def test_memory_is_a_store_too():
    with open_store("memory") as store:
        assert store.name == "memory"
