"""Requests that Anthropic's Messages API rejects: the types of the `anthropic` SDK and the documented rules."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from refold.core._json import Json, mapping, objects, placed_objects
from refold.testing.judge._model_versions import claude
from refold.testing.judge._problem import Mismatch, Path, Problem, dotted
from refold.testing.judge._sdk_types import Compiler, faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from refold.testing.judge._sdk_types import Check

__all__ = ["problems"]

_DOCS = "https://platform.claude.com/docs/en"
_SDK = "anthropic SDK, types/beta/message_create_params.py"
_TOOLS = f"{_DOCS}/agents-and-tools/tool-use/handle-tool-calls"
_THINKING = f"{_DOCS}/build-with-claude/extended-thinking"
_CACHING = f"{_DOCS}/build-with-claude/prompt-caching"
_ERRORS = f"{_DOCS}/api/errors"
_SEARCH = f"{_DOCS}/agents-and-tools/tool-use/tool-search-tool"
_MESSAGES = f"{_DOCS}/api/messages"

TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")  # "String should match pattern '^[a-zA-Z0-9_-]+$'", tool_use.id
SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")  # the pattern of server_tool_use.id in the same refusal
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")  # define-tools page, `name`
MOST_MARKS = 4  # prompt-caching page, "you can define up to 4 cache breakpoints"
LEAST_BUDGET = 1_024  # extended-thinking page, `budget_tokens`
PREFILL_UNTIL = (4, 6)  # errors page, "Prefill not supported": Claude 4.6 and later
SYSTEMS_FROM = (4, 8)  # mid-conversation system messages: Opus 4.8 and later models
ADAPTIVE_FROM = (4, 6)  # adaptive-thinking page: from here on an answer may begin with words
ASSISTANT_ONLY = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "thinking", "redacted_thinking"})


class _Turn(NamedTuple):
    """Consecutive messages of one role, which the API combines: their blocks with paths."""

    role: str
    blocks: list[tuple[Path, Json]]


@cache
def _checks() -> tuple[Check, Check]:
    """Return the checks of a message and of a body without its messages.

    Raises:
        ImportError: the `anthropic` SDK is not installed.
    """
    from anthropic.types.beta import BetaMessageParam
    from anthropic.types.beta.message_create_params import MessageCreateParamsBase

    # `stream` is no key of the base; `anthropic_version` stands in bodies for Vertex and Bedrock
    body = Compiler(
        extra={"MessageCreateParamsBase": frozenset({"stream", "model", "anthropic_version", "anthropic_beta"})}
    )
    return Compiler().check_of(BetaMessageParam), body.check_of(MessageCreateParamsBase)


def problems(body: Mapping[str, object], model: str, headers: Mapping[str, str]) -> Iterator[Problem]:
    """Yield every reason to refuse a body; rules are applied to what has the right shape."""
    message, rest = _checks()
    messages = body.get("messages")
    shape = faults(rest, {**body, "messages": []})
    if not isinstance(messages, list):
        yield Problem("shape", "messages: Field required", ("messages",), _MESSAGES)
        return
    for place, entry in enumerate(messages):
        shape += faults(message, entry, ("messages", place))
    yield from (Problem(fault.rule, _words(fault, body), fault.at, _SDK) for fault in shape)
    if not messages:
        yield Problem("shape", "messages: at least one message is required", ("messages",), _MESSAGES)
        return
    turns = _turns(messages)
    yield from _marks(body)
    yield from _tools(body)
    yield from _systems(messages, model)
    yield from _blocks(turns)
    if mapping(body.get("thread")).get("type") != "continue":  # the server holds what came before
        if turns and turns[0].role == "assistant" and turns[0].blocks[0][1].get("type") != "compaction":
            yield Problem(
                "opening", 'messages: first message must use the "user" role', turns[0].blocks[0][0], _MESSAGES
            )
        yield from _pairs(turns)
        yield from _served(turns)
    yield from _prefill(messages, body, model)
    yield from _thinking(turns, body, model, headers)


def _words(fault: Mismatch, body: Mapping[str, object]) -> str:
    """Return a difference from the types in the API's words."""
    at = dotted(_tagged(fault.at, body))
    match fault.kind:
        case "missing":
            return f"{at}: Field required"
        case "unknown":
            return f"{at}: Extra inputs are not permitted"
        case "tag" if fault.at[-1] == "role":
            return f'{dotted(fault.at[:-1])}: Unexpected role "{fault.got}". Allowed roles are "user" or "assistant".'
        case "tag":
            tags = ", ".join(f"'{tag}'" for tag in fault.expected)
            tag = f"Input tag '{fault.got}' found using '{fault.at[-1]}'"
            return f"{dotted(fault.at[:-1])}: {tag} does not match any of the expected tags: {tags}"
        case "value":
            allowed = " or ".join(f"'{value}'" for value in fault.expected)
            return f"{at}: Input should be {allowed}"
        case _:
            names = {"object": "dictionary", "array": "list"}
            wanted = next((names.get(name, name) for name in fault.expected if name != "null"), "value")
            return f"{at}: Input should be a valid {wanted}"


