"""Makes every call have its result and every result its call again, with marked partners or by hiding (N16, V07)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from refold._rules.pairing import Batch, CallResults, Pairing, PlacedCall, PlacedResult
from refold.core.edits import Edit, Hide, Rewrite
from refold.core.messages import (
    Message,
    Note,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.policy import Pure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from refold.core.messages import MessageId
    from refold.core.needs import Answer
    from refold.core.view import View

__all__ = ["CloseCalls"]

SYNTHETIC = Note("synthetic")
UNKNOWN_TOOL = "unknown_tool"  # providers take only letters, digits, - and _ in a name
INVENTED = ("function", "custom")  # kinds of calls that can be made up: the others say what was done and where
PLACEHOLDER = re.compile(
    r"\s*\[[^\]\n]{0,200}(unavailable|cleared|compacted|removed|no response)[^\]\n]{0,200}\]\s*", re.I
)


class CloseCalls(Pure, frozen=True):
    """A call without result gets a marked one, a result without call a marked call; or both halves are hidden.

    Of two results for one call the first stays, or the second where the first is a placeholder. A result that stands
    too late is moved next to its call. `{tool}` in `call` is the tool's name. `hide` takes a lone half away instead,
    unless it shares its message with signed reasoning. `pending`: calls at the very end await their results and are
    left alone. `acknowledge`: words of an assistant message after a conversation that ends on a result (V07).
    """

    grows: ClassVar[bool] = True

    result: str = "[Tool result unavailable - conversation was compacted]"  # N16
    call: str = "[Tool call for {tool} - conversation was compacted]"  # N16
    hide: bool = False
    pending: bool = True
    acknowledge: str = ""

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the edits that close every call."""
        pairing = next((rule for rule in view.rules if isinstance(rule, Pairing)), None)
        pairing = pairing or Pairing(together=view.traits.results_together)
        ledger = pairing.ledger(view.messages)
        edits: tuple[Edit, ...] = ()
        if not ledger.whole:
            work = _Work(self, view, pairing, ledger)
            work.settle_doubles()
            for batch in ledger.batches:
                work.close(batch)
            for found in work.orphans:
                work.adopt(found)
            edits = work.finished()
        last = view.messages[-1] if view.messages else None
        if self.acknowledge and last is not None and last.role == "tool" and view.traits.assistant_last:
            edits = (*edits, view.insert("assistant", self.acknowledge, SYNTHETIC, salt=len(edits)))
        return edits


