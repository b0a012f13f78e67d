"""Letta agent files: agents with their memory, their tools and the messages they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, objects
from refold.transcripts._conversation import RecordedConversation
from refold.transcripts._skipped import SkippedItems
from refold.transcripts._source import Document

_ROLES = ("system", "user", "assistant", "tool")


def matches(document: Document) -> bool:
    """Tell by agents that hold messages and a model's settings."""
    return any({"messages", "llm_config"} <= agent.keys() for agent in objects(_agents(document.value)))


def _agents(value: object) -> list[Any]:
    """Return the agents of a file; older files are one agent with its tools inside."""
    if not isinstance(value, dict):
        return []
    return list(value["agents"]) if isinstance(value.get("agents"), list) else [value]


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield one conversation an agent; messages it no longer has in context are part of what was said."""
    value = document.value
    tools = {tool.get("id"): tool for tool in objects(value.get("tools"))}
    for count, agent in enumerate(_agents(value), 1):
        aside = SkippedItems()
        for key in ("blocks", "files", "sources", "groups") if count == 1 else ():
            for _ in value.get(key) or []:
                aside.add(f"entry of `{key}`, which is stored beside the messages")
        current = set(agent.get("in_context_message_ids") or [])
        messages: list[Any] = []
        for entry in agent["messages"]:
            if entry.get("role") not in _ROLES:
                aside.add(f"message of role {entry.get('role')}")
                continue
            messages.extend(_messages(entry))
            if current and entry.get("id") not in current:
                aside.add("message the agent no longer had in context, kept")
        config = agent.get("llm_config") or {}
        schemas = [
            tools[id]["json_schema"]
            for id in agent.get("tool_ids") or (tools if agent is value else [])
            if (tools.get(id) or {}).get("json_schema")
        ]
        yield RecordedConversation(
            "letta",
            "openai-chat",
            messages,
            tools=[{"type": "function", "function": schema} for schema in schemas] or None,
            model=config.get("model"),
            window=config.get("context_window"),
            name=str(agent.get("name") or f"agent {count}"),
            notes=aside.notes(),
        )


def _messages(entry: Json) -> Iterator[Json]:
    content = entry.get("content")
    if isinstance(content, list) and all(mapping(block).get("type") == "text" for block in content):
        content = "\n".join(block["text"] for block in content)
    returns = entry.get("tool_returns") or []
    if entry["role"] == "tool" and len(returns) > 1 and all(item.get("tool_call_id") for item in returns):
        for item in returns:
            yield {
                "role": "tool",
                "tool_call_id": item["tool_call_id"],
                "content": item.get("func_response") or item.get("stdout") or "",
            }
        return
    message: Json = {"role": entry["role"], "content": content}
    if entry["role"] == "tool":
        message["tool_call_id"] = entry.get("tool_call_id") or ""
    if entry.get("tool_calls"):
        message["tool_calls"] = entry["tool_calls"]
    yield message
