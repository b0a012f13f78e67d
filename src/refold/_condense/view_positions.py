"""Positions in a view that every stage needs: where ranges may start and stop, and which calls are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._condense.quoted_requests import quoted_request
from refold.core.messages import Message, Note, Text, ToolCall, ToolResult
from refold.core.view import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.edits import Edit
    from refold.core.messages import MessageId, Part, Path
    from refold.core.view import View

__all__ = [
    "anchor",
    "cut_after",
    "cut_before",
    "first_unseen",
    "is_forced",
    "is_quotation",
    "last_request",
    "last_settled_cut",
    "leading",
    "loop_start",
    "newest_request",
    "open_request",
    "originals",
    "originals_with_earlier",
    "preserved_request",
    "quoted_alone",
    "visible_request",
]


def leading(view: View) -> int:
    """Return the number of messages at the head that are never touched.

    These are system messages that were said, not made by us, or all up to an anchor with the results of its calls.
    """
    messages = view.messages
    if view.head:
        return next(position for position in range(view.head, len(messages) + 1) if position in view.cuts)
    others = (
        position for position, message in enumerate(messages) if message.role != "system" or message.note is not None
    )
    return next(others, len(messages))


def cut_before(view: View, position: int, floor: int = 0) -> int | None:
    """Return the last cut at or before a place and after `floor`, or None."""
    return next((at for at in range(min(position, len(view.messages)), floor, -1) if at in view.cuts), None)


def cut_after(view: View, position: int, floor: int = 0) -> int | None:
    """Return the first cut at or after a place, after `floor` and before the end, or None."""
    return next((at for at in range(max(position, floor + 1), len(view.messages)) if at in view.cuts), None)


def is_forced(view: View) -> bool:
    """Tell whether something other than a threshold demands a compaction."""
    return view.cause is not Cause.THRESHOLD


def first_unseen(view: View) -> int:
    """Return the place after the newest assistant message: what stands there the model has not seen yet."""
    messages = view.messages
    return next(
        (position + 1 for position in range(len(messages) - 1, -1, -1) if messages[position].role == "assistant"), 0
    )


def last_request(view: View) -> Message | None:
    """Return the newest message that a user wrote, or our copy of its words; other messages of ours are none."""
    return next((message for message in reversed(view.messages) if _asks(message)), None)


def visible_request(view: View) -> Message | None:
    """Return the newest request that the model sees: a message, our copy of it, or what a summary of ours quotes."""
    return next(_requests(view.messages), None)


def newest_request(view: View) -> Message | None:
    """Return the newest request of the whole transcript, although an earlier run may have hidden and quoted it.

    Where a client has sent our summary back as a message, the request that it quotes is all that is left of it.
    """
    visible = last_request(view)
    newest = next(_requests(view.transcript.messages), None)
    return visible if newest is None or (visible is not None and visible.note is not None) else newest


def quoted_alone(view: View) -> tuple[Message, ...]:
    """Return the newest request where no message of the view is it, only what a summary quotes; else nothing."""
    request, visible = newest_request(view), last_request(view)
    return (request,) if request is not None and visible is None else ()


def open_request(view: View) -> Message | None:
    """Return the last request if no assistant message has finished it with words and no calls."""
    if not view.messages:
        return None
    request = visible_request(view)
    newest = view.messages[-1]
    done = newest.role == "assistant" and not newest.calls and newest.note is None
    return None if done else request


def loop_start(messages: Sequence[Message]) -> int:
    """Return where the newest tool loop began, -1 where nothing did; words beside results do not end a loop."""
    turns = [position for position, message in enumerate(messages) if message.role == "user" and message.note is None]
    return max([position for position in turns if not messages[position].results], default=-1)


def preserved_request(
    view: View, leaving: Sequence[Message], request: Message | None, before: MessageId | None
) -> tuple[MessageId | None, tuple[Edit, ...]]:
    """Return how a request among messages that go is kept: the id of what stays, or a copy of its words.

    A request that shares its message with tool results cannot stay without their calls, and one that an earlier run
    has hidden, or that is quoted in a summary, is copied too.
    """
    here = request is not None and any(message.id == request.id for message in leaving)
    if request is None or (not here and request.id in view.index):
        return None, ()
    if here and not request.results and not is_quotation(view, request):
        return request.id, ()
    words = [replace(part, at=()) for part in request.parts if isinstance(part, Text)]
    return None, (view.insert("user", words, Note("request"), before=before),)


def _requests(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the requests in messages, the newest first; one that a summary quotes has the summary's id."""
    for message in reversed(messages):
        if _asks(message):
            yield message
        elif quoted := quoted_request(message):
            yield Message(message.id, "user", (Text(quoted),), Note("request"))


def is_quotation(view: View, request: Message) -> bool:
    """Tell whether a request is what a message of the view quotes, and not that message itself."""
    return request.note is not None and view.messages[view.index[request.id]] is not request


def _asks(message: Message) -> bool:
    own = message.note is not None and message.note.kind != "request"
    return message.role == "user" and not own and any(map(_is_users_own, message.parts))


def _is_users_own(part: Part) -> bool:
    return not (isinstance(part, ToolResult) or (isinstance(part, Text) and part.ours))


def last_settled_cut(view: View) -> int:
    """Return the place up to which no call awaits its result, so that what awaits one stays together.

    A call that the provider answers itself awaits its result at the end of a paused turn. Behind the words of a user no
    call awaits anything: one without a result was interrupted, and must not keep all that came later.
    """
    messages = view.messages
    answered: set[str] = set()
    for position in range(len(messages) - 1, -1, -1):
        parts = messages[position].parts
        answered |= {part.call_id or part.name for part in parts if isinstance(part, ToolResult)}
        calls = [part.call_id or part.name for part in parts if isinstance(part, ToolCall)]
        if calls:
            waiting = any(call not in answered for call in calls)
            return (cut_before(view, position) or 0) if waiting else len(messages)
        if _asks(messages[position]):
            break
    return len(messages)


def anchor(view: View, start: int, stop: int) -> MessageId | None:
    """Return where a message in place of a range goes: before its first message that was said, else before the next.

    A message that we made is a bad anchor, for it goes when its plan is taken back.
    """
    received = (message.id for message in view.messages[start:stop] if message.note is None)
    after = view.messages[stop].id if stop < len(view.messages) else None
    return next(received, after)


def originals(view: View, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages as they were said, whatever plans did to them, without those that we made (W07)."""
    return tuple(view.original(message.id) or message for message in messages if message.note is None)


def originals_with_earlier(view: View, leaving: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages that go as they were said, with all before them that earlier runs have taken away."""
    own = originals(view, leaving)
    if len(own) == len(leaving) or not own:
        return own
    stop = view.transcript.index.get(own[-1].id, -1) + 1
    return tuple(message for message in view.transcript.messages[leading(view) : stop] if message.note is None)


def original_texts(view: View, message: Message) -> dict[Path, str]:
    """Return every text of a message as it was said, by path, so that a second cut starts from the whole."""
    original = view.original(message.id)
    by_path: dict[Path, str] = {}
    for part in original.parts if original else ():
        if isinstance(part, Text):
            by_path[part.at] = part.text
        elif isinstance(part, ToolResult):
            by_path |= {inner.at: inner.text for inner in part.content if isinstance(inner, Text)}
    by_path.pop((), None)
    return by_path


def with_text(result: ToolResult, text: str) -> ToolResult:
    """Return a result with one text as its whole content."""
    return replace(result, content=(Text(text),))
