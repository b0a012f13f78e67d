"""Pairs short answers of users with the question that the assistant had asked.

"Yes" and "2" say nothing without their question, which leaves the view with the work around it. The question is quoted
without quotation marks of its own, so that only what the user said can be read back as the user's words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_outline import one_line
from refold._condense.digest.previous import own_text
from refold.core._speakers import is_turn
from refold.core.messages import memoized, text_of

if TYPE_CHECKING:
    from refold.core.messages import Message
    from refold.core.transcript import Transcript

__all__ = ["question_before"]

SHORT = 80  # characters of an answer that is not clear without its question
QUESTION = 240  # characters of a question that are quoted
OPTION_LENGTH = 120  # characters of the option that a letter or number stands for
LOOKED_AT = 3_000  # characters at the end of an answer that are searched for a question
BACK = 12  # messages between a question and its answer
QUESTION_MARKED = re.compile(r"[^.!?。！？\n]*(?:\.(?=\S)[^.!?。！？\n]*)*[?？]")
ASKS = re.compile(
    r"(?:now |and |also |please |ok(?:ay)?,? )*(?:can|could|would|will) you\b|(?:what|how|why|where|which|who)\b", re.I
)
CHOICE = re.compile(r"(?:option |number |#)?([a-z]|\d{1,2})[.)!]*", re.I)
QUOTES = str.maketrans({'"': "'", "“": "'", "”": "'", "„": "'"})


def question_before(transcript: Transcript, message: Message) -> tuple[str, Message | None]:
    """Return the question that a short message of a user answers, as one line, and the message that asks it."""
    answer = own_text(message).strip()
    if not answer or len(answer) > SHORT or answer.endswith("?") or ASKS.match(answer):
        return "", None
    position = transcript.index.get(message.id, 0)
    for before in reversed(transcript.messages[max(position - BACK, 0) : position]):
        if is_turn(before):
            break
        if before.role == "assistant" and text_of(before).strip():
            return _with_option(_question(before), before, answer), before
    return "", None


@memoized
def _question(message: Message) -> str:
    """Return the last question in the words of the assistant."""
    questions: list[str] = QUESTION_MARKED.findall(text_of(message)[-LOOKED_AT:])
    last = next((each for each in reversed(questions) if len(each.split()) > 1), "")
    return one_line(last.strip(" -*#>'\")”"), QUESTION).translate(QUOTES)


def _with_option(question: str, asking: Message, answer: str) -> str:
    """Return a question with the option that a number or a letter stands for."""
    choice = CHOICE.fullmatch(answer)
    if choice is None:
        return question
    option = re.search(rf"^[\s>*-]*\(?{choice[1]}[.):*]+\s*(.+)$", text_of(asking), re.M | re.I)
    if option is None:
        return question
    return f"{question} {choice[1]}. {one_line(option[1].strip('* '), OPTION_LENGTH).translate(QUOTES)}".lstrip()
