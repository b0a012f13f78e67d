import asyncio
import contextlib
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import call, chat, raw, upstream, whole

BODY = json.dumps(chat(1)).encode()
UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"


def request(path, *fields, body=BODY, method=b"POST"):
    head = b"%s %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n" % (method, path, len(body))
    return b"".join((head, *fields, b"\r\n"))


@pytest.fixture
def plain():
    with upstream(lambda head, body: whole(b"{}")) as (url, seen), Serving(
        GatewaySettings(upstreams={"openai": url}, port=0)
    ) as serving:  # fmt: skip
        yield serving, seen


@pytest.mark.parametrize("at", [0, 1, 60, 200, 10_000])
def test_the_body_of_a_client_that_asks_for_http2_is_not_lost(plain, at):
    serving, seen = plain
    data = request(b"/v1/chat/completions", UPGRADE) + BODY + request(b"/v1/chat/completions") + BODY
    parts = urlsplit(serving.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as client:
        for piece in (data[:at], data[at:]):
            client.sendall(piece)
            time.sleep(0.05)
        said = b""
        while said.count(b"\r\n\r\n{}") < 2:
            said += client.recv(65_536)
    assert [body for _, body in seen] == [BODY, BODY]
    assert b"upgrade" not in seen[0][0].lower()
    assert b"http2-settings" not in seen[0][0].lower()


@pytest.mark.parametrize(
    ("path", "end"),
    [
        (b"/v1/chat/completions", b"\r\n\r\n"),
        (b"/v1/responses", b"\r\ncontent-length: 0\r\n\r\n"),  # which a handshake does not have
        (b"/v1/responses", b"\n\n"),
    ],
)
def test_a_websocket_is_refused_in_words_and_reaches_nobody(plain, path, end):
    serving, seen = plain
    asked = b"host: localhost\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: eA=="
    said = raw(serving.url, b"GET %b HTTP/1.1\r\n%b%b" % (path, asked, end), wait=0.5)
    assert said.startswith(b"HTTP/1.1 426 ")
    assert b"no WebSocket" in said
    assert not seen


def test_a_websocket_of_the_realtime_api_is_carried_both_ways():
    from websockets.sync.client import connect
    from websockets.sync.server import serve

    seen = []

    def echo(socket):
        seen.append((socket.request.path, socket.request.headers))
        for message in socket:
            socket.send(message)

    with serve(echo, "127.0.0.1", 0, subprotocols=["realtime"]) as upstream:
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{upstream.socket.getsockname()[1]}/v1"
        with Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
            place = serving.url.replace("http", "ws") + "/v1/realtime?model=m"
            keys = {"authorization": "Bearer k", "x-refold-session": "s"}
            with connect(place, subprotocols=["realtime"], additional_headers=keys, proxy=None) as client:
                assert client.subprotocol == "realtime"
                for message in ("hello", b"x" * 900_000, "again"):
                    client.send(message)
                    assert client.recv() == message
        upstream.shutdown()
    ((path, headers),) = seen
    assert path == "/v1/realtime?model=m"
    assert headers["authorization"] == "Bearer k"
    assert not [name for name in headers if name.lower().startswith("x-refold")]


def test_a_websocket_to_a_provider_that_is_not_there_is_refused(plain):
    with Serving(GatewaySettings(upstreams={"openai": "http://127.0.0.1:9/v1"}, port=0)) as serving:
        asked = b"connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: eA==\r\n"
        said = raw(serving.url, request(b"/v1/realtime?model=m", asked, body=b"", method=b"GET"), wait=0.5)
    assert said.startswith(b"HTTP/1.1 502 ")


def test_a_websocket_goes_with_the_name_and_password_of_the_address_and_not_with_the_clients_key():
    with upstream(lambda head, body: whole(b"{}", b"403 Forbidden")) as (url, seen):
        place = url.replace("http://", "http://me:hush@")
        with Serving(GatewaySettings(upstreams={"openai": place}, port=0)) as serving:
            asked = b"connection: Upgrade\r\nupgrade: websocket\r\nauthorization: Bearer k\r\n"
            raw(serving.url, request(b"/v1/realtime", asked, body=b"", method=b"GET"), wait=1)
    head = seen[0][0].lower()
    assert head.count(b"authorization:") == 1
    assert b"basic bwu6ahvzaa==" in head
    assert f"host: {url.partition('//')[2]}\r\n".encode() in head


ASKED = request(b"/v1/realtime", b"connection: Upgrade\r\nupgrade: websocket\r\n", body=b"", method=b"GET")
ACCEPTED = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"


@pytest.fixture
def realtime():
    """Start an upstream that treats a connection as a function says, and a gateway before it; returns its address."""
    with contextlib.ExitStack() as stack:

        def make(treat, **settings):
            url, _ = stack.enter_context(upstream(treat))
            place = stack.enter_context(Serving(GatewaySettings(upstreams={"openai": url}, port=0, **settings))).url
            return stack.enter_context(socket.create_connection(urlsplit(place).netloc.split(":"), timeout=10))

        yield make


def heard(client, end):
    said = b""
    while end not in said:
        piece = client.recv(65_536)
        assert piece, said
        said += piece
    return said


def test_nothing_of_a_client_goes_to_a_provider_that_refuses_its_websocket(realtime):
    after = []

    async def refusing(reader, writer):
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nset-cookie: a=b\r\n\r\nno")
        after.append(await reader.read())

    client = realtime(refusing)
    client.sendall(ASKED + request(b"/v1/smuggled", method=b"GET", body=b""))
    said = heard(client, b"no")
    assert said.startswith(b"HTTP/1.1 403 ")
    assert b"set-cookie" not in said
    for _ in range(500):
        if after:
            break
        time.sleep(0.01)
    assert after == [b""]


def test_a_provider_hears_what_a_client_says_once_it_has_accepted_the_websocket(realtime):
    early, go_on = [], threading.Event()

    async def slow(reader, writer):
        with contextlib.suppress(TimeoutError):
            early.append(await asyncio.wait_for(reader.read(1), 0.3))
        writer.write(ACCEPTED + b"first")
        go_on.set()
        writer.write(await reader.readexactly(4))
        await writer.drain()

    client = realtime(slow)
    client.sendall(ASKED)
    time.sleep(0.1)
    assert go_on.wait(10)
    assert heard(client, b"first") == ACCEPTED + b"first"
    client.sendall(b"ping")
    assert heard(client, b"ping") == b"ping"
    assert early == []


def test_a_websocket_on_which_both_sides_are_silent_ends_after_the_timeout(realtime):
    async def talks_once(reader, writer):
        writer.write(ACCEPTED)
        while await reader.read(1):
            writer.write(b".")

    client = realtime(talks_once, timeout=0.6)
    client.sendall(ASKED)
    assert heard(client, b"\r\n\r\n")
    for _ in range(4):
        time.sleep(0.3)  # in all more than the timeout
        client.sendall(b"x")
        assert client.recv(1) == b"."
    assert client.recv(1) == b""


@pytest.mark.parametrize(("said", "status"), [(b"", 502), (b"nonsense\r\n\r\n", 502), (None, 504)])
def test_a_provider_that_does_not_answer_a_websocket_as_it_should_is_told_as_that(realtime, said, status):
    async def odd(reader, writer):
        if said is None:
            await reader.read()
        writer.write(said or b"")

    client = realtime(odd, timeout=0.3)
    client.sendall(ASKED)
    assert heard(client, b"\r\n\r\n").startswith(b"HTTP/1.1 %d " % status)


def test_a_tunnel_is_refused(plain):
    serving, seen = plain
    assert raw(
        serving.url, b"CONNECT api.openai.com:443 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    ).startswith(b"HTTP/1.1 405 ")
    assert not seen


@pytest.mark.parametrize(
    ("path", "body"), [(b"/v1/embeddings", b"{}"), (b"/v1/files", b"x" * 1_000_000), (b"/v1/models", b"")]
)
def test_a_client_that_leaves_before_any_answer_ends_whatever_call_upstream(path, body):
    ended = []

    async def silent(reader, writer):
        ended.append(await reader.read(1))

    with upstream(silent) as (url, seen), Serving(GatewaySettings(upstreams={"openai": url}, port=0)) as serving:
        parts = urlsplit(serving.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=5) as client:
            client.sendall(request(path, body=body, method=b"POST" if body else b"GET") + body)
            while not seen:
                time.sleep(0.01)
        for _ in range(300):
            if ended:
                break
            time.sleep(0.01)
        assert ended == [b""]


def test_health_is_asked_for_with_head_too(plain):
    assert call(plain[0].url, "HEAD", "/livez")[0] == 200


def test_a_header_beyond_ascii_passes_as_its_bytes(plain):
    serving, seen = plain
    call(serving.url, "GET", "/v1/models", headers={"x-title": "caf\u00e9".encode().decode("latin-1")})
    assert b"x-title: caf\xc3\xa9\r\n" in seen[0][0].lower()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/moderations"])
@pytest.mark.parametrize("status", [b"101 Switching Protocols", b"999 Request Denied"])
def test_a_status_that_no_request_over_http_may_get_is_told_as_an_error_of_the_provider(path, status):
    answer = b"HTTP/1.1 %s\r\nupgrade: x\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\n{}" % status
    with upstream(lambda head, body: answer) as (url, _), Serving(
        GatewaySettings(upstreams={"openai": url}, port=0)
    ) as serving:  # fmt: skip
        got, headers, data = call(serving.url, path=path, body=BODY)
    assert (got, headers["x-refold-reason"]) == (502, "upstream_down")
    assert status[:3] in data


def test_what_was_not_modified_is_told_without_a_body_and_the_connection_goes_on(caplog):
    answer = b"HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 99\r\n\r\n"
    with upstream(lambda head, body: answer) as (url, _), Serving(
        GatewaySettings(upstreams={"openai": url}, port=0)
    ) as serving:  # fmt: skip
        data = raw(serving.url, 2 * request(b"/v1/models", method=b"GET", body=b""), wait=1)
    assert data.count(b"HTTP/1.1 304") == 2
    assert "internal error" not in caplog.text