def _tagged(at: Path, body: Mapping[str, object]) -> Path:
    """Return a path with the tags of the blocks it passes, as the API writes them: `content.0.tool_use.id`."""
    steps: list[str | int] = []
    value: Any = body
    for place, step in enumerate(at):
        steps.append(step)
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            value = None
        kind = value.get("type") if isinstance(value, dict) and isinstance(step, int) else None
        if isinstance(kind, str) and place + 1 < len(at):
            steps.append(kind)
    return tuple(steps)


def _turns(messages: list[Any]) -> list[_Turn]:
    """Return the messages as the API sees them: neighbors of one role combined, nothing before a compaction block."""
    turns: list[_Turn] = []
    for place, entry in enumerate(messages):
        if not isinstance(entry, dict):
            continue
        content, role = entry.get("content"), str(entry.get("role"))
        blocks: list[tuple[Path, Json]] = []
        if isinstance(content, str):
            blocks.append((("messages", place, "content"), {"type": "text", "text": content}))
        for number, block in placed_objects(content):
            if block.get("type") == "compaction" and isinstance(block.get("content"), str):
                turns, blocks = [], []
            blocks.append((("messages", place, "content", number), block))
        if not blocks:
            blocks.append((("messages", place), {}))
        if turns and turns[-1].role == role:
            turns[-1].blocks.extend(blocks)
        else:
            turns.append(_Turn(role, blocks))
    return turns


def _marks(body: Mapping[str, object]) -> Iterator[Problem]:
    """Yield too many cache marks, in tools, system and messages together, and marks on empty text."""
    marks = list(_marked(body.get("tools"), ("tools",)))
    marks += _marked(body.get("system"), ("system",))
    marks += _marked(body.get("messages"), ("messages",))
    count = len(marks) + isinstance(body.get("cache_control"), dict)
    if count > MOST_MARKS:
        text = f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {count}."
        yield Problem("cache_marks", text, marks[-1][0], _CACHING)
    for at, block in marks:
        if block.get("type") == "text" and block.get("text") == "":
            text = f"{dotted(at)}.text: cache_control cannot be set for empty text blocks"
            yield Problem("content", text, at, _CACHING)


def _marked(value: object, at: Path) -> Iterator[tuple[Path, Json]]:
    """Yield the blocks that bear a cache mark, those in results included; inputs and schemas are not looked into."""
    if isinstance(value, list):
        for place, entry in enumerate(value):
            yield from _marked(entry, (*at, place))
    elif isinstance(value, dict):
        if isinstance(value.get("cache_control"), dict):
            yield at, value
        if isinstance(value.get("content"), list):
            yield from _marked(value["content"], (*at, "content"))


def _tools(body: Mapping[str, Any]) -> Iterator[Problem]:
    tools = [tool for tool in body.get("tools") or () if isinstance(tool, dict)]
    names: set[str] = set()
    for place, tool in enumerate(tools):
        name, own = tool.get("name"), tool.get("type") in (None, "custom")
        if not isinstance(name, str):
            continue
        if own and not TOOL_NAME.fullmatch(name):
            text = f"tools.{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            yield Problem("names", text, ("tools", place, "name"), _TOOLS)
        if name in names:
            yield Problem("names", "tools: Tool names must be unique.", ("tools", place, "name"), _TOOLS)
        names.add(name)
    if tools and all(tool.get("defer_loading") is True for tool in tools):
        text = "All tools have defer_loading set. At least one tool must be non-deferred."
        yield Problem("deferred_tools", text, ("tools",), _SEARCH)
    budget = mapping(body.get("thinking")).get("budget_tokens")
    if isinstance(budget, int) and budget < LEAST_BUDGET:
        text = f"thinking.enabled.budget_tokens: Input should be greater than or equal to {LEAST_BUDGET}"
        yield Problem("thinking", text, ("thinking", "budget_tokens"), _THINKING)


