import pytest
from sqlalchemy import make_url

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


def test_options_of_the_url_stay_beside_ours(postgres_url):
    url = make_url(postgres_url).update_query_dict({"options": "-c work_mem=7MB"}).render_as_string(hide_password=False)
    with open_store(url) as store:
        store.append("a", chained("one"), store.create("a", "openai-chat").tip)
        with store._database.engine.connect() as connection:
            assert connection.exec_driver_sql("SHOW work_mem").scalar() == "7MB"
            assert connection.exec_driver_sql("SHOW search_path").scalar() == "refold"
