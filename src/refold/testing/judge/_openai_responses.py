"""Requests that OpenAI's Responses API rejects: the types of the `openai` SDK and the documented rules."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Union

from refold.core._json import Json, listing, mapping
from refold.testing.judge._openai import SDK, named, short, worded
from refold.testing.judge._problem import Path, Problem
from refold.testing.judge._sdk_types import Compiler, faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.testing.judge._sdk_types import Check

__all__ = ["problems"]

_STATE = "https://platform.openai.com/docs/guides/conversation-state"
_REASONING = "https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context"
_CALLING = "https://platform.openai.com/docs/guides/function-calling"
_REFERENCE = "https://platform.openai.com/docs/api-reference/responses/create"
_APPROVALS = "https://platform.openai.com/docs/guides/tools-connectors-mcp#approvals"
MOST_ID = 64  # "Expected a string with maximum length 64", id and call_id
# What an item's id begins with ("Expected an ID that begins with 'fc'")
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}

# Documented requests leave out what the types of whole answers require: the id and the status of items that nothing
# refers to (a stateless client sends none), the type of a message, the detail of a picture, annotations.
_LOOSE = frozenset({"id", "status"})
_EXTRA = {
    "ResponseOutputMessageParam": _LOOSE | {"type"},
    "ResponseOutputTextParam": frozenset({"annotations", "logprobs"}),
    "EasyInputMessageParam": _LOOSE,
    "Message": _LOOSE,
    "ResponseInputImageParam": frozenset({"detail"}),
    "ResponseReasoningItemParam": _LOOSE,
    "ResponseFileSearchToolCallParam": _LOOSE,
    "ResponseComputerToolCallParam": _LOOSE | {"pending_safety_checks"},
    "ResponseFunctionWebSearchParam": _LOOSE | {"action"},
    "ResponseCodeInterpreterToolCallParam": _LOOSE,
    "ResponseCustomToolCallParam": _LOOSE,
    "ResponseCustomToolCallOutputParam": _LOOSE,
    "ImageGenerationCall": frozenset({"status"}),
    "LocalShellCall": _LOOSE,
    "LocalShellCallOutput": frozenset({"id", "call_id"}),  # the guide names the call, the types an id
    "ShellCall": _LOOSE,
    "ShellCallOutput": _LOOSE,
    "ApplyPatchCall": _LOOSE,
    "ApplyPatchCallOutput": _LOOSE,
    "McpCall": _LOOSE,
    "Program": _LOOSE,
    "ProgramOutput": _LOOSE,
    "ResponseCreateParamsBase": frozenset({"stream", "model", "client_metadata"}),
}


# Codex 0.171 sends it with each item to a provider named OpenAI; the types do not have it
_FROM_CODEX = "internal_chat_message_metadata_passthrough"


@cache
def _checks() -> tuple[Check, Check]:
    """Return the checks of an item and of a body without its items.

    Raises:
        ImportError: the `openai` SDK is not installed.
    """
    from openai.types.responses import ResponseInputItemParam, ResponseOutputItem
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    compiler = Compiler(extra=_EXTRA)
    either: Any = Union[ResponseInputItemParam, ResponseOutputItem]  # noqa: UP007 # answers are sent back as they came
    return compiler.check_of(either), compiler.check_of(ResponseCreateParamsBase)


def problems(body: Mapping[str, Any], model: str, headers: Mapping[str, str]) -> Iterator[Problem]:
    """Yield every reason to refuse a body; rules are applied to what has the right shape."""
    item, rest = _checks()
    items = body.get("input")
    yield from map(worded, faults(rest, {key: value for key, value in body.items() if key != "input"}))
    for place, tool in enumerate(body.get("tools") or ()):
        if mapping(tool).get("type") == "function":
            yield from named(tool.get("name"), ("tools", place, "name"))
    elsewhere = any(body.get(key) for key in ("previous_response_id", "conversation", "prompt"))
    if items is None and not elsewhere:
        yield Problem("shape", "Missing required parameter: 'input'.", ("input",), _REFERENCE)
    if isinstance(items, str) or items is None:
        return
    if not isinstance(items, list):
        text = "Invalid type for 'input': expected one of a string or array of input items."
        yield Problem("shape", text, ("input",), _REFERENCE)
        return
    for place, entry in enumerate(items):
        if isinstance(entry, dict) and _FROM_CODEX in entry:
            entry = {key: value for key, value in entry.items() if key != _FROM_CODEX}
        yield from map(worded, faults(item, entry, ("input", place)))
    entries = [mapping(entry) for entry in items]
    for place, entry in enumerate(entries):
        yield from _item(entry, ("input", place))
    yield from _unique(entries)
    yield from _last(entries)
    if not elsewhere:
        yield from _pairs(entries)
        yield from _reasoning(entries)


def _item(entry: Json, at: Path) -> Iterator[Problem]:
    """Yield what is wrong with an item by itself."""
    kind = entry.get("type") or "message"
    for key in ("id", "call_id"):
        yield from short(entry.get(key), (*at, key), MOST_ID)
    if kind == "message":
        yield from _content(entry, at)
    if kind == "function_call":
        yield from named(entry.get("name"), (*at, "name"))
    id, prefix = entry.get("id"), _PREFIXES.get(str(kind))
    if kind == "message" and entry.get("role") != "assistant":
        prefix = "msg" if id else None
    if isinstance(id, str) and prefix and not id.startswith(prefix):
        text = f"Invalid 'input[{at[1]}].id': '{id}'. Expected an ID that begins with '{prefix}'."
        yield Problem("ids", text, (*at, "id"), _STATE)


def _content(entry: Json, at: Path) -> Iterator[Problem]:
    """Yield content of the other side's kind: the assistant says output, everybody else input."""
    content, ours = entry.get("content"), entry.get("role") == "assistant"
    for place, block in enumerate(listing(content)):
        kind = mapping(block).get("type")
        if ours and isinstance(kind, str) and kind.startswith("input_"):
            text = f"Invalid value: '{kind}'. Supported values are: 'output_text' and 'refusal'."
            yield Problem("content", text, (*at, "content", place), _REFERENCE)
        elif not ours and kind in ("output_text", "refusal"):
            known = "'input_text', 'input_image', 'input_file', and 'input_audio'"
            text = f"Invalid value: '{kind}'. Supported values are: {known}."
            yield Problem("content", text, (*at, "content", place), _REFERENCE)


