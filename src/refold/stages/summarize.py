"""A range of older messages becomes one summary (N05, O04 to O11)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct

from refold.core.edits import Hide
from refold.core.messages import Note, text_of
from refold.stages.asking import ask, earlier, summary_in
from refold.stages.edges import shortened
from refold.stages.facts import files_of
from refold.stages.places import anchor, leading, said, settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.edits import Edit
    from refold.core.messages import Message, NoteKind, Role
    from refold.core.needs import Answer, Need
    from refold.core.view import View
    from refold.stages.choose import Cut

__all__ = ["Summarize", "outline"]

REQUEST = 4_000  # characters of the request of a split turn that stay word for word


class Range(Struct, frozen=True):
    """What is replaced: messages from `start` to `stop`; from `turn` on they are the beginning of a split turn."""

    start: int
    stop: int
    turn: int


class Summarize(Struct, frozen=True):
    """Replace everything before a cut by one message of the given role, headed by `heading`.

    An earlier summary in the range is updated by the prompt `update`, not summarized again. From `split_from` messages
    of a turn before the cut, that beginning gets a summary of its own by the prompt `split` (O05); 0 is never.
    `files` adds the lists of read and modified files. Without a summary, `otherwise` says what is done: nothing, or an
    outline of what was there (O07).
    """

    grows: ClassVar[bool] = False

    cut: Cut
    prompt: str
    update: str
    split: str = ""
    split_from: int = 0
    heading: str = "[Conversation summary — older messages were compacted]"
    role: Role = "user"
    files: bool = False
    otherwise: Literal["nothing", "outline"] = "nothing"
    max_tokens: int | None = None

    def needs(self, view: View) -> tuple[Need, ...]:
        """Ask for a summary of the range, and for one of the split turn's beginning."""
        found = self._range(view)
        return tuple(self._ask(view, found, *span) for span in _spans(found)) if found else ()

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the range hidden and one message in its place."""
        found = self._range(view)
        if found is None:
            return ()
        gone = view.messages[found.start : found.stop]
        words = [summary_in(answer) for answer in answers]
        if not all(words) and self.otherwise == "nothing":
            return ()
        read, modified = files_of(_as_said(view, gone))
        whole = all(words)
        text = self._text(view, found, words) if whole else self._outlined(view, found, words)
        if self.files:
            text += _tagged("read-files", read) + _tagged("modified-files", modified)
        kind: NoteKind = "summary" if whole else "outline"
        role: Role = "user" if self.role == "system" and not view.traits.system_in_list else self.role
        message = view.insert(role, text, Note(kind, read, modified), before=anchor(view, found.start, found.stop))
        return (message, Hide(tuple(message.id for message in gone)))

    def _range(self, view: View) -> Range | None:
        start = leading(view)
        stop = self.cut(view)
        if stop is None or stop <= start:
            return None
        stop = min(stop, settled(view))
        gone = view.messages[start:stop]
        if not said(view, gone):
            return None
        turn = stop
        if self.split_from and stop < len(view.messages) and not _asks(view.messages[stop]):
            begins = next((at for at in range(stop - 1, start - 1, -1) if _asks(view.messages[at])), stop)
            turn = begins if stop - begins >= self.split_from else stop
        return Range(start, stop, turn)

    def _ask(self, view: View, found: Range, start: int, stop: int) -> Need:
        messages = view.messages[start:stop]
        beginning = start == found.turn
        previous = None if beginning and start > found.start else earlier(messages, self.heading)
        prompt = self.split if beginning else self.update if previous else self.prompt
        label = "turn prefix" if beginning else "history"
        return ask(view, messages, prompt, previous=previous, max_tokens=self.max_tokens, label=label)

    def _text(self, view: View, found: Range, words: Sequence[str]) -> str:
        if found.turn == found.stop:
            return f"{self.heading}\n\n{words[0]}"
        request = text_of(view.messages[found.turn])
        if len(request) > REQUEST:
            request = shortened(request, REQUEST * 3 // 4, REQUEST // 4, "[{omitted:,} characters left out]")
        history = f"## History Summary\n\n{words[0]}\n\n---\n\n" if len(words) > 1 else ""
        return (
            f"{self.heading}\n\n{history}## Turn Context (split turn)\n\n"
            f"The request of this turn, word for word:\n\n{request}\n\n{words[-1]}"
        )

    def _outlined(self, view: View, found: Range, words: Sequence[str]) -> str:
        """Return the outline, with whatever summary was had and the earlier summary that it replaces."""
        gone = view.messages[found.start : found.stop]
        kept = [word for word in (earlier(gone, self.heading), *words) if word]
        return "\n\n".join([self.heading, outline(said(view, gone)), *kept])


def outline(messages: Sequence[Message]) -> str:
    """Return one line that says how many messages of which role are gone (O07)."""
    roles = Counter(message.role for message in messages)
    counts = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
    return f"[Compacted {len(messages)} messages: {counts}]"


def _spans(found: Range) -> list[tuple[int, int]]:
    spans = [(found.start, found.turn), (found.turn, found.stop)]
    return [(start, stop) for start, stop in spans if stop > start]


def _asks(message: Message) -> bool:
    return message.role == "user" and message.note is None


def _as_said(view: View, messages: Sequence[Message]) -> list[Message]:
    return [view.original(message.id) or message for message in messages]


def _tagged(tag: str, paths: Sequence[str]) -> str:
    return f"\n\n<{tag}>\n" + "\n".join(paths) + f"\n</{tag}>" if paths else ""
