"""Telling the format of messages and taking apart request and reply bodies, by their shape alone."""

from __future__ import annotations

from collections.abc import Iterable

from refold import formats
from refold.core._json import Json, objects
from refold.errors import UnknownFormat, UsageError
from refold.models._usage_report import reported as usage_report
from refold.transcripts._conversation import RecordedUsage, usage_reports

__all__ = ["body_of", "format_of", "is_message", "reported"]

_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_CHAT_ONLY = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content"})
_ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document"}
)
_CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
_BEDROCK = frozenset(
    {"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "cachePoint", "guardContent", "video"}
)
_ITEM_ENDS = ("_call", "_output", "reasoning", "item_reference", "compaction", "mcp_list_tools", "compaction_trigger",
              "mcp_approval_request", "mcp_approval_response")  # fmt: skip
_ITEMS = frozenset({"program"})


def format_of(messages: Iterable[object]) -> str | None:
    """Return the format of messages, as `refold.formats.detect` has it, or None where one of them is no message of any.

    Messages that could be of several formats (texts only) are openai-chat.
    """
    every = list(messages)
    hints = [_hint(message) for message in every]
    if not every or None in hints:
        return None
    try:
        return formats.detect(every).name
    except UnknownFormat:  # a list that cannot be sent, such as one of answers without content
        return next(filter(None, hints), "openai-chat")


def is_message(value: object) -> bool:
    """Whether a value is a message of any format."""
    return _hint(value) is not None


def _hint(message: object) -> str | None:
    """Return the format a message is surely of, "" where it could be of several, None where it is no message."""
    if not isinstance(message, dict):
        return None
    role, kind, content = message.get("role"), message.get("type"), message.get("content")
    if not isinstance(role, str | None):
        return None
    if isinstance(message.get("parts"), list) and role in ("user", "model", "system", "tool", "function", None):
        return "gemini" if role or message.keys() == {"parts"} else None
    if isinstance(kind, str) and kind != "message" and role is None:
        return "openai-responses" if kind.endswith(_ITEM_ENDS) or kind in _ITEMS else None
    if role not in _CHAT_ROLES or ("content" not in message and not _CHAT_ONLY & message.keys()):
        return None
    if _CHAT_ONLY & message.keys() or role in ("tool", "function"):
        return "openai-chat"
    blocks = objects(content)
    for block in blocks:
        name = block.get("type")
        if not isinstance(name, str | None):
            continue
        if name and name.startswith(("input_", "output_")) and name != "input_audio":
            return "openai-responses"
        if name in _CHAT_BLOCKS:
            return "openai-chat"
        if name in _ANTHROPIC:
            return "anthropic"
        if name is None and block and block.keys() <= _BEDROCK:
            return "bedrock"
    return "openai-responses" if kind == "message" and role != "assistant" else ""


def body_of(body: Json) -> Json | None:
    """Return what a request body says, as fields of a conversation: format, messages, system, tools, model."""
    model, tools = body.get("model") or body.get("modelId"), body.get("tools")
    if isinstance(body.get("contents"), list):
        system = (
            body.get("systemInstruction")
            or body.get("system_instruction")
            or (body.get("config") or {}).get("systemInstruction")
        )
        messages, format = body["contents"], "gemini"
    elif isinstance(body.get("input"), list | str) and (
        "instructions" in body or "model" in body or format_of(body["input"])
    ):
        items = body["input"]
        messages = [{"role": "user", "content": items}] if isinstance(items, str) else items
        system, format = body.get("instructions"), "openai-responses"
    elif isinstance(body.get("messages"), list):
        messages, system = body["messages"], body.get("system")
        detected = format_of(message for message in messages if is_message(message))
        if detected is None:
            return None
        format = detected if detected != "openai-chat" or not _is_anthropic(body) else "anthropic"
        if "toolConfig" in body or "inferenceConfig" in body:
            format, tools = "bedrock", (body.get("toolConfig") or {}).get("tools")
    else:
        return None
    return {
        "format": format,
        "messages": messages,
        "system": system,
        "tools": tools if isinstance(tools, list) else None,
        "model": model if isinstance(model, str) else None,
    }


def _is_anthropic(body: Json) -> bool:
    """Whether a body of texts only is Anthropic's: by a system prompt of its own, or the shape of its tools."""
    shaped = any("input_schema" in tool for tool in objects(body.get("tools")))
    return "system" in body or shaped or str(body.get("model", "")).startswith("claude") or "anthropic_version" in body


def reported(covers: int, usage: object) -> tuple[RecordedUsage, ...]:
    """Return a provider's usage object as a report, whichever provider's it is; nothing where it holds no figures."""
    if not isinstance(usage, dict):
        return ()
    try:
        report = usage_report(usage)
    except UsageError:  # a log may hold a report of another kind, or half of one
        return ()
    return usage_reports(covers, report.prompt, report.completion, report.cached_read, report.cache_write)
