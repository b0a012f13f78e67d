"""Protects provider state from edits: parts that carry state stay, and nothing is inserted before an anchor.

Theory of operation. Stages shorten a view without knowledge of such parts. `View.after` passes all edits through
`guarded`, so that the guarantee is implemented once for all stages:

- A message that carries state is not hidden: its other parts leave, and the part stays at its place, byte for byte. A
  result that holds such a part keeps it alone, and its call stays with it.
- A rewrite or a removal at, inside or around such a part is void; a result that is rewritten keeps the part beside its
  new words.
- A part that loads tools is treated alike while a message that stays calls one of them, unless a later part loads it
  too.
- A message of ours that would stand before the anchor goes behind it.
- Of several parts that hold the same thing only the newest stays.
- Messages that leave only together (`ConstrainingRule`) leave together or stay: reasoning and the item it led to, a
  call and an answer that came much later. Those that do not leave at all stay.
- A message of ours for the end of the list goes before what must remain its end.
- An item that is sent once more, with the same id, may leave: providers refuse it. So may an answer to a request for
  approval that is not there, unless the provider may keep the request (`_approvals`).

What stands before the anchor is no part of a view at all: `request_for` leaves it out, and a plan that changes anything
hides it. Where messages stand before an anchor in a view, the provider reads them as the rest of what it has replaced:
they stay as they are, with the anchor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold.core._json import mapping
from refold.core.edits import Edit, Hide, Insert, Rewrite, fold
from refold.core.messages import Message, ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from refold.core.messages import MessageId, Opaque, Part, Path
    from refold.core.view import View

__all__ = ["anchor_in", "guarded", "remains", "repeated_items"]


def anchor_in(messages: Sequence[Message]) -> int:
    """Return the position of the newest message with an anchor, 0 where there is none."""
    return next((at for at in range(len(messages) - 1, 0, -1) if messages[at].opaques and messages[at].anchor), 0)


@memoized
def remains(message: Message) -> Message | None:
    """Return what stays of a message that is hidden: its parts that carry state; None where it carries none."""
    stays = _Stays(part for part in message.opaques if part.state)
    parts = [rest for part in message.parts if (rest := stays.of(part)) is not None] if stays.paths else []
    return replace(message, parts=tuple(parts)) if parts else None


def guarded(view: View, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits as they may be done: none takes state away, parts what belongs together, or changes an end."""
    messages, constraints = view.messages, view.constraints
    carriers = {message.id: message for message in messages if message.opaques and message.id not in view.repeated}
    hidden = {id for edit in edits if isinstance(edit, Hide) for id in edit.messages}
    bound = bool(carriers or constraints.pairs or constraints.tail is not None)
    if not bound and (not view.stuck or (not constraints.head and view.stuck.isdisjoint(hidden))):
        return tuple(edits)
    hidden -= view.stuck
    stays = _required(messages, carriers, edits, hidden)
    while separated := _separated(messages, constraints.pairs, hidden, stays):
        hidden -= separated
        stays = _required(messages, carriers, tuple(_hiding(edits, hidden)), hidden)
    head = {message.id for message in messages[: view.head]}
    left = {message.id for message in messages[: view.retained]}
    end, order = _ends(view)
    allowed: list[Edit] = []
    for edit in _hiding(edits, hidden):
        match edit:
            case Insert(before=before) if before in head:
                allowed.append(replace(edit, before=view.border))
            case Insert(before=None, message=message):
                position = order if message.results else end  # an answer to a call that awaits one is that call's end
                allowed.append(replace(edit, before=position) if position else edit)
            case Rewrite(message=id) if id in left:
                pass  # as the provider left it
            case Rewrite(message=id) if id in stays and id not in hidden:
                allowed += stays[id].rewritten(edit)
            case Rewrite(message=id) if id in stays:
                pass  # of a message of which nothing but the state stays
            case Hide(messages=ids) if not stays.keys().isdisjoint(ids):
                removable = tuple(id for id in ids if id not in stays)
                allowed += [Hide(removable)] if removable else []
            case _:
                allowed.append(edit)
    for message in messages:
        if message.id in hidden and message.id in stays:
            allowed += stays[message.id].alone(message)
    return tuple(allowed)


def repeated_items(messages: Iterable[Message]) -> frozenset[MessageId]:
    """Return the messages that are an earlier one once more: the same native object, with an id of its own."""
    seen: dict[str, Any] = {}
    repeated: set[MessageId] = set()
    for message in messages:
        native = message.native
        id = mapping(native).get("id")
        if isinstance(id, str) and seen.setdefault(id, native) is not native and seen[id] == native:
            repeated.add(message.id)
    return frozenset(repeated)


def _ends(view: View) -> tuple[MessageId | None, MessageId | None]:
    """Return the first message of what must remain the end, and the last one where nothing may stand behind it."""
    messages, tail = view.messages, view.constraints.tail
    if tail is None:
        return None, None
    ordered = any(part.last for part in messages[-1].opaques)
    return messages[tail].id, messages[-1].id if ordered else None


