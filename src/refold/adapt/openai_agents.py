"""OpenAI Agents SDK: compacts the input of each model call, and keeps the originals in a session."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents import FunctionTool, Model, ModelProvider, MultiProvider
from agents.run_config import CallModelData, ModelInputData

from refold.adapt._pool import TrackPool
from refold.adapt._session_plans import SessionPlans
from refold.sessions import Session, open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from typing import Unpack

    from refold.adapt._track import Track, TrackOptions
    from refold.sessions import Store

__all__ = ["Compaction", "CompactionSession"]


class Compaction(ModelProvider):
    """Compacts what agents send, and sends a request that is refused for its size again, with less of it.

    Pass it as `RunConfig(model_provider=…)`, or wrap a model object with `model`. As the SDK's input filter,
    `RunConfig(call_model_input_filter=…)`, it compacts but cannot send again. Calls whose history the provider keeps
    (`previous_response_id`, `conversation_id`) pass unchanged.

    Args:
        models: where models come from; `MultiProvider()` by default.
        session: a `CompactionSession` that stores the plans; without one they last as long as this object.

    The other options are those of `refold.adapt.Track`; without a window the one of the agent's model is used.

    Added in 0.1.0.
    """

    def __init__(
        self, models: ModelProvider | None = None, *, session: CompactionSession | None = None,
        **options: Unpack[TrackOptions],
    ) -> None:  # fmt: skip
        self._models, self._session = models or MultiProvider(), session
        self._pool: TrackPool[Any] = TrackPool.of_format("openai-responses", options)

    def get_model(self, model_name: str | None) -> Model:
        """Return a model by its name, with its input compacted."""
        return self.model(self._models.get_model(model_name))

    def model(self, model: Model) -> Model:
        """Return a model with its input compacted."""
        return _CompactingModel(model, self)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the compacted input of a call: the `call_model_input_filter`."""
        items, system = data.model_data.input, data.model_data.instructions
        with self.track(items, data.agent.model) as track:
            view = await track.afold(items, system=system, tools=_schemas(data.agent.tools))
        return ModelInputData(input=view.as_items(), instructions=system)

    @contextmanager
    def track(self, items: Sequence[Any], model: object) -> Iterator[Track[Any]]:
        """Lend the track of a history to a `with` block, and store its plans in the session afterwards."""
        plans = self._session.plans if self._session else None
        name = model if isinstance(model, str) else getattr(model, "model", None)
        with self._pool.track(items, state=plans.state if plans else None, model=name) as track:
            yield track
        if plans:
            plans.keep(track)


class _CompactingModel(Model):
    def __init__(self, model: Model, compaction: Compaction) -> None:
        self._inner, self._compaction = model, compaction
        self.get_retry_advice, self.close = model.get_retry_advice, model.close  # type: ignore[method-assign]

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **named: Any) -> Any:
        async def answer(*rest: Any, **named: Any) -> AsyncIterator[Any]:
            yield await self._inner.get_response(*rest, **named)

        [response] = [each async for each in self._answers(answer, system_instructions, input, rest, named)]
        return response

    def stream_response(self, system_instructions: Any, input: Any, *rest: Any, **named: Any) -> AsyncIterator[Any]:
        return self._answers(self._inner.stream_response, system_instructions, input, rest, named)

    async def _answers(self, answer: Any, system: Any, items: Any, rest: Any, named: Any) -> AsyncIterator[Any]:
        if isinstance(items, str) or named.get("previous_response_id") or named.get("conversation_id"):
            async for event in answer(system, items, *rest, **named):
                yield event
            return
        started = False
        with self._compaction.track(items, self._inner) as track:
            view = await track.afold(items, system=system, tools=_schemas(rest[1] if rest else named["tools"]))
            while True:
                try:
                    async for event in answer(system, view.as_items(), *rest, **named):
                        if usage := getattr(getattr(event, "response", event), "usage", None):
                            track.report(usage)
                        started = True
                        yield event
                    return
                except Exception as error:
                    if started:
                        raise
                    view = await track.arecover(error)


class CompactionSession:
    """A session of the SDK in a store of refold: it returns all originals, and holds the plans of a `Compaction`.

    Args:
        session_id: the id of the conversation.
        store: a store, a path or a URL, as in `refold.open_store`.

    `session` is the `refold.Session`, in which plans are taken back and originals are searched.

    Added in 0.1.0.
    """

    session_settings: Any = None

    def __init__(self, session_id: str, store: Store | str | Path | None = None) -> None:
        self.session_id = session_id
        opened = open_store(store) if store is None or isinstance(store, str | Path) else store
        self.session = Session(opened, session_id, format="openai-responses")
        self.plans = SessionPlans(self.session)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return all items as they were added, or the newest `limit`."""
        await self.session.arefresh()
        newest = limit if limit is not None else getattr(self.session_settings, "limit", None)
        return self.session.messages[-newest:] if newest else self.session.messages

    async def add_items(self, items: list[Any]) -> None:
        """Add items."""
        await self.session.aappend(items)
        self.plans.store()

    async def pop_item(self) -> Any:
        """Remove the newest item, and return it; None where there is none."""
        newest = self.session.messages[-1:]
        self.session.rewind_messages(-len(newest))
        return newest[0] if newest else None

    async def clear_session(self) -> None:
        """Remove all items."""
        self.session.rewind_messages(0)


def _schemas(tools: Sequence[Any]) -> list[Any]:
    functions = [tool for tool in tools if isinstance(tool, FunctionTool)]
    return [{"name": t.name, "description": t.description, "parameters": t.params_json_schema} for t in functions]
