"""Where the tokens of a conversation go: by role, kind, tool, file and turn, and the largest messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._compaction.options import Options
from refold._compaction.request import request_for
from refold._compaction.result import counter_name
from refold._condense.call_facts import reads, writes
from refold._inspect import message_labels
from refold.core.budget import Budget
from refold.core.messages import Message, MessageId, ToolCall, ToolResult
from refold.core.transcript import turns
from refold.transcripts import RecordedUsage

if TYPE_CHECKING:
    from refold.core.counting import Counter
    from refold.core.messages import Part
    from refold.core.view import View
    from refold.transcripts import RecordedConversation

__all__ = ["Item", "TokenShare", "TokenTable", "tallied"]

ROOMY = Budget(10**12)  # nothing is planned, so any room will do
EMPTY = Message(MessageId("empty"), "user")


class TokenShare(Struct, frozen=True):
    """A name, its tokens, and how many messages, calls or parts make them up."""

    name: str
    tokens: int
    count: int


class Item(Struct, frozen=True):
    """One large message."""

    position: int
    role: str
    what: str
    tokens: int


class TokenTable(Struct, frozen=True, kw_only=True):
    """All figures on one conversation, in tokens; each list is sorted by size, turns by time.

    `counter` names what counted: a family of docs/counting.md, or the characters of a token. `roles` and `turns` are
    whole messages with their framing; `kinds`, `tools` and `files` are parts of them.
    """

    file: str
    kind: str
    format: str
    model: str | None
    counter: str
    total: int
    system: int
    schemas: int
    messages: int
    calls: int
    roles: list[TokenShare]
    kinds: list[TokenShare]
    tools: list[TokenShare]
    files: list[TokenShare]
    turns: list[TokenShare]
    largest: list[Item]
    reported: list[RecordedUsage]
    notes: tuple[str, ...] = ()


class Sums:
    """Adds up tokens and counts by name."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def add(self, name: str, tokens: int, count: int = 1) -> None:
        """Add tokens to a name."""
        self._tokens[name] = self._tokens.get(name, 0) + tokens
        self._counts[name] = self._counts.get(name, 0) + count

    def shares(self) -> list[TokenShare]:
        """Return all names, largest first."""
        result = [TokenShare(name, tokens, self._counts[name]) for name, tokens in self._tokens.items()]
        return sorted(result, key=lambda share: (-share.tokens, share.name))


def tallied(
    result: RecordedConversation, label: str, *, model: str | None = None, counter: str | None = None, top: int = 10
) -> TokenTable:
    """Count a conversation, by the exact counter of its model unless another is named; `label` is its file."""
    view = request_for(
        result.messages,
        Options(
            format=result.format, budget=ROOMY, model=model or result.model, counter=counter or "exact",
            system=result.system, tools=result.tools,
        ),
    ).view  # fmt: skip
    roles, kinds, tools, files = Sums(), Sums(), Sums(), Sums()
    for message, size in zip(view.messages, view.sizes, strict=True):
        roles.add(message.role, size)
        for part in message.parts:
            tokens = size if len(message.parts) == 1 else _alone(view.counter, part)
            kinds.add(message_labels.kind(part), tokens)
            _add_tool(view, message, part, tokens, tools, files)
    return TokenTable(
        file=label, kind=result.kind, format=result.format, model=result.model,
        counter=counter_name(view.counter), total=view.estimated,
        system=view.overhead.system, schemas=view.overhead.tools, messages=len(view.messages),
        calls=sum(len(message.calls) for message in view.messages),
        roles=roles.shares(), kinds=kinds.shares(), tools=tools.shares(), files=files.shares(), turns=_turns(view),
        largest=_largest(view, top), reported=list(result.usage), notes=result.notes,
    )  # fmt: skip


def _alone(counter: Counter, part: Part) -> int:
    """Return the tokens of a part without what frames a message."""
    return counter.message(replace(EMPTY, parts=(part,))) - counter.message(EMPTY)


def _add_tool(view: View, message: Message, part: Part, tokens: int, tools: Sums, files: Sums) -> None:
    """Add a call, or a result by its call; each call counts once."""
    match part:
        case ToolCall():
            call, count = part, 1
        case ToolResult():
            result = view.call_of(message, part)
            if result is None:
                tools.add(part.name or "(result without call)", tokens, 0)
                return
            call, count = result, 0
        case _:
            return
    tools.add(call.name, tokens, count)
    ref = reads(call)
    paths = (ref.path,) if ref else writes(call)
    for number, path in enumerate(paths):  # several files of one patch: the first has the tokens, so none count twice
        files.add(path, tokens if number == 0 else 0, count)


def _turns(view: View) -> list[TokenShare]:
    """Return the turns in order; what precedes the first is a share of its own."""
    spoken = any(message.role == "user" for message in view.messages)
    result: list[TokenShare] = []
    for number, turn in enumerate(turns(view.messages) if spoken else (), 1):
        about = message_labels.what(view.messages[turn.start], view)
        result.append(TokenShare(f"{number}. {about}", sum(view.sizes[turn.start : turn.stop]), len(turn)))
    before = len(view.messages) - sum(turn.count for turn in result)
    head = [TokenShare("before the first turn", sum(view.sizes[:before]), before)] if before else []
    return [*head, *result]


def _largest(view: View, top: int) -> list[Item]:
    order = sorted(range(len(view.sizes)), key=lambda place: (-view.sizes[place], place))[:top]
    return [
        Item(place, view.messages[place].role, message_labels.what(view.messages[place], view), view.sizes[place])
        for place in order
    ]
