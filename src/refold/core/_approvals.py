"""Finds responses to approval requests (MCP) whose request is not in the list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold.core._json import mapping, string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message

__all__ = ["unrequested_approvals"]


def unrequested_approvals(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return the positions of the answers to requests for approval that are not there.

    The provider may keep the request of an answer that begins the list, or that stands behind an anchor or a reference.
    """
    requests: set[str] = set()
    unrequested: list[int] = []
    begun = False
    for position, message in enumerate(messages):
        for part in message.opaques:
            native: Any = mapping(message.native)
            if part.anchor or part.kind == "item_reference":
                return tuple(unrequested)
            if part.kind == "mcp_approval_request":
                requests.add(string(native, "id"))
            elif (
                part.kind == "mcp_approval_response" and begun and string(native, "approval_request_id") not in requests
            ):
                unrequested.append(position)
        begun = begun or message.role in ("user", "assistant")
    return tuple(unrequested)
