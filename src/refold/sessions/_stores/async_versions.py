"""Asks PostgreSQL for the versions of sessions on an event loop.

A thread would wait for the interpreter and the event loop for it: 1.0 ms instead of 0.4 for a question after a pause,
and 260 µs of processor time instead of 60. Questions that come while one is under way are asked together.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg import AsyncConnection

from refold.errors import StoreLocked
from refold.sessions._stores.protocol import Version
from refold.sessions._stores.store_errors import Disconnected

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AsyncVersions"]

QUERY = "SELECT id, created, seq FROM sessions WHERE id = ANY(%s)"
Answer: TypeAlias = asyncio.Future[Version | psycopg.Error | None]


class AsyncVersions:
    """One connection, made with the first question.

    `arguments` are those of `psycopg.connect`, `name` is how errors name the store. `timeout` is in seconds.
    """

    def __init__(self, arguments: Mapping[str, Any], name: str, timeout: float) -> None:
        self._arguments = arguments
        self._name = name
        self._timeout = timeout
        self._connection: AsyncConnection[Any] | None = None
        self._waiting: dict[str, Answer] = {}  # questions that are not asked yet
        self._task: asyncio.Task[None] | None = None

    async def version(self, session: str) -> Version | None:
        """Return the version of a session; None without it.

        Raises:
            Disconnected: the connection failed, as after a restart of the server; the next question makes a new one.
            StoreLocked: there was no answer in time.
        """
        answer = self._waiting.get(session)
        if answer is None:
            answer = self._waiting[session] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._ask_waiting())
        task = self._task
        done, _ = await asyncio.wait((answer,), timeout=self._timeout)  # a caller that is cancelled cancels no question
        if not done:
            if self._task is task and task is not None:  # what nobody has asked yet, a task of its own asks
                self._task = asyncio.create_task(self._ask_waiting()) if self._waiting else None
                task.cancel()
            raise StoreLocked(f"{self._name} did not answer within {self._timeout:g} s: try again later")
        version = answer.result()
        if isinstance(version, psycopg.Error):
            raise Disconnected from version
        return version

    def close(self) -> None:
        """Close the connection; a question under way closes its own."""
        self._task = None
        if self._connection is not None:
            self._connection.pgconn.finish()
            self._connection = None

    async def _ask_waiting(self) -> None:
        """Ask what waits, and what has come meanwhile, until nothing does; the connection stays for the next time."""
        own = asyncio.current_task()
        connection, self._connection = self._connection, None  # who has it closes it
        try:
            while self._waiting and self._task is own:
                answers, self._waiting = self._waiting, {}
                versions: dict[str, Version] = {}
                failed: psycopg.Error | None = None
                try:
                    if connection is None:
                        connection = await AsyncConnection.connect(**self._arguments, autocommit=True)
                    cursor = await connection.execute(QUERY, (list(answers),))
                    versions = {id: (created, seq) for id, created, seq in await cursor.fetchall()}
                except psycopg.Error as error:
                    failed = error
                for session, answer in answers.items():
                    answer.set_result(versions.get(session) if failed is None else failed)
                if connection is not None and failed is not None:
                    connection.pgconn.finish()
                    connection = None
            if self._task is own:
                self._connection, self._task, connection = connection, None, None
        finally:  # another task has taken its place, or it was cancelled, as where the event loop ends
            if self._task is own:
                self._task = None
            if connection is not None:
                connection.pgconn.finish()
