"""Everything but the system messages becomes a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from refold._condense.call_facts import files_of
from refold._condense.digest.previous import OPENING
from refold._condense.digest.render import digest_text
from refold._condense.quoted_requests import before_quote
from refold._condense.summary_requests import ask, earlier, summary_in
from refold._condense.view_positions import (
    anchor,
    last_settled_cut,
    leading,
    newest_request,
    open_request,
    originals,
    originals_with_earlier,
    preserved_request,
)
from refold.core.edits import Hide
from refold.core.messages import Note, Text, ToolResult, text_of
from refold.core.needs import Refused
from refold.errors import SummaryRefused
from refold.stages.summarize import outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message, MessageId
    from refold.core.needs import Answer, Need
    from refold.core.view import View

__all__ = ["ReplaceAll"]


class ReplaceAll(Struct, frozen=True):  # L04, L06, V05
    """Hide all but the system messages and insert a summary, never in the system prompt.

    With `request`, a template such as "Last request: {request}", the user's last request goes into the summary's
    message, or stays a message of its own if it has images or files or would not fit. Without it an `acknowledgement`
    by the assistant follows if the format allows an assistant's message to be the last, and an unfinished request
    stays the last message. A call that awaits its result stays too. Without a summarizer, a digest made without a
    model is used.

    Raises:
        SummaryRefused: the summarizer returned no summary; nothing is changed.
    """

    grows: ClassVar[bool] = False

    prompt: str
    heading: str = ""
    acknowledgement: str = ""
    request: str = ""
    max_tokens: int | None = None

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for a summary of everything."""
        replaced = self._replaced(view)
        if not originals(view, replaced):
            return ()
        return (ask(view, replaced, self.prompt, previous=self._previous(replaced), max_tokens=self.max_tokens),)

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the summary, what follows it, and all else hidden."""
        replaced = self._replaced(view)
        if not answers or not originals(view, replaced):
            return ()
        words, by_model = _summary_or_digest(view, replaced, answers[0], self._previous(replaced))
        opening = f"{self.heading}\n\n{words}" if self.heading and not words.startswith(OPENING) else words
        opening = before_quote(opening) if self.request else opening
        request, quoted = self._request(view, replaced, opening)
        position = self._place(view, replaced, request)
        stays, copies = preserved_request(view, replaced, request, position)
        text = f"{opening}\n\n{quoted}" if quoted else opening
        note = Note("summary" if by_model else "digest", *files_of(replaced))
        edits: list[Edit] = [view.insert("user", text, note, before=position)]
        if self.acknowledgement and self._may_acknowledge(view, replaced, request):
            edits.append(view.insert("assistant", self.acknowledgement, Note("acknowledgement"), before=position))
        hidden = tuple(message.id for message in replaced if message.id != stays)
        return (*edits, *copies, Hide(hidden)) if hidden else (*edits, *copies)

    def _previous(self, replaced: Sequence[Message]) -> str | None:
        return earlier(replaced, self.heading)

    def _replaced(self, view: View) -> tuple[Message, ...]:
        return view.messages[leading(view) : last_settled_cut(view)]

    def _request(self, view: View, replaced: Sequence[Message], opening: str) -> tuple[Message | None, str]:
        """Return the request that stays as a message, and the one that is quoted in the summary's."""
        if not self.request:
            return open_request(view), ""
        request = newest_request(view)
        if request is None or (request.id in view.index and all(message.id != request.id for message in replaced)):
            return None, ""
        quoted = self.request.format(request=text_of(request))
        room = view.goal_tokens - view.overhead.total - sum(view.sizes[: leading(view)])
        fits = view.counter.text(f"{opening}\n\n{quoted}") < room
        words = all(isinstance(part, Text | ToolResult) for part in request.parts)
        return (None, quoted) if words and fits else (request, "")

    def _place(self, view: View, replaced: Sequence[Message], request: Message | None) -> MessageId | None:
        start = leading(view)
        if request is not None and request in replaced and not request.results:
            return request.id
        return anchor(view, start, start + len(replaced))

    def _may_acknowledge(self, view: View, replaced: Sequence[Message], request: Message | None) -> bool:
        last = request is None or request not in replaced
        return view.traits.assistant_last or not last or last_settled_cut(view) < len(view.messages)


def _summary_or_digest(
    view: View, messages: Sequence[Message], answer: Answer, previous: str | None
) -> tuple[str, bool]:
    """Return the summary and True, or a digest made without a model and False where there is no summarizer.

    A digest follows `previous`, the earlier summary, where a model wrote that; else it is made anew from all originals.

    Raises:
        SummaryRefused: the summarizer gave no summary; nothing is changed then (V05).
    """
    if words := summary_in(answer):
        return words, True
    if isinstance(answer, Refused) and answer.absent:
        return _digest(view, messages, previous), False
    reason = answer.reason if isinstance(answer, Refused) else "the summary was empty"
    raise SummaryRefused(f"no summary could be had, so nothing was changed: {reason}; try again, or pass no summarizer")


def _digest(view: View, messages: Sequence[Message], previous: str | None) -> str:
    by_model = any(message.note and message.note.kind == "summary" for message in messages)
    record = originals(view, messages) if by_model else originals_with_earlier(view, messages)
    words = digest_text(view, record) or outline(record)
    return f"{previous}\n\n{words}" if by_model and previous else words
