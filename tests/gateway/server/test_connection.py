import asyncio
import gzip
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
import uvloop

from refold._gateway.server.connection import _TransportView
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import raw, upstream, whole

LIVE = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"


def loopback_addresses():
    """The loopback addresses that this machine has; containers often have no IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return ["127.0.0.1"]
    return ["127.0.0.1", "::1"]


LOOPBACK = loopback_addresses()


def plain(body):
    return CHAT + b"content-length: %d\r\n\r\n" % len(body) + body


def chunked(body):
    return CHAT + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nx-refold-policy: none\r\n\r\n" % (
        len(body),
        body,
    )


@pytest.fixture
def gateway():
    """Start a gateway whose upstream answers every request; returns its address and the requests that it forwarded."""
    with ExitStack() as stack:

        def make(answer=lambda head, body: whole(b"{}"), **settings):
            url, seen = stack.enter_context(upstream(answer))
            serving = Serving(GatewaySettings(upstreams={"openai": url}, port=0, **settings))
            return stack.enter_context(serving).url, seen

        yield make


@pytest.mark.parametrize("apart", [False, True])
def test_plain_and_other_heads_on_one_connection_all_reach_upstream(gateway, apart):
    url, seen = gateway()
    parts = [plain(b"1"), LIVE, chunked(b"22"), plain(b"333"), LIVE, chunked(b"4444")]
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=5) as client:
        received = b""
        for number, data in enumerate(parts if apart else [b"".join(parts)], 1):
            client.sendall(data)
            while received.count(b"HTTP/1.1 200") < (number if apart else len(parts)):
                received += client.recv(65_536)
    assert [body for _, body in seen] == [b"1", b"22", b"333", b"4444"]
    assert not any(b"x-refold" in head for head, _ in seen)


def test_a_request_that_follows_another_waits_whole_for_the_response_before_it(gateway):
    url, seen = gateway()
    bodies = [b"1" * 10, b"2" * 400_000, b"3" * 10]
    found = raw(url, b"".join(map(plain, bodies)), 2)
    assert found.count(b"HTTP/1.1 200") == 3
    assert [body for _, body in seen] == bodies


def test_what_a_head_says_holds_for_its_own_request_and_for_those_that_repeat_it(gateway):
    url, seen = gateway()
    plain_head, bypass = b"x-name: 1\r\n", b"x-name: 1\r\nx-refold-bypass: 1\r\n"
    other, encoded = b"x-name: 2\r\naccept: */*\r\n", b"x-name: 1\r\ncontent-encoding: gzip\r\n"
    heads = [plain_head, plain_head, bypass, bypass, plain_head, other, encoded, other, other, plain_head]
    requests = []
    for number, head in enumerate(heads):
        body = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % (b"x" * 10 ** (number % 4))
        body = gzip.compress(body) if b"gzip" in head else body
        requests.append(CHAT + head + b"content-length: %d\r\n\r\n" % len(body) + body)
    address = urlsplit(url)
    done = []
    with socket.create_connection((address.hostname, address.port), timeout=5) as client:
        for request_ in requests:
            client.sendall(request_)
            received = b""
            while not received.endswith(b"{}"):
                received += client.recv(65_536)
            done.append(received.split(b"x-refold-done: ")[1].split(b"\r\n")[0])
    assert done == [b"bypassed" if head is bypass else b"forwarded" for head in heads]
    for (sent, body), head, request_ in zip(seen, heads, requests, strict=True):
        assert b"\r\nx-name: 2\r\n" in sent if head is other else b"\r\nx-name: 1\r\n" in sent
        assert (b"content-encoding" in sent) is (head is encoded)
        assert (b"accept" in sent) is (head is other)
        assert body == request_.partition(b"\r\n\r\n")[2]
        assert b"x-refold" not in sent


def halves(request_, at):
    return [request_[:at], request_[at:]]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(lambda first, second: [first, second], id="each whole"),
        pytest.param(lambda first, second: [first + second], id="both at once"),
        pytest.param(lambda first, second: [first, *halves(second, -3)], id="the end of the body later"),
        pytest.param(lambda first, second: [first, *halves(second, 30)], id="the end of the head later"),
        pytest.param(lambda first, second: halves(first + second, len(first) + 9), id="a part with the one before"),
        pytest.param(
            lambda first, second: [first, *halves(second, second.index(b"\r\n\r\n") + 4)], id="the body later"
        ),
    ],
)
def test_a_body_behind_a_repeated_head_reaches_upstream_however_it_arrives(gateway, pieces):
    url, seen = gateway()
    bodies = [b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % (b"x" * size) for size in (5, 900, 70, 70)]
    requests = [plain(body).replace(b"host:", b"connection: keep-alive\r\nhost:") for body in bodies]
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=5) as client:
        received, sent = b"", 0
        for first, second in (requests[:2], requests[2:]):
            for piece in pieces(first, second):
                client.sendall(piece)
                time.sleep(0.02)
            sent += 2
            while received.count(b"HTTP/1.1 200") < sent:
                answer = client.recv(65_536)
                assert answer, received
                received += answer
    assert [body for _, body in seen] == bodies
    assert all(head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n") for head, _ in seen)


def test_a_body_behind_a_repeated_head_has_the_limit_of_every_body(gateway):
    url, seen = gateway(max_body=100)
    found = raw(url, plain(b"1" * 100) + plain(b"2" * 100) + plain(b"3" * 101))
    assert found.count(b"HTTP/1.1 200") == 2
    assert found.count(b"HTTP/1.1 413") == 1
    assert not found.endswith(b"<still open>")
    assert [body for _, body in seen] == [b"1" * 100, b"2" * 100]


def test_the_rest_of_a_body_after_an_early_response_is_no_head(gateway):
    url, seen = gateway()
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=5) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 30\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 404")  # no provider for these: the body is not waited for
        client.sendall(LIVE[:30] + LIVE)
        assert client.recv(65_536).startswith(b"HTTP/1.1 200")
    assert not seen


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
def test_a_head_that_is_too_long_is_rejected(gateway, end):
    url, _ = gateway()
    began = time.monotonic()
    assert raw(url, LIVE[:-2] + b"x: " + b"a" * 70_000 + end, 2).startswith(b"HTTP/1.1 400")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize("request_", [plain(b"{}"), chunked(b"{}")])
def test_a_response_may_take_longer_than_a_head(gateway, host, request_):
    def late(head, body):
        time.sleep(0.4)
        return whole(b"{}")

    url, _ = gateway(late, host=host, head_timeout=0.2)
    assert b"200 OK" in raw(url.replace("localhost", host), request_, 0.8)


@pytest.mark.parametrize("size", [2, 300_000])
def test_a_client_that_leaves_ends_the_call_upstream_whatever_parser_read_it(gateway, size):
    for request in (plain(b"x" * size), chunked(b"x" * size)):
        ended = []

        async def silent(reader, writer, ended=ended):
            ended.append(await reader.read(1))

        url, seen = gateway(silent)
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=5) as client:
            client.sendall(request)
            while not seen:
                time.sleep(0.005)
        for _ in range(400):
            if ended:
                break
            time.sleep(0.005)
        assert ended == [b""]


def test_what_is_written_to_a_client_that_has_left_is_dropped_without_an_error():
    async def leave():
        ours, theirs = socket.socketpair()
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, ours)
        view = _TransportView(transport)
        theirs.close()
        while not view.is_closing():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        view.write(b"late")
        view.join_next_writes()
        view.write(b"later")
        await asyncio.sleep(0.01)

    uvloop.run(leave())
