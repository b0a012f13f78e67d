"""Appends a summary of the shortened messages at the end, with an instruction to continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from refold import _prompts as prompts
from refold._condense.call_facts import files_of
from refold._condense.quoted_requests import SUMMARIES
from refold._condense.summary_requests import ask, earlier, summary_in
from refold._condense.view_positions import last_settled_cut, preserved_request, visible_request
from refold.core.edits import Hide, Rewrite
from refold.core.messages import Note, text_of, texts
from refold.core.policy import require_counts

if TYPE_CHECKING:
    from refold.core.edits import Edit
    from refold.core.messages import Message
    from refold.core.needs import Answer, Need
    from refold.core.view import View

__all__ = ["AppendSummary"]


class AppendSummary(Struct, frozen=True):  # W07, W09, W10
    """Append a user message with a summary of the originals of all messages that this run shortened, and a nudge.

    The summarizer also receives the first request and the newest `context` messages of the assistant, which state the
    task and the open work. An earlier summary is updated and replaced. Without a summary a notice is appended.
    `nudge` and `notice` name prompt files.
    """

    grows: ClassVar[bool] = True

    prompt: str
    nudge: str
    notice: str
    heading: str = "[Compaction Summary]"  # W10
    context: int = 3

    def __post_init__(self) -> None:
        require_counts(self, "context")

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for a summary of the shortened messages' originals; for nothing where none was shortened."""
        targets = shortened_in_this_run(view)
        if not targets:
            return ()
        wanted = targets | self._around(view)
        messages = [message for message in view.messages if message.id in wanted]
        return (ask(view, messages, self.prompt, previous=earlier(_before(view), self.heading, self._nudge)),)

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the summary or the notice as the last message."""
        targets = shortened_in_this_run(view)
        if not targets:
            return ()
        position = last_settled_cut(view)
        before = view.messages[position].id if position < len(view.messages) else None
        words = summary_in(answers[0]) if answers else ""
        if not words:
            return (view.insert("user", prompts.text(self.notice), Note("notice"), before=before),)
        text = f"{self.heading}\n\n{words}\n\n{prompts.text(self.nudge)}"
        note = Note("summary", *files_of([m for m in _before(view) if m.id in targets or m.note]))
        older = [message for message in view.messages if message.note and message.note.kind in SUMMARIES]
        insert = view.insert("user", text, note, before=before)
        _, copies = preserved_request(view, older, visible_request(view), older[0].id if older else None)
        return (*copies, insert, Hide(tuple(message.id for message in older))) if older else (insert,)

    @property
    def _nudge(self) -> str:
        """Return the words that the nudge begins with, where the summary's own words end."""
        return "\n\n" + prompts.text(self.nudge)[:20]

    def _around(self, view: View) -> set[str]:
        first = next((message.id for message in view.messages if message.role == "user" and not message.note), None)
        plans = [message.id for message in view.messages if message.role == "assistant" and text_of(message)]
        return {*plans[max(len(plans) - self.context, 0) :], *([first] if first else [])}


def shortened_in_this_run(view: View) -> set[str]:
    """Return the ids of messages that lost words in this run; a picture that left is no loss of words."""
    touched = {edit.message for edit in view.edits if isinstance(edit, Rewrite)}
    before = {message.id: message for message in view.start if message.id in touched}
    return {
        message.id
        for message in view.messages
        if message.id in before and sum(map(len, texts(message))) < sum(map(len, texts(before[message.id])))
    }


def _before(view: View) -> list[Message]:
    """Return the messages of the view as they stood before this run."""
    return [message for message in view.start if message.note is None or message.id in view.index]
