"""Items of OpenAI's Responses: ids, approvals and their requests, and which item may be last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold._rules.base import CutAnywhere
from refold.core._approvals import unrequested_approvals
from refold.core._json import mapping, string
from refold.core.messages import Message
from refold.core.view import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Approvals", "ItemIds", "LastItem"]

LONGEST = 64  # "Expected a string with maximum length 64"
# "Expected an ID that begins with 'msg'"
PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}
REFERRING = frozenset({"item_reference", "local_shell_call_output"})  # their id is that of another item


class ItemIds(CutAnywhere, frozen=True):
    """No two items have one id, and an id begins as the kind of the item demands.

    Source: https://platform.openai.com/docs/guides/conversation-state, and the refusals "Duplicate item found with id"
    and "Expected an ID that begins with".
    """

    name: str = "item_ids"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the items whose id is another's, or of the wrong form."""
        return tuple(
            Violation(self.name, text, (position,), (messages[position].id,))
            for position, text, _ in self.wrong(messages)
        )

    def wrong(self, messages: Sequence[Message]) -> list[tuple[int, str, bool]]:
        """Return position and fault of each item, and whether it is an earlier item once more."""
        seen: dict[str, Any] = {}
        faults: list[tuple[int, str, bool]] = []
        for position, message in enumerate(messages):
            native: Any = message.native
            id = mapping(native).get("id")
            if (
                not isinstance(id, str)
                or string(native, "type") in REFERRING
                or any(patch.at == ("id",) for patch in message.patches)
            ):
                continue
            prefix = PREFIXES.get(string(native, "type") or "message", "")
            if id in seen:
                faults.append((position, f"two items with the id {id}", bool(seen[id] == native)))
            elif not id.startswith(prefix) or len(id) > LONGEST:
                faults.append((position, f"the provider does not accept the id {id!r} for this item", False))
            seen.setdefault(id, native)
        return faults


class Approvals(CutAnywhere, frozen=True):
    """An answer to a request for approval stands behind its request.

    "No approval request found"; https://platform.openai.com/docs/guides/tools-connectors-mcp.
    """

    name: str = "approvals"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the answers without request."""
        text = "an approval without its request"
        return tuple(
            Violation(self.name, text, (position,), (messages[position].id,))
            for position in unrequested_approvals(messages)
        )


class LastItem(CutAnywhere, frozen=True):
    """The item that asks for a compaction is the last one.

    "Must be the final input item", openai SDK, `CompactionTrigger`.
    """

    kind: str = "compaction_trigger"
    name: str = "compaction"

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return the items that should be last and are not."""
        return tuple(
            Violation(self.name, f"{self.kind} is not the last item", (position,), (message.id,))
            for position, message in enumerate(messages[:-1])
            if isinstance(message.native, dict) and message.native.get("type") == self.kind
        )
