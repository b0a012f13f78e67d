"""Reads and counts requests, each message once however often it is sent."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import formats
from refold._counting import counter_for
from refold._rules.pairing import Pairing
from refold.core._json import Json
from refold.core.counting import Counter
from refold.core.messages import Message
from refold.core.transcript import Transcript
from refold.testing.provider._cache import Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import MessageId
    from refold.core.view import Violation

__all__ = ["Prompt", "RequestCounter", "broken"]


class Prompt(Struct, frozen=True):
    """A request that was read: its messages with the tokens of each, and what stands before them."""

    format: formats.Format
    request: formats.RequestBody
    messages: tuple[Message, ...]
    sizes: tuple[int, ...]
    tools: int
    system: int
    frame: int
    counter: Counter

    @property
    def tokens(self) -> int:
        """The whole prompt."""
        return self.tools + self.system + self.frame + sum(self.sizes)

    def points(self, *, marks: bool) -> list[Point]:
        """Return the places where the cache may cut it, after tools, system prompt and each message."""
        tools, system = self.request.tools, self.request.system
        key = blake2b(formats.tools_text(tools).encode("utf-8", "surrogatepass"), digest_size=8)
        points = [Point(key.hexdigest(), self.tools, marks and _marked(tools))]
        key.update(formats.system_text(system).encode("utf-8", "surrogatepass"))
        points.append(Point(key.hexdigest(), self.tools + self.system, marks and _marked(system)))
        head, tokens = key.hexdigest(), self.tools + self.system
        for message, size in zip(self.messages, self.sizes, strict=True):
            tokens += size
            points.append(Point(head + message.id, tokens, marks and _marked(message.native)))
        return points

    def shortened(self, room: int) -> Prompt:
        """Return it with the oldest messages left out until it fits, as servers do that cut in silence.

        System messages stay, and so does the newest message, whatever its size.
        """
        over = self.tokens - room
        positions: list[int] = []
        for place, message in enumerate(self.messages):
            if over > 0 and message.role != "system" and place < len(self.messages) - 1:
                over -= self.sizes[place]
            else:
                positions.append(place)
        messages = tuple(self.messages[place] for place in positions)
        return replace(self, messages=messages, sizes=tuple(self.sizes[place] for place in positions))


class RequestCounter:
    """Counts with one counter, or with that of the model a request names."""

    def __init__(self, counter: Counter | None = None) -> None:
        self._counter = counter
        self._sizes: dict[tuple[str, MessageId], int] = {}
        self._last: dict[str, tuple[list[Any], Transcript]] = {}

    def read(self, name: str, body: Json) -> Prompt:
        """Return a request body as a prompt.

        Raises:
            BadMessages: it holds no list of messages, or one of them is no object.
        """
        format = formats.find(name)
        request = formats.open_body(format, body)
        transcript = self._transcript(format, request.messages)
        counter = self._counter or counter_for(request.model or None, None, name)
        anchor = format.anchor(transcript.messages)  # nothing before it reaches the model
        read = transcript.messages[anchor:]
        sizes = [0] * anchor + [self._size(counter, request.model, message) for message in read]
        tools = counter.tools(formats.tools_text(request.tools, formats.loaded_in(read)))
        system = counter.text(formats.system_text(request.system)) if request.system else 0
        return Prompt(
            format, request, transcript.messages, tuple(sizes), tools, system, counter.per_conversation, counter
        )

    def _transcript(self, format: formats.Format, natives: Sequence[object]) -> Transcript:
        """Read messages; those that open the list as the last request's did are not read again."""
        old, known = self._last.get(format.name, ([], Transcript()))
        pairs = enumerate(zip(old, natives, strict=False))
        same = next((place for place, (was, now) in pairs if was != now), min(len(old), len(natives)))
        transcript = formats.read(format, natives, Transcript(known.messages[:same]))
        self._last[format.name] = (list(natives), transcript)
        return transcript

    def _size(self, counter: Counter, model: str, message: Message) -> int:
        key = (model, message.id)
        size = self._sizes.get(key)
        if size is None:
            size = self._sizes[key] = counter.message(message)
        return size


def broken(prompt: Prompt) -> tuple[Violation, ...]:
    """Return the rules that a request breaks; unlike a conversation at rest it may not end on an open call."""
    rules = [replace(rule, pending=False) if isinstance(rule, Pairing) else rule for rule in prompt.format.rules]
    violations = [violation for rule in rules for violation in rule.broken(prompt.messages)]
    return tuple(sorted(violations, key=lambda violation: violation.at))


def _marked(native: object) -> bool:
    """Tell whether a cache mark stands anywhere in a native value, tool input and schemas left aside."""
    match native:
        case list():
            return any(map(_marked, native))
        case {"cache_control": dict()}:
            return True
        case {"content": list() as content}:
            return any(map(_marked, content))
        case _:
            return False
