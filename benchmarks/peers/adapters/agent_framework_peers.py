"""Microsoft Agent Framework's compaction strategies, and maf-compaction's anchored one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from adapters.base import (
    SUMMARY,
    Messages,
    Peer,
    assistant,
    called,
    calling,
    tool,
)


class _Strategy(Peer):
    family = "agent-framework"

    def __init__(self) -> None:
        import agent_framework

        self.af = agent_framework
        self.tokenizer = agent_framework.CharacterEstimatorTokenizer()

    def load(self, messages: Messages) -> Any:
        content = self.af.Content
        found = []
        for message in messages:
            said = message.get("content")
            if message["role"] == "tool":
                parts = [content.from_function_result(message["tool_call_id"], result=said)]
            else:
                parts = [content.from_text(said)] if said else []
                for id, name, arguments in map(called, message.get("tool_calls") or ()):
                    parts.append(content.from_function_call(id, name, arguments=arguments))
            found.append(self.af.Message(role=message["role"], contents=parts))
        return found

    def dump(self, native: Any) -> Messages:
        found: Messages = []
        for message in native:
            text = "\n".join(part.text for part in message.contents if part.type == "text" and part.text)
            results = [part for part in message.contents if part.type == "function_result"]
            calls = [
                calling(
                    part.call_id,
                    part.name,
                    part.arguments if isinstance(part.arguments, str) else json.dumps(part.arguments),
                )
                for part in message.contents
                if part.type == "function_call"
            ]
            if results:
                found += [tool(part.call_id, str(part.result)) for part in results]
            elif str(message.role) == "assistant":
                found.append(assistant(text, calls))
            else:
                found.append({"role": str(message.role), "content": text})
        return found

    def strategy(self, budget: int) -> Any:
        raise NotImplementedError

    def compact(self, native: Any, budget: int) -> Any:
        work = self.af.apply_compaction(native, strategy=self.strategy(budget), tokenizer=self.tokenizer)
        return asyncio.run(work)


class ContextWindow(_Strategy):
    name = "agent-framework ContextWindow"
    note = "tool eviction at 0.99, truncation at 1.0 of the goal, preserve_first_user_group"

    def strategy(self, budget: int) -> Any:
        return self.af.ContextWindowCompactionStrategy(
            max_context_window_tokens=budget,
            max_output_tokens=0,
            tool_eviction_threshold=0.99,
            truncation_threshold=1.0,
            preserve_first_user_group=True,
        )


class Truncation(_Strategy):
    name = "agent-framework Truncation"

    def strategy(self, budget: int) -> Any:
        return self.af.TruncationStrategy(
            max_n=budget, compact_to=budget, tokenizer=self.tokenizer, preserve_first_user_group=True
        )


class Composed(_Strategy):
    name, models = "agent-framework TokenBudgetComposed", True
    note = "ToolResultCompaction(8), then Summarization(40 messages), then its own fallback"

    def strategy(self, budget: int) -> Any:
        af = self.af

        class Client:
            async def get_response(self, messages: Any, **_: Any) -> Any:
                return af.ChatResponse(
                    messages=[af.Message(role="assistant", contents=[af.Content.from_text(SUMMARY)])]
                )

        results = af.ToolResultCompactionStrategy(keep_last_tool_call_groups=8)
        summary = af.SummarizationStrategy(client=Client(), target_count=40, threshold=0, max_summary_input_tokens=None)
        return af.TokenBudgetComposedStrategy(
            token_budget=budget, tokenizer=self.tokenizer, strategies=[results, summary]
        )


class Anchored(_Strategy):
    name = "maf-compaction Anchored"
    note = "keep_head_groups=3, keep_tail_groups=4, as in its quick start"

    def strategy(self, budget: int) -> Any:
        from maf_compaction import AnchoredCompactionStrategy

        return AnchoredCompactionStrategy(
            max_input_tokens=budget, tokenizer=self.tokenizer, keep_head_groups=3, keep_tail_groups=4
        )


PEERS = [ContextWindow, Truncation, Composed, Anchored]
