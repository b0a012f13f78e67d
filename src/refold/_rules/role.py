"""Every message says who speaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold._rules.base import CutAnywhere
from refold.core._json import Json, type_in_words
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["Speaker"]


class Speaker(CutAnywhere, frozen=True):
    """A message has a role: one of `roles`, or any string without `known_only`, as many vendors speak the protocol.

    `optional`: without one it is the user's. `items`: what has another type than "message", or no content, has no role.
    No repair sets one: whose words they are is not known, and a user's have more authority than a tool's.
    """

    roles: tuple[str, ...]
    known_only: bool = True
    optional: bool = False
    items: bool = False
    name: str = "role"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the messages without a role that the provider knows."""
        violations: list[Violation] = []
        for position, message in enumerate(messages):
            native: Any = message.native
            if native is None or (not self.items and native.get("role") in self.roles):
                continue
            if text := self._fault(native):
                violations.append(Violation(self.name, text, (position,), (message.id,)))
        return tuple(violations)

    def _fault(self, native: Json) -> str:
        kind = native.get("type") if self.items else None
        if not isinstance(kind, str | None):
            return f"type is {type_in_words(kind)}: give a string"
        if kind not in (None, "message") or (self.items and not kind and not native.keys() & {"role", "content"}):
            return ""
        role = native.get("role")
        if (
            role in self.roles
            or (role in (None, "") and self.optional)
            or (isinstance(role, str) and not self.known_only)
        ):
            return ""
        named = type_in_words(role) if "role" in native else "missing"
        was = repr(role) if isinstance(role, str) else named
        return f"role is {was}: give {', '.join(self.roles[:-1])} or {self.roles[-1]}"
