"""A store that is opened for reading alone, on both kinds of database."""

import pytest

from refold.errors import StoreCorrupt, StoreError
from refold.sessions import Session, open_store


@pytest.fixture
def written(database_url):
    with open_store(database_url) as store:
        Session(store, "talk", format="openai-chat").append([{"role": "user", "content": "the heron stands"}])
    return database_url


def test_a_store_opened_for_reading_alone_reads_and_searches_and_refuses_every_write(written):
    with open_store(written, read_only=True) as store:
        session = Session(store, "talk", must_exist=True)
        assert session.messages == [{"role": "user", "content": "the heron stands"}]
        assert [hit.id for hit in store.search("heron")] == list(session.ids)
        with pytest.raises(StoreError):
            session.append([{"role": "user", "content": "more"}])
        with pytest.raises(StoreError):
            store.create("other", "openai-chat")
    with open_store(written) as store:
        assert len(Session(store, "talk").messages) == 1


def test_a_store_of_another_version_is_not_migrated_by_who_only_reads(written):
    with open_store(written) as store, store._database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM refold_version")
    with pytest.raises(StoreError, match="opened for reading alone"):
        open_store(written, read_only=True)


def test_what_others_write_meanwhile_is_read(written):
    with open_store(written, read_only=True) as reader, open_store(written) as writer:
        Session(writer, "talk").append([{"role": "assistant", "content": "in the reeds"}])
        assert len(Session(reader, "talk").messages) == 2


def test_a_file_that_is_no_store_or_not_there_is_neither_made_nor_changed(tmp_path):
    missing, other = tmp_path / "folder" / "missing.db", tmp_path / "notes.txt"
    other.write_text("notes")
    with pytest.raises(StoreError, match="name one that you may read"):
        open_store(missing, read_only=True)
    with pytest.raises(StoreCorrupt, match="not a database"):
        open_store(other, read_only=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_permissions_of_a_file_stay_as_they_are(tmp_path):
    path = tmp_path / "sessions.db"
    open_store(path).close()
    path.chmod(0o640)
    open_store(path, read_only=True).close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_question_mark_in_the_name_of_the_file_opens_that_file(tmp_path):
    path = tmp_path / "a?b#c.db"
    open_store(path).close()
    with open_store(path, read_only=True) as store:
        assert store.sessions() == ()
