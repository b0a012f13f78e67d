"""Repairs violations of a provider's rules: content, ids, arguments, the first role, the position of reasoning."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from refold._rules.arguments import JsonArguments
from refold._rules.content import Filled
from refold._rules.opening import Opening
from refold._rules.repairs import SYNTHETIC, broken_messages, repairs
from refold.core.edits import Edit, Hide, Rewrite
from refold.core.policy import Pure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.needs import Answer
    from refold.core.view import Rule, View

__all__ = ["Repair"]


class Repair(Pure, frozen=True):
    """Repair violations of the rules of a view, except unpaired calls and results (`CloseCalls`).

    Empty messages and blank texts are removed (`filler` replaces an empty last message of the user); equal ids in one
    message are made different, with their results; arguments that are no JSON object become one that contains the
    broken text under `broken`; `opening` is a user message before an assistant that would be first; reasoning at a
    position where it is rejected is removed. A conversation without violations is left alone.
    """

    grows: ClassVar[bool] = True

    opening: str = "(The conversation continues here.)"
    filler: str = "(no content)"
    broken: str = "broken_arguments"

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the edits that repair what is broken."""
        if not view.broken:
            return ()
        edits: list[Edit] = []
        for rule in view.rules:  # each sees what those before it did, so that two may rewrite one part
            repairing = tuple(self._repairs(rule, view))
            edits.extend(repairing)
            view = view.after(repairing)
        first = next((message for message in view.messages if message.role != "system"), None)
        user_first = any(isinstance(rule, Opening) and rule.user_first for rule in view.rules)
        if user_first and first is not None and first.role == "assistant":
            edits.append(view.insert("user", self.opening, SYNTHETIC, before=first.id))
        return tuple(edits)

    def _repairs(self, rule: Rule, view: View) -> Iterator[Edit]:
        match rule:
            case Filled():
                yield from self._filled(rule, view)
            case JsonArguments():
                for message in broken_messages(rule, view):
                    for call in message.calls:
                        if not rule.holds(call):
                            arguments = json.dumps({self.broken: call.arguments})
                            yield Rewrite(message.id, call.at, replace(call, arguments=arguments))
            case _:
                yield from repairs(rule, view)

    def _filled(self, rule: Filled, view: View) -> Iterator[Edit]:
        last = view.messages[-1].id if view.messages else None
        for message in broken_messages(rule, view):
            if not rule.is_empty(message):
                yield from (Rewrite(message.id, part.at, None) for part in rule.blanks(message))
                continue
            if message.role == "user" and message.id == last:
                yield view.insert("user", self.filler, SYNTHETIC, before=message.id)
            yield Hide((message.id,))
