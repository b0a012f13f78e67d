import socket
import subprocess
import sys
import textwrap

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold.errors import StoreCorrupt, StoreError, UsageError
from tests.gateway.scripted_upstream import call, chat

HOW = pytest.mark.parametrize("how", ["run", "start"])


@HOW
def test_a_store_that_cannot_be_used_is_raised_with_its_place(tmp_path, how):
    place = tmp_path / "notes.txt"
    place.write_text("no database " * 100)
    with pytest.raises(StoreCorrupt, match=r"not started: the store .*notes\.txt is not a database.*another file"):
        getattr(Serving(GatewaySettings(port=0, store=str(place))), how)()


@HOW
def test_a_database_that_nobody_reaches_is_raised_without_its_password(how):
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1/x could not be used.*see that it can be reached") as raised:
        getattr(Serving(GatewaySettings(port=0, store="postgresql://u:hush@127.0.0.1:1/x")), how)()
    assert "hush" not in str(raised.value)


@HOW
def test_a_summarizer_without_a_key_is_raised_with_its_variable(how, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        getattr(Serving(GatewaySettings(port=0, summarizer="gpt-4o")), how)()


@pytest.mark.parametrize("secret", ["another", ""])
def test_an_encrypted_store_is_not_opened_with_another_secret_or_none(gateway, tmp_path, secret):
    place = str(tmp_path / "gateway.db")
    serving, _ = gateway(window=8_000, background=False, store=place, store_key="hush")
    plan = call(serving.url, body=chat(10))[1]["x-refold-plan"]
    with pytest.raises(StoreCorrupt, match=r"gateway\.db: .*encrypted.*REFOLD_STORE_KEY"):
        Serving(GatewaySettings(port=0, store=place, store_key=secret)).start()
    again, _ = gateway(window=8_000, background=False, store=place, store_key="hush")
    assert call(again.url, body=chat(10))[1]["x-refold-plan"] == plan


@pytest.mark.parametrize("url", [
    "http://[::1", "http://h:port", "http://h:99999", "http://h /v1", "http://h/v1\n", "api.openai.com", "http://", "",
])  # fmt: skip
def test_an_upstream_that_is_no_address_is_refused_with_an_example(url):
    with pytest.raises(UsageError, match="write it as in https://"):
        GatewaySettings(upstreams={"openai": url})


def test_an_upstreams_password_is_not_in_the_error():
    with pytest.raises(UsageError) as raised:
        GatewaySettings(upstreams={"openai": "http://me:hush@h/v1?x=1"})
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(("host", "option"), [("203.0.113.9", "--host"), ("no-such-host.invalid", "--host")])
def test_an_address_that_is_not_this_machines_is_named_with_its_option(host, option):
    with pytest.raises(UsageError, match=rf"cannot listen on {host}.*{option}"):
        Serving(GatewaySettings(host=host, port=0, token="t"))


def test_loopback_has_many_names_and_no_others():
    for host in ("127.0.0.1", "127.8.8.8", "localhost", "::1", "0:0:0:0:0:0:0:1"):
        assert GatewaySettings(host=host).host == host
    for host in ("127.0.0.1.evil.test", "127.999", "0.0.0.0", "::", "localhost.evil.test"):
        with pytest.raises(UsageError, match="REFOLD_GATEWAY_TOKEN"):
            GatewaySettings(host=host)


def test_sessions_of_others_in_the_store_outlive_the_retention(gateway, tmp_path):
    import json
    import time

    from refold.sessions import open_store

    place = str(tmp_path / "shared.db")
    with open_store(place) as store:
        store.create("my-chat", "openai-chat")
    serving, _ = gateway(window=8_000, background=False, store=place, retention=0.3)
    call(serving.url, body=chat(10))
    end = time.monotonic() + 10
    while len(found := json.loads(call(serving.url, "GET", "/v1/sessions")[2])["sessions"]) > 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert [each["id"] for each in found] == ["my-chat"]


def test_a_gateway_never_sends_to_itself():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("127.0.0.1", "localhost"):
        url = f"http://{name}:{port}/v1"
        with pytest.raises(UsageError, match=f"{url} of openai is this gateway itself.*--openai"):
            Serving(GatewaySettings(port=port, upstreams={"openai": url}))


FIRST_WORK = """
    import sys
    from time import thread_time
    from refold._counting import counter_for
    from refold._gateway.server.serving import Serving
    from refold._gateway.settings import GatewaySettings
    from tests.gateway.scripted_upstream import call, chat, upstream, whole

    with upstream(lambda head, body: whole(b"{}")) as (url, seen):
        with Serving(GatewaySettings(upstreams={"openai": url, "anthropic": url}, port=0)) as serving:
            begun = thread_time()
            counter_for("gpt-4o").text("zqxjkv8w3fkq")
            print(thread_time() - begun)
            loaded = set(sys.modules)
            for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
                call(serving.url, path=path, body=chat(1))
            print(len(seen), [name for name in set(sys.modules) - loaded if name.split(".")[0] in ("refold", "opentelemetry")])
"""


def test_vocabularies_and_modules_are_loaded_before_anything_is_served():
    # a vocabulary takes 0.2 s in which no other thread runs, and modules 20 ms: every client would wait
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FIRST_WORK)], capture_output=True, text=True, check=True
    )
    seconds, modules = done.stdout.split("\n", 1)
    assert float(seconds) < 0.03
    assert modules.strip() == "3 []"
