"""Formats: lenses on the messages of each provider, found by listing this folder."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol

from refold.core.messages import Message
from refold.core.transcript import Transcript, canonical, chain
from refold.errors import BadMessages, UnknownFormat
from refold.formats.assembly import assemble
from refold.formats.bodies import Request, close_body, open_body, system_text, tools_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import MessageId
    from refold.core.view import Rule, Traits
    from refold.formats.lens import Body

__all__ = [
    "Format",
    "Request",
    "assemble",
    "close_body",
    "detect",
    "find",
    "names",
    "open_body",
    "read",
    "system_text",
    "tools_text",
]

_HELPERS = frozenset({"assembly", "bodies", "lens"})


class Format(Protocol):
    """A lens on one provider's messages, with what the provider demands of a list of them.

    `read` is total: it takes any dict. `write` returns `message.native` itself where nothing was edited. `volatile` are
    keys that move between calls without changing what was said; they are no part of a message's identity.
    """

    name: str
    rules: tuple[Rule, ...]
    traits: Traits
    volatile: frozenset[str]
    body: Body

    def read(self, native: Any, id: MessageId) -> Message:
        """Return the message that a native object holds."""

    def write(self, message: Message) -> Any:
        """Return the native object of a message."""

    def recognizes(self, native: Any) -> bool:
        """Tell whether a native object can only be of this format."""

    def spread(self, message: Message) -> tuple[Message, ...]:
        """Return an invented message as the messages it must be written as."""

    def speaker(self, native: Any) -> str:
        """Return who a native object speaks for, as the provider sees it."""

    def join(self, first: Any, second: Any) -> Any:
        """Return two native objects of one speaker as one."""


@cache
def names() -> tuple[str, ...]:
    """Return the names of all formats, sorted."""
    found = (module.name for module in iter_modules(__path__) if module.name not in _HELPERS)
    return tuple(sorted(name.replace("_", "-") for name in found))


@cache
def find(name: str) -> Format:
    """Return the format of a name.

    Raises:
        UnknownFormat: there is none; the message lists those there are.
    """
    if name not in names():
        raise UnknownFormat(f"there is no format {name!r}: use one of {', '.join(names())}")
    format: Format = import_module(f"{__name__}.{name.replace('-', '_')}").FORMAT
    return format


def detect(messages: Sequence[Any]) -> Format:
    """Return the format that messages are in, told by their content; plain role and content is openai-chat.

    Raises:
        UnknownFormat: they look like none; the message says what was seen.
    """
    formats = [find(name) for name in names()]
    plain = bool(messages)
    for native in messages:
        if not isinstance(native, dict):
            plain = False
            break
        for format in formats:
            if format.recognizes(native):
                return format
        plain = plain and isinstance(native.get("role"), str) and "content" in native
    if plain:
        return find("openai-chat")
    seen = next((native for native in messages if not _plain(native)), None)
    what = f"an entry with the keys {', '.join(map(str, seen))}" if isinstance(seen, dict) else _kind(seen, messages)
    raise UnknownFormat(f"the format cannot be told from {what}: name one of {', '.join(names())}")


def read(format: Format, natives: Sequence[Any], known: Transcript = Transcript()) -> Transcript:  # noqa: B008
    """Return a transcript: what is known, extended by the messages that follow it.

    Raises:
        BadMessages: an entry is not a dict, or has neither role nor type nor parts; its position is named.
    """
    messages = list(known.messages)
    parent, volatile, read_one = known.tip, format.volatile, format.read
    for place, native in enumerate(natives, len(messages)):
        if not isinstance(native, dict):
            raise BadMessages(
                f"message {place} is {_a(native)}, not a dict: pass {format.name} messages as they are sent"
            )
        if not ("role" in native or "type" in native or "parts" in native):
            keys = ", ".join(map(str, native)) or "none"
            raise BadMessages(
                f"message {place} has no role (its keys: {keys}): pass {format.name} messages as they are"
            )
        parent = chain(parent, canonical(native, volatile))
        messages.append(read_one(native, parent))
    return Transcript(tuple(messages))


def _plain(native: Any) -> bool:
    return isinstance(native, dict) and isinstance(native.get("role"), str) and "content" in native


def _kind(seen: Any, messages: Sequence[Any]) -> str:
    return f"an entry that is {_a(seen)}" if len(messages) else "an empty list"


def _a(value: Any) -> str:
    return f"of type {type(value).__name__}"
