"""LangChain: a middleware for `create_agent`, and so for deepagents, that compacts the messages of each model call."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from refold.adapt._images import claude_image, text_blocks
from refold.adapt._pool import TrackPool
from refold.adapt._state import rewind_state
from refold.formats._base import arguments_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from refold.adapt._track import Track, TrackOptions

__all__ = ["CompactionMiddleware", "CompactionState"]


class CompactionState(AgentState[Any]):
    """The state of an agent with the plans in force, which a checkpointer stores with the messages."""

    refold_plans: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type] # of a TypedDict


class CompactionMiddleware(AgentMiddleware[CompactionState, Any]):
    """Compacts what the model is sent; the messages in the state stay whole: `create_agent(…, middleware=[…])`.

    A request that the provider refuses for its size is compacted further and sent again. The options are those of
    `refold.adapt.Track`; without a window the one of the agent's model is used.

    Added in 0.1.0.
    """

    state_schema = CompactionState

    def __init__(self, **options: Unpack[TrackOptions]) -> None:
        super().__init__()
        shapes: list[Any] = ["anthropic", "openai-chat"]
        self._pools: dict[str, TrackPool[Any]] = {name: TrackPool.of_format(name, options) for name in shapes}

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Call the model with the messages compacted."""
        with self._track(request) as (track, history):
            response = track.call(lambda view: handler(_compacted(request, view)), **history)
            return _with_plans(response, request, track)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Call the model with the messages compacted."""
        with self._track(request) as (track, history):
            response = await track.acall(lambda view: handler(_compacted(request, view)), **history)
            return _with_plans(response, request, track)

    @staticmethod
    def rewind(agent: Any, config: Any, to: int = -1) -> None:
        """Take plans of a thread back, as `refold.adapt.rewind_state` does; the agent needs a checkpointer."""
        plans = agent.get_state(config).values.get("refold_plans", "")
        agent.update_state(config, {"refold_plans": rewind_state(plans, to)})

    @contextmanager
    def _track(self, request: Any) -> Iterator[tuple[Track[Any], dict[str, Any]]]:
        """Lend the track of a request, with the arguments of its call.

        Results of tools in a row are one item, because they are one message to Claude.
        """
        model, state, prompt = request.model, request.state.get("refold_plans", ""), request.system_message
        claude = "anthropic" in type(model).__module__
        groups = groupby(enumerate(request.messages), key=lambda pair: -1 if pair[1].type == "tool" else pair[0])
        items = [[message for _, message in group] for _, group in groups]
        keys = [[(m.id, m.content, m.tool_calls if m.type == "ai" else 0) for m in item] for item in items]
        name = getattr(model, "model_name", None) or getattr(model, "model", None)
        history = {"items": items, "keys": keys, "convert": _claude if claude else convert_to_openai_messages}
        tools = [each if isinstance(each, dict) else convert_to_openai_tool(each) for each in request.tools]
        pool = self._pools["anthropic" if claude else "openai-chat"]
        with pool.track(items, keys=keys, state=state, model=name) as track:
            yield track, history | {"system": prompt and prompt.content, "tools": tools}


def _compacted(request: Any, view: Any) -> Any:
    return request.override(messages=[message for item in view.as_items(_items) for message in item])


def _with_plans(response: Any, request: Any, track: Track[Any]) -> Any:
    """Return a response, with the plans for the state where they have changed."""
    for message in response.result:
        if usage := getattr(message, "usage_metadata", None):
            track.report(usage)
    changed = track.dump() != request.state.get("refold_plans", "")
    return ExtendedModelResponse(response, Command(update={"refold_plans": track.dump()}) if changed else None)


def _claude(item: list[Any]) -> dict[str, Any]:
    """Return messages as one of Claude's."""
    role = {"ai": "assistant", "system": "system"}.get(item[0].type, "user")
    return {"role": role, "content": [block for message in item for block in _blocks(message)]}


def _blocks(message: Any) -> list[Any]:
    """Return a message as Claude's blocks."""
    content = text_blocks(message.content)
    if message.type != "ai":
        content = convert_to_openai_messages([message], text_format="block")[0]["content"]
    blocks = [claude_image(block) for block in content if block["type"] != "tool_use" and block.get("text") != ""]
    if message.type == "tool":
        error = message.status == "error"
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks, "is_error": error}]
    calls = [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return [*blocks, *({"type": "tool_use", "id": id, "name": name, "input": args} for id, name, args in calls)]


def _items(natives: list[Any], item: list[Any] | None) -> list[list[Any]]:
    """Return messages of LangChain for native ones; what is neither content nor a call stays as in the item."""
    former = {getattr(each, "tool_call_id", ""): each for each in item or ()}
    messages = []

    def add(kind: Any, content: Any, id: str = "", **fields: Any) -> None:
        fields |= {"content": content, **({"tool_call_id": id} if id else {})}
        old = former.get(id)
        messages.append(old.model_copy(update=fields) if isinstance(old, kind) else kind(**fields))

    for native in natives:
        role, content = native["role"], native.get("content") or ""
        blocks = [block for block in content if isinstance(block, dict)]
        if role == "tool":
            add(ToolMessage, content, native["tool_call_id"])
        elif role == "assistant":
            functions = [(each["id"], each["function"]) for each in native.get("tool_calls", ())]
            calls = [(id, function["name"], arguments_of(function["arguments"])) for id, function in functions]
            calls += [(each["id"], each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"]
            add(AIMessage, content, tool_calls=[{"id": id, "name": name, "args": args} for id, name, args in calls])
        else:
            for block in blocks:
                if block["type"] == "tool_result":
                    add(ToolMessage, block.get("content", ""), block["tool_use_id"])
            if rest := [block for block in blocks if block["type"] != "tool_result"] or ("" if blocks else content):
                add(SystemMessage if role == "system" else HumanMessage, rest)
    return [messages]
