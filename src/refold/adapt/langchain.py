"""LangChain: a middleware for `create_agent`, and so for deepagents, that compacts the messages of each model call."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from refold.adapt._langchain_messages import claude_message, grouped, messages_in, written
from refold.adapt._pool import TrackPool
from refold.adapt._state import rewind_state

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
        """Lend the track of a request, with the arguments of its call."""
        model, state, prompt = request.model, request.state.get("refold_plans", ""), request.system_message
        claude = "anthropic" in type(model).__module__
        items, keys = grouped(request.messages)
        name = getattr(model, "model_name", None) or getattr(model, "model", None)
        history = {"items": items, "keys": keys, "convert": claude_message if claude else convert_to_openai_messages}
        tools = [each if isinstance(each, dict) else convert_to_openai_tool(each) for each in request.tools]
        pool = self._pools["anthropic" if claude else "openai-chat"]
        with pool.track(items, keys=keys, state=state, model=name) as track:
            yield track, history | {"system": prompt and prompt.content, "tools": tools}


def _compacted(request: Any, view: Any) -> Any:
    return request.override(messages=messages_in(view.as_items(written)))


def _with_plans(response: Any, request: Any, track: Track[Any]) -> Any:
    """Return a response, with the plans for the state where they have changed."""
    for message in response.result:
        if usage := getattr(message, "usage_metadata", None):
            track.report(usage)
    changed = track.dump() != request.state.get("refold_plans", "")
    return ExtendedModelResponse(response, Command(update={"refold_plans": track.dump()}) if changed else None)
