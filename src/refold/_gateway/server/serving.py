"""Runs a gateway under uvicorn: in this thread until a signal comes, or in a thread of its own."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from contextlib import suppress
from errno import EADDRNOTAVAIL
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from refold._gateway.app import Gateway
from refold._gateway.observability.logs import log_event
from refold._gateway.server.connection import MAX_HEAD, client_connection
from refold._gateway.settings import is_loopback
from refold._text.urls import without_secrets
from refold.errors import RefoldError, StoreError, UsageError

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

    from refold._gateway.settings import GatewaySettings

__all__ = ["Serving", "address_of", "check_certificate", "listening_socket"]

JOIN = 0.1  # seconds between two looks whether a thread that ends waits for its store
STOP = 5.0  # seconds for requests when a gateway in a thread is stopped
# objects between two searches for garbage among new ones (Python's 700 cost a tenth of the time of a request); how many
# of these come before one of what they left, which took 37 ms after Python's ten, beside conversations of 250 KB
GC_THRESHOLDS = 10_000, 2, 1_000
OLD_GARBAGE = 60  # of the latter, after which everything is searched, in a moment in which no request runs
LOOK = 20  # ticks of a tenth of a second between two looks whether the certificate was replaced

MALLOPT_MMAP_THRESHOLD = -3  # what glibc's <malloc.h> calls M_MMAP_THRESHOLD
# bytes of a block that is mapped alone, and so given back when it is freed: glibc raises its own limit to the largest
# block that was freed, so that after one body of 10 MB the next ones leave holes in a heap that only grows
LARGE_BLOCK = 1024 * 1024
MALLOPT_TRIM_THRESHOLD = -1  # and this M_TRIM_THRESHOLD
# bytes that are free at the end of the heap and stay there: naming the limit above leaves this one at 128 KB, so that a
# request of 400 KB gave a hundred pages back, which the next one took again
FREE_BLOCK = 16 * 1024 * 1024
SWITCH = 0.0005  # seconds for which a thread that plans keeps the event loop waiting; Python's are ten times as many


class _Server(uvicorn.Server):
    """Uvicorn with an event for the moment from which requests are accepted, and time for requests at the end.

    From the first signal on the gateway takes no new requests, and is not ready. Those that run have `drain` seconds;
    a second Ctrl-C ends them at once.
    """

    def __init__(self, config: uvicorn.Config, gateway: Gateway, drain: float) -> None:
        super().__init__(config)
        self._certificate = _certificate_state(gateway.settings)
        self.ready = threading.Event()
        self.drain = drain
        self._gateway = gateway
        self._end = 0.0
        self._signal: int | None = None  # the last one that came

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal that ends the gateway."""
        self._signal = sig
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop: after a signal, once no request runs or their time is over."""
        if counter % LOOK == 0:
            self._renew_certificate()
        if self._gateway.owns_process and not self._gateway.running and gc.get_count()[2] > OLD_GARBAGE:
            gc.collect()  # which holds the interpreter for as long as the histories in memory are many
        ends = await super().on_tick(counter)
        if not ends or self.force_exit:
            return ends
        if not self._gateway.draining:
            self._gateway.draining, self._end = True, monotonic() + self.drain
            log_event(logging.INFO, "draining", requests=self._gateway.running, seconds=self.drain)
        if not self._gateway.running:
            return True
        if monotonic() < self._end:
            return False
        log_event(logging.WARNING, "requests are cut", requests=self._gateway.running)
        self.config.timeout_graceful_shutdown = 0
        return True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._gateway.owns_process:
            gc.freeze()  # what exists by now stays, and need not be searched again and again for garbage
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections and the gateway; a process of its own ends here where Python would wait for the store.

        It joins all threads before it ends, and no one can end a thread that waits for a database.
        """
        await super().shutdown(sockets)
        gateway = self._gateway
        if gateway.owns_process and self._signal is not None and (gateway.left_store or self.force_exit):
            signal.signal(self._signal, signal.SIG_DFL)
            os.kill(os.getpid(), self._signal)

    def _renew_certificate(self) -> None:
        """Use a certificate that has replaced the one in use, for connections from now on.

        Both files are tried apart first: a certificate without its key in the context would end every handshake. While
        they do not fit, as between the writing of one and of the other, the one in use stays.
        """
        settings = self._gateway.settings
        state = _certificate_state(settings)
        if state == self._certificate or self.config.ssl is None:
            return
        self._certificate = state
        try:
            check_certificate(settings)
            self.config.ssl.load_cert_chain(settings.tls_certificate, settings.tls_key)
        except (UsageError, OSError) as error:
            log_event(logging.ERROR, "the certificate in use stays", error=str(error))
        else:
            log_event(logging.INFO, "certificate renewed")


def _set_up_allocator() -> None:
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # a C library other than glibc
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(MALLOPT_MMAP_THRESHOLD, LARGE_BLOCK)
            mallopt(MALLOPT_TRIM_THRESHOLD, FREE_BLOCK)


