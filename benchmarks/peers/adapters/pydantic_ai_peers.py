"""Pydantic AI: the compaction of its harness, and the processors of summarization-pydantic-ai."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from adapters.base import (
    SUMMARY,
    SUMMARY_TOKENS,
    Messages,
    Peer,
    assistant,
    called,
    calling,
    tool,
)


class _PydanticAI(Peer):
    family = "pydantic-ai"

    def __init__(self) -> None:
        from pydantic_ai import messages
        from pydantic_ai.models.function import FunctionModel

        self.types = messages
        answer = messages.ModelResponse(parts=[messages.TextPart(SUMMARY)])
        self.model = FunctionModel(lambda *_: answer)

    def load(self, messages: Messages) -> Any:
        types = self.types
        names: dict[str, str] = {}
        found: list[Any] = []
        for message in messages:
            said = message.get("content") or ""
            if message["role"] == "assistant":
                parts: list[Any] = [types.TextPart(said)] if said else []
                for id, name, arguments in map(called, message.get("tool_calls") or ()):
                    names[id] = name
                    parts.append(types.ToolCallPart(name, arguments, id))
                found.append(types.ModelResponse(parts=parts))
                continue
            part: Any = types.UserPromptPart(said)
            if message["role"] == "system":
                part = types.SystemPromptPart(said)
            elif message["role"] == "tool":
                id = message["tool_call_id"]
                part = types.ToolReturnPart(names.get(id, "tool"), said, id)
            if found and isinstance(found[-1], types.ModelRequest):
                found[-1].parts.append(part)
            else:
                found.append(types.ModelRequest(parts=[part]))
        return found

    def dump(self, native: Any) -> Messages:
        types = self.types
        found: Messages = []
        for message in native:
            if isinstance(message, types.ModelResponse):
                text = "\n".join(part.content for part in message.parts if isinstance(part, types.TextPart))
                asked = [part for part in message.parts if isinstance(part, types.ToolCallPart)]
                calls = [
                    calling(
                        part.tool_call_id,
                        part.tool_name,
                        part.args if isinstance(part.args, str) else json.dumps(part.args),
                    )
                    for part in asked
                ]
                found.append(assistant(text, calls))
                continue
            for part in message.parts:
                if isinstance(part, types.SystemPromptPart):
                    found.append({"role": "system", "content": part.content})
                elif isinstance(part, types.ToolReturnPart):
                    found.append(tool(part.tool_call_id, str(part.content)))
                elif isinstance(
                    part, types.UserPromptPart | types.CompactionPart
                ):  # both are sent as words of the user
                    found.append({"role": "user", "content": _words(part.content)})
        return found


def _words(content: Any) -> str:
    """Return the text of a prompt, which a peer may have split into parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part if isinstance(part, str) else str(getattr(part, "content", part)) for part in content or ())


class _Harness(_PydanticAI):
    def strategy(self, budget: int) -> Any:
        raise NotImplementedError

    def compact(self, native: Any, budget: int) -> Any:
        from pydantic_ai_harness.compaction import compact_now

        return asyncio.run(compact_now(self.strategy(budget), native, model=self.model))


class SlidingWindow(_Harness):
    name = "pydantic-ai-harness SlidingWindow"
    note = "keep_tokens by the goal, first user message kept"

    def strategy(self, budget: int) -> Any:
        from pydantic_ai_harness.compaction import SlidingWindowCompaction

        return SlidingWindowCompaction(max_tokens=budget, keep_tokens=int(budget * 0.9))


class Summarizing(_Harness):
    name, models = "pydantic-ai-harness Summarizing", True
    note = "keep_tokens by the goal, first user message kept"

    def strategy(self, budget: int) -> Any:
        from pydantic_ai_harness.compaction import SummarizingCompaction

        keep = max(500, int(budget * 0.9) - SUMMARY_TOKENS)
        return SummarizingCompaction(model=self.model, max_tokens=budget, keep_tokens=keep)


class Tiered(_Harness):
    name, models = "pydantic-ai-harness Tiered", True
    note = "clear tool results (keep 3), then keep user messages and summarize, until the goal is met"

    def strategy(self, budget: int) -> Any:
        from pydantic_ai_harness.compaction import ClearToolResults, SummarizingCompaction, TieredCompaction

        keep = max(500, int(budget * 0.9) - SUMMARY_TOKENS)
        summary = SummarizingCompaction(model=self.model, max_tokens=1, keep_tokens=keep, keep_user_messages=True)
        return TieredCompaction(tiers=[ClearToolResults(max_tokens=1), summary], target_tokens=budget)


class _Processor(_PydanticAI):
    def processor(self, budget: int, keep: int) -> Any:
        raise NotImplementedError

    def compact(self, native: Any, budget: int) -> Any:
        return asyncio.run(self.processor(budget, max(500, int(budget * 0.95) - SUMMARY_TOKENS))(native))


class SummarizationProcessor(_Processor):
    name, models = "summarization-pydantic-ai Summarization", True

    def processor(self, budget: int, keep: int) -> Any:
        from pydantic_ai_summarization import SummarizationProcessor

        return SummarizationProcessor(model=self.model, trigger=("tokens", budget), keep=("tokens", keep))


class SlidingWindowProcessor(_Processor):
    name = "summarization-pydantic-ai SlidingWindow"
    note = "keep_head=1 message: system and task"

    def processor(self, budget: int, keep: int) -> Any:
        from pydantic_ai_summarization import SlidingWindowProcessor

        keeping = {"trigger": ("tokens", budget), "keep": ("tokens", keep), "keep_head": ("messages", 1)}
        return SlidingWindowProcessor(**keeping)


PEERS = [SlidingWindow, Summarizing, Tiered, SummarizationProcessor, SlidingWindowProcessor]
