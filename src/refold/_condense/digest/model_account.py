"""An optional part of the digest that a model writes: goal, state, decisions and next step, under these headings.

It says what no list of facts states. It reports and never demands, and it is checked against the originals:
`account_check` leaves out each sentence that gives orders, names what does not exist, contradicts a rule or calls an
open error solved.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold._condense.call_outline import one_line
from refold._condense.digest.account_check import AccountCheck
from refold._condense.digest.previous import entries_in, is_digest
from refold._condense.placeholders import is_pointer
from refold._condense.summary_requests import ask
from refold.core.needs import Lengths, Provided, SummaryNeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["ACCOUNT", "account_in", "earlier_account", "need_of", "room_for"]

ACCOUNT = "How it went, by a model (a report that asks for nothing)"  # the section of a digest
PROMPT = "refold_account"
SHARE = 0.03  # of the goal
LEAST, MOST = 150, 1_200  # tokens; below the least nobody is asked
OVER = 1.25  # times its room that an account may have
LENGTHS = Lengths(text=4_000, arguments=600, result=1_200)  # characters; whole outputs are dear and tell little more
LONGEST = 2_000  # characters of a paragraph
HEADINGS = ("Goal", "State", "Decisions", "Next step")  # that the prompt asks for
HEADING = re.compile(rf"({'|'.join(HEADINGS)})\s*(?::\s*(.*))?", re.I)
SENTENCES = re.compile(r"(?<=[.!?。！？])\s+")


def room_for(view: View) -> int:
    """Return the tokens that an account may have in the digest: 3 % of the goal, at most 1,200; 0 for none."""
    room = min(int(view.goal_tokens * SHARE), MOST)
    return room if room >= LEAST else 0


def need_of(view: View, old: int) -> SummaryNeed | None:
    """Return the request for an account of the first `old` messages of a view, or None where there is nothing to tell.

    An earlier account travels as `previous`; what it covers is not sent again.
    """
    room = room_for(view)
    previous = earlier_account(view)
    messages = _unreported(view, old) if previous else _all_messages(view, old)
    if not room or not any(message.role == "assistant" for message in messages):
        return None
    need = ask(view, messages, PROMPT, previous=previous, max_tokens=room, lengths=LENGTHS, label="account")
    return replace(need, judged=True)


def account_in(view: View, answers: Sequence[object]) -> str:
    """Return the account that an answer gives, else the earlier one, else nothing."""
    for answer in answers:
        text = _reported(view, answer.text) if isinstance(answer, Provided) else ""
        if text and view.counter.text(text) <= room_for(view) * OVER:
            return text
    return earlier_account(view) or ""


def earlier_account(view: View) -> str | None:
    """Return the account in the digest of an earlier compaction."""
    return "\n".join(entries_in(view.start).lines(ACCOUNT)) or None


def _all_messages(view: View, old: int) -> list[Message]:
    """Return all messages of the transcript up to a place of the view."""
    stop = _place(view, old)
    return [message for message in view.transcript.messages[:stop] if not is_digest(message)]


def _unreported(view: View, old: int) -> list[Message]:
    """Return those after the newest message that left before, or whose output did: an earlier account covers others."""
    whole = {message.id for message in view.start if not any(is_pointer(message, each) for each in message.results)}
    messages = view.transcript.messages
    start = next(
        (position + 1 for position in range(len(messages) - 1, -1, -1) if messages[position].id not in whole), 0
    )
    return [message for message in messages[start : _place(view, old)] if not is_digest(message)]


def _place(view: View, old: int) -> int:
    """Return where in the transcript the first `old` messages of a view end."""
    index = view.transcript.index
    positions = (index[message.id] for message in reversed(view.messages[:old]) if message.id in index)
    return next(positions, -1) + 1


def _reported(view: View, text: str) -> str:
    """Return paragraphs without marks, markers and wrong sentences, each under its heading's name."""
    paragraphs: list[tuple[str, list[str]]] = []
    title = ""
    for line in text.splitlines():
        words = one_line(line, LONGEST).strip("#*->| ")
        if heading := HEADING.fullmatch(words.replace("**", "")):
            title, words = f"{heading[1].capitalize()}: ", heading[2] or ""
        sentences = [sentence for sentence in SENTENCES.split(words) if sentence]
        if sentences:
            paragraphs.append((title, sentences))
            title = ""
    whole = replace(view, start=view.transcript.messages, edits=(), estimated_before=None)
    check = AccountCheck.of(whole, earlier_account(view) or "")
    right = check.right([sentence for _, sentences in paragraphs for sentence in sentences])
    lines = ((title, [sentence for sentence in sentences if sentence in right]) for title, sentences in paragraphs)
    return "\n".join(f"{title}{' '.join(sentences)}" for title, sentences in lines if sentences)
