"""Google ADK: compacts the contents of each request, and keeps the plans in the state of the session."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from google.adk.events import Event, EventActions
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from refold.adapt._keyed_state import changed_keys, keyed_state
from refold.adapt._pool import TrackPool
from refold.adapt._state import rewind_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Unpack

    from refold.adapt._track import Track, TrackOptions
    from refold.adapt._view import TrackedView

__all__ = ["CompactionPlugin"]

STATE = "refold:"  # and the name of the agent: the first key of its plans in the state of the session


class CompactionPlugin(BasePlugin):
    """Compacts what agents send, and sends a request that is refused for its size again, with less of it.

    Pass it as `App(plugins=[…])`. The plans of each agent are in the state of the session, and last as long as that.
    Requests whose history the provider keeps (`previous_interaction_id`) pass unchanged, and so do live sessions.

    Args:
        name: the name of the plugin.

    The other options are those of `refold.adapt.Track`; without a window the one of the called model is used.

    Added in 0.1.0.
    """

    def __init__(self, name: str = "refold", **options: Unpack[TrackOptions]) -> None:
        super().__init__(name)
        self._pool: TrackPool[Any] = TrackPool.of_format("gemini", options)
        self._begun: set[tuple[str, str]] = set()  # invocation and agent whose answer has begun

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Compact the contents of a request."""
        self._begun.discard(_call(callback_context))
        if not llm_request.previous_interaction_id:
            async with self._folded(callback_context, llm_request, llm_request.contents) as (_, view):
                llm_request.contents = _Contents(view)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Note that an answer has begun: what the agent has passed on is not said twice."""
        self._begun.add(_call(callback_context))

    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """Forget the calls of a run."""
        self._begun = {call for call in self._begun if call[0] != invocation_context.invocation_id}

    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> Any:
        """Return the answer to a smaller request after a refusal for the size, None after any other error."""
        begun = _call(callback_context) in self._begun
        self._begun.discard(_call(callback_context))  # a run that fails is not followed by its callback
        if begun or not isinstance(llm_request.contents, _Contents):
            return None
        agent, originals = callback_context.get_invocation_context().agent, llm_request.contents.originals
        async with self._folded(callback_context, llm_request, originals) as (track, _):
            while True:
                try:
                    llm_request.contents = _Contents(await track.arecover(error))
                except Exception:  # then the flow raises the error of the model
                    return None
                try:
                    model = agent.canonical_model
                    return [each async for each in model.generate_content_async(llm_request, stream=False)][-1]
                except Exception as next_error:
                    error = next_error

    async def rewind(self, session_service: Any, session: Any, to: int = -1) -> None:
        """Take compactions of a session back, of each agent; `to` is how many stay, negative from the end."""
        get, changes = session.state.get, dict[str, Any]()
        for key in session.state:
            if key.startswith(STATE) and key.count(":") == 1:
                changes |= changed_keys(get, key, rewind_state(keyed_state(get, key), to))
        event = Event(author=self.name, actions=EventActions(state_delta=changes))
        await session_service.append_event(session, event)

    @asynccontextmanager
    async def _folded(
        self, context: Any, request: Any, contents: Sequence[Any]
    ) -> AsyncIterator[tuple[Track[Any], TrackedView[Any]]]:
        """Lend the track and the view of a history to a block, and store the plans in the session afterwards."""
        key = STATE + context.agent_name
        state, keys = keyed_state(context.state.get, key), _known(contents)
        tools = [tool for tool in request.config.tools or () if isinstance(tool, types.Tool)]
        system = request.config.system_instruction
        with self._pool.track(contents, keys=keys, state=state, model=request.model) as track:
            events = reversed(context.session.events)
            own = (event.usage_metadata for event in events if event.author == context.agent_name)
            if usage := next(filter(None, own), None):
                track.report(usage)
            yield track, await track.afold(contents, keys=keys, convert=_native, system=system, tools=tools)
        context.state.update(changed_keys(context.state.get, key, track.dump()))


class _Contents(list[Any]):
    """The contents to send, which remember those that they were made from."""

    def __init__(self, view: TrackedView[Any]) -> None:
        super().__init__(view.as_items(_written))
        self.originals = view.items


def _call(context: Any) -> tuple[str, str]:
    return context.invocation_id, context.agent_name


def _known(contents: Sequence[Any]) -> list[Any]:
    """Return what each content is known by, the fields of its parts: its models are copies, and compare slowly."""
    keys = []
    for content in contents:
        key = [content.role]
        for part in content.parts or ():
            called, fields = part.function_call or part.function_response, vars(part)
            if called is not None:
                fields = {**fields, "function_call": None, "function_response": None, **vars(called)}
            key += [fields]
        keys += [key]
    return keys


def _native(content: Any) -> Any:
    return content.model_dump(mode="json", by_alias=True, exclude_none=True)


def _written(natives: list[Any], content: Any) -> list[Any]:
    return [types.Content.model_validate(native) for native in natives]
