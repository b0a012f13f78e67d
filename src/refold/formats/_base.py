"""The shared part of all formats: reading that never fails, and writing that copies only edited values.

Theory of operation. A format is a lens between a provider's object and a `Message`:

- `read(native)` gives parts, each with its path in the native object. What is not known becomes `Opaque`: it is
  carried, counted by its size, and never edited. Reading never fails on a value that JSON can hold.
- `write(message)` gives the native object back. Without patches it is the very same object (get-put law); with patches
  it is a copy along the paths of the patches, and everything off those paths is the same object as before (`put`).
- Patches are applied in order. A removed entry is marked first and swept last, so that no path of a later patch moves
  (`edited`). A patch whose path leads nowhere is void.
- A message of ours has no native object; `invent` makes one. `spread` and `join` are for providers that want one
  message as several or several as one, and `finish` puts right what must hold after edits (results first, content
  where nothing is left).
- `identity(native)` gives the bytes that say which message this is, without what clients change from call to call
  (cache marks), so that a list that is sent again is known again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from refold.core._json import Json, listing, string_of
from refold.core._provider_state import anchor_in
from refold.core.messages import (
    File,
    Image,
    Message,
    MessageId,
    Opaque,
    Patch,
    Path,
    Role,
    Text,
    ToolResult,
)
from refold.core.transcript import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from refold.core.messages import Content, Part
    from refold.core.view import FormatTraits, Rule

__all__ = [
    "EMPTY",
    "Body",
    "Lens",
    "arguments_of",
    "arguments_text",
    "blocks_text",
    "content_text",
    "edited",
    "get",
    "is_unchanged",
    "is_words",
    "json_text",
    "label",
    "opaque",
    "put",
    "role_of",
    "tagged_user_message",
    "text_block",
]

Native: TypeAlias = Any
EMPTY = "(no content)"  # providers refuse a message without content
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_REMOVED: Any = object()
_TEXT_KEYS = {"type", "text"}


class _DeadPathError(Exception):
    """A path that leads nowhere in this object."""


class Body(Struct, frozen=True):
    """Where a request body of the format keeps its parts; each entry lists paths, the first that is there counts."""

    messages: Path = ("messages",)
    system: tuple[Path, ...] = ()
    tools: tuple[Path, ...] = (("tools",),)
    model: Path = ("model",)
    max_output: tuple[Path, ...] = ()


class Lens:
    """Base of the formats: `write` gives back the native object itself, or a copy along the paths of the patches.

    A format supplies `read`, `render` (one part in place of an old native value), `invent` (a message of ours),
    and where it differs `marks` (keys of which every object has one), `finish` (what must hold after edits), `spread`
    and `join` (one message as several, several as one).
    """

    name: str
    rules: tuple[Rule, ...]
    traits: FormatTraits
    marks: tuple[str, ...] = ("role", "type", "parts")
    volatile: frozenset[str] = frozenset()
    body: Body = Body()

    def read(self, native: Native, id: MessageId) -> Message:
        """Return the message that a native object holds; what is unknown becomes Opaque."""
        raise NotImplementedError

    def write(self, message: Message) -> Native:
        """Return the native object of a message: the very same where nothing was edited."""
        if message.native is None:
            return self.invent(message)
        if not message.patches:
            return message.passed
        if not message.parts and any(patch.to is None and not patch.at for patch in message.patches):
            role: Role = "user" if message.role == "tool" else message.role  # nothing is left of it, not even its kind
            return self.invent(Message(message.id, role, (Text(EMPTY),)))
        return self.finish(edited(message.native, message.patches, self.render), message)

    def recognizes(self, native: Native) -> bool:
        """Tell whether a native object can only be of this format."""
        raise NotImplementedError

    def render(self, part: Part, old: Native, at: Path) -> Native:
        """Return a part as a native value, in place of an old one (None where there was none)."""
        raise NotImplementedError

    def invent(self, message: Message) -> Native:
        """Return a native object for a message that has none."""
        raise NotImplementedError

    def finish(self, native: Native, message: Message) -> Native:
        """Return an edited native object as the provider accepts it."""
        return native

    def spread(self, message: Message) -> tuple[Message, ...]:
        """Return an invented message as the messages it must be written as."""
        return (message,)

    def identity(self, native: Native) -> bytes:
        """Return the bytes that say which message this is.

        Where marks move from call to call, a text becomes a list of one block to bear one, and a text again without it:
        both are the same message.
        """
        content = native.get("content") if self.volatile and type(native) is dict else None
        if type(content) is list and len(content) == 1 and type(block := content[0]) is dict:
            text = block.get("text")
            if type(text) is str and block.get("type") == "text" and block.keys() - self.volatile == _TEXT_KEYS:
                native = {**native, "content": text}
        return canonical(native, self.volatile)

    def anchor(self, messages: Sequence[Message]) -> int:
        """Return the position of the first message that the provider reads, 0 where it reads all."""
        return anchor_in(messages)

    def speaker(self, native: Native) -> str:
        """Return for whom a native object speaks; nothing where it is never joined with a neighbor."""
        raise NotImplementedError

    def apart(self, first: Native, second: Native) -> bool:
        """Tell whether neighbors of one speaker, of which one was edited, stay two objects as they were."""
        return False

    def join(self, first: Native, second: Native) -> Native:
        """Return two native objects of one speaker as one."""
        raise NotImplementedError


def get(native: Native, path: Path) -> Native:
    """Return the value at a path, or None."""
    for step in path:
        if isinstance(native, dict):
            native = native.get(step)
        elif isinstance(native, list) and isinstance(step, int) and -1 < step < len(native):
            native = native[step]
        else:
            return None
    return native


def put(native: Native, path: Path, value: Native) -> Native:
    """Return a copy with another value at a path; everything off the path is the same object.

    A path one past the end of a list appends; a missing list is made.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        entries = [] if native is None else native
        if not isinstance(entries, list) or step > len(entries):
            raise _DeadPathError
        return [*entries[:step], put(entries[step] if step < len(entries) else None, rest, value), *entries[step + 1 :]]
    if native is not None and not isinstance(native, dict):
        raise _DeadPathError
    return {**(native or {}), step: put((native or {}).get(step), rest, value)}