class Serving:
    """A gateway on a socket. `url` is its address; as a context manager it serves in a thread of its own.

    `listener` is a socket that listens already, which several processes may share.
    """

    def __init__(self, settings: GatewaySettings, listener: socket.socket | None = None) -> None:
        self.settings = settings
        check_certificate(settings)
        self.gateway = Gateway(settings)
        config = uvicorn.Config(
            self.gateway, log_config=None, log_level="critical", access_log=False, lifespan="on",
            ws_max_size=settings.max_body, ws_per_message_deflate=False,
            ws="none", http=client_connection(settings.head_timeout, settings.timeout),
            h11_max_incomplete_event_size=MAX_HEAD, loop="uvloop", timeout_graceful_shutdown=5, server_header=False,
            date_header=False, proxy_headers=False, timeout_keep_alive=75,
            ssl_certfile=settings.tls_certificate or None, ssl_keyfile=settings.tls_key or None,
        )  # fmt: skip
        self._server = _Server(config, self.gateway, settings.drain_timeout)
        self._thread: threading.Thread | None = None
        self._socket = listening_socket(settings.host, settings.port) if listener is None else listener
        self._refuse_loop()

    @property
    def url(self) -> str:
        """The address of the gateway, without a path."""
        return address_of(self.settings, self._socket)

    def run(self) -> None:
        """Serve until a signal ends it, and the requests that run by then are answered.

        Raises:
            StoreError: the store cannot be used.
            UsageError: the settings cannot be used.
        """
        gc.collect()
        gc.set_threshold(*GC_THRESHOLDS)
        _set_up_allocator()
        sys.setswitchinterval(SWITCH)
        self.gateway.owns_process = True
        try:
            self._server.run(sockets=[self._socket])
        except SystemExit:  # raised by uvicorn where startup failed
            if self.gateway.failed is None:
                raise
        finally:
            self._socket.close()
        if (error := self.gateway.failed) is not None:
            raise _startup_error(error) from error

    def start(self) -> None:
        """Serve in a thread of its own; return when requests are accepted.

        Raises:
            StoreError: the store cannot be used.
            UsageError: the settings cannot be used.
        """
        self._thread = threading.Thread(target=self._threaded, name="refold-gateway", daemon=True)
        self._thread.start()
        self._server.ready.wait()
        if not self._server.started:
            self._thread.join()
            error = self.gateway.failed
            raise UsageError("the gateway could not be started") if error is None else _startup_error(error) from error

    def stop(self) -> None:
        """Stop the thread of `start` once running requests are done, or after five seconds.

        It is left to itself where the gateway's store does not answer.
        """
        self._server.drain = min(self._server.drain, STOP)
        self._server.should_exit = True
        if self._thread is not None:
            while self._thread.is_alive() and not self.gateway.left_store:
                self._thread.join(JOIN)
            self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _refuse_loop(self) -> None:
        """Raise where an upstream is this gateway: the environment may point clients to it already."""
        port = self._socket.getsockname()[1]
        for name, url in self.settings.upstreams.items():
            parts = urlsplit(url)
            host = parts.hostname or ""
            if parts.port == port and (is_loopback(host) or host == self.settings.host):
                self._socket.close()
                message = f"the upstream {without_secrets(url)} of {name} is this gateway itself"
                raise UsageError(f"{message}: set the provider with --{name}, or unset the variable that points here")

    def _threaded(self) -> None:
        try:
            with suppress(SystemExit):  # `start` raises the reason
                self._server.run(sockets=[self._socket])
        finally:
            self._server.ready.set()
            self._socket.close()


def check_certificate(settings: GatewaySettings) -> None:
    """See that certificate and key can be used, before anything listens.

    Raises:
        UsageError: they cannot.
    """
    if not settings.tls_certificate:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(
            settings.tls_certificate, settings.tls_key, password=lambda: b""
        )  # else it is asked for
    except OSError as error:  # an SSLError too
        place, why = f"{settings.tls_certificate} with {settings.tls_key}", error.strerror or type(error).__name__
        raise UsageError(
            f"the certificate {place} cannot be used ({why}): give its chain in PEM and its key without a password"
        ) from None


def _certificate_state(settings: GatewaySettings) -> list[tuple[int, int, int]]:
    """Return what tells whether the files of a certificate are those of before; nothing of one that is not there."""
    states = []
    for name in filter(None, (settings.tls_certificate, settings.tls_key)):
        with suppress(OSError):
            file = os.stat(name)
            states.append((file.st_mtime_ns, file.st_ino, file.st_size))
    return states


def _startup_error(error: Exception) -> RefoldError:
    """Return the error to raise where startup failed, with what to do about it."""
    if isinstance(error, StoreError):
        remedy = "; see that it can be reached, or name another" if type(error) is StoreError else ""
        return type(error)(f"the gateway was not started: {error}{remedy}")
    if isinstance(error, RefoldError):
        return error
    return UsageError(f"the gateway was not started ({type(error).__name__}: {error}): check its settings")


def address_of(settings: GatewaySettings, listener: socket.socket) -> str:
    """Return the address of a gateway that listens on a socket, without a path."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if settings.tls_certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        UsageError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio sets no TCP_NODELAY
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2_048)  # the address can be used from now on
    except OSError as error:
        listener.close()
        option = "--host" if isinstance(error, socket.gaierror) or error.errno == EADDRNOTAVAIL else "--port"
        message = f"cannot listen on {host} port {port}: {error.strerror}: choose another with {option}"
        raise UsageError(message) from error
    return listener
