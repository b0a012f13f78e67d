from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, make_url, text

from refold.errors import StoreCorrupt, StoreTooNew
from refold.sessions import Session, open_store
from refold.sessions._stores import schema
from refold.sessions._stores.engines import Postgres, SQLite
from refold.sessions._stores.migrate import revisions, upgrade
from refold.sessions._stores.sql import SQLStore
from tests.forked import begin
from tests.sessions.talks import summarize, talk
from tests.stores.worker import open_and_close, open_until_killed


def database(url):
    parsed = make_url(url)
    return SQLite(Path(parsed.database), 5) if parsed.drivername == "sqlite" else Postgres(parsed, 5)


class OfVersion(SQLStore):
    """A store that is written as a release of an earlier version would have written it."""

    def __init__(self, where, version):
        database = _Unindexed(where) if version == "0001_transcripts" else where
        self.name, self._database, self._clock = where.name, database, lambda: 1_000.0
        upgrade(where, version)
        self._had_owners = version >= "0004"
        if self._had_owners:
            return
        with where.engine.connect() as connection, connection.begin():
            connection.execute(text("ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT ''"))

    def close(self):
        if self._had_owners:
            return
        with self._database.engine.connect() as connection, connection.begin():
            connection.execute(text("ALTER TABLE sessions DROP COLUMN owner"))


class _Unindexed:
    """A database of version 1, which had no index of words."""

    def __init__(self, where):
        self.engine, self.reading, self.hold, self.turn = where.engine, where.reading, where.hold, where.turn

    def index(self, connection, words):
        pass


@pytest.mark.parametrize("version", revisions()[:-1])
def test_a_store_of_every_earlier_version_is_brought_to_this_one_with_all_it_holds(database_url, version):
    known = ("0001_transcripts", "0002_search_and_leases", "0003_settings", "0004_owners", "0005_lease_times")
    known += ("0006_provider_ids",)
    assert version in known  # a new one needs its own way to be written here
    where = database(database_url)
    old = OfVersion(where, version)
    messages = talk(30)
    session = Session(old, "old", format="openai-chat")  # settings were not remembered
    session.append(messages)
    old.close()
    with where.engine.connect() as connection:
        assert ("leases" in inspect(connection).get_table_names()) == (version > "0002")
    where.engine.dispose()
    with open_store(database_url) as store:
        Session(store, "old", policy="opal", window=4_000)
        again = Session(store, "old")
        assert again.messages == messages
        assert [found.message for found in again.search("word7")] == [talk(8)[-2]]
        assert again.compact(force=True, summarize=summarize).compacted
        assert [head.owner for head in store.sessions()] == [""] * len(store.sessions())
        assert len(store.salt()) == 32


def test_the_tables_are_those_the_code_works_with(database_url):
    with open_store(database_url) as store, store._database.engine.connect() as connection:
        there = inspect(connection)
        for table in schema.metadata.tables.values():
            columns = {column["name"]: column for column in there.get_columns(table.name)}
            assert set(columns) == {column.name for column in table.columns}
            assert there.get_pk_constraint(table.name)["constrained_columns"] == [c.name for c in table.primary_key]
            assert len(there.get_foreign_keys(table.name)) == len(table.foreign_key_constraints)
            indexed = {tuple(index["column_names"]) for index in there.get_indexes(table.name) if not index["unique"]}
            assert indexed == {tuple(index.columns.keys()) for index in table.indexes}
            required = {column.name for column in table.columns if not column.nullable}
            assert {name for name, column in columns.items() if not column["nullable"]} >= required - {"number"}


def test_a_store_of_a_later_version_is_named_and_left_as_it_is(database_url):
    open_store(database_url).close()
    where = database(database_url)
    with where.engine.connect() as connection, connection.begin():
        connection.execute(text("UPDATE refold_version SET version_num = '9999_later'"))
    with pytest.raises(StoreTooNew, match=r"9999_later.*install a newer refold"):
        open_store(database_url)
    with where.engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM refold_version")).scalar() == "9999_later"
    where.engine.dispose()


def test_a_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE cookies (id INTEGER)"))
    engine.dispose()
    with pytest.raises(StoreCorrupt, match="cookies"):
        open_store(path)
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["cookies"]
    engine.dispose()


def test_several_processes_that_open_a_new_store_at_once_make_it_once(database_url):
    openers = [begin(open_and_close, database_url) for _ in range(4)]
    for opener in openers:
        opener.join(60)
    assert [opener.exitcode for opener in openers] == [0] * 4
    with open_store(database_url) as store, store._database.engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM refold_version")).all() == [(revisions()[-1],)]


@pytest.mark.parametrize("at", [3, 9, 15, 18])
def test_an_upgrade_that_was_killed_is_made_again(tmp_path, at):
    path = tmp_path / "s.db"
    killed = begin(open_until_killed, path, at)
    killed.join()
    assert killed.exitcode == -9
    with open_store(path) as store:
        Session(store, "s", window=4_000).append(talk(1))
        assert store.search("word0")
