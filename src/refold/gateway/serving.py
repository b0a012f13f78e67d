"""Runs a gateway under uvicorn: in this thread until a signal comes, or in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from typing import TYPE_CHECKING, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from refold.errors import UsageError
from refold.gateway.app import Gateway
from refold.gateway.http import CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from refold.gateway.http import Scope
    from refold.gateway.settings import Settings

__all__ = ["Serving"]

LONGEST_HEAD = 64 * 1024  # bytes of request line and headers; more is nobody's conversation
UPGRADING = frozenset({b"upgrade", b"http2-settings", b"connection"})


class _Joining:
    """A transport that holds the head of an answer back for the body that follows in the same turn of the loop.

    uvloop writes at once, so that a head and its body are two calls of the system otherwise.
    """

    __slots__ = ("_held", "_holding", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self._holding = False

    def hold(self) -> None:
        """Hold the next piece back."""
        self._holding = True

    def write(self, data: bytes) -> None:
        if self._holding:
            self._holding, self._held = False, data
            self._loop.call_soon(self._flush)
        elif self._held:
            self._held, data = b"", self._held + data
            self._transport.write(data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)


class _Protocol(HttpToolsProtocol):
    """HTTP whose heads must come in time and have a bounded size, and that tells when its client has gone.

    Who asks for another protocol is answered in this one: Java's client asks for HTTP/2 with every first request, and
    its body must not be lost to a parser that stops at the head.
    """

    head_timeout = 20.0
    _stopped: int | None = None  # where in the newest bytes the parser stopped
    _wanted = b""  # the protocol that was asked for
    _left: Callable[[], object] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._joining = _Joining(transport, self.loop)
        self._head = 0
        self._late: asyncio.TimerHandle | None = self.loop.call_later(self.head_timeout, transport.close)

    def data_received(self, data: bytes) -> None:
        if self._late is not None:
            self._head += len(data)
            if self._head > LONGEST_HEAD and b"\r\n\r\n" not in data:
                self.transport.close()
                return
        super().data_received(data)
        if self._stopped is not None:
            at, self._stopped = self._stopped, None
            self._go_on(data[at:])

    def _unsupported_upgrade_warning(self) -> None:
        """Note where the parser stopped; uvicorn calls this while it handles the parser's exception."""
        self._stopped = cast("httptools.HttpParserUpgrade", sys.exception()).args[0]

    def _go_on(self, rest: bytes) -> None:
        """Read a request that asks for another protocol anew, as one that does not."""
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            if name == b"upgrade":
                self._wanted = value
            if name not in UPGRADING or (name == b"connection" and b"close" in value.lower()):
                lines.append(b"%s: %s" % (name, b"close" if name == b"connection" else value))
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        self.data_received(b"\r\n".join((*lines, b"", rest)))

    def on_message_complete(self) -> None:
        if self._upgrading():
            return
        super().on_message_complete()
        if self._left is not None and not self.pipeline:
            self.flow.resume_reading()  # the body that somebody watched over is whole

    def _upgrading(self) -> bool:
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def on_headers_complete(self) -> None:
        if self._upgrading():
            return
        if self._late is not None:
            self._late.cancel()
            self._late = None
        super().on_headers_complete()
        scope: Scope = self.scope  # type: ignore[assignment] # uvicorn's names them all
        scope["extensions"] = {CLIENT: self}  # the task has not begun
        if self._wanted:
            scope["headers"].append((b"upgrade", self._wanted))
            self._wanted = b""
        self._joining.hold()
        self.cycle.transport = self._joining  # type: ignore[assignment] # as much of one as is used

    def arrived(self) -> bool:
        """Tell whether a part of the newest request's body is there."""
        return self.cycle.message_event.is_set()

    def watch(self, left: Callable[[], object] | None) -> None:
        """Call something when the connection is lost; at once where it is."""
        self._left = left
        if left is not None:
            self.flow.resume_reading()  # else nobody notices
            if self.transport.is_closing():
                left()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)
        if self._left is not None:
            self._left()


class _Server(uvicorn.Server):
    """Uvicorn that says when requests are taken."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.ready.set()


class Serving:
    """A gateway on a socket. `url` is its address; as a context manager it serves in a thread of its own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.gateway = Gateway(settings)
        protocol = type("Protocol", (_Protocol,), {"head_timeout": settings.head_timeout})
        config = uvicorn.Config(
            self.gateway, log_config=None, log_level="critical", access_log=False, lifespan="on", ws="none",
            http=protocol, loop="uvloop", timeout_graceful_shutdown=5, server_header=False, date_header=False,
            proxy_headers=False, timeout_keep_alive=75,
        )  # fmt: skip
        self._server = _Server(config)
        self._thread: threading.Thread | None = None
        self._socket = _bound(settings.host, settings.port)

    @property
    def url(self) -> str:
        """The address of the gateway, without a path."""
        host, port = self._socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def run(self) -> None:
        """Serve until a signal ends it."""
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Serve in a thread of its own; returns when requests are taken."""
        self._thread = threading.Thread(target=self._threaded, name="refold-gateway", daemon=True)
        self._thread.start()
        self._server.ready.wait()
        if not self._server.started:
            raise UsageError("the gateway could not be started")

    def stop(self) -> None:
        """End what `start` began, when requests in hand are done."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _threaded(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._server.ready.set()
            self._socket.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio sets no TCP_NODELAY
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(2_048)  # so that whoever reads the address can connect at once
    except OSError as error:
        made.close()
        said = f"cannot listen on {host} port {port}: {error.strerror}: choose another with --port"
        raise UsageError(said) from error
    return made