def _systems(messages: list[Any], model: str) -> Iterator[Problem]:
    """Yield system messages that open the list, and those in a list for a model that takes none."""
    version = claude(model)
    for place, entry in enumerate(messages):
        system = mapping(entry).get("role") == "system"
        # one that only sets options or changes tools may open the list
        opens = not place and system and any(block.get("type") == "text" for _, block in _turns([entry])[0].blocks)
        if opens or (system and version is not None and version < SYSTEMS_FROM):
            text = (
                f'messages.{place}: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
                'not "system" as an input message role.'
            )
            yield Problem("roles", text, ("messages", place, "role"), f"{_DOCS}/build-with-claude/system-messages")


def _blocks(turns: list[_Turn]) -> Iterator[Problem]:
    """Yield what is wrong with single blocks."""
    ids: set[str] = set()
    for number, turn in enumerate(turns):
        for at, block in turn.blocks:
            where, kind = dotted(at), str(block.get("type"))
            words = block.get("text")
            if not block:
                final = number == len(turns) - 1 and turn.role == "assistant"
                if not final and turn.role != "system":
                    text = "all messages must have non-empty content except for the optional final assistant message"
                    yield Problem("content", f"{where}: {text}", at, _MESSAGES)
            elif kind == "text" and isinstance(words, str):
                yield from _text(words, at)
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use") and isinstance(id := block.get("id"), str):
                pattern = SERVER_ID if kind == "server_tool_use" else TOOL_ID
                if not pattern.fullmatch(id):
                    text = f"{where}.{kind}.id: String should match pattern '^{pattern.pattern}$'"
                    yield Problem("ids", text, (*at, "id"), _TOOLS)
                if id in ids:
                    text = f"{dotted(at[:2])}: `{kind}` ids must be unique"
                    yield Problem("ids", text, (*at, "id"), _TOOLS)
                ids.add(id)
                name = block.get("name")
                if kind == "tool_use" and isinstance(name, str) and not TOOL_NAME.fullmatch(name):
                    text = f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
                    yield Problem("names", text, (*at, "name"), _TOOLS)
            elif kind == "tool_result" and not TOOL_ID.fullmatch(str(block.get("tool_use_id"))):
                text = f"{where}.tool_result.tool_use_id: String should match pattern '^{TOOL_ID.pattern}$'"
                yield Problem("ids", text, (*at, "tool_use_id"), _TOOLS)
            elif kind == "compaction" and block.get("content") == "":
                yield Problem("content", f"{where}.compaction.content: content can't be empty", at, _SDK)
            elif kind == "thinking" and block.get("signature") == "":
                text = f"{where}: Invalid `signature` in `thinking` block"
                yield Problem("thinking", text, (*at, "signature"), _THINKING)
            if kind in ASSISTANT_ONLY and turn.role != "assistant":
                text = f"{dotted(at[:2])}: `{kind}` blocks can only be in `assistant` messages"
                yield Problem("roles", text, at, _MESSAGES)
            elif kind == "tool_result" and turn.role != "user":
                text = f"{dotted(at[:2])}: `tool_result` blocks can only be in `user` messages"
                yield Problem("roles", text, at, _MESSAGES)


def _text(text: str, at: Path) -> Iterator[Problem]:
    if len(at) == 3:  # a string as the whole content
        if not text:
            message = "all messages must have non-empty content except for the optional final assistant message"
            yield Problem("content", f"{dotted(at[:2])}: {message}", at, _MESSAGES)
        elif text.isspace():
            yield Problem("content", "messages: text content blocks must contain non-whitespace text", at, _MESSAGES)
    elif not text:
        yield Problem("content", "messages: text content blocks must be non-empty", at, _MESSAGES)
    elif text.isspace():
        yield Problem("content", "messages: text content blocks must contain non-whitespace text", at, _MESSAGES)


def _pairs(turns: list[_Turn]) -> Iterator[Problem]:
    """Yield calls without results in the next turn of the user, and results without calls in the turn before."""
    spoken = [turn for turn in turns if turn.role in ("user", "assistant")]
    calls: dict[str, Path] = {}
    for number, turn in enumerate(spoken):
        if turn.role == "assistant":
            calls = {str(block.get("id")): at for at, block in turn.blocks if block.get("type") == "tool_use"}
            if calls and number == len(spoken) - 1:
                yield _unanswered(calls)
            continue
        results = [(at, block) for at, block in turn.blocks if block.get("type") == "tool_result"]
        answered: set[str] = set()
        for at, block in results:
            id = str(block.get("tool_use_id"))
            if id not in calls:
                text = (
                    f"{dotted(at)}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` "
                    "block must have a corresponding `tool_use` block in the previous message."
                )
                yield Problem("pairing", text, at, _TOOLS)
            elif id in answered:
                text = (
                    f"{dotted(at[:2])}.content: each tool_use must have a single result. Found multiple `tool_result` "
                    f"blocks with id: {id}"
                )
                yield Problem("pairing", text, at, _TOOLS)
            answered.add(id)
        first = next((n for n, (_, block) in enumerate(turn.blocks) if block.get("type") != "tool_result"), None)
        buried = first is not None and any(block.get("type") == "tool_result" for _, block in turn.blocks[first:])
        left = {id: at for id, at in calls.items() if id not in answered}
        if left or (buried and calls):
            yield _unanswered(left or calls)
        calls = {}


