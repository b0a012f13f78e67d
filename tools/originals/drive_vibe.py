"""Drives Vibe's agent: `python drive_vibe.py < job.json > decisions.json`, by a Python that has `mistral-vibe`.

The package is used as it is; the only stand-in is its backend, which answers from a script and counts characters.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from hashlib import sha256
from typing import Any

os.environ["HOME"] = os.environ["VIBE_HOME"] = tempfile.mkdtemp()
os.environ["MISTRAL_API_KEY"] = "none"

from vibe.core.agent import Agent
from vibe.core.config import SessionLoggingConfig, VibeConfig
from vibe.core.middleware import (
    AutoCompactMiddleware,
    ContextWarningMiddleware,
    ConversationContext,
    MiddlewarePipeline,
    MiddlewareResult,
    ResetReason,
    TurnLimitMiddleware,
)
from vibe.core.paths.config_paths import unlock_config_paths
from vibe.core.types import AgentStats, LLMChunk, LLMMessage, LLMUsage, Role

unlock_config_paths()


class Backend:
    """Answers every call with one message, and records what was sent."""

    def __init__(self, answer: LLMMessage | Exception) -> None:
        self.answer = answer
        self.sent: list[tuple[int, str, int | None]] = []

    async def __aenter__(self) -> Backend:
        return self

    async def __aexit__(self, *of: object) -> None:
        return None

    async def complete(self, *, messages: list[LLMMessage], max_tokens: int | None = None, **_: Any) -> LLMChunk:
        self.sent.append((len(messages), str(messages[-1].role), max_tokens))
        if isinstance(self.answer, Exception):
            raise self.answer
        return LLMChunk(message=self.answer.model_copy(), usage=LLMUsage(prompt_tokens=1_000, completion_tokens=50))

    async def count_tokens(self, *, messages: list[LLMMessage], **_: Any) -> int:
        return sum(len(message.content or "") for message in messages)


def agent(backend: Backend, messages: list[dict[str, Any]]) -> Agent:
    """Return an agent that has a history."""
    config = VibeConfig(
        session_logging=SessionLoggingConfig(enabled=False),
        include_project_context=False,
        include_prompt_detail=False,
        enabled_tools=["none"],
    )
    made = Agent(config, backend=backend)
    made.messages = [LLMMessage.model_validate(message) for message in messages]
    return made


def digest(text: str | None) -> str:
    """Return what stands for a text in the record."""
    return sha256((text or "").encode()).hexdigest()[:16]


def cleaned(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what cleaning does: positions of messages that stay, and role, call and text of those put in between."""
    one = agent(Backend(LLMMessage(role=Role.assistant)), messages)
    at = {id(message): place for place, message in enumerate(one.messages)}
    one._clean_message_history()
    put = [message for message in one.messages if id(message) not in at]
    return {
        "view": [at.get(id(message), str(message.role)) for message in one.messages],
        "put": [[str(m.role), m.tool_call_id, m.name, digest(m.content)] for m in put],
    }


async def compacted(messages: list[dict[str, Any]], more: list[dict[str, Any]], summary: str) -> dict[str, Any]:
    """Return what a compaction does to a history, and a second one after more messages."""
    backend = Backend(LLMMessage(role=Role.assistant, content=summary))
    one = agent(backend, messages)
    out: dict[str, Any] = {}
    for name in ("first", "second") if more else ("first",):
        system, session = one.messages[0], one.session_id
        one.stats.context_tokens, steps = 210_000, one.stats.steps
        events = [
            event.model_dump(mode="json")
            async for event in one._handle_middleware_result(MiddlewareResult(action="compact"))
        ]
        last = one.messages[-1].content or ""
        out[name] = {
            "sent": list(backend.sent[-1]),
            "roles": [str(message.role) for message in one.messages],
            "system": one.messages[0] is system,
            "text": digest(last),
            "length": len(last),
            "tokens": one.stats.context_tokens,
            "steps": one.stats.steps - steps,
            "session": one.session_id != session,
            "events": events,
        }
        one.messages += [LLMMessage.model_validate(message) for message in more]
    return out


async def failed(messages: list[dict[str, Any]], answer: LLMMessage | Exception) -> dict[str, Any]:
    """Return what is left after a summary that could not be had."""
    one = agent(Backend(answer), messages)
    try:
        await one.compact()
        raised = False
    except Exception:
        raised = True
    return {
        "raised": raised,
        "messages": len(one.messages),
        "before": len(messages),
        "last": str(one.messages[-1].role),
    }


async def walked(walk: dict[str, Any]) -> list[str]:
    """Return what the middlewares ask for as the context grows."""
    pipeline = MiddlewarePipeline()
    for kind, value in walk["middlewares"]:
        made = {
            "turns": TurnLimitMiddleware,
            "compact": AutoCompactMiddleware,
            "warn": lambda value: ContextWarningMiddleware(0.5, value),
        }[kind](value)
        pipeline.add(made)
    actions = []
    for step, tokens in enumerate(walk["tokens"]):
        context = ConversationContext([], AgentStats(context_tokens=tokens, steps=step + 1), None)  # type: ignore[arg-type]
        result = await pipeline.run_before_turn(context)
        actions.append(str(result.action))
        if result.action == "compact":
            pipeline.reset(ResetReason.COMPACT)
    return actions


def counted(calls: list[list[float]]) -> list[dict[str, Any]]:
    """Return the statistics after each of some calls."""
    one = agent(Backend(LLMMessage(role=Role.assistant)), [{"role": "system", "content": "x"}])
    out = []
    for prompt, completion, seconds in calls:
        one._update_stats(LLMUsage(prompt_tokens=int(prompt), completion_tokens=int(completion)), seconds)
        stats = one.stats
        out.append(
            {
                "prompt": stats.last_turn_prompt_tokens,
                "completion": stats.last_turn_completion_tokens,
                "session_prompt": stats.session_prompt_tokens,
                "session_completion": stats.session_completion_tokens,
                "context_tokens": stats.context_tokens,
                "tokens_per_second": stats.tokens_per_second,
            }
        )
    return out


async def main() -> None:
    """Drive everything that standard input names."""
    job = json.load(sys.stdin)
    made = []
    for history in job["histories"]:
        one = {"name": history["name"], "digest": history["digest"], "cleaned": cleaned(history["messages"])}
        one |= await compacted(history["messages"], history["more"], job["summary"])
        made.append(one)
    first = job["histories"][0]["messages"]
    call = {"id": "call_9", "index": 0, "function": {"name": "bash", "arguments": "{}"}, "type": "function"}
    answers = {
        "error": RuntimeError("refused"),
        "empty": LLMMessage(role=Role.assistant, content=""),
        "call": LLMMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]}),
    }
    out = {
        "settings": [],
        "threshold": VibeConfig.model_fields["auto_compact_threshold"].default,
        "warnings": VibeConfig.model_fields["context_warnings"].default,
        "walks": [await walked(walk) for walk in job["walks"]],
        "statistics": [counted(calls) for calls in job["calls"]],
        "failures": {name: await failed(first, answer) for name, answer in answers.items()},
        "histories": made,
    }
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
