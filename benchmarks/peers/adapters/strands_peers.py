"""Strands' conversation managers, on an agent of theirs with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from adapters.base import (
    SUMMARY,
    Messages,
    Peer,
    apart,
    assistant,
    called,
    calling,
    tool,
)

ROUNDS = 40  # calls of reduce_context at most


class _Manager(Peer):
    family = "strands"

    def __init__(self) -> None:
        from strands import Agent
        from strands.agent import conversation_manager
        from strands.models import Model

        class Scripted(Model):
            def update_config(self, **_: Any) -> None:
                """Nothing to set."""

            def get_config(self) -> Any:
                return {"context_window_limit": 10**9}

            def structured_output(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
                yield {"messageStart": {"role": "assistant"}}
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": SUMMARY}}}
                yield {"contentBlockStop": {}}
                yield {"messageStop": {"stopReason": "end_turn"}}

        self.agent, self.managers, self.model = Agent, conversation_manager, Scripted()

    def load(self, messages: Messages) -> Any:
        self.system, rest = apart(messages)
        found: list[Any] = []
        for message in rest:
            said = message.get("content") or ""
            if message["role"] == "tool":
                id = message["tool_call_id"]
                blocks = [{"toolResult": {"toolUseId": id, "status": "success", "content": [{"text": said}]}}]
            else:
                blocks = [{"text": said}] if said else []
                for id, name, arguments in map(called, message.get("tool_calls") or ()):
                    blocks.append({"toolUse": {"toolUseId": id, "name": name, "input": _value(arguments)}})
            role = "assistant" if message["role"] == "assistant" else "user"
            if found and found[-1]["role"] == role:
                found[-1]["content"] += blocks
            else:
                found.append({"role": role, "content": blocks})
        return found

    def dump(self, native: Any) -> Messages:
        found = list(self.system)
        for message in native:
            text = "\n".join(block["text"] for block in message["content"] if "text" in block)
            uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
            results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
            found += [
                tool(each["toolUseId"], "\n".join(part.get("text", "") for part in each["content"])) for each in results
            ]
            if message["role"] == "assistant":
                calls = [
                    calling(use["toolUseId"], use["name"], json.dumps(use["input"], ensure_ascii=False)) for use in uses
                ]
                found.append(assistant(text, calls))
            elif text:
                found.append({"role": "user", "content": text})
        return found

    def manager(self) -> Any:
        raise NotImplementedError

    def narrow(self, manager: Any, share: float, count: int) -> None:
        """Tell the manager how many messages fit, where it takes that."""

    def compact(self, native: Any, budget: int) -> Any:
        manager = self.manager()
        system = self.system[0]["content"] if self.system else None
        agent = self.agent(
            model=self.model,
            messages=native,
            system_prompt=system,
            conversation_manager=manager,
            callback_handler=None,
            load_tools_from_directory=False,
        )
        for _ in range(ROUNDS):
            size = asyncio.run(self.model.count_tokens(agent.messages, system_prompt=system))
            before = len(agent.messages)
            if size <= budget:
                break
            self.narrow(manager, budget / size, before)
            try:
                manager.reduce_context(agent)
            except Exception:  # it says so when nothing more can go
                break
            if len(agent.messages) == before:
                break
        return agent.messages


class SlidingWindow(_Manager):
    name = "strands SlidingWindow"
    note = "takes messages, not tokens: window_size by the share of the goal; pin_first=1"

    def manager(self) -> Any:
        return self.managers.SlidingWindowConversationManager(window_size=10**9, pin_first=1)

    def narrow(self, manager: Any, share: float, count: int) -> None:
        manager.window_size = max(2, int(count * share * 0.97))


class Summarizing(_Manager):
    name, models = "strands Summarizing", True
    note = "summary_ratio=0.3, preserve_recent=10, pin_first=1; called until its own count fits"

    def manager(self) -> Any:
        return self.managers.SummarizingConversationManager(pin_first=1)


def _value(arguments: str) -> Any:
    try:
        value = json.loads(arguments)
    except ValueError:
        value = arguments
    return value if isinstance(value, dict) else {"input": value}


PEERS = [SlidingWindow, Summarizing]