def _hiding(edits: Sequence[Edit], hidden: set[MessageId]) -> Iterator[Edit]:
    """Yield the edits, those that hide messages as far as these may be hidden."""
    for edit in edits:
        if not isinstance(edit, Hide) or hidden.issuperset(edit.messages):
            yield edit
        elif allowed := tuple(id for id in edit.messages if id in hidden):
            yield Hide(allowed)


def _separated(
    messages: Sequence[Message],
    pairs: Sequence[tuple[int, int]],
    hidden: set[MessageId],
    stays: Container[MessageId],
) -> set[MessageId]:
    """Return the hidden messages of which another stays that they may not leave alone."""
    parted: set[MessageId] = set()
    for pair in pairs if hidden else ():
        first, second = (messages[position].id for position in pair)
        leaving = [id for id in (first, second) if id in hidden and id not in stays]
        if len(leaving) == 1:
            parted.update(leaving)
    return parted


class _Stays:
    """What must stay of one message: the paths of parts with state, and the ids of calls whose result holds one."""

    def __init__(self, parts: Iterable[Opaque] = ()) -> None:
        self.paths: dict[Path, Opaque] = {part.at: part for part in parts}
        self.calls: set[str] = set()

    def of(self, part: Part) -> Part | None:
        """Return what must stay of a part, or None."""
        match part:
            case ToolCall(call_id=id, name=name) if (id or name) in self.calls:
                return part
            case ToolResult(content=content):
                inside = tuple(inner for inner in content if inner.at in self.paths)
                return replace(part, content=inside) if inside else None
            case _:
                return part if part.at in self.paths else None

    def alone(self, message: Message) -> Iterator[Edit]:
        """Yield the edits that leave nothing of a message but what must stay."""
        for part in message.parts:
            rest = self.of(part)
            if rest is None:
                yield Rewrite(message.id, part.at, None)
            elif isinstance(part, ToolResult):
                for inner in part.content:
                    if inner.at not in self.paths:
                        yield Rewrite(message.id, inner.at, None)

    def rewritten(self, edit: Rewrite) -> Iterator[Edit]:
        """Yield an edit of a message that stays, as far as it leaves the parts with state where they are."""
        at, to = edit.at, edit.to
        inside = any(at[: len(path)] == path for path in self.paths)
        around = {path for path in self.paths if path[: len(at)] == at}
        if inside or (around and not isinstance(to, ToolResult)):
            return
        if isinstance(to, ToolResult) and around:
            missing = tuple(
                self.paths[path]
                for path in self.paths
                if path in around and not any(inner.at == path for inner in to.content)
            )
            yield replace(edit, to=replace(to, content=(*to.content, *missing))) if missing else edit
        else:
            yield edit


def _required(
    messages: Sequence[Message], carriers: dict[MessageId, Message], edits: Sequence[Edit], hidden: set[MessageId]
) -> dict[MessageId, _Stays]:
    """Return what must stay of each message that carries state, or holds the call of a result that does."""
    if not carriers:
        return {}
    needed = _loaded(messages, edits) if any(part.loads for one in carriers.values() for part in one.opaques) else set()
    stays: dict[MessageId, _Stays] = {}
    superseded: set[tuple[str, str]] = set()  # what newer parts hold
    for message in reversed(carriers.values()):
        parts = [
            part
            for part in message.opaques
            if (part.state and (part.kind, part.holds) not in superseded) or (message.id, part.at) in needed
        ]
        superseded |= {(part.kind, part.holds) for part in message.opaques if part.holds}
        if parts:
            stays[message.id] = _Stays(parts)
    calls: dict[str, Message] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCall(call_id=id, name=name):
                    calls[id or name] = message
                case ToolResult(call_id=id, name=name, content=content) if message.id in stays:
                    if (caller := calls.get(id or name)) and any(
                        inner.at in stays[message.id].paths for inner in content
                    ):
                        stays.setdefault(caller.id, _Stays()).calls.add(id or name)
                case _:
                    pass
    return {id: stay for id, stay in stays.items() if stay.paths or id in hidden}


def _loaded(messages: Sequence[Message], edits: Sequence[Edit]) -> set[tuple[MessageId, Path]]:
    """Return the parts that load a tool which a message that stays calls, the newest before its calls."""
    remaining = {message.id for message in fold(messages, [edits])}
    newest: dict[str, tuple[MessageId, Path]] = {}
    needed: set[tuple[MessageId, Path]] = set()
    for message in messages:
        if message.id in remaining:
            needed |= {newest[call.name] for call in message.calls if call.name in newest}
        for part in message.opaques:
            newest |= dict.fromkeys(part.loads, (message.id, part.at))
    return needed
