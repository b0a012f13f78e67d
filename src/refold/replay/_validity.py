"""Runs a policy over a view into a given number of tokens, and counts the provider's rules that this breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import formats
from refold._compaction.driver import run_sync
from refold._compaction.options import Options
from refold._compaction.request import measured, request_for
from refold.core._engine import planning
from refold.core.messages import MessageId
from refold.core.transcript import Transcript
from refold.errors import RefoldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.policy import Policy
    from refold.formats import Format
    from refold.handlers import Handlers
    from refold.replay._timeline import Timeline

__all__ = ["FittedView", "fitted", "new_violations"]

TRIES = 3  # a policy that misses its size by its own estimate is asked for a smaller one
CLOSER = 0.99  # of what would have met it


class FittedView(Struct, frozen=True):
    """The messages a policy leaves of a conversation within a size, and their tokens."""

    messages: tuple[Message, ...]
    tokens: int


def fitted(
    policy: Policy, line: Timeline, view: Sequence[Message], known: int, tokens: int, handlers: Handlers
) -> FittedView | None:
    """Compact a view of the first `known` messages into a number of tokens; None where the policy cannot.

    Tokens are counted by the timeline's counter, messages only, so that every policy has the same true room.
    """
    transcript = Transcript(line.transcript.messages[:known])
    aim = tokens
    for _ in range(TRIES):
        try:
            options = Options(format=line.format.name, policy=policy, budget=aim, counter=line.counter, force=True)
            request = request_for((), options, transcript=transcript, estimates=line.counted)
            start = measured(replace(request.view, start=tuple(view)), request.policy, options)
            after = run_sync(planning(request.policy, start), handlers).view
        except RefoldError:  # it says itself that it cannot
            return None
        size = after.estimated
        if size <= tokens:
            return FittedView(after.messages, size)
        aim = int(aim * tokens / size * CLOSER)
    return None


def new_violations(shape: Format, view: Sequence[Message], before: Sequence[Message]) -> int:
    """Count the provider's rules that a view breaks and the messages before did not."""
    untouched = {id(each.native): each for each in view if each.native is not None and not each.patches}
    natives: list[Any] = formats.assemble(shape, view)
    written = [untouched.get(id(each)) or shape.read(each, MessageId("written")) for each in natives]
    violations = formats.broken(shape, written)
    if not violations:
        return 0
    had = {(violation.rule, violation.message) for violation in formats.broken(shape, before)}
    return sum((violation.rule, violation.message) not in had for violation in violations)
