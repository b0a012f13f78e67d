"""Pydantic AI: compacts the messages of each model request, and keeps the plans in the message history."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pydantic_ai import ModelResponse, RetryModelRequest
from pydantic_ai.capabilities import AbstractCapability

from refold.adapt._message_state import rewound_messages, stored_state, with_state
from refold.adapt._pool import TrackPool
from refold.adapt._pydantic_ai_messages import items_of, written
from refold.core.budget import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from refold.adapt._track import Track, TrackOptions
    from refold.adapt._view import TrackedView

__all__ = ["CompactionCapability", "rewind"]

CHAINED = {"openai_previous_response_id", "openai_conversation_id"}  # with them the provider keeps the history


class CompactionCapability(AbstractCapability[Any]):
    """Compacts what an agent sends, and sends a request that is refused for its size again, with less of it.

    Pass it as `Agent(capabilities=[…])`. The plans are stored in the metadata of responses, so they last as long as the
    message history, and `rewind` takes them back. Requests whose history the provider keeps pass unchanged.

    The options are those of `refold.adapt.Track`; without a window the one of the called model is used.

    Added in 0.1.0.
    """

    def __init__(self, **options: Unpack[TrackOptions]) -> None:
        self._pool: TrackPool[Any] = TrackPool.of_format("openai-responses", options)
        self._track: Track[Any] | None = None  # of the request that this copy serves now
        self._stored = ""  # the plans in its history
        self._view: TrackedView[Any] | None = None

    async def for_run(self, ctx: Any) -> CompactionCapability:
        """Return a copy for one run, which makes one request at a time."""
        return copy(self)

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        """Lend the track of the history to all attempts at a request."""
        messages, settings = request_context.messages, request_context.model_settings or {}
        if not CHAINED.isdisjoint(settings) or isinstance(messages[-1], ModelResponse):
            return await handler(request_context)
        self._stored = stored_state(message.metadata for message in messages)
        keys, model = _known(messages), request_context.model.model_name
        with self._pool.track(messages, keys=keys, state=self._stored, model=model) as self._track:
            try:
                return await handler(request_context)
            finally:
                self._track = self._view = None

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Return the request of an attempt with its messages compacted."""
        if self._track is None:
            return request_context
        if self._view is None:
            messages, call = request_context.messages, request_context.model_request_parameters
            tools = [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
                for tool in (*call.function_tools, *call.output_tools)
            ]
            system = "\n\n".join(part.content for part in call.instruction_parts or ())
            self._view = await self._track.afold(
                messages, keys=_known(messages), convert=items_of, system=system, tools=tools
            )
        return replace(request_context, messages=self._view.as_items(written))

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
        """Try again with less after a refusal for the size."""
        if self._track is None:
            raise error
        self._view = await self._track.arecover(error)
        raise RetryModelRequest

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        """Return the response with the plans in its metadata, where they are new."""
        if self._track is None:
            return response
        if usage := response.usage.input_tokens:
            self._track.report(Usage(usage, response.usage.output_tokens, response.usage.cache_read_tokens))
        state = self._track.dump()
        if state == self._stored:
            return response
        return replace(response, metadata=with_state(response.metadata, state, self._stored))


def _known(messages: Sequence[Any]) -> list[Any]:
    """Return what each message is known by: its parts as they are now."""
    return [(*message.parts,) for message in messages]


def rewind(messages: Sequence[Any], to: int = -1) -> list[Any]:
    """Return a message history with fewer compactions in force; `to` is how many stay, negative from the end.

    Raises:
        UsageError: there are not so many.

    Added in 0.1.0.
    """
    return rewound_messages(messages, attrgetter("metadata"), lambda each, new: replace(each, metadata=new), to)
