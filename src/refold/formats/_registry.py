"""Finds a format by name or by the shape of messages, and reads a list of messages in it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from refold._rules.pairing import Pairing
from refold._text.suggestions import did_you_mean
from refold.core._annotations import recovered
from refold.core._json import mapping
from refold.core._native import as_json
from refold.core._surrogates import repair_surrogates_in_message
from refold.core.messages import Message
from refold.core.transcript import Transcript, chain
from refold.core.view import Violation
from refold.errors import BadMessages, UnknownFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import MessageId, ToolCall
    from refold.core.view import FormatTraits, Rule
    from refold.formats._base import Body

__all__ = ["Format", "broken", "detect", "detect_again", "find", "names", "open_calls", "read"]

SEARCHED_AT_ONCE = 1024 * 1024  # bytes: no other thread runs while one call searches


class Format(Protocol):
    """A lens on one provider's messages, with what the provider demands of a list of them.

    `read` is total: it takes any dict. `write` returns `message.passed` itself where nothing was edited. `marks` are
    keys of which every native object has one. `volatile` are keys that move between calls without changing what was
    said; they are no part of a message's identity.
    """

    name: str
    rules: tuple[Rule, ...]
    traits: FormatTraits
    marks: tuple[str, ...]
    volatile: frozenset[str]
    body: Body

    def read(self, native: object, id: MessageId) -> Message:
        """Return the message that a native object holds."""

    def write(self, message: Message) -> Any:
        """Return the native object of a message."""

    def identity(self, native: object) -> bytes:
        """Return the bytes that say which message this is."""

    def recognizes(self, native: object) -> bool:
        """Tell whether a native object can only be of this format."""

    def spread(self, message: Message) -> tuple[Message, ...]:
        """Return an invented message as the messages it must be written as."""

    def anchor(self, messages: Sequence[Message]) -> int:
        """Return the position of the first message that the provider reads, 0 where it reads all.

        It depends on nothing that comes later: a message that is added moves it only if that one carries state.
        """

    def speaker(self, native: object) -> str:
        """Return for whom a native object speaks; nothing where it is never joined with a neighbor."""

    def apart(self, first: object, second: object) -> bool:
        """Tell whether neighbors of one speaker, of which one was edited, stay two objects as they were."""

    def join(self, first: object, second: object) -> Any:
        """Return two native objects of one speaker as one."""


@cache
def names() -> tuple[str, ...]:
    """Return the names of all formats, sorted."""
    modules = (module.name for module in iter_modules([str(Path(__file__).parent)]) if not module.name.startswith("_"))
    return tuple(sorted(name.replace("_", "-") for name in modules))


@cache
def find(name: str) -> Format:
    """Return the format of a name.

    Raises:
        UnknownFormat: there is none; the message lists those there are.
    """
    if name not in names():
        raise UnknownFormat(
            f"there is no format {name!r}{did_you_mean(name, names())}; use one of {', '.join(names())}"
        )
    format: Format = import_module(f"refold.formats.{name.replace('-', '_')}").FORMAT
    return format


def detect(messages: Sequence[object]) -> Format:
    """Return the format that messages are in, detected by their content; plain role and content is openai-chat.

    Raises:
        UnknownFormat: they look like none; the message says what was seen.
    """
    if (format := _recognized(messages)) is not None:
        return format
    natives = list(map(as_json, messages))
    strange = next((position for position, native in enumerate(natives) if not _is_plain(native)), None)
    if messages and strange is None:
        return find("anthropic" if _cached(natives) else "openai-chat")
    seen = "an empty list" if strange is None else f"message {strange}, {_seen(messages[strange])}"
    raise UnknownFormat(f"the format cannot be told from {seen}: name one of {', '.join(names())}")


def detect_again(assumed: Format, messages: Sequence[object], known: int) -> Format:
    """Return the format of a list that has grown beyond its first `known` messages, whose format was assumed.

    It is another one where the new messages are the first that can only be of one format.
    """
    format = _recognized(messages[known:], known)
    return assumed if format in (None, assumed) or _recognized(messages[:known]) is not None else format


def read(
    format: Format,
    natives: Sequence[object],
    known: Transcript = Transcript(),  # noqa: B008 # a value
    first: int = 0,
) -> Transcript:
    """Return the transcript of a whole list; `known` is what its first messages were read into before.

    Errors count positions from `first`, where the caller's own list begins.

    A message that an earlier compaction made and the client sends back is known again by its opening. Half a surrogate
    pair, which no request can carry in UTF-8, is read as U+FFFD; the native object keeps it.

    Raises:
        BadMessages: an entry is not a dict, has neither role nor type nor parts, or is nested too deeply for JSON; its
            position is named.
    """
    messages = list(known.messages)
    parent, read_one = known.tip, format.read
    for position in range(len(messages), len(natives)):
        passed = natives[position]
        native = _json_of(passed, position - first)
        if not isinstance(native, dict) or not any(mark in native for mark in format.marks):
            raise BadMessages(
                f"message {position - first} is {_seen(passed)}, which {format.name} does not have: "
                "pass messages as they are sent"
            )
        identity = _identity(format, native, position - first)
        parent = chain(parent, identity)
        message = read_one(native, parent)
        if native is not passed:
            message = replace(message, sdk_object=passed)
        if (len(identity) > SEARCHED_AT_ONCE or b"\\u" in identity) and _names_surrogates(identity):
            message = repair_surrogates_in_message(message)
        messages.append(recovered(message))
    return Transcript(tuple(messages))


def _names_surrogates(identity: bytes) -> bool:
    """Tell whether a message names characters of the range in which surrogates are; other threads may run meanwhile."""
    for at in range(0, len(identity), SEARCHED_AT_ONCE):
        for mark in (b"\\ud", b"\\uD"):
            if identity.find(mark, at, at + SEARCHED_AT_ONCE + len(mark) - 1) >= 0:
                return True
    return False


def broken(format: Format, messages: Sequence[Message]) -> tuple[Violation, ...]:
    """Return every violation of the format's rules, by position."""
    violations = [violation for rule in format.rules for violation in rule.broken(messages)]
    return tuple(sorted(violations, key=lambda violation: violation.at))


