import asyncio
import socket
import struct
import warnings
from collections.abc import Awaitable, Callable

import pytest
from yarl import URL

from refold._gateway.server.asgi import GatewayError
from refold._gateway.settings import GatewaySettings
from refold._gateway.upstream.client import STALE, Upstream, sendable
from refold._gateway.upstream.response import UpstreamAborted, UpstreamResponse

Headers = list[tuple[bytes, bytes]]
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """A server that keeps what it is sent, answers each request with the next answer, and counts connections."""

    def __init__(self, *answers: bytes) -> None:
        self.answers, self.received = list(answers), list[bytes]()
        self.connections = self.open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            await self.answer(reader, writer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            self.open -= 1

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self.answers:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            self.received.append(head + await reader.readexactly(size))
            writer.write(self.answers.pop(0))
            await writer.drain()


def run(upstream: Server, talk: Callable[[Upstream, URL], Awaitable[None]], read: float = 5.0) -> None:
    async def all_of_it() -> None:
        server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            client = Upstream(GatewaySettings(upstreams={"anthropic": base}, timeout=read, connect_timeout=5))
            try:
                await talk(client, client.address("anthropic", "/v1/messages", b""))
            finally:
                await client.close()
            while upstream.open:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)  # a transport closes in the round after

    asyncio.run(all_of_it())


