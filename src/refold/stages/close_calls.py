"""Makes every call have its result and every result its call again, with marked partners or by hiding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from refold._rules.call_index import CallGroup, CallIndex, PlacedCall, PlacedResult
from refold._rules.pairing import GroupPairing, IdPairing, Pairing
from refold.core._speakers import is_turn
from refold.core.edits import Edit, Hide, Rewrite
from refold.core.messages import (
    OLLAMA,
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
INVENTED = ("function", "custom", OLLAMA)  # kinds of calls that can be made up: the others say what was done and where
PLACEHOLDER = re.compile(
    r"\s*\[[^\]\n]{0,200}(unavailable|cleared|compacted|removed|no res(?:ponse|ult))[^\]\n]{0,200}\]\s*", re.I
)


class CloseCalls(Pure, frozen=True):  # N16, V07
    """Give a call without result a marked result and a result without call a marked call, or hide such a half.

    Of two results for one call the first stays, or the second if the first is a placeholder. A result at a later
    position is moved next to its call. `{tool}` in `call` is the tool's name. `hide` removes a lone half instead,
    unless reasoning belongs to it. `unanswered` stands in place of `result` where the conversation itself has no result
    before the user's next turn: the user has cut in, and nothing was lost. `pending`: calls at the very end still await
    their results and are left alone. `acknowledge`: the text of an assistant message after a conversation that ends
    with a result and awaits none.
    """

    grows: ClassVar[bool] = True

    result: str = "[Tool result unavailable - conversation was compacted]"  # N16
    call: str = "[Tool call for {tool} - conversation was compacted]"  # N16
    hide: bool = False
    pending: bool = True
    acknowledge: str = ""
    unanswered: str = ""

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the edits that close every call."""
        pairing = next((rule for rule in view.rules if isinstance(rule, Pairing)), None)
        pairing = pairing or GroupPairing(together=view.traits.results_together)
        index = pairing.index(view.messages)
        edits: tuple[Edit, ...] = ()
        if not index.complete:
            work = _Work(self, view, pairing, index)
            work.settle_duplicates()
            for group in index.groups:
                work.close_group(group)
            for orphan in work.orphans:
                work.close_orphan(orphan)
            edits = work.finished()
        last = view.messages[-1] if view.messages else None
        waits = self.pending and index.pending  # the results of a group that is not complete end nothing
        if self.acknowledge and not waits and last is not None and last.role == "tool" and view.traits.assistant_last:
            edits = (*edits, view.insert("assistant", self.acknowledge, SYNTHETIC, salt=len(edits)))
        return edits


