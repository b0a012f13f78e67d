import socket
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import raw, upstream, whole

LIVE = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture
def plain():
    with upstream(lambda head, body: whole(b"{}")) as (url, seen):
        settings = GatewaySettings(upstreams={"openai": url}, port=0, head_timeout=0.4, body_timeout=0.4)
        with Serving(settings) as serving:
            yield serving, seen


def after_another(url, data, wait=5.0):
    """Send bytes on a connection that has carried a request already; return whether it was closed, and how soon."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=wait) as sock:
        sock.sendall(LIVE)
        assert b"200 OK" in sock.recv(65_536)
        begun = time.monotonic()
        try:
            sock.sendall(data)
            while sock.recv(65_536):
                pass
        except TimeoutError:
            return False, wait
        except OSError:
            pass
        return True, time.monotonic() - begun


@pytest.mark.parametrize("data", [b"GET /livez HTTP/1.1\r\nhost: loc", b"\r\n", b"\r\n\r\nG", b"G"])
def test_a_slow_head_is_ended_on_a_connection_that_was_used_before(plain, data):
    closed, seconds = after_another(plain[0].url, data)
    assert closed
    assert seconds < 3


def test_an_endless_head_is_ended_on_a_connection_that_was_used_before(plain):
    closed, seconds = after_another(plain[0].url, b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 3_000_000)
    assert closed
    assert seconds < 3


def test_a_connection_carries_many_requests_after_one_another(plain):
    serving, seen = plain
    one = CHAT + b"content-length: 2\r\n\r\n{}"
    assert raw(serving.url, LIVE + one + one + LIVE, 1).count(b"HTTP/1.1 200") == 4
    assert len(seen) == 2


@pytest.mark.parametrize("offer", [
    b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n",
    b"connection: upgrade\r\nupgrade: websocket\r\n",
])  # fmt: skip
@pytest.mark.parametrize("apart", [False, True])
def test_the_body_of_a_request_that_offers_another_protocol_arrives(plain, offer, apart):
    serving, seen = plain
    head = CHAT + offer + b"content-length: 13\r\n\r\n"
    body = b'{"messages":1'
    place = urlsplit(serving.url)
    with socket.create_connection((place.hostname, place.port), timeout=5) as sock:
        if apart:
            sock.sendall(head[:50])
            time.sleep(0.02)
            sock.sendall(head[50:] + body[:4])
            time.sleep(0.02)
            sock.sendall(body[4:])
        else:
            sock.sendall(head + body)
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200")
        sock.sendall(LIVE)
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200")
    assert [got for _, got in seen] == [body]
    assert b"upgrade" not in seen[0][0].lower()


def test_trailers_are_nobodys_headers(plain):
    serving, seen = plain
    tail = b"2\r\n{}\r\n0\r\nhost: evil.test\r\nx-refold-policy: none\r\nauthorization: Bearer other\r\n\r\n"
    assert b"200 OK" in raw(serving.url, CHAT + b"transfer-encoding: chunked\r\n\r\n" + tail, 1)
    assert b"other" not in seen[0][0]
    assert seen[0][1] == b"{}"


def test_the_gateway_is_no_proxy(plain):
    serving, seen = plain
    assert raw(serving.url, b"CONNECT evil.test:443 HTTP/1.1\r\nhost: evil.test:443\r\n\r\n", 1).startswith(
        b"HTTP/1.1 405"
    )
    assert not seen


def test_a_slow_body_on_its_way_to_another_path_is_ended_too(plain):
    serving, _ = plain
    found = raw(serving.url, b"POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{", 5)
    assert found.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in found
    assert b"still open" not in found


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/compact"])
def test_a_body_that_drips_in_is_ended_although_no_part_of_it_is_late(path):
    with upstream(lambda head, body: whole(b"{}")) as (url, seen):
        settings = GatewaySettings(upstreams={"openai": url}, port=0, body_timeout=30, upload_timeout=0.3)
        with Serving(settings) as serving:
            place = urlsplit(serving.url)
            with socket.create_connection((place.hostname, place.port), timeout=10) as sock:
                sock.sendall(CHAT.replace(b"/v1/chat/completions", path) + b"content-length: 100\r\n\r\n")
                with suppress(OSError):
                    for _ in range(40):
                        sock.sendall(b" ")
                        time.sleep(0.05)
                assert sock.recv(65_536).startswith(b"HTTP/1.1 408")
        assert not seen
