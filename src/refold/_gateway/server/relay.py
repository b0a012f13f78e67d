"""Relays a response to the client, byte for byte, and drops the upstream request when the client disconnects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from refold._gateway.server.asgi import ClientDisconnected, disconnected

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from starlette.types import Receive, Send

    from refold._gateway.server.asgi import Headers
    from refold._gateway.server.connection import ClientConnection
    from refold._gateway.upstream.response import UpstreamResponse

__all__ = ["WhileConnected", "relay"]


class WhileConnected:
    """Runs a block for as long as the client is connected: `with WhileConnected(connection, receive): ...` in a task.

    The client is watched from the moment in which the body of its request has been received, as what follows a body
    is the end of the connection: at once, or where `body_follows` from the call of `watch`. The connection reports
    the disconnect; where it cannot, or under another server is None, a task waits for it with `receive`.

    Raises:
        ClientDisconnected: the client closed its connection; what the block waited for was cancelled.
    """

    def __init__(self, connection: ClientConnection | None, receive: Receive, *, body_follows: bool = False) -> None:
        self._connection = connection if connection is not None and connection.can_watch else None
        self._receive = receive
        self._body_follows = body_follows
        self._watcher: asyncio.Future[None] | None = None
        self._left = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        if not self._body_follows:
            self.watch()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._connection is not None:
            self._connection.watch(None)
        elif self._watcher is not None:
            self._watcher.cancel()
        if self._left and kind is asyncio.CancelledError:
            self._task.uncancel()
            raise ClientDisconnected from None

    def watch(self) -> None:
        """Watch the client from now on: the body of its request is complete."""
        if self._connection is not None:
            self._connection.watch(self._leave)
        else:
            self._watcher = asyncio.ensure_future(disconnected(self._receive))
            self._watcher.add_done_callback(lambda watcher: None if watcher.cancelled() else self._leave())

    def _leave(self) -> None:
        self._left = True
        self._task.cancel()


async def relay(
    send: Send,
    answer: UpstreamResponse,
    headers: Headers,
    observe: Callable[[bytes], None] | None = None,
    first: bytes = b"",
) -> None:
    """Send a response on as it arrives: `first`, which was read already, then each piece, which `observe` gets too.

    Raises:
        UpstreamAborted: upstream broke off; the client's connection must not end as if the response were complete.
    """
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    piece = first
    while True:
        more = not answer.at_end
        if piece or not more:
            await send({"type": "http.response.body", "body": piece, "more_body": more})
        if not more:
            return
        piece = await answer.read_any()
        if piece and observe is not None:
            observe(piece)
