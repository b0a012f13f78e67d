"""Recall calls made together with calls of the client's own tools, answered in the client's next request.

The client gets its own calls alone and sends their results. Then the call of the recall tool is put back into the
model's answer, where it was made, and its result beside the client's: text of tools stays a tool's result, signatures
and thinking stay with the calls they vouch for, and all before that answer is the same bytes. It is an ordinary plan.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

import msgspec
from msgspec import Struct, field

from refold._gateway.recall.response_merger import RecallCall, sound
from refold._gateway.recall.tool import NAME
from refold.core.edits import Edit, Rewrite
from refold.core.messages import Note, Text, ToolCall, ToolResult
from refold.core.policy import Pure
from refold.core.transcript import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._gateway.recall.response_merger import RecallRound
    from refold.core.messages import Message, Path
    from refold.core.needs import Answer
    from refold.core.plan import Plan
    from refold.core.view import View

__all__ = ["DeferredCall", "RestoreOriginals", "is_back", "later", "spot"]

MOST = 8  # calls of the tool in one answer that are remembered
LONGEST = 4_000  # characters of what they ask for
RESTORED = Note("restored")
WORDS: dict[str, Path] = {  # where a result's words stand, from the result on
    "openai-chat": ("content",),
    "openai-responses": ("output",),
    "anthropic": ("content",),
    "gemini": ("functionResponse", "response", "output"),
}


class DeferredCall(Struct, frozen=True, tag="later"):
    """Calls of the tool that wait for the client's next request.

    `client_calls` are the client's calls by which the answer is known again, `count` the messages of the request that
    was answered, `home` the conversation in which that was.
    """

    calls: tuple[ToolCall, ...]
    client_calls: tuple[str, ...] = field(name="beside")  # the name of the field in the store
    count: int
    home: str = ""


def later(recall_round: RecallRound, count: int, home: str) -> DeferredCall | None:
    """Return what is to be brought back of an answer; None where that is too much, or where a call cannot be named."""
    calls = tuple(ToolCall(call.id, NAME, _arguments(call.arguments)) for call in recall_round.recalls)
    named = bool(recall_round.others) and bool(recall_round.others[0].id)
    if len(calls) > MOST or sum(len(call.arguments) for call in calls) > LONGEST:
        return None
    if not recall_round.others or any(bool(call.call_id) != named for call in calls):
        return None
    return DeferredCall(calls, tuple(map(_key, recall_round.others)), count, home)


def spot(messages: Sequence[Message], client_calls: Sequence[str]) -> tuple[int, int] | None:
    """Return where the last answer with calls stands and where its results end; None where it is another answer.

    It is another one, too, where the tool's call is back in it already, or where no results follow.
    """
    at = next((place for place in range(len(messages) - 1, -1, -1) if messages[place].calls), -1)
    if at < 0 or any(call.name == NAME for call in messages[at].calls):
        return None
    if not any(
        _key(RecallCall(call.call_id, call.arguments, call.name)) in client_calls for call in messages[at].calls
    ):
        return None
    stop = at + 1
    while stop < len(messages) and messages[stop].results:
        stop += 1
    return (at, stop) if stop > at + 1 else None


def is_back(plans: Sequence[Plan], pending: DeferredCall) -> bool:
    """Tell whether a plan in force has brought the calls already."""
    return any(plan.policy == NAME and plan.base.length > pending.count for plan in plans)


class RestoreOriginals(Pure, frozen=True):
    """Put calls of the tool back into the answer they were made in, and their results beside the client's."""

    grows: ClassVar[bool] = True

    calls: tuple[ToolCall, ...] = ()
    texts: tuple[str, ...] = ()
    client_calls: tuple[str, ...] = ()
    words: Path = ()

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the edits; none where the answer is not the last one with calls."""
        messages = view.messages
        if (span := spot(messages, self.client_calls)) is None:
            return ()
        at, stop = span
        after = messages[stop].id if stop < len(messages) else None
        edits: list[Edit] = []
        first = _next(messages[at], messages[at].calls[-1].at)
        for number, call in enumerate(self.calls):
            if first:
                edits.append(Rewrite(messages[at].id, _moved(first, number), call))
            else:
                edits.append(view.insert("assistant", (call,), RESTORED, before=messages[at + 1].id, salt=len(edits)))
        home = messages[at + 1]
        first = _next(home, home.results[-1].at)
        for number, (call, text) in enumerate(zip(self.calls, self.texts, strict=True)):
            place = _moved(first, number)
            result = ToolResult(call.call_id, (Text(text, (*place, *self.words)),), NAME, at=place)
            edits.append(
                Rewrite(home.id, place, result)
                if first
                else view.insert("tool", (result,), RESTORED, before=after, salt=len(edits))
            )
        return tuple(edits)


def _next(message: Message, at: Path) -> Path:
    """Return the address after the last part of the list in which a part stands; nothing where it stands in none."""
    if len(at) < 2 or not isinstance(at[1], int):
        return ()
    places = [part.at[1] for part in message.parts if part.at[:1] == at[:1] and len(part.at) > 1]
    return at[0], max(place for place in places if isinstance(place, int)) + 1


def _moved(first: Path, number: int) -> Path:
    return (first[0], int(first[1]) + number) if first else ()


def _arguments(arguments: object) -> str:
    return sound(arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode())


def _key(call: RecallCall) -> str:
    """Return by what a call is known again: its id, or where there is none what it calls."""
    if call.id:
        return call.id
    arguments = call.arguments
    with suppress(msgspec.DecodeError, UnicodeEncodeError):  # what is no JSON is compared as it is
        arguments = msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments
    return f"{call.name} {canonical(arguments or {}).decode()}"
