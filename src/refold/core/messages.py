"""Messages and their parts: the format-neutral values that every format is read into and that stages work on.

A part is addressed by its path in the provider's own object, so removing one part never moves the
address of another. Values have no identity of their own; identity is the transcript's business.
"""

from __future__ import annotations

from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NewType,
    TypeAlias,
    TypeVar,
)

from msgspec import Struct

from refold.errors import BadValue

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "OLLAMA",
    "Content",
    "File",
    "Image",
    "Message",
    "MessageId",
    "Note",
    "Opaque",
    "Part",
    "Patch",
    "Path",
    "Reasoning",
    "Role",
    "Text",
    "ToolCall",
    "ToolResult",
    "memoized",
    "synthetic_message",
    "text_of",
    "texts",
]

MessageId = NewType("MessageId", str)
Path: TypeAlias = tuple[str | int, ...]
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
OLLAMA = "ollama"  # a kind of call without type, whose result names the tool; most of both have no id
ROLES = frozenset({"system", "user", "assistant", "tool"})


class Text(Struct, frozen=True, omit_defaults=True, tag="text"):
    """A text of the message's role; `ours` if refold wrote it into a message of somebody else.

    A digest that is joined with a user's text is sent back as one message; `ours` keeps the two parts
    distinguishable.
    """

    text: str
    at: Path = ()
    ours: bool = False


class Image(Struct, frozen=True, omit_defaults=True, tag="image"):
    """An image; width and height in pixels, 0 if its bytes do not state them."""

    media_type: str = ""
    bytes: int = 0
    width: int = 0
    height: int = 0
    detail: str = ""
    at: Path = ()


class File(Struct, frozen=True, omit_defaults=True, tag="file"):
    """A document, an audio or a video that is sent with the message; `text` if it is plain text."""

    kind: Literal["document", "audio", "video"] = "document"
    media_type: str = ""
    bytes: int = 0
    name: str = ""
    text: str = ""
    at: Path = ()


class Reasoning(Struct, frozen=True, omit_defaults=True, tag="reasoning"):
    """Thinking of the model; sealed if a signature or encryption forbids changing it.

    `size` is the number of characters of content that cannot be read (encrypted or redacted).
    """

    text: str = ""
    sealed: bool = False
    size: int = 0
    at: Path = ()


class ToolCall(Struct, frozen=True, omit_defaults=True, tag="call", dict=True):
    """A tool the model asked for; `arguments` is JSON text, or free text for custom tools.

    `kind` is "function", or the provider's own word for another sort of call ("custom", "local_shell", …);
    "ollama" is one of its native API.
    A call with `server=True` is answered by the provider inside the same message.
    `call_id` is empty where the provider gives none (some Gemini calls): then name and order pair it. `item` is the id
    of the call's item where a result may name that instead, `caller` the call id of the program that made the call.
    A `deferred` call may await its result while the conversation goes on.
    """

    call_id: str
    name: str
    arguments: str = ""
    kind: str = "function"
    server: bool = False
    at: Path = ()
    item: str = ""
    caller: str = ""
    deferred: bool = False


class Opaque(Struct, frozen=True, omit_defaults=True, tag="opaque"):
    """A part of a kind that this release does not know: carried through, counted by its characters, never edited.

    `state`: the provider keeps state in it that exists nowhere else (a compaction block, an upload into a container,
    a tool added in the middle of the list); no edit removes, hides, moves or rewrites it. `anchor`: the provider
    reads nothing before it. `text` is its readable part, counted in place of `size`. `loads` names the tools whose
    definitions it adds to the context; it stays while one of them is called later. `holds` names the object that the
    state belongs to (a container): a later part with the same name supersedes this one, which may then be removed.
    `last`: it must be the last message.
    """

    kind: str = ""
    size: int = 0
    at: Path = ()
    state: bool = False
    anchor: bool = False
    text: str = ""
    loads: tuple[str, ...] = ()
    holds: str = ""
    last: bool = False


Content: TypeAlias = Text | Image | File | Opaque


class ToolResult(Struct, frozen=True, omit_defaults=True, tag="result", dict=True):
    """The result of a tool call; `content` parts have paths of their own inside the same native object."""

    call_id: str
    content: tuple[Content, ...] = ()
    name: str = ""
    is_error: bool = False
    kind: str = "function"
    server: bool = False
    at: Path = ()

    @property
    def text(self) -> str:
        """All words of the result, lines of different blocks apart."""
        if len(self.content) == 1 and isinstance(first := self.content[0], Text):
            return first.text
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part: TypeAlias = Text | Image | File | Reasoning | ToolCall | ToolResult | Opaque