def _unique(entries: list[Json]) -> Iterator[Problem]:
    """Yield items that have the id of an earlier one."""
    seen: set[str] = set()
    for place, entry in enumerate(entries):
        id = entry.get("id")
        if not isinstance(id, str) or entry.get("type") in ("item_reference", "local_shell_call_output"):
            continue  # both carry the id of another item
        if id in seen:
            text = f"Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            yield Problem("ids", text, ("input", place, "id"), _STATE)
        seen.add(id)


def _last(entries: list[Json]) -> Iterator[Problem]:
    for place, entry in enumerate(entries[:-1]):
        if entry.get("type") == "compaction_trigger":
            text = f"Invalid 'input[{place}]': 'compaction_trigger' must be the final input item."
            yield Problem("compaction", text, ("input", place), f"{SDK}/responses/response_input_param.py")


def _pairs(entries: list[Json]) -> Iterator[Problem]:
    """Yield calls without output, outputs without call, and approvals without request.

    Calls that the server runs itself (tool search, programs) need no output of the client.
    """
    waiting: dict[tuple[str, str], list[int]] = {}
    background: set[tuple[str, str]] = set()
    requests = {str(entry.get("id")) for entry in entries if entry.get("type") == "mcp_approval_request"}
    shells = {
        str(entry.get("id")): entry.get("call_id") for entry in entries if entry.get("type") == "local_shell_call"
    }
    references = any(entry.get("type") == "item_reference" for entry in entries)
    start = max((n for n, entry in enumerate(entries) if entry.get("type") == "compaction"), default=0)
    for place, entry in enumerate(entries):
        kind, id = str(entry.get("type")), entry.get("call_id")
        if kind == "local_shell_call_output":  # the types name the call by `id`, the guide by `call_id`
            id = id or shells.get(str(entry.get("id")), entry.get("id"))
        if kind == "mcp_approval_response" and entry.get("approval_request_id") not in requests and not references:
            text = f"No approval request found with id '{entry.get('approval_request_id')}'."
            yield Problem("pairing", text, ("input", place), _APPROVALS)
        if not isinstance(id, str) or entry.get("execution") == "server" or kind.startswith("program"):
            continue
        if kind.endswith("_call"):
            if entry.get("async") is True:  # its output may come at any later time
                background.add((id, kind))
            waiting.setdefault((id, kind), []).append(place)
        elif kind.endswith("_output"):
            of = "tool_search_call" if kind == "tool_search_output" else kind.removesuffix("_output")
            if places := waiting.get((id, of)):
                places.pop(0)
            elif not references and not (start and place > start):
                name = of.removesuffix("_call").replace("_", " ")
                text = f"No tool call found for {name} call output with call_id {id}."
                yield Problem("pairing", text, ("input", place), _CALLING)
    trigger = bool(entries) and entries[-1].get("type") == "compaction_trigger"
    for (id, kind), places in waiting.items():
        for place in places:
            if place >= start and not trigger and (id, kind) not in background:
                name = kind.removesuffix("_call").replace("_", " ")
                yield Problem("pairing", f"No tool output found for {name} call {id}.", ("input", place), _CALLING)


def _reasoning(entries: list[Json]) -> Iterator[Problem]:
    """Yield reasoning that the item it led to does not follow."""
    for place, entry in enumerate(entries):
        if entry.get("type") != "reasoning":
            continue
        after = next((later for later in entries[place + 1 :] if later.get("type") != "reasoning"), None)
        kind = str(after.get("type") or "message") if after is not None else ""
        foreign = kind == "message" and after is not None and after.get("role") != "assistant"
        if after is None or foreign or (kind.endswith("_output") and kind != "tool_search_output"):
            text = f"Item '{entry.get('id')}' of type 'reasoning' was provided without its required following item."
            yield Problem("reasoning", text, ("input", place), _REASONING)
