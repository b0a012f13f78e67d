"""A range of older messages becomes one summary."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct

from refold._condense.call_facts import files_of
from refold._condense.quoted_requests import REQUESTED, before_quote
from refold._condense.summary_requests import ask, earlier, summary_in
from refold._condense.view_positions import (
    anchor,
    last_settled_cut,
    leading,
    newest_request,
    originals,
    originals_with_earlier,
    preserved_request,
    visible_request,
)
from refold._text.graphemes import head_and_tail
from refold.core.edits import Hide
from refold.core.messages import Note, text_of
from refold.core.policy import require_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message, NoteKind, Role
    from refold.core.needs import Answer, Need
    from refold.core.view import View
    from refold.stages.selectors import CutSelector

__all__ = ["Summarize", "outline"]

READ, MODIFIED = "read-files", "modified-files"  # O06
OURS = re.compile(rf"\n\n<(?:{READ}|{MODIFIED})>")  # where the words of the summary end
OUTLINE = re.compile(r"\[Compacted [\d,]+ messages: [^\]]*\]\s*")
REQUEST = 4_000  # characters of the last request that stay word for word
LABEL = 100  # characters that the label of one that was cut has at most


class Range(Struct, frozen=True):
    """What is replaced: messages from `start` to `stop`; from `turn` on they are the beginning of a split turn."""

    start: int
    stop: int
    turn: int


class Summarize(Struct, frozen=True):  # N05, O04 to O11
    """Replace everything before a cut by one message of the given role, headed by `heading`.

    An earlier summary in the range is updated by the prompt `update`, not summarized again. If at least `split_from`
    messages of a turn are before the cut, they get a summary of their own by the prompt `split`; 0 is never. `files`
    adds the lists of read and modified files. Without a summary, `otherwise` selects what happens: nothing, or an
    outline of the range. A last request inside the range is quoted in the message, or stays a message of its own with
    `keeps_request`. A system role is used only if the format has it in the list and a user message follows, because
    an assistant cannot open a conversation.
    """

    grows: ClassVar[bool] = False

    cut: CutSelector
    prompt: str
    update: str
    split: str = ""
    split_from: int = 0
    heading: str = "[Conversation summary — older messages were compacted]"
    role: Role = "user"
    files: bool = False
    otherwise: Literal["nothing", "outline"] = "nothing"
    keeps_request: bool = False
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        require_counts(self, "split_from")

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for a summary of the range, and for one of the split turn's beginning."""
        range_ = self._range(view)
        if range_ is None:
            return ()
        history = view.messages[range_.start : range_.turn]
        prefix = view.messages[range_.turn : range_.stop]
        needed: list[Need] = []
        if originals(view, history):
            previous = earlier(history, self.heading, OURS)
            prompt = self.update if previous else self.prompt
            needed.append(ask(view, history, prompt, previous=previous, max_tokens=self.max_tokens, label="history"))
        if prefix:
            needed.append(ask(view, prefix, self.split, max_tokens=self.max_tokens, label="turn prefix"))
        return tuple(needed)

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the range hidden and one message in its place."""
        range_ = self._range(view)
        words = [summary_in(answer) for answer in answers]
        if range_ is None or (not all(words) and self.otherwise == "nothing"):
            return ()
        replaced = view.messages[range_.start : range_.stop]
        read, modified = files_of([view.original(message.id) or message for message in replaced])
        body = before_quote("\n\n".join([self.heading, *self._body(view, range_, words)]))
        text = "\n\n".join([body, *self._quoted(view, replaced)])
        if self.files:
            text += _tagged(READ, read) + _tagged(MODIFIED, modified)
        kind: NoteKind = "summary" if all(words) else "outline"
        position = anchor(view, range_.start, range_.stop)
        request = visible_request(view) if self.keeps_request else None
        stays, copies = preserved_request(view, replaced, request, position)
        opened = (
            stays or copies or any(message.role == "user" for message in view.messages[range_.stop : range_.stop + 1])
        )
        role: Role = self.role if self.role != "system" or (view.traits.system_in_list and opened) else "user"
        message = view.insert(role, text, Note(kind, read, modified), before=position)
        hidden = tuple(message.id for message in replaced if message.id != stays)
        return (message, *copies, Hide(hidden)) if hidden else (message, *copies)

    def _range(self, view: View) -> Range | None:
        start = leading(view)
        stop = self.cut(view)
        if stop is None or stop <= start:
            return None
        stop = min(stop, last_settled_cut(view))
        replaced = view.messages[start:stop]
        if not originals(view, replaced):
            return None
        turn = stop
        if self.split_from and stop < len(view.messages) and not _asks(view.messages[stop]):
            begins = next((at for at in range(stop - 1, start - 1, -1) if _asks(view.messages[at])), stop)
            turn = begins if stop - begins >= self.split_from else stop
        return Range(start, stop, turn)

    def _body(self, view: View, range_: Range, words: Sequence[str]) -> list[str]:
        replaced = view.messages[range_.start : range_.stop]
        before = earlier(replaced, self.heading, OURS)
        if not all(words):
            earlier_text = OUTLINE.sub("", before or "")
            return [outline(originals_with_earlier(view, replaced)), *filter(None, (earlier_text, *words))]
        if range_.turn == range_.stop:
            return list(words)
        history = words[0] if len(words) > 1 else before
        return [
            *([f"## History Summary\n\n{history}\n\n---"] if history else []),
            f"## Turn Context (split turn)\n\n{words[-1]}",
        ]

    def _quoted(self, view: View, replaced: Sequence[Message]) -> list[str]:
        """Return the last request for the message, where it would be gone otherwise."""
        request = newest_request(view)
        stays = (
            request is not None and request.id in view.index and all(message.id != request.id for message in replaced)
        )
        if self.keeps_request or request is None or stays:
            return []
        text = text_of(request)
        if len(text) > REQUEST + LABEL:  # more than one that was cut before
            text = head_and_tail(text, REQUEST * 3 // 4, REQUEST // 4, "[{omitted:,} characters left out]")
        return [f"{REQUESTED}\n\n{text}"]


def outline(messages: Sequence[Message]) -> str:  # O07
    """Return one line that says how many messages of which role are gone."""
    roles = Counter(message.role for message in messages)
    counts = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    return f"[Compacted {len(messages)} messages: {counts}]"


def _asks(message: Message) -> bool:
    return message.role == "user" and message.note is None


def _tagged(tag: str, paths: Sequence[str]) -> str:
    return f"\n\n<{tag}>\n" + "\n".join(paths) + f"\n</{tag}>" if paths else ""
