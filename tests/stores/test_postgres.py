import asyncio

import pytest
from sqlalchemy import make_url

from refold.errors import StoreLocked
from refold.sessions import SQLStore, open_store
from refold.sessions._stores.engines import Postgres
from tests.stores.contract import Contract
from tests.stores.messages import chained


class TestPostgres(Contract):
    @pytest.fixture
    def store(self, clock, postgres_url):
        with SQLStore(Postgres(make_url(postgres_url), 5), clock) as store:
            yield store

    def test_the_tables_are_in_a_schema_of_their_own(self, store):
        with store._database.engine.connect() as connection:
            found = connection.exec_driver_sql(
                "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename IN ('sessions', 'messages', 'refold_version')"
            )
            assert [row[0] for row in found] == ["refold"]


def test_a_version_is_asked_for_on_the_event_loop_also_after_the_server_has_ended_the_connection(postgres_url):
    async def asked(store):
        found = [await store.aversion("a"), await store.aversion("none")]
        with store._database.engine.connect() as connection:
            end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'SELECT id, created, seq %%'"
            assert connection.exec_driver_sql(end).scalar() == 1
        return [*found, await store.aversion("a"), await store.aversion("a")]

    with open_store(postgres_url) as store:
        head = store.append("a", chained("one"), store.create("a", "openai-chat").tip)
        version = head.created, head.seq
        assert asyncio.run(asked(store)) == [version, None, version, version]


def test_questions_that_come_while_one_is_under_way_are_asked_together(postgres_url, monkeypatch):
    async def asked(store):
        await store.aversion("a")  # which makes the connection
        connection, questions = store._database.versions._connection, []
        execute = connection.execute
        monkeypatch.setattr(connection, "execute", lambda *query: questions.append(query[1]) or execute(*query))
        found = await asyncio.gather(store.aversion("a"), *[store.aversion(id) for id in ("b", "a", "none")])
        later = asyncio.create_task(store.aversion("b"))
        await asyncio.sleep(0)
        later.cancel()
        return [*found, await store.aversion("b")], questions

    with open_store(postgres_url) as store:
        versions = [(head.created, head.seq) for head in (store.create(id, "openai-chat") for id in ("a", "b"))]
        found, questions = asyncio.run(asked(store))
    assert found == [*versions, versions[0], None, versions[1]]
    assert [sorted(ids) for (ids,) in questions[:1]] == [["a", "b", "none"]]
    assert questions[1:] in ([(["b"],)], [(["b"],), (["b"],)])


def test_a_version_that_does_not_come_in_time_is_an_error(postgres_url):
    async def asked(store):
        with store._database.engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreLocked):
                await store.aversion("a")
        return await store.aversion("a")

    with open_store(postgres_url, timeout=0.2) as store:
        head = store.create("a", "openai-chat")
        assert asyncio.run(asked(store)) == (head.created, head.seq)


def test_after_a_question_that_hangs_those_behind_it_are_asked(postgres_url, monkeypatch):
    async def asked(store):
        await store.aversion("a")  # which makes the connection
        monkeypatch.setattr(store._database.versions._connection, "execute", lambda *query: asyncio.sleep(60))
        first = asyncio.create_task(store.aversion("a"))
        await asyncio.sleep(1)
        later = asyncio.gather(*[store.aversion(id) for id in ("a", "b")])
        with pytest.raises(StoreLocked):
            await first
        return await later

    with open_store(postgres_url, timeout=2) as store:
        versions = [(head.created, head.seq) for head in (store.create(id, "openai-chat") for id in ("a", "b"))]
        assert asyncio.run(asked(store)) == versions


def test_options_of_the_url_stay_beside_ours(postgres_url):
    url = make_url(postgres_url).update_query_dict({"options": "-c work_mem=7MB"}).render_as_string(hide_password=False)
    with open_store(url) as store:
        store.append("a", chained("one"), store.create("a", "openai-chat").tip)
        with store._database.engine.connect() as connection:
            assert connection.exec_driver_sql("SHOW work_mem").scalar() == "7MB"
            assert connection.exec_driver_sql("SHOW search_path").scalar() == "refold"
