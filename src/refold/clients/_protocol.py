"""What a client of a model is and returns: one response in the provider's own form, ready to be appended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from refold.core.messages import ToolCall
from refold.errors import OutsideError

__all__ = ["AsyncClient", "BadReply", "Client", "OnText", "Reply", "Wire"]

OnText: TypeAlias = Callable[[str], object]
Wire: TypeAlias = Literal["openai-chat", "anthropic"]


class BadReply(OutsideError):
    """An answer that is none: cut off on its way, without content, or an error inside a success.

    `body` is what came, for `refold.classify_error`.
    """

    def __init__(self, message: str, body: Any = None) -> None:
        super().__init__(message)
        self.body = body


class Reply(Struct, frozen=True):
    """One answer of a model.

    `message` is the assistant's message in the client's format, ready to be appended: reasoning, signatures and calls
    are in it as the provider gave them. `usage` is the provider's own report, `stop` its own word for why it ended.
    """

    message: dict[str, Any]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Mapping[str, Any] = {}
    stop: str = ""

    @property
    def cut(self) -> bool:
        """Tell whether the answer ended because no more tokens were allowed."""
        return self.stop in {"length", "max_tokens", "model_context_window_exceeded"}


class Known(Protocol):
    """What is known of a client, whatever way it is called."""

    @property
    def model(self) -> str:
        """The id that is sent."""

    @property
    def base_url(self) -> str:
        """Where requests go; empty for the provider's own address."""

    @property
    def format(self) -> Wire:
        """The format of the messages, a name that `refold.compact` takes."""


class Client(Known, Protocol):
    """A model behind one of the official SDKs; errors of the SDK are raised as they are."""

    def complete(
        self,
        messages: Sequence[Any],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Ask for the next message; with `on_text` it is streamed, and the function gets each piece of text."""

    def count(self, messages: Sequence[Any], system: Any = None, tools: Sequence[Any] | None = None) -> int:  # V08
        """Return the input tokens of a request by the provider's own count."""

    def close(self) -> None:
        """Close the connections."""


class AsyncClient(Known, Protocol):
    """The same with coroutines, for one event loop."""

    async def complete(
        self,
        messages: Sequence[Any],
        *,
        system: Any = None,
        tools: Sequence[Any] | None = None,
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> Reply:
        """Ask for the next message; `on_text` may be a coroutine function."""

    async def count(self, messages: Sequence[Any], system: Any = None, tools: Sequence[Any] | None = None) -> int:
        """Return the input tokens of a request by the provider's own count."""

    async def close(self) -> None:
        """Close the connections."""