NoteKind: TypeAlias = Literal[
    "summary", "outline", "digest", "marker", "nudge", "notice", "acknowledgement", "restored", "synthetic", "request"
]


class Note(Struct, frozen=True, omit_defaults=True):  # O10, O11
    """Why we made a message, next to it and never inside the native object (providers refuse unknown fields).

    `read` and `modified` are the file lists that a summary carries on.
    """

    kind: NoteKind
    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


class Patch(Struct, frozen=True, omit_defaults=True):
    """One change to a message: the part at a path becomes another, or goes (None)."""

    at: Path
    to: Part | None = None


Value = TypeVar("Value", bound=Struct)
Returned = TypeVar("Returned")


class _CachedProperty(Generic[Value, Returned]):
    """A property that is worked out once; `functools.cached_property` takes a lock, which costs more than the work."""

    def __init__(self, function: Callable[[Value], Returned]) -> None:
        self.function, self.name, self.__doc__ = function, function.__name__, function.__doc__

    def __get__(self, value: Value | None, owner: type[Value] | None = None) -> Returned:
        if value is None:
            raise AttributeError(self.name)  # of the class itself
        computed = value.__dict__[self.name] = self.function(value)
        return computed


class Message(Struct, frozen=True, omit_defaults=True, dict=True):
    """One entry of a conversation, read from `native`, which is never written to.

    A message whose parts are all tool results has the role "tool" in every format. A message that
    we made has a note and no native object. `patches` are the edits so far, in order.
    `sdk_object` is what the caller passed where that is or holds an object of an SDK; `native` is then its JSON.
    """

    id: MessageId
    role: Role
    parts: tuple[Part, ...] = ()
    note: Note | None = None
    native: Any = None
    patches: tuple[Patch, ...] = ()
    sdk_object: Any = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise BadValue(f"a message has the role system, user, assistant or tool, not {self.role!r}")

    @_CachedProperty
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of this message that await a result from us, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolCall) and not part.server])

    @_CachedProperty
    def results(self) -> tuple[ToolResult, ...]:
        """The results of this message that answer an earlier message's call, in order."""
        return tuple([part for part in self.parts if isinstance(part, ToolResult) and not part.server])

    @_CachedProperty
    def opaques(self) -> tuple[Opaque, ...]:
        """The opaque parts of this message that carry state or load tools, those inside results behind the others."""
        own: list[Opaque] = []
        inside: list[Opaque] = []
        for part in self.parts:
            if isinstance(part, Opaque):
                own.append(part)
            elif isinstance(part, ToolResult):
                for inner in part.content:
                    if isinstance(inner, Opaque):
                        inside.append(inner)  # noqa: PERF401 - a list for each result costs more than the work
        if not (own or inside):
            return ()
        return tuple([part for part in (*own, *inside) if part.state or part.anchor or part.loads])

    @property
    def passed(self) -> Any:
        """What the caller passed: an SDK's object, or the native object; None for a message that we made."""
        return self.native if self.sdk_object is None else self.sdk_object

    @property
    def anchor(self) -> Opaque | None:
        """The part before which the provider reads nothing, or None."""
        return next((part for part in self.opaques if part.anchor), None)


def memoized(function: Callable[[Value], Returned]) -> Callable[[Value], Returned]:
    """Have a pure function find what it finds only once in the life of a value, which remembers it.

    What is found lives and goes with the message of a conversation, so a pass pays only for what is new, and a changed
    message, which is another value, is looked at anew.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def wrapper(value: Value) -> Returned:
        try:
            known: Returned = value.__dict__[name]
        except KeyError:
            known = value.__dict__[name] = function(value)
        return known

    return wrapper


def texts(message: Message) -> tuple[str, ...]:
    """Return every readable text of a message: words, tool output and arguments, not reasoning."""
    readable: list[str] = []
    for part in message.parts:
        match part:
            case Text(text=text):
                readable.append(text)
            case ToolCall(arguments=arguments):
                readable.append(arguments)
            case ToolResult():
                readable.append(part.text)
            case _:
                pass
    return tuple(readable)


def text_of(message: Message) -> str:
    """Return the words of a message alone: no tool traffic, no reasoning, nothing of ours in another's message."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text) and not part.ours)


def synthetic_message(id: MessageId, role: Role, text: str, note: Note) -> Message:
    """Return a message of our own with one text."""
    return Message(id, role, (Text(text),), note)
