"""The OpenAI Agents SDK's trimmer of tool output; its compaction is a call to the provider and cannot run offline."""

from __future__ import annotations

from typing import Any

from adapters.base import (
    Messages,
    Peer,
    assistant,
    called,
    calling,
    tool,
)


class Trimmer(Peer):
    name, family, budgeted = "openai-agents ToolOutputTrimmer", "openai-agents", False
    note = "no budget; trims output older than the last 2 user messages"

    def load(self, messages: Messages) -> Any:
        found: list[Any] = []
        for message in messages:
            if message["role"] == "tool":
                call_id = message["tool_call_id"]
                found.append({"type": "function_call_output", "call_id": call_id, "output": message["content"]})
                continue
            if message.get("content"):
                found.append({"role": message["role"], "content": message["content"]})
            for id, name, arguments in map(called, message.get("tool_calls") or ()):
                found.append({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
        return found

    def dump(self, native: Any) -> Messages:
        found: Messages = []
        for item in native:
            if item.get("type") == "function_call":
                if not found or found[-1]["role"] != "assistant":
                    found.append(assistant("", []))
                call = calling(item["call_id"], item["name"], item["arguments"])
                found[-1].setdefault("tool_calls", []).append(call)
            elif item.get("type") == "function_call_output":
                found.append(tool(item["call_id"], item["output"]))
            else:
                found.append({"role": item["role"], "content": item["content"]})
        return found

    def compact(self, native: Any, budget: int) -> Any:
        from agents import Agent
        from agents.extensions import ToolOutputTrimmer
        from agents.run import CallModelData, ModelInputData

        data = ModelInputData(input=native, instructions=None)
        return ToolOutputTrimmer()(CallModelData(model_data=data, agent=Agent(name="agent"), context=None)).input


PEERS = [Trimmer]