def edited(native: Native, patches: Sequence[Patch], render: Callable[[Part, Native, Path], Native]) -> Native:
    """Return a copy with patches applied in order; removals are swept last, so that no path moves before.

    A patch whose path leads nowhere is void.
    """
    parents: set[Path] = set()
    for patch in patches:
        at = patch.at
        try:
            if patch.to is not None:
                native = put(native, at, render(patch.to, get(native, at), at))
            elif at and get(native, at[:-1]) is not None:
                native = put(native, at, _REMOVED)
                parents.add(at[:-1])
        except _DeadPathError:
            continue
    for parent in sorted(parents, key=len, reverse=True):
        container = get(native, parent)
        if isinstance(container, list):
            native = put(native, parent, [value for value in container if value is not _REMOVED])
        elif isinstance(container, dict):
            native = put(native, parent, {key: value for key, value in container.items() if value is not _REMOVED})
    return native


def is_words(native: Native, at: Path) -> bool:
    """Tell whether a value is a field's text, which stays one when its words change; in a list it is no block."""
    return isinstance(native, str) and not (at and isinstance(at[-1], int))


def opaque(native: Native, at: Path, kind: str = "") -> Opaque:
    """Return anything unknown as a part that is carried and counted."""
    if not kind and isinstance(native, dict):
        kind = native.get("type", "")
    return Opaque(string_of(kind), len(canonical(native)), at)


def json_text(value: Native) -> str:
    """Return a value as compact JSON text."""
    try:
        return _encode(value).decode()
    except (UnicodeEncodeError, TypeError, ValueError):  # lone surrogates; numbers beyond 64 bits
        return json.dumps(value, ensure_ascii=True, default=repr, separators=(",", ":"))


def arguments_text(value: Native) -> str:
    """Return the arguments of a call as text: JSON of an object, text as it is, plain where it is a subclass's."""
    return str.__str__(value) if isinstance(value, str) else json_text(value)  # decoders refuse subclasses


def arguments_of(text: str) -> Json:
    """Return arguments as an object; any other text is stored whole under `raw`."""
    try:
        value = _decode(text) if text else {}
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = None
    return value if isinstance(value, dict) else {"raw": text}


def content_text(content: Sequence[Part]) -> str:
    """Return content as one text: words, and a label for what cannot be said in words."""
    texts = [part.text if isinstance(part, Text) else label(part) for part in content]
    text = "\n".join(text for text in texts if text)
    return text if text and not text.isspace() else EMPTY


def blocks_text(blocks: Native) -> str:
    """Return the words of a list of blocks that hold nothing else; empty where one of them holds none."""
    texts = [get(block, ("text",)) for block in listing(blocks)]
    return "\n".join(texts) if all(isinstance(text, str) for text in texts) else ""


def label(part: Part) -> str:
    """Return a short text in place of a part that has no native object."""
    match part:
        case Image():
            return "[image]"
        case File(kind=kind, name=name, text=text):
            return text or f"[{kind}{' ' if name else ''}{name}]"
        case ToolResult(content=content):
            return content_text(content)
        case Opaque(kind=kind):
            return f"[{kind}]" if kind else ""
        case _:
            return ""


def tagged_user_message(message: Message) -> Message:
    """Return a system message as a user's, its words in a tag: for formats without system messages in the list."""
    text = content_text([part for part in message.parts if isinstance(part, Text)])
    return replace(message, role="user", parts=(Text(f"<system>\n{text}\n</system>"),))


def role_of(role: Role, parts: Sequence[Part]) -> Role:
    """Return "tool" for a user message that holds nothing but results, else the role itself."""
    if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
        return "tool"
    return role


def is_unchanged(part: Content, old: Part | None) -> bool:
    """Tell whether content is what its native block already says, so that the block can stay."""
    return old is not None and replace(part, at=()) == replace(old, at=())


def text_block(text: str, old: Native) -> Json:
    """Return words as a block of OpenAI's chat or Anthropic's, in place of an old one, whose cache mark stays."""
    if isinstance(old, dict):
        if old.get("type") == "text":
            return {**old, "text": text}
        if "cache_control" in old:
            return {"type": "text", "text": text, "cache_control": old["cache_control"]}
    return {"type": "text", "text": text}
