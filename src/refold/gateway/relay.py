"""Carries an answer from upstream to the client, byte for byte, and drops upstream when the client has gone."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp

from refold.gateway.http import Gone, gone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from refold.gateway.http import Receive, Send

__all__ = ["Cut", "relay", "while_there"]


class Cut(Exception):  # it is the server's sign to close the connection, as upstream did
    """Upstream broke off in the middle of an answer."""


@asynccontextmanager
async def while_there(receive: Receive) -> AsyncIterator[None]:
    """Run a block for as long as the client is there.

    Raises:
        Gone: the client closed its connection; what the block waited for was cancelled.
    """
    task = asyncio.current_task()
    assert task is not None
    watch = asyncio.ensure_future(gone(receive))
    watch.add_done_callback(lambda done: None if done.cancelled() else task.cancel())
    try:
        yield
    except asyncio.CancelledError:
        if watch.done() and not watch.cancelled():
            task.uncancel()
            raise Gone from None
        raise
    finally:
        watch.cancel()


async def relay(
    send: Send,
    answer: aiohttp.ClientResponse,
    headers: Iterable[tuple[bytes, bytes]],
    seen: Callable[[bytes], None] | None = None,
) -> None:
    """Send an answer on as it comes; `seen` is shown every piece.

    Raises:
        Cut: upstream broke off; the client's connection must not end as if the answer were whole.
    """
    await send({"type": "http.response.start", "status": answer.status, "headers": list(headers)})
    try:
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if seen is not None:
                seen(chunk)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Cut(type(error).__name__) from None
    await send({"type": "http.response.body", "body": b""})
