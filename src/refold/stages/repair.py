"""Makes a conversation hold the provider's other rules: content, ids, arguments, who opens, where reasoning stands."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from refold._rules.arguments import JsonArguments
from refold._rules.content import Filled
from refold._rules.ids import UniqueIds
from refold._rules.opening import Opening
from refold._rules.order import Order
from refold._rules.pairing import Pairing, PlacedCall, server_pairs
from refold._rules.reasoning import ReasoningBeforeItem, SealedReasoning
from refold.core.edits import Edit, Hide, Rewrite
from refold.core.messages import Message, Note, Part, Reasoning
from refold.core.policy import Pure
from refold.stages._rule_repairs import repairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.needs import Answer
    from refold.core.view import Rule, View, Violation

__all__ = ["Repair"]

SYNTHETIC = Note("synthetic")


class Repair(Pure, frozen=True):
    """Mends what the rules of a view find broken, other than calls and results (that is `CloseCalls`).

    Empty messages and blank words go (`filler` stands in for an empty message of the user that is the last);
    equal ids in one message are told apart, with their results; arguments that are no JSON object become one that
    holds the broken text under `broken`; `opening` is said by the user before an assistant that would speak first;
    reasoning that stands where it is refused goes. A conversation that breaks no rule is left alone.
    """

    grows: ClassVar[bool] = True

    opening: str = "(The conversation continues here.)"
    filler: str = "(no content)"
    broken: str = "broken_arguments"

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the edits that mend what is broken."""
        if not view.broken:
            return ()
        edits: list[Edit] = []
        for rule in view.rules:  # each sees what those before it did, so that two may rewrite one part
            made = list(self._mended(rule, view))
            edits.extend(made)
            view = view.after(made)
        first = next((message for message in view.messages if message.role != "system"), None)
        if first is not None and first.role == "assistant" and any(_user_first(rule) for rule in view.rules):
            edits.append(view.insert("user", self.opening, SYNTHETIC, before=first.id))
        return tuple(edits)

    def _mended(self, rule: Rule, view: View) -> Iterator[Edit]:
        match rule:
            case Pairing():
                yield from _server_halves(rule, view)
            case Filled():
                yield from self._filled(rule, view)
            case UniqueIds():
                yield from _told_apart(rule, view)
            case JsonArguments():
                yield from self._valid(rule, view)
            case Order():
                yield from _ordered(rule, view)
            case Opening():
                yield from _without_last(rule, view)
            case SealedReasoning():
                for message in _at(view, rule.broken(view.messages)):
                    yield from (Rewrite(message.id, at, None) for at in rule.spoiled(message))
            case ReasoningBeforeItem():
                yield from (Hide((view.messages[place].id,)) for place in _stranded(rule, view))
            case _:
                yield from repairs(rule, view)

    def _filled(self, rule: Filled, view: View) -> Iterator[Edit]:
        last = view.messages[-1].id if view.messages else None
        for message in _at(view, rule.broken(view.messages)):
            if not rule.is_empty(message):
                yield from (Rewrite(message.id, part.at, None) for part in rule.blanks(message))
                continue
            if message.role == "user" and message.id == last:
                yield view.insert("user", self.filler, SYNTHETIC, before=message.id)
            yield Hide((message.id,))

    def _valid(self, rule: JsonArguments, view: View) -> Iterator[Edit]:
        for message in _at(view, rule.broken(view.messages)):
            for call in message.calls:
                if not rule.holds(call):
                    arguments = json.dumps({self.broken: call.arguments})
                    yield Rewrite(message.id, call.at, replace(call, arguments=arguments))


def _at(view: View, breaches: tuple[Violation, ...]) -> Iterator[Message]:
    """Yield the message of each breach, each once."""
    for place in sorted({breach.at[0] for breach in breaches}):
        yield view.messages[place]


def _stranded(rule: ReasoningBeforeItem, view: View) -> list[int]:
    """Return where reasoning leads to no item, and reasoning before it, which would be the next to lead to none."""
    found: list[int] = []
    for breach in rule.broken(view.messages):
        place = breach.at[0]
        while place >= 0 and all(isinstance(part, Reasoning) for part in view.messages[place].parts or (None,)):
            found.append(place)
            place -= 1
    return sorted(set(found))


def _user_first(rule: Rule) -> bool:
    return isinstance(rule, Opening) and rule.user_first


def _server_halves(rule: Pairing, view: View) -> Iterator[Edit]:
    """Take out calls that the provider should have answered beside them, and such answers without call."""
    for spot in server_pairs(view.messages)[1] if rule.server else ():
        part = spot.call if isinstance(spot, PlacedCall) else spot.result
        yield Rewrite(view.messages[spot.place].id, part.at, None)
    if rule.first:
        for message in _at(view, tuple(breach for breach in rule.broken(view.messages) if not breach.calls)):
            if message.role == "user":
                yield from _touched(message)


def _told_apart(rule: UniqueIds, view: View) -> Iterator[Edit]:
    """Give the second and later calls of one id, calls without one, and their results, ids of their own."""
    if not rule.broken(view.messages):
        return
    pairing = next((rule for rule in view.rules if isinstance(rule, Pairing)), Pairing())
    batches = pairing.ledger(view.messages).batches
    everywhere = {placed.call.call_id for batch in batches for placed in batch.calls}
    times: Counter[str] = Counter()
    for batch in batches:
        taken = everywhere if rule.everywhere else {placed.call.call_id for placed in batch.calls}
        if not rule.everywhere:
            times.clear()
            if len(taken) == len(batch.calls) and (rule.optional or "" not in taken):
                continue
        results = {id(placed.call): found for placed, found in batch.pairs}
        for placed in batch.calls:
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
            yield Rewrite(view.messages[placed.place].id, placed.call.at, replace(placed.call, call_id=new))
            if found := results.get(id(placed.call)):
                yield Rewrite(view.messages[found.place].id, found.result.at, replace(found.result, call_id=new))


def _ordered(rule: Order, view: View) -> Iterator[Edit]:
    """Have neighbors of one speaker joined, and system messages said where they may be."""
    for message in _at(view, rule.broken(view.messages)):
        if message.role == "system":
            yield view.insert("system", message.parts, SYNTHETIC, before=message.id)
            yield Hide((message.id,))
        else:
            yield from _touched(message)


def _touched(message: Message) -> Iterator[Edit]:
    """Rewrite a part as itself: an edited message is put in order, and joined to its neighbor, when it is written."""
    part: Part | None = next((part for part in message.parts if part.at and not isinstance(part, Reasoning)), None)
    if part is not None:
        yield Rewrite(message.id, part.at, part)


def _without_last(rule: Opening, view: View) -> Iterator[Edit]:
    last = view.messages[-1] if view.messages else None
    if last is not None and last.note is not None and last.role == "assistant" and not rule.assistant_last:
        yield Hide((last.id,))
