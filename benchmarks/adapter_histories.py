"""Turns added to the history of a conversation in each framework's own shape, without a call of the model."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FILLS"]


def _agent_framework(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    from agent_framework import Message

    harness.history(name).extend(Message(each["role"], [each["content"]]) for each in _plain(turns))


def _google_adk(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    from google.adk.events import Event
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from google.genai import types

    from tests.adapters.test_google_adk import opened

    async def append() -> None:
        sessions = SqliteSessionService(harness.file)
        session = await opened(sessions, name)
        for asked, answer in turns:
            for author, role, text in (("user", "user", asked), ("reader", "model", answer)):
                content = types.Content(role=role, parts=[types.Part(text=text)])
                await sessions.append_event(session, Event(author=author, content=content))

    asyncio.run(append())


def _haystack(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    from haystack.dataclasses import ChatMessage

    new = [
        message for asked, said in turns for message in (ChatMessage.from_user(asked), ChatMessage.from_assistant(said))
    ]
    harness.store(name, [*harness.history(name), *new])


def _langchain(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    from langchain_core.messages import AIMessage, HumanMessage

    new = [message for asked, answer in turns for message in (HumanMessage(asked), AIMessage(answer))]
    harness.agent.update_state(harness.config(name), {"messages": new})


def _litellm(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    harness.path(name).write_text(json.dumps([*harness.history(name), *_plain(turns)]))


def _openai_agents(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    talk = harness.conversation(name)
    talk.loop.run(talk.session.add_items(_plain(turns)))


def _pydantic_ai(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    from pydantic_ai import messages as ai

    new: list[Any] = []
    for asked, answer in turns:
        new += [ai.ModelRequest([ai.UserPromptPart(asked)]), ai.ModelResponse([ai.TextPart(answer)])]
    harness.store(name, [*harness.history(name), *new])


def _strands(harness: Any, name: str, turns: Sequence[tuple[str, str]]) -> None:
    agent = harness.agent(name)
    agent.messages += [{**message, "content": [{"text": message["content"]}]} for message in _plain(turns)]


def _plain(turns: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    pairs = ((("user", asked), ("assistant", answer)) for asked, answer in turns)
    return [{"role": role, "content": text} for pair in pairs for role, text in pair]


FILLS: dict[str, Callable[[Any, str, Sequence[tuple[str, str]]], None]] = {
    "agent-framework": _agent_framework,
    "google-adk": _google_adk,
    "haystack": _haystack,
    "langchain": _langchain,
    "litellm": _litellm,
    "openai-agents": _openai_agents,
    "pydantic-ai": _pydantic_ai,
    "strands": _strands,
}
