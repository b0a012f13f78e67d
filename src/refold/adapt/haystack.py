"""Haystack: compacts the messages of each call of a chat generator, and keeps the plans in the messages."""

from __future__ import annotations

from asyncio import to_thread
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from haystack import component, default_from_dict, default_to_dict
from haystack.core.serialization import component_to_dict
from haystack.dataclasses import ChatMessage
from haystack.utils.deserialization import deserialize_component_inplace

from refold.adapt._haystack_messages import items_of, schemas_of, written
from refold.adapt._message_state import rewound_messages, stored_state, with_state
from refold.adapt._pool import TrackPool
from refold.adapt._streams import noting
from refold.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from refold.adapt._track import Track, TrackOptions

__all__ = ["CompactionChatGenerator", "rewind"]

LIFE_CYCLE = ("warm_up", "warm_up_async", "close", "close_async")
PROVIDER_HISTORY = {"previous_response_id", "conversation"}  # arguments with which the provider keeps the history


@component
class CompactionChatGenerator:
    """Compacts what a chat generator sends, and sends a request that is refused for its size again, with less of it.

    Pass it as `Agent(chat_generator=…)` or put it into a pipeline in place of the generator. The plans are stored in
    the meta of replies, so they last as long as the messages, and `rewind` takes them back. Requests whose history the
    provider keeps pass unchanged.

    Args:
        chat_generator: the generator that sends the messages.

    The other options are those of `refold.adapt.Track`; without a window the one of the generator's model is used.

    Added in 0.1.0.
    """

    def __init__(self, chat_generator: Any, **options: Unpack[TrackOptions]) -> None:
        self.chat_generator, self._options = chat_generator, options
        self._pool: TrackPool[Any] = TrackPool.of_format("openai-responses", options)
        self._defaults = getattr(chat_generator, "generation_kwargs", None) or {}
        self._run_async: Any = getattr(chat_generator, "run_async", None) or partial(to_thread, chat_generator.run)
        vars(self).update({name: getattr(chat_generator, name) for name in LIFE_CYCLE if hasattr(chat_generator, name)})

    def to_dict(self) -> Any:
        """Return the component with its generator as a dictionary."""
        generator = component_to_dict(self.chat_generator, "chat_generator")
        return default_to_dict(self, chat_generator=generator, **self._options)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """Return the component that `to_dict` wrote."""
        deserialize_component_inplace(data["init_parameters"], key="chat_generator")
        return default_from_dict(cls, data)

    @component.output_types(replies=list[ChatMessage])  # type: ignore[untyped-decorator]
    def run(
        self, messages: list[ChatMessage], streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None, tools: Any = None,
    ) -> Any:  # fmt: skip
        """Return the replies of the generator to the messages, compacted."""
        begun: list[bool] = []
        call = {"generation_kwargs": generation_kwargs, "tools": tools, **noting(streaming_callback, begun)}
        if PROVIDER_HISTORY & {*self._defaults, *(generation_kwargs or ())}:
            return self.chat_generator.run(messages=messages, **call)
        known = self._known(messages)
        with self._pool.track(messages, **known) as track:
            view = track.fold(messages, keys=known["keys"], convert=items_of, tools=schemas_of(tools))
            while True:
                try:
                    result = self.chat_generator.run(messages=view.as_items(written), **call)
                    return _with_plans(result, track, known["state"])
                except Exception as error:
                    if begun:
                        raise
                    view = track.recover(error)

    @component.output_types(replies=list[ChatMessage])  # type: ignore[untyped-decorator]
    async def run_async(
        self, messages: list[ChatMessage], streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None, tools: Any = None,
    ) -> Any:  # fmt: skip
        """Do what `run` does, awaiting generator and summarizer."""
        begun: list[bool] = []
        call = {"generation_kwargs": generation_kwargs, "tools": tools, **noting(streaming_callback, begun)}
        if PROVIDER_HISTORY & {*self._defaults, *(generation_kwargs or ())}:
            return await self._run_async(messages=messages, **call)
        known = self._known(messages)
        with self._pool.track(messages, **known) as track:
            view = await track.afold(messages, keys=known["keys"], convert=items_of, tools=schemas_of(tools))
            while True:
                try:
                    result = await self._run_async(messages=view.as_items(written), **call)
                    return _with_plans(result, track, known["state"])
                except Exception as error:
                    if begun:
                        raise
                    view = await track.arecover(error)

    def _known(self, messages: list[ChatMessage]) -> dict[str, Any]:
        """Return by what the track of messages is found."""
        return {
            "keys": [(message.role, *message._content) for message in messages],
            "state": stored_state(message.meta for message in messages),
            "model": getattr(self.chat_generator, "model", None),
        }


def rewind(messages: Sequence[ChatMessage], to: int = -1) -> list[ChatMessage]:
    """Return messages with fewer compactions in force; `to` is how many stay, negative from the end.

    Raises:
        UsageError: there are not so many.

    Added in 0.1.0.
    """
    return rewound_messages(messages, attrgetter("meta"), lambda each, new: replace(each, _meta=new), to)


def _with_plans(result: dict[str, Any], track: Track[Any], stored: str) -> dict[str, Any]:
    """Return a result whose replies have the plans in their meta, where they are new; report the usage to the track."""
    replies, state = result["replies"], track.dump()
    with suppress(UsageError):  # of a provider whose usage has names of its own
        if replies and (usage := replies[0].meta.get("usage")):
            track.report(usage)
    if state == stored:
        return result
    return {**result, "replies": [replace(reply, _meta=with_state(reply.meta, state, stored)) for reply in replies]}
