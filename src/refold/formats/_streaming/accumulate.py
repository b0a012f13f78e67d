"""Which accumulator adds up the events of which provider."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from refold.core._json import Json
from refold.formats._streaming.anthropic import AnthropicAccumulator
from refold.formats._streaming.gemini import GeminiAccumulator
from refold.formats._streaming.openai_chat import OpenAIChatAccumulator
from refold.formats._streaming.openai_responses import OpenAIResponsesAccumulator

__all__ = ["Accumulator", "accumulator", "response_body", "stream_format"]

ACCUMULATORS: dict[str, type[Accumulator]] = {
    "anthropic": AnthropicAccumulator,
    "gemini": GeminiAccumulator,
    "openai-chat": OpenAIChatAccumulator,
    "openai-responses": OpenAIResponsesAccumulator,
}
ANTHROPIC_EVENTS = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
     "message_stop"}
)  # fmt: skip


class Accumulator(Protocol):
    """Takes the events of one streamed response and gives the response they add up to.

    `error` is the provider's error where the stream contained one. Events are not changed, and may be of any shape.
    """

    error: Json | None

    def add(self, event: Json) -> str:
        """Take one event and return the text for the user that it adds."""

    @property
    def usage(self) -> Json:
        """The usage in the provider's own fields, as far as it was reported."""

    @property
    def stop(self) -> str | None:
        """The provider's own word for why the response ended, None where it did not."""

    @property
    def complete(self) -> bool:
        """Whether the response ended, whatever the reason; False where the stream broke off."""

    def body(self) -> Json:
        """Return the response in the shape it has where nothing is streamed, as far as it came."""


def accumulator(format: str) -> Accumulator:
    """Return a new accumulator for the streams of a format, one of those in `ACCUMULATORS`."""
    return ACCUMULATORS[format]()


def response_body(format: str, events: Iterable[Json]) -> Json:
    """Return what the events of a stream add up to."""
    total = accumulator(format)
    for event in events:
        total.add(event)
    return total.body()


def stream_format(event: Json) -> str | None:
    """Return the format that an event is of, None where it is no event of a provider."""
    kind = event.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        return "openai-responses"
    if isinstance(kind, str) and kind in ANTHROPIC_EVENTS:
        return "anthropic"
    if event.get("object") == "chat.completion.chunk":
        return "openai-chat"
    return "gemini" if "candidates" in event else None
