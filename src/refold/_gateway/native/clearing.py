"""Anthropic's clearing edits as plans: pointers in place of old tool results, no thinking of older turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._condense.call_outline import CLEARED, pointer
from refold._condense.placeholders import content_replaced, is_pointer
from refold._condense.view_positions import first_unseen
from refold._gateway.native.wishes import CLEAR_THINKING, CLEAR_TOOL_USES, ClearThinking, ClearToolUses
from refold.core._json import Json
from refold.core.budget import Never
from refold.core.edits import Hide, Rewrite
from refold.core.messages import Reasoning, Text, ToolCall, ToolResult
from refold.core.policy import Policy, Pure, Step
from refold.stages.drop_reasoning import reasoning_removals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message, Part
    from refold.core.needs import Answer
    from refold.core.plan import Plan
    from refold.core.view import View

__all__ = ["applied_edits", "clearable", "clearing_policy", "is_clearing", "older_thinking", "saving"]

EMPTY = "{}"
CHARS = 4  # a token, where nothing is counted


class PointToOlder(Pure, frozen=True):
    """Put pointers in place of the results of older tool uses, and nothing in place of the arguments of named tools."""

    wish: ClearToolUses

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the pointers, oldest first."""
        edits: list[Edit] = []
        unseen = first_unseen(view)
        seen = {message.id for message in view.messages[:unseen]}
        inputs = self.wish.inputs
        for message, result, call in clearable(view.messages, self.wish):
            if message.id not in seen:
                continue
            patches = content_replaced(result, pointer(call, result))  # what loads tools stays
            edits += [Rewrite(message.id, patch.at, patch.to) for patch in patches]
            if call is not None and (inputs is None or call.name in inputs) and call.arguments not in ("", EMPTY):
                caller = next(each for each in view.messages if call in each.calls)
                edits.append(Rewrite(caller.id, call.at, replace(call, arguments=EMPTY)))
        return tuple(edits)


class DropOlderThinking(Pure, frozen=True):
    """Remove the thinking of all turns but the newest ones."""

    keep: int

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the removals, in the order of the messages."""
        return tuple(
            edit for message in older_thinking(view.messages, self.keep) for edit in reasoning_removals(message)
        )


def clearing_policy(wish: ClearToolUses | ClearThinking) -> Policy:
    """Return the policy that carries out one edit, named as the provider names it."""
    if isinstance(wish, ClearToolUses):
        return Policy(CLEAR_TOOL_USES, (Step(PointToOlder(wish), label="clear tool uses"),), trigger=Never())
    return Policy(CLEAR_THINKING, (Step(DropOlderThinking(wish.keep or 0), label="clear thinking"),), trigger=Never())


def is_clearing(plan: Plan) -> bool:
    """Tell whether a plan was made for an edit of a request."""
    return plan.policy in (CLEAR_TOOL_USES, CLEAR_THINKING)


def clearable(messages: Sequence[Message], wish: ClearToolUses) -> list[tuple[Message, ToolResult, ToolCall | None]]:
    """Return the results that an edit clears with their calls, oldest first."""
    calls = {call.call_id: call for message in messages for call in message.calls}
    pairs = [(message, result, calls.get(result.call_id)) for message in messages for result in message.results]
    return [
        (message, result, call)
        for message, result, call in pairs[: max(len(pairs) - wish.keep, 0)]
        if not (call is not None and call.name in wish.never)
        and not is_pointer(message, result)
        and len(result.text) > len(pointer(call, result))
    ]


def older_thinking(messages: Sequence[Message], keep: int) -> Iterator[Message]:
    """Yield the messages with thinking that stand before the newest turns; a turn begins with words of the user."""
    starts = [at for at, message in enumerate(messages) if message.role == "user" and not message.results]
    stop = (starts[-keep] if keep <= len(starts) else 0) if keep else len(messages)
    for message in messages[:stop]:
        if any(isinstance(part, Reasoning) for part in message.parts):
            yield message


def saving(results: list[tuple[Message, ToolResult, ToolCall | None]]) -> int:
    """Return about how many tokens the results hold that an edit would clear."""
    return sum(len(result.text) for _, result, _ in results) // CHARS


def applied_edits(plans: Sequence[Plan], messages: Sequence[Message]) -> list[Json]:
    """Return what the plans in force have cleared, as the provider reports it; nothing of an edit that did nothing."""
    turns = _turns(messages)
    applied: list[Json] = []
    for kind, counted in ((CLEAR_TOOL_USES, "cleared_tool_uses"), (CLEAR_THINKING, "cleared_thinking_turns")):
        own = [plan for plan in plans if plan.policy == kind]
        edits = [edit for plan in own for edit in plan.edits]
        if kind == CLEAR_TOOL_USES:
            count = sum(isinstance(edit, Rewrite) and _is_pointer_to(edit.to) for edit in edits)
        else:
            count = len({turns.get(id) for edit in edits for id in _named(edit)})
        if count:
            saved = sum(plan.sizes.saved for plan in own)
            applied.append({"type": kind, counted: count, "cleared_input_tokens": saved})
    return applied


def _is_pointer_to(part: Part | None) -> bool:
    return isinstance(part, Text | ToolResult) and part.text.startswith(CLEARED)


def _named(edit: Edit) -> tuple[str, ...]:
    match edit:
        case Rewrite(message=id):
            return (id,)
        case Hide(messages=ids):
            return ids
        case _:
            return ()


def _turns(messages: Sequence[Message]) -> dict[str, int]:
    number = 0
    turns: dict[str, int] = {}
    for message in messages:
        number += message.role == "user" and not message.results
        turns[message.id] = number
    return turns