class _Work:
    """The edits of one run in the making."""

    def __init__(self, stage: CloseCalls, view: View, pairing: Pairing, index: CallIndex) -> None:
        self.stage, self.view, self.index = stage, view, index
        self.by_id = isinstance(pairing, IdPairing)  # a result may stand anywhere behind its call
        self.together = isinstance(pairing, GroupPairing) and pairing.together  # results of a group share a message
        self.dropped: dict[int, list[Part]] = {}  # parts to take out of a message, by position
        self.added: list[Edit] = []
        self.orphans = list(index.orphans)
        self.late = {id(placed.call): result for placed, result in index.late}
        self.results: set[str] | None = None  # the ids that results in the conversation have
        self.known_calls: dict[str, ToolCall] | None = None
        self.groups_by_position: dict[int, CallGroup] | None = None

    def settle_duplicates(self) -> None:
        """Drop second results, or keep them in place of a placeholder; one that comes in a later turn is adopted."""
        replaced: set[int] = set()
        ends = {id(result.result): group.stop for group in self.index.groups for _, result in group.pairs}
        for first, second in self.index.duplicates:
            near = second.position < ends.get(id(first.result), 0)
            if id(first.result) in replaced:
                self._drop(second)
            elif near and _placeholder(first.result) and not _placeholder(second.result):
                self._drop(first)
                replaced.add(id(first.result))
            elif near or second.result.text == first.result.text or _placeholder(second.result):
                self._drop(second)
            else:
                self.orphans.append(second)

    def close_group(self, group: CallGroup) -> None:
        """Give the open calls of a group their results: late ones moved here, or marked ones."""
        waiting = {id(placed.call) for placed in self.index.pending} if self.stage.pending else set()
        results: list[ToolResult] = []
        for placed in group.open:
            late = self.late.get(id(placed.call))
            if late is not None:
                self._drop(late)
                results.append(replace(_detached(late.result), kind=placed.call.kind))
            elif self.by_id and _again(group, placed):
                self._drop(placed)
            elif (unnamed := self._without_id(group, call := self._with_id(placed))) is not None:
                self._drop(unnamed)
                self.orphans.remove(unnamed)
                results.append(replace(_detached(unnamed.result), call_id=call.call_id))
            elif id(placed.call) in waiting:
                continue
            elif self.stage.hide and not self._is_bound_to_reasoning(placed.position):
                self._drop(placed)
            else:
                text = self.stage.unanswered if self._is_unanswered(placed) else ""
                content = (Text(text or self.stage.result),)
                results.append(ToolResult(call.call_id, content, call.name, kind=call.kind))
        if results:
            self._answer(group, results)

    def close_orphan(self, orphan: PlacedResult) -> None:
        """Give a result without call a marked call before it, or take it away."""
        message = self.view.messages[orphan.position]
        kind = orphan.result.kind
        can_be_invented = kind in INVENTED or not self.by_id
        if self.stage.hide or orphan.result.server or not can_be_invented or _marked(message, self.stage.result):
            self._drop(orphan)
            return
        call = self._call_for(orphan.result)
        by_name = self.together or kind == OLLAMA
        named = orphan.result.call_id or (by_name and orphan.result.name)
        if not named or self._comes_again_stored(orphan):
            call = replace(call, call_id=f"call_{message.id.rpartition(':')[2]}")  # pairs are made by id here
            self._drop(orphan)
            result = replace(_detached(orphan.result), call_id=call.call_id)
            self._insert("assistant", [Text(self.stage.call.replace("{tool}", call.name)), call], message.id)
            self._insert("tool", [result], message.id)
            return
        group = self._group_around(orphan.position)
        home = group.start if group is not None and self.together else orphan.position
        before = self.view.messages[home - 1] if home else None
        if self.together and before is not None and before.role == "assistant" and _sealed(before):
            text = f"[Result of {call.name}]\n{orphan.result.text}"  # a call more would change a signed message
            self.added.append(Rewrite(message.id, orphan.result.at, Text(text)))
            return
        parts: list[Part] = [Text(self.stage.call.replace("{tool}", call.name)), call]
        if group is None or self.together:
            self._insert("assistant", parts, self._id(home))
            return
        end = self._end(group)
        if orphan.position >= end and orphan.result.kind == call.kind:
            self._insert("assistant", parts, message.id)
        else:
            self._drop(orphan)
            self._insert("assistant", parts, self._id(end))
            self._insert("tool", [replace(_detached(orphan.result), kind=call.kind)], self._id(end))

    def finished(self) -> tuple[Edit, ...]:
        """Return all edits: additions, then what is taken out."""
        taken: list[Edit] = []
        for position, parts in sorted(self.dropped.items()):
            taken.extend(_without(self.view, self.view.messages[position], parts))
        return (*self.added, *taken)

    def _answer(self, group: CallGroup, results: list[ToolResult]) -> None:
        """Put results where the group's results stand: in their message where they share one, else after the last."""
        stays = self.together and any(result.position == group.start for _, result in group.pairs)
        home = self.view.messages[group.start] if stays else None
        at = home.parts[-1].at if home is not None and home.native is not None else ()
        if home is not None and len(at) > 1 and isinstance(at[1], int):
            end = max(part.at[1] for part in home.parts if len(part.at) > 1 and isinstance(part.at[1], int))
            self.added += [Rewrite(home.id, (at[0], end + number), result) for number, result in enumerate(results, 1)]
        elif self.together:
            self._insert("tool", results, self._id(group.start))
        else:
            for result in results:
                self._insert("tool", [result], self._id(self._end(group)))

    def _with_id(self, placed: PlacedCall) -> ToolCall:
        """Return a call, with an id of ours where its id is empty (some servers send that in place of none)."""
        call, message = placed.call, self.view.messages[placed.position]
        if call.call_id or call.at[:1] != ("tool_calls",) or call.kind == OLLAMA:
            return call
        number = "_".join(map(str, call.at[1:2]))
        call = replace(call, call_id=f"call_{message.id.rpartition(':')[2]}_{number}")
        self.added.append(Rewrite(message.id, call.at, call))
        return call

    def _without_id(self, group: CallGroup, call: ToolCall) -> PlacedResult | None:
        """Return the first result of a group that has no id, for a call that has one: servers that pair by order."""
        if not call.call_id:
            return None
        fitting = (
            orphan
            for orphan in self.orphans
            if not orphan.result.call_id
            and orphan.result.name in ("", call.name)
            and group.start <= orphan.position < group.stop
        )
        return next(fitting, None)

    def _end(self, group: CallGroup) -> int:
        """Return the position after the last result that a group has in place."""
        if self.by_id:
            return group.stop
        return max((result.position + 1 for _, result in group.pairs), default=group.start)

    def _group_around(self, position: int) -> CallGroup | None:
        if self.groups_by_position is None:
            self.groups_by_position = {
                at: group for group in self.index.groups for at in range(group.start, group.stop)
            }
        return self.groups_by_position.get(position)

    def _id(self, position: int) -> MessageId | None:
        return self.view.messages[position].id if position < len(self.view.messages) else None

    def _call_for(self, result: ToolResult) -> ToolCall:
        """Return a call for a result: the one it answered once, as far as that is known, without its arguments."""
        if self.known_calls is None:
            messages = self.view.transcript.messages
            self.known_calls = {call.call_id: call for message in messages for call in message.calls}
        known = self.known_calls.get(result.call_id) if result.call_id else None
        name = known.name if known is not None else result.name or UNKNOWN_TOOL
        kind = result.kind if result.kind in INVENTED else "function"
        return ToolCall(result.call_id, name, "" if kind == "custom" else "{}", kind)

    def _is_unanswered(self, placed: PlacedCall) -> bool:
        """Tell whether the user spoke next in the conversation itself, and no result of a call is anywhere in it."""
        transcript = self.view.transcript
        at = transcript.index.get(self.view.messages[placed.position].id, -1)
        following = (message for message in transcript.messages[at + 1 :] if not message.results or is_turn(message))
        if self.results is None:
            self.results = {result.call_id for message in transcript.messages for result in message.results}
        after = next(following, None)
        return at >= 0 and placed.call.call_id not in self.results and after is not None and is_turn(after)

    def _is_bound_to_reasoning(self, position: int) -> bool:
        """Tell whether a message holds signed reasoning, or stands behind reasoning that may not be left alone."""
        led_to = any(second == position for _, second in self.view.constraints.pairs)
        return led_to or _sealed(self.view.messages[position])

    def _comes_again_stored(self, orphan: PlacedResult) -> bool:
        """Tell whether a later result with the id of an orphan answers a call that the provider stores.

        A call of that id in the list would take this result too, as its second one.
        """
        return any(
            (stored.result.call_id, stored.result.kind) == (orphan.result.call_id, orphan.result.kind)
            for stored in self.index.stored
            if stored.position > orphan.position
        )

    def _drop(self, placed: PlacedCall | PlacedResult) -> None:
        part = placed.call if isinstance(placed, PlacedCall) else placed.result
        self.dropped.setdefault(placed.position, []).append(part)

    def _insert(self, role: Role, parts: Iterable[Part], before: MessageId | None) -> None:
        placed = tuple(
            replace(part, at=("content", number)) for number, part in enumerate(parts)
        )  # told apart by paths
        self.added.append(self.view.insert(role, placed, SYNTHETIC, before=before, salt=len(self.added)))


def _without(view: View, message: Message, parts: list[Part]) -> list[Edit]:
    """Return the edits that take parts out of a message, which goes as a whole where nothing else is in it."""
    rest = [part for part in message.parts if not any(part is removed for removed in parts)]
    if not any(
        not isinstance(part, Reasoning) and not (isinstance(part, Text) and not part.text.strip()) for part in rest
    ):
        return [Hide((message.id,))]
    if all(part.at for part in parts):
        return [Rewrite(message.id, part.at, None) for part in parts]
    return [view.insert(message.role, rest, message.note or SYNTHETIC, before=message.id), Hide((message.id,))]


def _again(group: CallGroup, placed: PlacedCall) -> bool:
    """Tell whether a call repeats an answered call of its group."""
    call = placed.call
    return any(
        (one.call_id, one.name, one.arguments) == (call.call_id, call.name, call.arguments)
        for (_, one), _ in group.pairs
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
