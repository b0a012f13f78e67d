"""Edits that repair breaches of the rules about form, spelling, cache marks and the order of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._rules.cache_marks import CacheMarks
from refold._rules.form import WellFormed
from refold._rules.items import Approvals, ItemIds
from refold._rules.prefill import Prefill
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

__all__ = ["repairs"]

BETWEEN = "(continue)"  # the user's word between two messages of the model that cannot be joined


def repairs(rule: Rule, view: View) -> Iterator[Edit]:
    """Yield the edits for one rule; nothing for a rule of another kind."""
    match rule:
        case WellFormed():
            yield from _formed(rule, view)
        case Spelled():
            yield from _spelled(rule, view)
        case CacheMarks():
            for place, at in rule.surplus(view.messages):
                yield Rewrite(view.messages[place].id, at, None)
        case Prefill():
            for breach in rule.broken(view.messages):
                message = view.messages[breach.at[0]]
                if words := rule.trailing(message):
                    yield Rewrite(message.id, words.at, replace(words, text=words.text.rstrip()))
        case ItemIds():
            for place, _, again in rule.wrong(view.messages):
                message = view.messages[place]
                yield Hide((message.id,)) if again else Rewrite(message.id, ("id",), None)
        case Approvals():
            yield from (Hide(breach.ids) for breach in rule.broken(view.messages))
        case CallsAfterUser():
            yield from _parted(rule, view)
        case _:
            pass


def _formed(rule: WellFormed, view: View) -> Iterator[Edit]:
    """Rewrite or remove what is flawed; a message of which nothing would be left goes as a whole."""
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
            made = rule.id_for(old)
            number = 1
            while made in taken:  # two ids that differ in what is not accepted alone
                number += 1
                made = rule.id_for(f"{number}_{old}")
            ids[old] = made
            taken.add(made)
    for message, part in parts:
        name = part.name if rule.valid_name(part.name) else rule.name_for(part.name)
        id = ids.get(part.call_id, part.call_id)
        if (id, name) != (part.call_id, part.name):
            yield Rewrite(message.id, part.at, replace(part, call_id=id, name=name))


def _parted(rule: CallsAfterUser, view: View) -> Iterator[Edit]:
    """Have two messages of the model joined, or the user say a word between them where a signature seals both."""
    for number, breach in enumerate(rule.broken(view.messages)):
        place = breach.at[0]
        pair = (view.messages[place - 1], view.messages[place])
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
