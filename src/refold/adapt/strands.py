"""Strands Agents: compacts the messages of each call of the model, and keeps the plans with the agent's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strands.agent.conversation_manager import ConversationManager
from strands.hooks import AgentInitializedEvent
from strands.middleware import InvokeModelStage

from refold.adapt._pool import TrackPool
from refold.adapt._state import rewind_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Unpack

    from refold.adapt._track import TrackOptions

__all__ = ["CompactionManager"]


class CompactionManager(ConversationManager):
    """Compacts what an agent sends, and sends a request that is refused for its size again, with less of it.

    Pass it as `Agent(conversation_manager=…)`, to one agent only. The agent's messages stay whole. The plans are part
    of the manager's state, which a session manager stores with the agent. Models that keep the history themselves are
    called unchanged.

    The options are those of `refold.adapt.Track`; without a window the one of the agent's model is used.

    Added in 0.1.0.
    """

    def __init__(self, **options: Unpack[TrackOptions]) -> None:
        super().__init__()
        self._pool: TrackPool[Any] = TrackPool.of_format("bedrock", options)
        self._plans = ""

    def register_hooks(self, registry: Any, **kwargs: Any) -> None:
        """Put the compaction around the calls of the model, once the agent is there."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(
            AgentInitializedEvent, lambda event: event.agent.add_middleware(InvokeModelStage, self._answers)
        )

    def get_state(self) -> dict[str, Any]:
        """Return what a session stores of the manager."""
        return {**super().get_state(), "plans": self._plans}

    def restore_from_session(self, state: dict[str, Any]) -> None:
        """Go on with what a session has stored."""
        super().restore_from_session(state)
        self._plans = state.get("plans", "")

    def rewind(self, to: int = -1) -> None:
        """Take compactions back; `to` is how many stay, negative from the end."""
        self._plans = rewind_state(self._plans, to)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Leave the agent's messages as they are."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Raise the refusal, which comes here when no compaction was a remedy."""
        if e is not None:
            raise e

    async def _answers(self, context: Any, next_fn: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        """Yield what the model answers to the compacted messages: the middleware of the agent."""
        if context.model.stateful:
            async for event in next_fn(context):
                yield event
            return
        model, started = context.model.get_config().get("model_id"), False
        keys = [message["content"] for message in context.messages]
        with self._pool.track(context.messages, keys=keys, state=self._plans, model=model) as track:
            usage = next((m["metadata"]["usage"] for m in reversed(context.messages) if m.get("metadata")), None)
            if usage and usage["inputTokens"]:
                track.report(usage)
            view = await track.afold(
                context.messages, keys=keys, convert=_native, system=context.system_prompt,
                tools=context.tool_specs,
            )  # fmt: skip
            while True:
                self._plans = track.dump()
                try:
                    async for event in next_fn(context.replace(messages=view.as_items(_written))):
                        started = True
                        yield event
                    return
                except Exception as error:
                    if started:
                        raise
                    view = await track.arecover(error)


def _native(message: Any) -> dict[str, Any]:
    """Return a message without what is not sent: usage, timestamps and ids of Strands."""
    return {"role": message["role"], "content": message["content"]}


def _written(natives: list[Any], message: Any) -> list[Any]:
    return [{**(message or {}), **native} for native in natives]