class _Work:
    """The edits of one run in the making."""

    def __init__(self, stage: CloseCalls, view: View, pairing: Pairing, ledger: CallResults) -> None:
        self.stage, self.view, self.pairing, self.ledger = stage, view, pairing, ledger
        self.dropped: dict[int, list[Part]] = {}  # parts to take out of a message, by position
        self.added: list[Edit] = []
        self.orphans = list(ledger.orphans)
        self.late = {id(placed.call): found for placed, found in ledger.late}
        self.said: dict[str, ToolCall] | None = None
        self.around: dict[int, Batch] | None = None

    def settle_doubles(self) -> None:
        """Drop second results, or keep them in place of a placeholder; one that comes in a later turn is adopted."""
        replaced: set[int] = set()
        ends = {id(found.result): batch.stop for batch in self.ledger.batches for _, found in batch.pairs}
        for kept, found in self.ledger.twice:
            near = found.place < ends.get(id(kept.result), 0)
            if id(kept.result) in replaced:
                self._drop(found)
            elif near and _placeholder(kept.result) and not _placeholder(found.result):
                self._drop(kept)
                replaced.add(id(kept.result))
            elif near or found.result.text == kept.result.text or _placeholder(found.result):
                self._drop(found)
            else:
                self.orphans.append(found)

    def close(self, batch: Batch) -> None:
        """Give the open calls of a batch their results: late ones moved here, or marked ones."""
        waiting = {id(placed.call) for placed in self.ledger.pending} if self.stage.pending else set()
        results: list[ToolResult] = []
        for placed in batch.open:
            late = self.late.get(id(placed.call))
            if late is not None:
                self._drop(late)
                results.append(replace(_detached(late.result), kind=placed.call.kind))
            elif self.pairing.anywhere and _again(batch, placed):
                self._drop(placed)
            elif (unnamed := self._without_id(batch, call := self._with_id(placed))) is not None:
                self._drop(unnamed)
                self.orphans.remove(unnamed)
                results.append(replace(_detached(unnamed.result), call_id=call.call_id))
            elif id(placed.call) in waiting:
                continue
            elif self.stage.hide and not _sealed(self.view.messages[placed.place]):
                self._drop(placed)
            else:
                results.append(self._synthetic(call))
        if results:
            self._answer(batch, results)

    def adopt(self, found: PlacedResult) -> None:
        """Give a result without call a marked call before it, or take it away."""
        message = self.view.messages[found.place]
        kind = found.result.kind
        made = kind in INVENTED or not self.pairing.anywhere
        if self.stage.hide or found.result.server or not made or _marked(message, self.stage.result):
            self._drop(found)
            return
        call = self._call_for(found.result)
        if not found.result.call_id and not (self.pairing.together and found.result.name):
            call = replace(call, call_id=f"call_{message.id.rpartition(':')[2]}")  # pairs are made by id here
            self._drop(found)
            result = replace(_detached(found.result), call_id=call.call_id)
            self._insert("assistant", [Text(self.stage.call.replace("{tool}", call.name)), call], message.id)
            self._insert("tool", [result], message.id)
            return
        batch = self._batch_around(found.place)
        home = batch.start if batch is not None and self.pairing.together else found.place
        before = self.view.messages[home - 1] if home else None
        if self.pairing.together and before is not None and before.role == "assistant" and _sealed(before):
            text = f"[Result of {call.name}]\n{found.result.text}"  # a call more would change a signed message
            self.added.append(Rewrite(message.id, found.result.at, Text(text)))
            return
        parts: list[Part] = [Text(self.stage.call.replace("{tool}", call.name)), call]
        if batch is None or self.pairing.together:
            self._insert("assistant", parts, self._id(home))
            return
        end = self._end(batch)
        if found.place >= end and found.result.kind == call.kind:
            self._insert("assistant", parts, message.id)
        else:
            self._drop(found)
            self._insert("assistant", parts, self._id(end))
            self._insert("tool", [replace(_detached(found.result), kind=call.kind)], self._id(end))

    def finished(self) -> tuple[Edit, ...]:
        """Return all edits: additions, then what is taken out."""
        taken: list[Edit] = []
        for place, parts in sorted(self.dropped.items()):
            taken.extend(_without(self.view, self.view.messages[place], parts))
        return (*self.added, *taken)

    def _answer(self, batch: Batch, results: list[ToolResult]) -> None:
        """Put results where the batch's results stand: in their message where they share one, else after the last."""
        stays = self.pairing.together and any(found.place == batch.start for _, found in batch.pairs)
        home = self.view.messages[batch.start] if stays else None
        at = home.parts[-1].at if home is not None and home.native is not None else ()
        if home is not None and len(at) > 1 and isinstance(at[1], int):
            end = max(part.at[1] for part in home.parts if len(part.at) > 1 and isinstance(part.at[1], int))
            self.added += [Rewrite(home.id, (at[0], end + number), result) for number, result in enumerate(results, 1)]
        elif self.pairing.together:
            self._insert("tool", results, self._id(batch.start))
        else:
            for result in results:
                self._insert("tool", [result], self._id(self._end(batch)))

    def _with_id(self, placed: PlacedCall) -> ToolCall:
        """Return a call, with an id of ours where its id is empty (some servers send that in place of none)."""
        call, message = placed.call, self.view.messages[placed.place]
        if call.call_id or call.at[:1] != ("tool_calls",):
            return call
        number = "_".join(map(str, call.at[1:2]))
        call = replace(call, call_id=f"call_{message.id.rpartition(':')[2]}_{number}")
        self.added.append(Rewrite(message.id, call.at, call))
        return call

    def _without_id(self, batch: Batch, call: ToolCall) -> PlacedResult | None:
        """Return the first result of a batch that has no id, for a call that has one: servers that pair by order."""
        if not call.call_id:
            return None
        fitting = (
            found
            for found in self.orphans
            if not found.result.call_id
            and found.result.name in ("", call.name)
            and batch.start <= found.place < batch.stop
        )
        return next(fitting, None)

    def _end(self, batch: Batch) -> int:
        """Return the position after the last result that a batch has in place."""
        if self.pairing.anywhere:
            return batch.stop
        return max((found.place + 1 for _, found in batch.pairs), default=batch.start)

    def _batch_around(self, place: int) -> Batch | None:
        if self.around is None:
            self.around = {at: batch for batch in self.ledger.batches for at in range(batch.start, batch.stop)}
        return self.around.get(place)

    def _id(self, place: int) -> MessageId | None:
        return self.view.messages[place].id if place < len(self.view.messages) else None

    def _synthetic(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.call_id, (Text(self.stage.result),), call.name, kind=call.kind)

    def _call_for(self, result: ToolResult) -> ToolCall:
        """Return a call for a result: the one it answered once, as far as that is known, without its arguments."""
        if self.said is None:
            messages = self.view.transcript.messages
            self.said = {call.call_id: call for message in messages for call in message.calls}
        known = self.said.get(result.call_id) if result.call_id else None
        name = known.name if known is not None else result.name or UNKNOWN_TOOL
        kind = result.kind if result.kind in INVENTED else "function"
        return ToolCall(result.call_id, name, "" if kind == "custom" else "{}", kind)

    def _drop(self, spot: PlacedCall | PlacedResult) -> None:
        part = spot.call if isinstance(spot, PlacedCall) else spot.result
        self.dropped.setdefault(spot.place, []).append(part)

    def _insert(self, role: Role, parts: Iterable[Part], before: MessageId | None) -> None:
        placed = tuple(
            replace(part, at=("content", number)) for number, part in enumerate(parts)
        )  # told apart by paths
        self.added.append(self.view.insert(role, placed, SYNTHETIC, before=before, salt=len(self.added)))