def _unanswered(calls: Mapping[str, Path]) -> Problem:
    at = next(iter(calls.values()))
    text = (
        f"{dotted(at[:2])}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )
    return Problem("pairing", text, at, _TOOLS)


def _served(turns: list[_Turn]) -> Iterator[Problem]:
    """Yield calls of the server's own tools without their result, and results without call.

    A call may stay open at the end (a paused turn), and while calls of the client's in the same turn are answered.
    """
    open_: dict[str, tuple[Path, str]] = {}
    for number, turn in enumerate(turns):
        waiting = False
        for at, block in turn.blocks:
            kind = str(block.get("type"))
            if turn.role != "assistant":
                waiting = waiting or kind == "tool_result"
            elif kind in ("server_tool_use", "mcp_tool_use"):
                open_[str(block.get("id"))] = at, str(block.get("name"))
            elif kind.endswith("_tool_result") and open_.pop(str(block.get("tool_use_id")), None) is None:
                id = block.get("tool_use_id")
                text = f"{dotted(at)}: unexpected `tool_use_id` found in `{kind}` blocks: {id}."
                yield Problem("pairing", text, at, _TOOLS)
        if turn.role == "user" and open_ and not waiting and number:
            for id, (at, name) in open_.items():
                text = (
                    f"{dotted(at[:2])}: `{name}` tool use with id `{id}` was found without a corresponding "
                    f"`{name}_tool_result` block"
                )
                yield Problem("pairing", text, at, _TOOLS)
            open_ = {}


def _prefill(messages: list[Any], body: Mapping[str, object], model: str) -> Iterator[Problem]:
    """Yield an answer begun by the client that the model does not take, or that ends in white space."""
    last = messages[-1]
    if not isinstance(last, dict) or last.get("role") != "assistant":
        return
    content = last.get("content")
    blocks = objects(content)
    kinds = [str(block.get("type")) for block in blocks]
    paused = any(kind.endswith("_tool_result") or kind in ("server_tool_use", "mcp_tool_use") for kind in kinds)
    version = claude(model)
    opened = kinds[:1] == ["compaction"] or "compaction" in body or "fallback_credit_token" in body
    if version is not None and version >= PREFILL_UNTIL and not paused and not opened:
        text = "This model does not support assistant message prefill. The conversation must end with a user message."
        yield Problem("prefill", text, ("messages", len(messages) - 1), f"{_ERRORS}#prefill-not-supported")
    final = content if isinstance(content, str) else blocks[-1].get("text") if blocks else ""
    if isinstance(final, str) and final and final[-1].isspace() and not final.isspace():
        message = "messages: final assistant content cannot end with trailing whitespace"
        yield Problem("prefill", message, ("messages", len(messages) - 1, "content"), _MESSAGES)


def _thinking(
    turns: list[_Turn], body: Mapping[str, object], model: str, headers: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield a tool loop in progress whose answer does not begin with thinking, where manual thinking demands it."""
    config, version = body.get("thinking"), claude(model)
    manual = mapping(config).get("type") == "enabled"
    betas = next((value for name, value in headers.items() if name.lower() == "anthropic-beta"), "")
    if not manual or version is None or version >= ADAPTIVE_FROM or "interleaved-thinking" in betas:
        return
    last = next((number for number in reversed(range(len(turns))) if turns[number].role == "assistant"), None)
    if last is None or not any(block.get("type") == "tool_use" for _, block in turns[last].blocks):
        return
    at, first = turns[last].blocks[0]
    if first.get("type") not in ("thinking", "redacted_thinking"):
        text = (
            f"{dotted(at)}.type: Expected `thinking` or `redacted_thinking`, but found `{first.get('type')}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks)."
        )
        yield Problem("thinking", text, at, f"{_THINKING}#preserving-thinking-blocks")
