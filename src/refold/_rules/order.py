"""The order of roles: which must alternate, and where a system message may stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._rules.base import CutAnywhere
from refold._rules.call_index import joined
from refold.core.messages import Message, Text
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Order"]


class Order(CutAnywhere, frozen=True):
    """Speakers alternate where `alternate` says so (Bedrock), and a system message stands where it may.

    Neighbors of which one was edited are written as one message, so they break nothing. `system_in_list=False`: the
    provider takes a system prompt beside the list only (Gemini). `system_first=False`: a system message stands anywhere
    but at the beginning, where its words belong beside the list (Anthropic and Bedrock, from Claude Opus 4.8 on:
    https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages).
    """

    alternate: bool = False
    system_in_list: bool = True
    system_first: bool = True
    name: str = "order"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return messages whose speaker spoke just before, and system messages in the list."""
        violations: list[Violation] = []
        opening = _opening(messages)
        for position, message in enumerate(messages):
            if (
                message.role == "system"
                and message.native is not None
                and not self._may_stand(message, position < opening)
            ):
                where = "opens" if self.system_in_list else "stands in"
                violations.append(self._violation(f"a system message {where} the list", position, message))
            elif self.alternate and position and _same_speaker(messages[position - 1], message):
                who = "assistant" if message.role == "assistant" else "user"
                violations.append(self._violation(f"two {who} messages in a row", position, message))
        return tuple(violations)

    def _may_stand(self, message: Message, first: bool) -> bool:
        """Tell whether a system message may stand where it does; one that only sets options stands first too."""
        words = any(isinstance(part, Text) for part in message.parts)
        return self.system_in_list and (self.system_first or not first or not words)

    def _violation(self, text: str, position: int, message: Message) -> Violation:
        return Violation(self.name, text, (position,), (message.id,))


def _opening(messages: Sequence[Message]) -> int:
    """Return how many system messages open the list, which a plan may have joined; ours are written as a user's."""
    others = (position for position, each in enumerate(messages) if each.role != "system" or each.native is None)
    return next(others, len(messages))


def _same_speaker(first: Message, second: Message) -> bool:
    system = first.role == "system", second.role == "system"
    return system[0] == system[1] and _by_model(first) == _by_model(second) and not joined(first, second)


def _by_model(message: Message) -> bool:
    return message.role == "assistant"
