"""Microsoft Agent Framework: compacts the messages of each call of a model, and keeps the plans in the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_framework import ChatMiddleware, FunctionTool, ResponseStream

from refold.adapt._agent_framework_messages import items_of, written
from refold.adapt._pool import TrackPool
from refold.core.budget import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from typing import Unpack

    from refold.adapt._track import TrackOptions

__all__ = ["CompactionChatMiddleware"]


class CompactionChatMiddleware(ChatMiddleware):
    """Compacts what an agent or a chat client sends, and sends a request that is refused for its size again, with less.

    Pass it as `Agent(middleware=[…])` or to a chat client. The plans are stored in `session.state[source_id]`, where
    `refold.adapt.rewind_state` takes them back; without a session they last as long as this object. Calls whose history
    the provider keeps (`conversation_id`) pass unchanged.

    Args:
        source_id: the key in the state of the session; agents that share a session each need their own.

    The other options are those of `refold.adapt.Track`; without a window the one of the called model is used.

    Added in 0.1.0.
    """

    def __init__(self, *, source_id: str = "refold", **options: Unpack[TrackOptions]) -> None:
        self._source_id = source_id
        self._pool: TrackPool[Any] = TrackPool.of_format("openai-responses", options)

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        """Call the client with the messages compacted."""
        if (context.options or {}).get("conversation_id"):
            await call_next()
            return
        updates = self._updates(context, call_next)
        first = [update async for update in _one(updates)]  # from here on the answer has begun, or is there
        if context.stream:
            inner = context.result
            context.result = ResponseStream(_chained(first, updates), finalizer=lambda _: inner.get_final_response())

    async def _updates(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> AsyncIterator[Any]:
        messages, options, session = context.messages, context.options or {}, context.session
        keys = [(message.role, *message.contents) for message in messages]
        state = None if session is None else session.state.get(self._source_id, "")
        model = options.get("model") or getattr(context.client, "model", None)
        started = False
        with self._pool.track(messages, keys=keys, state=state, model=model) as track:
            view = await track.afold(
                messages, keys=keys, convert=items_of, system=options.get("instructions"), tools=_schemas(options)
            )
            while True:
                context.messages = view.as_items(written)
                if session is not None:
                    session.state[self._source_id] = track.dump()
                try:
                    await call_next()
                    response = result = context.result
                    if context.stream:
                        async for update in result:
                            started = True
                            yield update
                        response = await result.get_final_response()
                    break
                except Exception as error:
                    if started:
                        raise
                    view = await track.arecover(error)
            usage = (response and response.usage_details) or {}
            if prompt := usage.get("input_token_count"):
                counts = usage.get("output_token_count"), usage.get("cache_read_input_token_count")
                track.report(Usage(prompt, *(count or 0 for count in counts)))


async def _one(updates: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for update in updates:
        yield update
        return


async def _chained(first: list[Any], updates: AsyncIterator[Any]) -> AsyncIterator[Any]:
    for update in first:
        yield update
    async for update in updates:
        yield update


def _schemas(options: Any) -> list[Any]:
    tools = options.get("tools") or ()
    return [tool.to_json_schema_spec() if isinstance(tool, FunctionTool) else tool for tool in tools]
