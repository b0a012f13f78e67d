"""Requests that OpenAI's chat completions reject: the types of the `openai` SDK and the documented rules.

Chat completions are spoken by many vendors. What a vendor documents for its own endpoint in addition to OpenAI's types
(readable reasoning, cache marks, a prefix) is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from refold.core._json import Json, mapping, placed_objects
from refold.testing.judge._openai import empty, named, short, worded
from refold.testing.judge._problem import Path, Problem
from refold.testing.judge._sdk_types import Compiler, faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.testing.judge._sdk_types import Check

__all__ = ["problems"]

_GUIDE = "https://platform.openai.com/docs/guides/function-calling"
_REFERENCE = "https://platform.openai.com/docs/api-reference/chat/create"
MOST_ID = 40  # "Expected a string with maximum length 40", tool_calls[].id and tool_call_id

# Keys that vendors of the protocol document for a message of the assistant (DeepSeek, OpenRouter, LiteLLM, Qwen),
# and `annotations`, which OpenAI's own answers bear.
_ANSWER = frozenset(
    {"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "provider_specific_fields", "prefix"}
    | {"annotations", "partial", "cache_control", "extra_content", "images"}
)
_EXTRA = {
    "ChatCompletionAssistantMessageParam": _ANSWER,
    "ChatCompletionUserMessageParam": frozenset({"cache_control"}),
    "ChatCompletionSystemMessageParam": frozenset({"cache_control"}),
    "ChatCompletionDeveloperMessageParam": frozenset({"cache_control"}),
    "ChatCompletionToolMessageParam": frozenset({"cache_control", "name"}),
    "ChatCompletionContentPartTextParam": frozenset({"cache_control"}),
    "ChatCompletionContentPartImageParam": frozenset({"cache_control"}),
    "File": frozenset({"cache_control"}),
    "ChatCompletionMessageFunctionToolCallParam": frozenset({"index", "extra_content", "provider_specific_fields"}),
    # of bodies: `stream` is no key of the base, the others are documented by vendors
    "CompletionCreateParamsBase": frozenset(
        {"stream", "reasoning", "thinking", "enable_thinking", "top_k", "min_p", "repetition_penalty", "provider"}
        | {"models", "transforms", "plugins", "extra_body", "chat_template_kwargs", "usage", "route"}
    ),
}


@cache
def _checks() -> tuple[Check, Check]:
    """Return the checks of a message and of a body without its messages.

    Raises:
        ImportError: the `openai` SDK is not installed.
    """
    from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam
    from openai.types.chat.completion_create_params import CompletionCreateParamsBase

    # pictures in results: LiteLLM, OpenRouter and vLLM document them
    content = str | Iterable[ChatCompletionContentPartParam]
    compiler = Compiler(extra=_EXTRA, wider={("ChatCompletionToolMessageParam", "content"): content})
    return compiler.check_of(ChatCompletionMessageParam), compiler.check_of(CompletionCreateParamsBase)


def problems(body: Mapping[str, Any], model: str, headers: Mapping[str, str]) -> Iterator[Problem]:
    """Yield every reason to refuse a body; rules are applied to what has the right shape."""
    message, rest = _checks()
    messages = body.get("messages")
    if not isinstance(messages, list):
        yield Problem("shape", "Missing required parameter: 'messages'.", ("messages",), _REFERENCE)
        return
    yield from map(worded, faults(rest, {"model": model, **body, "messages": []}))
    for place, entry in enumerate(messages):
        yield from map(worded, faults(message, entry, ("messages", place)))
    if not messages:
        yield empty(("messages",))
    for place, tool in enumerate(body.get("tools") or ()):
        function = mapping(tool).get("function")
        if isinstance(function, dict):
            yield from named(function.get("name"), ("tools", place, "function", "name"))
    for place, entry in enumerate(messages):
        if isinstance(entry, dict):
            yield from _message(entry, ("messages", place))
    yield from _pairs([mapping(entry) for entry in messages])


def _message(entry: Json, at: Path) -> Iterator[Problem]:
    """Yield what is wrong with a message by itself."""
    calls = entry.get("tool_calls")
    if entry.get("role") == "assistant":
        if isinstance(calls, list) and not calls:
            yield empty((*at, "tool_calls"))
        stands_alone = any(entry.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
        if entry.get("content") is None and not stands_alone:
            text = f"Invalid value for 'content': expected a string, got null. (messages[{at[1]}])"
            yield Problem("content", text, (*at, "content"), _REFERENCE)
    content = entry.get("content")
    if isinstance(content, list) and not content:
        yield empty((*at, "content"))
    if entry.get("role") == "tool":
        yield from short(entry.get("tool_call_id"), (*at, "tool_call_id"), MOST_ID)
    seen: set[str] = set()
    for place, call in placed_objects(calls):
        here: Path = (*at, "tool_calls", place)
        id, function = call.get("id"), call.get("function")
        yield from short(id, (*here, "id"), MOST_ID)
        if isinstance(function, dict):
            yield from named(function.get("name"), (*here, "function", "name"))
        if isinstance(id, str) and id in seen:
            text = f"Duplicate value for 'tool_call_id' of '{id}' in message[{at[1]}]."
            yield Problem("ids", text, (*here, "id"), _GUIDE)
        seen.add(str(id))


def _pairs(messages: list[Json]) -> Iterator[Problem]:
    """Yield calls that the tool messages right after them do not answer, and tool messages without such calls."""
    place = 0
    while place < len(messages):
        entry = messages[place]
        if entry.get("role") == "tool":
            text = (
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'."
            )
            yield Problem("pairing", text, ("messages", place, "role"), _GUIDE)
        calls = entry.get("tool_calls") if entry.get("role") == "assistant" else None
        place += 1
        if not isinstance(calls, list) or not calls:
            continue
        ids = [str(call.get("id")) for call in calls if isinstance(call, dict)]
        start, open_ = place, list(ids)
        while place < len(messages) and messages[place].get("role") == "tool":
            id = str(messages[place].get("tool_call_id"))
            if id in open_:
                open_.remove(id)
            else:
                text = f"Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message."
                yield Problem("pairing", text, ("messages", place, "tool_call_id"), _GUIDE)
            place += 1
        if open_:
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_)}"
            )
            yield Problem("pairing", text, ("messages", start - 1, "role"), _GUIDE)
