"""Asks PostgreSQL for the versions of sessions on an event loop.

A thread would wait for the interpreter and the event loop for it: 1.0 ms instead of 0.4 for a question after a pause,
and 260 µs of processor time instead of 60.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg import AsyncConnection

from refold.errors import StoreLocked
from refold.sessions._stores.store_errors import Disconnected

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AsyncVersions"]

QUERY = "SELECT created, seq FROM sessions WHERE id = %s"
Version: TypeAlias = tuple[float, int]


class AsyncVersions:
    """One connection, made with the first question; questions at the same time take turns on it.

    `arguments` are those of `psycopg.connect`, `name` is how errors name the store. `timeout` is in seconds.
    """

    def __init__(self, arguments: Mapping[str, Any], name: str, timeout: float) -> None:
        self._arguments = arguments
        self._name = name
        self._timeout = timeout
        self._opening: asyncio.Task[AsyncConnection[Any]] | None = None

    async def version(self, session: str) -> Version | None:
        """Return the version of a session; None without it.

        Raises:
            Disconnected: the connection failed, as after a restart of the server; the next question makes a new one.
            StoreLocked: there was no answer in time.
        """
        # A task of its own, which goes on if the caller is cancelled: half a question would block the connection.
        asking = asyncio.create_task(self._ask(session))
        done, _ = await asyncio.wait((asking,), timeout=self._timeout)
        if not done:
            self._opening = None  # closed by the question under way, if that ever has an answer
            raise StoreLocked(f"{self._name} did not answer within {self._timeout:g} s: try again later")
        answer = asking.result()
        if isinstance(answer, psycopg.Error):
            raise Disconnected from answer
        return answer

    def close(self) -> None:
        """Close the connection."""
        opening, self._opening = self._opening, None
        if opening is not None:
            _close(opening)

    async def _ask(self, session: str) -> Version | psycopg.Error | None:
        if self._opening is None:
            self._opening = asyncio.create_task(AsyncConnection.connect(**self._arguments, autocommit=True))
        opening = self._opening
        try:
            cursor = await (await opening).execute(QUERY, (session,))
            return await cursor.fetchone()
        except psycopg.Error as error:
            if self._opening is opening:
                self._opening = None
            return error
        finally:
            if self._opening is not opening:
                _close(opening)


def _close(opening: asyncio.Task[AsyncConnection[Any]]) -> None:
    if opening.done() and not opening.cancelled() and opening.exception() is None:
        opening.result().pgconn.finish()