def test_a_request_goes_out_as_it_is_and_connections_are_used_again() -> None:
    upstream = Server(ANSWER, ANSWER, ANSWER, ANSWER)
    long = b"".join(b"%07d\n" % number for number in range(400_000))  # in several parts
    headers: Headers = [(b"X-Api-Key", b"secret"), (b"accept", b"*/*")]

    async def talk(pool: Upstream, url: URL) -> None:
        for body in (b"{}", b"x" * 100_000, long, b""):
            answer = await pool.send("POST", url, sendable(headers), body)
            assert answer.status == 200
            assert await answer.read() == b"ok"

    run(upstream, talk)
    assert upstream.connections == 1
    assert upstream.received[0].startswith(b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Api-Key: secret\r\naccept: */*\r\nContent-Length: 2\r\n\r\n{}" in upstream.received[0]
    assert upstream.received[1].endswith(b"\r\n\r\n" + b"x" * 100_000)
    assert upstream.received[2].endswith(b"\r\n\r\n" + long)
    assert b"chunked" not in upstream.received[2].lower()


@pytest.mark.parametrize("value", [b"a\r\nx-other: b", b"a\nb", b"a\rb", b"a\0b"])
def test_a_header_that_would_end_its_line_is_refused_before_anything_is_sent(value: bytes) -> None:
    upstream = Server(ANSWER)

    async def talk(pool: Upstream, url: URL) -> None:
        with pytest.raises(GatewayError, match="not one line"):
            await pool.send("POST", url, sendable([(b"x-name", value)]), b"{}")

    run(upstream, talk)
    assert upstream.connections == 0


def test_an_early_hint_is_passed_over_and_the_answer_is_the_one_that_follows() -> None:
    upstream = Server(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + ANSWER)

    async def talk(pool: Upstream, url: URL) -> None:
        answer = await pool.send("POST", url, sendable([]), b"{}")
        assert answer.status == 200
        assert await answer.read() == b"ok"

    run(upstream, talk)


@pytest.mark.parametrize("said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-"])
def test_an_upstream_that_leaves_or_misspeaks_cannot_be_reached(said: bytes) -> None:
    async def talk(pool: Upstream, url: URL) -> None:
        with pytest.raises(GatewayError, match="cannot be reached"):
            await pool.send("POST", url, sendable([]), b"{}")

    run(Server(said), talk)


def test_an_answer_that_does_not_come_times_out_and_its_connection_is_not_used_again() -> None:
    class Silent(Server):
        async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

    upstream = Silent()

    async def talk(pool: Upstream, url: URL) -> None:
        for _ in range(2):
            with pytest.raises(GatewayError, match="in time"):
                await pool.send("POST", url, sendable([]), b"{}")

    run(upstream, talk, read=0.2)
    assert upstream.connections == 2


class Leaving(Server):
    """Takes requests on each connection and ends it on the one after so many, without a byte or with a few."""

    def __init__(
        self, *answers: bytes, after: tuple[int, ...], said: bytes = b"", wait: float = 0, reset: bool = False
    ) -> None:
        super().__init__(*answers)
        self.after, self.said, self.wait, self.reset = list(after), said, wait, reset
        self.asked = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(self.after.pop(0)):
            await self.request(reader)
            writer.write(self.answers.pop(0))
            await writer.drain()
        await self.request(reader)
        await asyncio.sleep(self.wait)
        writer.write(self.said)
        if self.reset:
            await writer.drain()
            await asyncio.sleep(0.02)  # what was written arrives before the reset
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def request(self, reader: asyncio.StreamReader) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(2)
        self.asked += 1


async def asked(pool: Upstream, url: URL) -> bytes:
    answer = await pool.send("POST", url, sendable([]), b"{}")
    return await answer.read()


def test_a_kept_connection_that_its_server_has_closed_is_replaced_by_a_new_one() -> None:
    upstream = Leaving(ANSWER, ANSWER, ANSWER, after=(1, 1, 1))

    async def talk(pool: Upstream, url: URL) -> None:
        for _ in range(3):
            assert await asked(pool, url) == b"ok"

    run(upstream, talk)
    assert (upstream.connections, upstream.asked) == (3, 4)


def test_a_request_is_sent_again_on_a_connection_that_was_never_used_and_only_once() -> None:
    upstream = Leaving(ANSWER, ANSWER, after=(1, 1, 0))

    async def talk(pool: Upstream, url: URL) -> None:
        both = await asyncio.gather(
            pool.send("POST", url, sendable([]), b"{}"), pool.send("POST", url, sendable([]), b"{}")
        )
        assert [await answer.read() for answer in both] == [b"ok", b"ok"]
        with pytest.raises(GatewayError):
            await asked(pool, url)

    run(upstream, talk)
    assert (upstream.connections, upstream.asked) == (3, 4)


def test_a_new_connection_that_is_closed_is_not_replaced() -> None:
    upstream = Leaving(after=(0,))

    async def talk(pool: Upstream, url: URL) -> None:
        with pytest.raises(GatewayError):
            await asked(pool, url)

    run(upstream, talk)
    assert upstream.asked == 1


def test_a_kept_connection_that_its_server_resets_is_replaced_by_a_new_one() -> None:
    upstream = Leaving(ANSWER, ANSWER, after=(1, 1), reset=True)

    async def talk(pool: Upstream, url: URL) -> None:
        for _ in range(2):
            assert await asked(pool, url) == b"ok"

    run(upstream, talk)
    assert (upstream.connections, upstream.asked) == (2, 3)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("said", [b"H", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
def test_a_request_to_which_an_answer_was_begun_is_not_sent_again(said: bytes, reset: bool) -> None:
    upstream = Leaving(ANSWER, after=(1, 1), said=said, reset=reset)

    async def talk(pool: Upstream, url: URL) -> None:
        assert await asked(pool, url) == b"ok"
        with pytest.raises(GatewayError):
            await asked(pool, url)

    run(upstream, talk)
    assert upstream.asked == 2


def test_a_server_that_leaves_after_it_worked_on_a_request_is_not_asked_again() -> None:
    upstream = Leaving(ANSWER, after=(1,), wait=STALE * 1.2)

    async def talk(pool: Upstream, url: URL) -> None:
        assert await asked(pool, url) == b"ok"
        with pytest.raises(GatewayError):
            await asked(pool, url)

    run(upstream, talk)
    assert upstream.asked == 2


def test_a_piece_that_was_put_back_is_read_again_before_what_follows() -> None:
    upstream = Server(ANSWER)

    async def talk(pool: Upstream, url: URL) -> None:
        response = await pool.send("POST", url, sendable([]), b"{}")
        response.unread(await response.read())
        response.unread(b"[")
        assert not response.at_end
        assert response.read_nowait() == b"[ok"
        assert response.at_end
        assert [piece async for piece in response] == []

    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        run(upstream, talk)


def test_a_body_that_breaks_off_raises_one_error_however_it_is_read() -> None:
    short = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"

    async def talk(pool: Upstream, url: URL) -> None:
        for read in (UpstreamResponse.read, UpstreamResponse.read_any):
            response = await pool.send("POST", url, sendable([]), b"{}")
            with pytest.raises(UpstreamAborted, match="ClientPayloadError") as aborted:
                await read(response)
            assert aborted.value.refusal().status == 502
            response.close()

    class Breaking(Server):
        async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            writer.write(short)

    run(Breaking(), talk)