def _without(view: View, message: Message, parts: list[Part]) -> list[Edit]:
    """Return the edits that take parts out of a message, which goes as a whole where nothing else is in it."""
    rest = [part for part in message.parts if not any(part is gone for gone in parts)]
    if not any(
        not isinstance(part, Reasoning) and not (isinstance(part, Text) and not part.text.strip()) for part in rest
    ):
        return [Hide((message.id,))]
    if all(part.at for part in parts):
        return [Rewrite(message.id, part.at, None) for part in parts]
    return [view.insert(message.role, rest, message.note or SYNTHETIC, before=message.id), Hide((message.id,))]


def _again(batch: Batch, placed: PlacedCall) -> bool:
    """Tell whether a call is an answered call of its batch once more."""
    call = placed.call
    return any(
        (one.call_id, one.name, one.arguments) == (call.call_id, call.name, call.arguments)
        for (_, one), _ in batch.pairs
    )


def _detached(result: ToolResult) -> ToolResult:
    """Return a result without its addresses, to be written elsewhere."""
    return replace(result, content=tuple(replace(part, at=()) for part in result.content), at=())


def _placeholder(result: ToolResult) -> bool:
    return PLACEHOLDER.fullmatch(result.text) is not None


def _marked(message: Message, marker: str) -> bool:
    """Tell whether a message holds nothing but results that an earlier repair put there."""
    return all(isinstance(part, ToolResult) and (part.text == marker or _placeholder(part)) for part in message.parts)


def _sealed(message: Message) -> bool:
    return any(isinstance(part, Reasoning) and part.sealed for part in message.parts)
