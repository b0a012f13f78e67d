"""Never run, only type-checked: an option that does not exist is an error at every door that takes options.

`warn_unused_ignores` is part of mypy's strict mode, so a line that mypy does not complain about is an error itself.
"""

import refold
from refold.agent import Agent
from refold.clients import client
from refold.sessions import Store

MESSAGES: list[dict[str, object]] = []


def call(messages: object) -> object:
    return messages


refold.compact(MESSAGES, windw=1_000)  # type: ignore[call-arg]
refold.plan(MESSAGES, windw=1_000)  # type: ignore[call-arg]
refold.check(MESSAGES, windw=1_000)  # type: ignore[call-arg]
refold.Meter(windw=1_000)  # type: ignore[call-arg]
refold.recovering(call, MESSAGES, windw=1_000)  # type: ignore[call-arg]


def an_agent() -> None:
    Agent(client("gpt-5"), windw=1_000)  # type: ignore[call-arg]


async def waiting(store: Store) -> None:
    await refold.acompact(MESSAGES, windw=1_000)  # type: ignore[call-arg]
    await refold.aplan(MESSAGES, windw=1_000)  # type: ignore[call-arg]
    refold.Session(store, windw=1_000)  # type: ignore[call-arg]
    await refold.Session.aopen(store, "my-talk", windw=1_000)  # type: ignore[call-arg]
    session = refold.Session(store)
    session.compact(instructons="be short")  # type: ignore[call-arg]
    await session.acompact(instructons="be short")  # type: ignore[call-arg]