def open_calls(format: Format, messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls at the very end that still await their results."""
    rules = (rule for rule in format.rules if isinstance(rule, Pairing))
    return tuple(call for rule in rules for call in rule.open_calls(messages))


def _recognized(messages: Sequence[object], first: int = 0) -> Format | None:
    """Return the format that one of the messages can only be of; None where all have plain role and content."""
    formats = [find(name) for name in names()]
    for position, passed in enumerate(messages, first):
        native = _json_of(passed, position)
        for format in formats if isinstance(native, dict) else ():
            if format.recognizes(native):
                return format
    return None


def _is_plain(native: object) -> bool:
    return isinstance(native, dict) and isinstance(native.get("role"), str) and "content" in native


def _json_of(passed: object, position: int) -> Any:
    try:
        return as_json(passed)
    except RecursionError:
        raise _nested_too_deeply(position) from None
    except (TypeError, ValueError) as error:
        raise BadMessages(
            f"message {position}, {_seen(passed)}, cannot be read as JSON ({error}): pass the JSON that its SDK sends"
        ) from error


def _identity(format: Format, native: object, position: int) -> bytes:
    try:
        return format.identity(native)
    except RecursionError:
        raise _nested_too_deeply(position) from None


def _nested_too_deeply(position: int) -> BadMessages:
    return BadMessages(
        f"message {position} is nested too deeply for JSON, or holds itself: pass messages as they are sent"
    )


def _cached(messages: Sequence[Any]) -> bool:
    """Tell whether blocks bear cache marks and no system message is in the list, as only Anthropic's are."""
    return not any(native["role"] in ("system", "developer") for native in messages) and any(
        "cache_control" in mapping(block)
        for native in messages
        if isinstance(content := native["content"], list)
        for block in content
    )


def _seen(passed: object) -> str:
    if isinstance(passed, dict):
        return f"an entry with the keys {', '.join(map(str, passed))}" if passed else "an entry without keys"
    return f"an entry of type {type(passed).__name__}"
