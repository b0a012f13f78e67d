"""Carries an answer from upstream to the client, byte for byte, and drops upstream when the client has gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp

from refold._gateway.server.asgi import CLIENT, ClientDisconnected, gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from refold._gateway.server.asgi import Receive, RequestClient, Scope, Send
    from refold._gateway.upstream.connection_pool import UpstreamResponse

__all__ = ["UpstreamAborted", "WhileConnected", "relay"]


class UpstreamAborted(Exception):  # it is the server's sign to close the connection, as upstream did
    """Upstream broke off in the middle of an answer."""

    code = "upstream_aborted"  # the `error.type` of its span


class WhileConnected:
    """Runs a block for as long as the client is there: `with WhileThere(scope, receive): ...` in a task.

    Raises:
        Gone: the client closed its connection; what the block waited for was cancelled.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._client: RequestClient | None = scope.get("extensions", {}).get(CLIENT)
        self._receive = receive
        self._left = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        if self._client is not None:
            self._client.watch(self._leave)
        else:
            self._watch = asyncio.ensure_future(gone(self._receive))
            self._watch.add_done_callback(lambda done: None if done.cancelled() else self._leave())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._client is not None:
            self._client.watch(None)
        else:
            self._watch.cancel()
        if self._left and kind is asyncio.CancelledError:
            self._task.uncancel()
            raise ClientDisconnected from None

    def _leave(self) -> None:
        self._left = True
        self._task.cancel()


async def relay(
    send: Send,
    answer: UpstreamResponse,
    headers: Iterable[tuple[bytes, bytes]],
    seen: Callable[[bytes], None] | None = None,
    first: bytes = b"",
) -> None:
    """Send an answer on as it comes; `first` is what was read of it already, `seen` is shown every piece after it.

    Raises:
        Cut: upstream broke off; the client's connection must not end as if the answer were whole.
    """
    await send({"type": "http.response.start", "status": answer.status, "headers": list(headers)})
    content = answer.content
    try:
        piece = first
        while True:
            more = not content.at_eof()
            if piece or not more:
                await send({"type": "http.response.body", "body": piece, "more_body": more})
            if not more:
                return
            piece = await content.readany()
            if piece and seen is not None:
                seen(piece)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UpstreamAborted(type(error).__name__) from None
