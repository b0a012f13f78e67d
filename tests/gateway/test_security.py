import gzip
import json
import logging
import threading
import time

import pytest

from refold._gateway.conversations.triggers import trigger
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold.errors import StoreError
from refold.sessions import open_store
from tests.gateway.scripted_upstream import call, chat, raw, upstream, whole


@pytest.fixture
def plain():
    """A gateway before a server that answers anything with an empty object, and what that server saw."""
    with (
        upstream(lambda head, body: whole(b"{}")) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, head_timeout=0.5, body_timeout=0.5)) as serving,
    ):
        yield serving, seen


def head(*lines, path="/v1/chat/completions"):
    return "\r\n".join([f"POST {path} HTTP/1.1", "host: localhost", *lines, "", ""]).encode()


SMUGGLED = {
    "length and chunks": head("content-length: 4", "transfer-encoding: chunked")
    + b"0\r\n\r\nGET /v1/x HTTP/1.1\r\n\r\n",
    "two lengths": head("content-length: 4", "content-length: 40") + b"{}{}",
    "a length with a sign": head("content-length: +4") + b"{}{}",
    "an encoding in disguise": head("transfer-encoding: xchunked") + b"0\r\n\r\n",
    "a folded header": head("x-a: 1", " transfer-encoding: chunked") + b"{}",
    "a space before the colon": head("transfer-encoding : chunked") + b"0\r\n\r\n",
    "a bare line feed in a header": head("x-a: 1\nx-b: 2", "content-length: 2").replace(b"\r\nx-a", b"\nx-a") + b"{}",
    "a null in a header": head("x-a: 1\0", "content-length: 2") + b"{}",
    "a chunk size that is no number": head("transfer-encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_no_second_request_is_smuggled_in(plain, name):
    serving, seen = plain
    answer = raw(serving.url, SMUGGLED[name], 2)
    assert answer.count(b"HTTP/1.1") <= 1
    assert len(seen) <= 1
    for got, body in seen:  # what did pass has one meaning: one length, no chunks
        assert got.lower().count(b"content-length:") == 1
        assert b"\ntransfer-encoding" not in got.lower()
        assert b"/v1/x" not in got + body


def test_no_header_makes_another_request_of_it_upstream(plain):
    serving, seen = plain
    headers = {"x-http-method-override": "DELETE", "x-original-url": "/v1/files", "x-rewrite-url": "/v1/files"}
    headers |= {"connection": "content-encoding, x-extra, close", "content-encoding": "gzip", "x-extra": "1"}
    call(serving.url, body=gzip.compress(json.dumps(chat(1)).encode()), headers=headers)
    sent = seen[0][0].lower()
    assert not any(name in sent for name in (b"override", b"x-original-url", b"x-rewrite-url", b"x-extra"))
    assert b"content-encoding: gzip" in sent, "which says how the body is to be read"


def test_headers_of_one_hop_and_of_ours_do_not_travel(plain):
    serving, seen = plain
    extra = {"connection": "keep-alive, x-secret", "x-secret": "1", "te": "trailers", "proxy-authorization": "p",
             "x-refold-session": "s1", "cookie": "a=b", "x-forwarded-for": "1.2.3.4", "upgrade": "h2c"}  # fmt: skip
    call(serving.url, body=chat(1), headers=extra)
    got = seen[0][0].lower()
    for name in ("x-secret", "te:", "proxy-auth", "x-refold", "cookie", "x-forwarded", "upgrade", "1.2.3.4"):
        assert name.encode() not in got
    assert got.count(b"host:") == 1
    assert b"host: 127.0.0.1" in got


def test_an_answer_cannot_inject_headers_of_ours():
    forged = b"HTTP/1.1 200 OK\r\nx-refold-plan: forged\r\nset-cookie: a=b\r\ncontent-length: 2\r\n\r\n{}"
    with (
        upstream(lambda head, body: forged) as (url, _),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving,
    ):
        _, headers, _ = call(serving.url, body=chat(1))
    assert "x-refold-plan" not in headers
    assert "set-cookie" not in headers


@pytest.mark.parametrize("headers", [
    {"x-refold-policy": "./mine.py"}, {"x-refold-policy": "/etc/passwd"}, {"x-refold-policy": "none"},
    {"x-refold-session": "a b"}, {"x-refold-session": "x" * 200}, {"x-refold-session": "../../etc"+"\u00e9"},
])  # fmt: skip
def test_wishes_are_names_and_nothing_else(plain, headers):
    serving, seen = plain
    assert call(serving.url, body=chat(1), headers=headers)[0] == 400
    assert not seen


@pytest.mark.parametrize(
    "path", ["http://127.0.0.1:1/v1/models", "//evil.test/v1/models", "/@evil.test/", "http://u:p@evil.test/v1/x"]
)
def test_a_request_never_says_where_it_is_sent(plain, path):
    serving, seen = plain
    raw(serving.url, f"GET {path} HTTP/1.1\r\nhost: localhost\r\nx-upstream: http://evil.test\r\n\r\n".encode(), 1)
    for got, _ in seen:
        assert b"host: 127.0.0.1" in got.lower()
        assert b"evil.test" not in got.split(b"\r\n")[1]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../../admin",
        "/v1/%2e%2e/admin",
        "/v1/.%2E/x",
        "/v1/..%2f..%2fadmin",
        "/v1/..\\admin",
        "/v1/%2e%2e%5cadmin",
        "/v1/x/..",
        "/v1/./models",
        "/v1/a%2Fb",
        "/v1/chat%2fcompletions",
        "/v1/%252e%252e/admin",
        "/v1/%25252fx",
        "/v1/models/..%2fx",
        "/v1/models/%2e%2e",
        "/v1/models/a%5cb",
        "/v1/sessions%2f..",
        "/v1/files#/models",
        "/v1/files%23/models",
        "/v1/files%253f/models",
        "/v1/files\\/models",
        "*",
    ],
)
def test_a_path_never_leaves_the_address_that_was_configured(plain, path):
    serving, seen = plain
    found = raw(serving.url, f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode(), 1)
    assert found.startswith(b"HTTP/1.1 400")
    assert not seen
    for name in ("/v1/..a/b..", "/v1/...", "/v1/models/org%2Fname"):
        raw(serving.url, f"GET {name} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode(), 1)
    assert [got.split(b" ")[1] for got, _ in seen] == [b"/v1/..a/b..", b"/v1/...", b"/v1/models/org%2Fname"]


@pytest.mark.parametrize("names", [
    ("host: evil.test", "host: localhost"), ("origin: http://evil.test", "origin: http://localhost"),
    ("content-type: application/json", "content-type: multipart/form-data"),
    ("x-refold-session: a", "x-refold-session: b"), ("transfer-encoding: identity", "transfer-encoding: chunked"),
])  # fmt: skip
def test_a_header_by_which_a_request_is_judged_stands_once(plain, names):
    serving, seen = plain
    assert raw(serving.url, head(*names) + b"0\r\n\r\n", 1).startswith(b"HTTP/1.1 400")
    assert not seen


@pytest.mark.parametrize("coding", ["gzip, chunked", "deflate,chunked"])
def test_a_body_that_is_coded_on_its_way_is_not_sent_on_as_if_it_were_not(plain, coding):
    serving, seen = plain
    found = raw(serving.url, head(f"transfer-encoding: {coding}") + b"2\r\n{}\r\n0\r\n\r\n", 2)
    assert found.startswith(b"HTTP/1.1 400")
    assert b"still open" not in found
    assert not seen


def test_whoever_is_not_let_in_is_not_listened_to(plain):
    serving, _ = plain
    evil = (
        b"POST /v1/x HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost:1@evil.test\r\ncontent-length: 9\r\n\r\n"
    )
    found = raw(serving.url, evil, 3)
    assert found.startswith(b"HTTP/1.1 403")
    assert b"still open" not in found


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/v1/sessions", "/page/", "/livez"])
@pytest.mark.parametrize("method", ["TRACE", "CONNECT"])
def test_a_request_that_a_server_answers_with_itself_goes_no_further(plain, method, path):
    serving, seen = plain
    status, headers, _ = call(serving.url, method, path, None, {"authorization": "Bearer sk-own"})
    assert (status, "POST" in headers["allow"], headers["x-refold-reason"]) == (405, True, "method")
    assert not seen


def test_a_redirect_is_handed_on_and_not_followed():
    moved = b"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/steal\r\ncontent-length: 0\r\n\r\n"
    with (
        upstream(lambda head, body: moved) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving,
    ):
        status, _, _ = call(serving.url, body=chat(1), headers={"authorization": "Bearer sk"})
    assert status == 307
    assert len(seen) == 1


def test_slow_heads_and_slow_bodies_are_ended(plain):
    serving, seen = plain
    begun = time.monotonic()
    assert raw(serving.url, b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n", 3) == b""
    assert b"408" in raw(serving.url, head("content-length: 100", "connection: close") + b"{", 3)
    assert time.monotonic() - begun < 3
    assert not seen


def test_endless_heads_are_ended(plain):
    serving, _ = plain
    assert b"still open" not in raw(serving.url, b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 300_000, 1)


def test_a_body_that_is_decompressed_to_more_than_is_taken_is_refused(gateway):
    serving, provider = gateway(max_body=100_000)
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 100_000
    assert call(serving.url, body=bomb, headers={"content-encoding": "gzip"})[0] == 413
    assert not provider.received


def test_a_token_is_asked_of_everybody_and_goes_no_further():
    with (
        upstream(lambda head, body: whole(b"{}")) as (url, seen),
        Serving(GatewaySettings(upstreams={"openai": url}, port=0, host="0.0.0.0", token="t0k")) as serving,
    ):
        local = serving.url.replace("0.0.0.0", "127.0.0.1")
        for path in ("/v1/chat/completions", "/v1/models", "/v1/sessions", "/metrics", "/token/no/v1/models"):
            assert call(local, "GET", path)[0] == 401
        assert call(local, body=chat(1), headers={"x-refold-token": "t0k"})[0] == 200
        assert call(local, path="/token/t0k/v1/chat/completions", body=chat(1))[0] == 200
        assert call(local, "GET", "/livez")[0] == 200
    assert len(seen) == 2
    assert all(b"t0k" not in got + body for got, body in seen)


@pytest.mark.parametrize("headers", [
    {"host": "evil.test"}, {"origin": "https://evil.test"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
])  # fmt: skip
def test_a_web_page_elsewhere_cannot_use_a_gateway_on_loopback(plain, headers):
    serving, seen = plain
    assert call(serving.url, body=chat(1), headers=headers)[0] == 403
    assert not seen


def test_nothing_of_a_request_is_logged_or_measured(gateway, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    serving, _ = gateway(window=8_000, background=False, key="sk-secret")
    body = chat(10)
    body["messages"][1]["content"] = "unmistakable words"
    call(serving.url, body=body, headers={"authorization": "Bearer sk-secret"})
    call(serving.url, body=b"unmistakable words", headers={"authorization": "Bearer sk-wrong"})
    call(serving.url, path="/v1/unmistakable", body=body, headers={"authorization": "Bearer sk-secret"})
    metrics = call(serving.url, "GET", "/metrics")[2].decode()
    listed = call(serving.url, "GET", "/v1/sessions")[2].decode()
    out, err = capfd.readouterr()
    for text in (caplog.text, out, err, metrics, listed):
        assert "unmistakable" not in text
        assert "sk-" not in text


def test_a_store_with_a_secret_holds_no_readable_text_and_no_key(gateway, tmp_path):
    place = tmp_path / "gateway.db"
    serving, _ = gateway(window=8_000, background=False, store=str(place), store_key="hush", key="sk-secret")
    headers = call(serving.url, body=chat(10), headers={"authorization": "Bearer sk-secret"})[1]
    plan = headers["x-refold-plan"]
    found = json.loads(call(serving.url, "GET", f"/v1/recall/{plan}")[2])["messages"]
    assert "word1x1" in json.dumps(found)
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for text in (b"word1x1", b"Read all files", b"f1.py", b"sk-secret"):
        assert text not in written


def test_deleting_a_conversation_takes_originals_and_summaries_with_it(gateway, tmp_path):
    place = tmp_path / "gateway.db"
    serving, _ = gateway(window=8_000, background=False, store=str(place))
    headers = call(serving.url, body=chat(10))[1]
    plan, id = headers["x-refold-plan"], headers["x-refold-conversation"]
    assert json.loads(call(serving.url, "GET", f"/v1/recall/{plan}")[2])["messages"]
    assert call(serving.url, "DELETE", f"/v1/sessions/{id}")[0] == 200
    assert not json.loads(call(serving.url, "GET", f"/v1/recall/{plan}")[2])["messages"]
    assert not json.loads(call(serving.url, "GET", "/v1/recall?q=word1x1")[2])["messages"]
    assert call(serving.url, "GET", f"/v1/sessions/{id}")[0] == 404
    assert json.loads(call(serving.url, "GET", "/v1/sessions")[2]) == {"sessions": []}


def test_what_was_not_used_for_longer_than_the_retention_is_forgotten(gateway, tmp_path):
    serving, _ = gateway(window=8_000, background=False, store=str(tmp_path / "g.db"), retention=0.4)
    call(serving.url, body=chat(10))
    end = time.monotonic() + 10
    while json.loads(call(serving.url, "GET", "/v1/sessions")[2])["sessions"] and time.monotonic() < end:
        time.sleep(0.05)
    assert json.loads(call(serving.url, "GET", "/v1/sessions")[2]) == {"sessions": []}


def test_what_is_used_is_not_forgotten_and_what_was_never_compacted_is(gateway, tmp_path):
    serving, _ = gateway(window=8_000, background=False, store=str(tmp_path / "g.db"), retention=0.8)
    call(serving.url, body={"model": "gpt-4o", "messages": [{"role": "user", "content": "never seen again"}]})
    assert len(serving.gateway.tracker.all()) == 1
    plan = call(serving.url, body=chat(10))[1]["x-refold-plan"]
    end = time.monotonic() + 2.4
    while time.monotonic() < end:
        assert call(serving.url, body=chat(10))[1]["x-refold-plan"] == plan
        time.sleep(0.1)
    assert serving.gateway.metrics.total_compactions == 1
    (conversation,) = serving.gateway.tracker.all()
    with open_store(str(tmp_path / "g.db")) as store:
        assert [head.id for head in store.sessions()] == [conversation.session_id]


def test_a_store_that_fails_once_is_tidied_afterwards(gateway, tmp_path, monkeypatch):
    serving, _ = gateway(window=8_000, background=False, store=str(tmp_path / "g.db"), retention=0.4)
    store = serving.gateway._keeper._store
    found, failing = store.sessions, [StoreError("down")]

    def sessions():
        if failing:
            raise failing.pop()
        return found()

    monkeypatch.setattr(store, "sessions", sessions)
    call(serving.url, body=chat(10))
    end = time.monotonic() + 10
    while failing or found():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_conversation_deleted_while_it_is_compacted_stays_deleted(gateway, controlled, tmp_path):
    begun, go_on = threading.Event(), threading.Event()
    controlled.actions.append(lambda: (begun.set(), go_on.wait(10)))
    serving, _ = gateway(window=18_000, policy=controlled.path, trigger=trigger("5k"), store=str(tmp_path / "g.db"))
    headers = call(serving.url, body=chat(9, max_tokens=100))[1]
    assert headers["x-refold-reason"] == "background"
    assert begun.wait(10)
    assert call(serving.url, "DELETE", f"/v1/sessions/{headers['x-refold-conversation']}")[0] == 200
    go_on.set()
    serving.stop()
    with open_store(str(tmp_path / "g.db")) as store:
        assert store.sessions() == ()
    assert not [file for file in tmp_path.iterdir() if b"word1x1" in file.read_bytes()]
