"""Call ids exist, and are unique where the provider matches results by id."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold._rules.call_index import joined
from refold.core.messages import Message
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["UniqueIds"]


class UniqueIds(CutAnywhere, frozen=True):
    """Every call has an id, unique within its message; the same id in a later batch is another call.

    `optional`: calls may have no id at all and are paired by name and order (Gemini, OpenAI's old function calls).
    `together`: neighbors of which one was edited are written as one message, so their ids count together.
    `everywhere`: an id is unique within the whole list ("`tool_use` ids must be unique", Anthropic).
    """

    optional: bool = False
    together: bool = False
    everywhere: bool = False
    name: str = "ids"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return messages with two calls of one id, or with calls that have none."""
        violations: list[Violation] = []
        ids: list[str] = []
        for position, message in enumerate(messages):
            if message.role != "assistant":
                ids = []
                continue
            if ids and not (self.together and joined(messages[position - 1], message)):
                ids = []
            if not message.calls:
                continue
            own = [call.call_id for call in message.calls]
            if not ids and len(own) == 1 and own[0]:
                ids = own
                continue
            if all(own) and len({*ids, *own}) == len(ids) + len(own):
                ids = ids + own
                continue
            if not self.optional and not all(own):
                violations.append(Violation(self.name, "a call without id", (position,), (message.id,)))
            before = Counter(filter(None, ids))
            ids = ids + own
            violations.extend(
                Violation(self.name, f"two calls with the id {id}", (position,), (message.id,), (id,))
                for id, times in Counter(filter(None, ids)).items()
                if times > 1 and times > before[id]
            )
        return tuple(self._again(messages, violations)) if self.everywhere else tuple(violations)

    def _again(self, messages: Sequence[Message], violations: list[Violation]) -> list[Violation]:
        """Return the violations within answers, and the calls that bear the id of an earlier answer's."""
        known = {(violation.at[0], id) for violation in violations for id in violation.calls}
        seen: dict[str, int] = {}
        for position, message in enumerate(messages):
            for call in message.calls if message.role == "assistant" else ():
                id = call.call_id
                if id and seen.setdefault(id, position) != position and (position, id) not in known:
                    known.add((position, id))
                    text = f"a second call with the id {id}"
                    violations.append(Violation(self.name, text, (position,), (message.id,), (id,)))
        return sorted(violations, key=lambda violation: violation.at)
