"""Repairs: edits that correct what a rule reports as a violation.

A repair of calls without result and results without call needs texts that the caller chooses; it is the stage
`CloseCalls`. So do the repairs of content and arguments, which are in the stage `Repair`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._rules.cache_marks import CacheMarks
from refold._rules.call_index import PlacedCall
from refold._rules.form import WellFormed
from refold._rules.ids import UniqueIds
from refold._rules.items import Approvals, ItemIds
from refold._rules.opening import Opening
from refold._rules.order import Order
from refold._rules.pairing import GroupPairing, Pairing, ResultsFirst, ServerPairing
from refold._rules.prefill import Prefill
from refold._rules.reasoning import ReasoningBeforeItem, SealedReasoning
from refold._rules.spelling import Spelled
from refold._rules.turns import CallsAfterUser
from refold.core.edits import Edit, Hide, Rewrite
from refold.core.messages import (
    Message,
    Note,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.view import Rule, View

__all__ = ["SYNTHETIC", "broken_messages", "repairs"]

SYNTHETIC = Note("synthetic")
BETWEEN = "(continue)"  # the user's text between two messages of the model that cannot be joined


def repairs(rule: Rule, view: View) -> Iterator[Edit]:
    """Yield the edits that repair what one rule finds broken in a view; nothing for a rule of another kind."""
    messages = view.messages
    match rule:
        case ServerPairing():
            for half in rule.unpaired(messages):
                part = half.call if isinstance(half, PlacedCall) else half.result
                yield Rewrite(messages[half.position].id, part.at, None)
        case ResultsFirst():
            for message in broken_messages(rule, view):
                yield from _rewritten_as_itself(message)
        case UniqueIds():
            yield from _unique_ids(rule, view)
        case Order():
            yield from _ordered(rule, view)
        case Opening():
            last = messages[-1] if messages else None
            if last is not None and last.note is not None and last.role == "assistant" and not rule.assistant_last:
                yield Hide((last.id,))
        case SealedReasoning():
            for message in broken_messages(rule, view):
                yield from (Rewrite(message.id, at, None) for at in rule.spoiled(message))
        case ReasoningBeforeItem():
            yield from (Hide((messages[position].id,)) for position in _dangling_reasoning(rule, view))
        case WellFormed():
            yield from _well_formed(rule, view)
        case Spelled():
            yield from _spelled(rule, view)
        case CacheMarks():
            yield from (Rewrite(messages[position].id, at, None) for position, at in rule.surplus(messages))
        case Prefill():
            for message in broken_messages(rule, view):
                if text := rule.trailing(message):
                    yield Rewrite(message.id, text.at, replace(text, text=text.text.rstrip()))
        case ItemIds():
            for position, _, repeated in rule.wrong(messages):
                id = messages[position].id
                yield Hide((id,)) if repeated else Rewrite(id, ("id",), None)
        case Approvals():
            yield from (Hide(violation.ids) for violation in rule.broken(messages))
        case CallsAfterUser():
            yield from _joined_or_separated(rule, view)
        case _:
            pass


def broken_messages(rule: Rule, view: View) -> Iterator[Message]:
    """Yield the messages at which a rule is broken, each once, in order."""
    for position in sorted({violation.at[0] for violation in rule.broken(view.messages)}):
        yield view.messages[position]


def _unique_ids(rule: UniqueIds, view: View) -> Iterator[Edit]:
    """Give the second and later calls of one id, calls without one, and their results, ids of their own."""
    if not rule.broken(view.messages):
        return
    pairing: Pairing = next((rule for rule in view.rules if isinstance(rule, Pairing)), GroupPairing())
    groups = pairing.index(view.messages).groups
    everywhere = {placed.call.call_id for group in groups for placed in group.calls}
    times: Counter[str] = Counter()
    for group in groups:
        taken = everywhere if rule.everywhere else {placed.call.call_id for placed in group.calls}
        if not rule.everywhere:
            times.clear()
            if len(taken) == len(group.calls) and (rule.optional or "" not in taken):
                continue
        results = {id(placed.call): result for placed, result in group.pairs}
        for placed in group.calls:
            old = placed.call.call_id
            times[old] += 1
            if rule.optional if not old else times[old] == 1:
                continue
            new = next(
                name
                for number in range(times[old], len(taken) + times[old] + 1)
                if (name := f"{old or 'call'}-{number}") not in taken
            )
            taken.add(new)
            yield Rewrite(view.messages[placed.position].id, placed.call.at, replace(placed.call, call_id=new))
            if (answer := results.get(id(placed.call))) is not None:
                result = replace(answer.result, call_id=new)
                yield Rewrite(view.messages[answer.position].id, answer.result.at, result)


def _ordered(rule: Order, view: View) -> Iterator[Edit]:
    """Have neighbors of one speaker joined, and system messages written where they may stand."""
    for message in broken_messages(rule, view):
        if message.role == "system":
            yield view.insert("system", message.parts, SYNTHETIC, before=message.id)
            yield Hide((message.id,))
        else:
            yield from _rewritten_as_itself(message)


def _rewritten_as_itself(message: Message) -> Iterator[Edit]:
    """Rewrite a part as itself: an edited message is put in order, and joined to its neighbor, when it is written."""
    part: Part | None = next((part for part in message.parts if part.at and not isinstance(part, Reasoning)), None)
    if part is not None:
        yield Rewrite(message.id, part.at, part)


def _dangling_reasoning(rule: ReasoningBeforeItem, view: View) -> list[int]:
    """Return where reasoning leads to no item, and reasoning before it, which would be the next to lead to none."""
    positions: set[int] = set()
    for violation in rule.broken(view.messages):
        position = violation.at[0]
        while position >= 0 and all(isinstance(part, Reasoning) for part in view.messages[position].parts or (None,)):
            positions.add(position)
            position -= 1
    return sorted(positions)


def _well_formed(rule: WellFormed, view: View) -> Iterator[Edit]:
    """Rewrite or remove flawed values; hide a message of which nothing would be left."""
    for message in view.messages:
        flaws = rule.left(message)
        removed = {flaw.at for flaw in flaws if flaw.to is None}
        if removed and all(part.at in removed for part in message.parts):
            yield Hide((message.id,))
        else:
            yield from (Rewrite(message.id, flaw.at, flaw.to) for flaw in flaws)


def _spelled(rule: Spelled, view: View) -> Iterator[Edit]:
    """Write ids and names as the provider accepts them, calls and results alike."""
    if not rule.broken(view.messages):
        return
    parts = [
        (message, part)
        for message in view.messages
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult) and not part.server
    ]
    ids: dict[str, str] = {}
    taken = {part.call_id for _, part in parts if rule.valid_id(part.call_id)}
    for _, part in parts:
        old = part.call_id
        if old not in ids and not rule.valid_id(old):
            new = rule.id_for(old)
            number = 1
            while new in taken:  # two ids that differ in what is not accepted alone
                number += 1
                new = rule.id_for(f"{number}_{old}")
            ids[old] = new
            taken.add(new)
    for message, part in parts:
        name = part.name if rule.valid_name(part.name) else rule.name_for(part.name)
        id = ids.get(part.call_id, part.call_id)
        if (id, name) != (part.call_id, part.name):
            yield Rewrite(message.id, part.at, replace(part, call_id=id, name=name))


def _joined_or_separated(rule: CallsAfterUser, view: View) -> Iterator[Edit]:
    """Have two messages of the model joined, or insert a user message between them where a signature seals both."""
    for number, violation in enumerate(rule.broken(view.messages)):
        position = violation.at[0]
        pair = (view.messages[position - 1], view.messages[position])
        free = next(((message, part) for message in pair for part in message.parts if _unsealed(message, part)), None)
        if free is not None:
            message, part = free
            yield Rewrite(message.id, part.at, part)
        else:
            yield view.insert("user", BETWEEN, Note("synthetic"), before=pair[1].id, salt=number)


def _unsealed(message: Message, part: Part) -> bool:
    """Tell whether a part may be written anew: it is no reasoning, and no signature stands inside it."""
    if isinstance(part, Reasoning) or not part.at:
        return False
    return not any(isinstance(other, Reasoning) and other.at[: len(part.at)] == part.at for other in message.parts)
