"""LiteLLM: compacts the messages of each call, on the proxy and in the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from litellm.integrations.custom_logger import CustomLogger

from refold.adapt._pool import TrackPool

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Unpack

    from refold.adapt._track import TrackOptions

__all__ = ["CompactionCallback"]

# Of each kind of call: the argument that holds the history, that of the system prompt, and the format.
CALLS = {
    "acompletion": ("messages", "", "openai-chat"),
    "aresponses": ("input", "instructions", "openai-responses"),
    "anthropic_messages": ("messages", "system", "anthropic"),
}


class CompactionCallback(CustomLogger):
    """Compacts what is sent to a model, and makes it smaller once more after the provider refused it for its size.

    In the SDK write `litellm.callbacks = [CompactionCallback()]`; on the proxy name an object in a module of yours
    under `callbacks:` in the configuration. It serves `acompletion`, `aresponses` and `anthropic_messages`: LiteLLM
    asks no callback before a blocking `completion`. A refused request is sent again where `context_window_fallbacks`
    of the router or the proxy name a second name of the same model.

    Args:
        states: a mapping of text to text in which the plans outlast the process, such as `diskcache.Cache`; without
            one they last as long as this object.

    The other options are those of `refold.adapt.Track`; without a window the one of the called model is used.

    Added in 0.1.0.
    """

    def __init__(self, *, states: MutableMapping[str, str] | None = None, **options: Unpack[TrackOptions]) -> None:
        super().__init__()
        self._pools: dict[str, TrackPool[Any]] = {
            kind: TrackPool.of_format(shape, options, states) for kind, (_, _, shape) in CALLS.items()
        }
        self._originals: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()  # by the logging object of a call

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Return the arguments of a call with its history compacted."""
        history, system, _ = CALLS.get(call_type, ("", "", ""))
        items = kwargs.get(history)
        if not isinstance(items, list) or kwargs.get("previous_response_id"):  # then the provider keeps the history
            return None
        with self._pools[call_type].track(items, model=kwargs.get("model")) as track:
            view = await track.afold(items, convert=_native, system=kwargs.get(system), tools=kwargs.get("tools"))
        if kwargs.get("litellm_logging_obj") is not None:
            self._originals[kwargs["litellm_logging_obj"]] = items
        return {**kwargs, history: view.as_items()}

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> None:
        """Report the usage of an answer, which calibrates the measurement."""
        items, usage = self._original(request_data), getattr(response, "usage", None)
        if items and usage:
            with self._pools[call_type].track(items, model=request_data.get("model")) as track:
                track.report(usage)

    async def async_post_call_failure_deployment_hook(
        self, request_data: Any, exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """Make the history smaller once more where the provider refused it for its size: for the call that follows."""
        items = self._original(request_data)
        if items:
            with self._pools[call_type].track(items, model=request_data.get("model")) as track:
                await track.arecover(exception)

    def _original(self, request: dict[str, Any]) -> list[Any] | None:
        """Return the history of a call as it was passed; None of one that was not compacted, or is not logged."""
        log = request.get("litellm_logging_obj")
        return None if log is None else self._originals.get(log)

    def rewind(
        self, items: list[Any], to: int = -1, *, call_type: str = "acompletion", model: str | None = None
    ) -> None:
        """Take compactions of a history back; `to` is how many stay, negative from the end, and 0 none.

        `items` and `model` are those of its calls, and `call_type` the function that makes them.
        """
        with self._pools[call_type].track(items, model=model) as track:
            track.fold(items, convert=_native)
            track.rewind(to)


def _native(message: Any) -> Any:
    """Return a message as JSON: users append what an answer holds, an object of LiteLLM's, as it is."""
    return message.model_dump(exclude_none=True) if hasattr(message, "model_dump") else message
