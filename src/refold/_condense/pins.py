"""Pins: sentences of user and system messages that state a constraint, verbatim, with their position.

Only what a user or a system message says can become a pin; words of a tool, of a harness (`core._speakers`) or of the
model never do.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.digest.previous import digests_in, entries_in, own_text, quotations
from refold.core._speakers import is_turn
from refold.core.messages import Message, MessageId, Role, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["CONSTRAINTS", "Pin", "instruction_text", "lost", "pins", "pins_in", "pins_of"]

CONSTRAINTS = "Standing constraints (word for word)"  # the section of a digest that quotes turns with pins
LONGEST = 600  # characters; a longer sentence is split at its clauses, a longer clause is no prose

# Words that forbid, oblige, limit or prefer; of users and systems only, so a false hit costs a line.
ENGLISH = (
    "never must mustn't only don't dont always avoid cannot can't shall should shouldn't won't forbidden prohibited "
    "require requires required ensure without unless except exactly within read-only prefer prefers "
    "preferred preference preferences keep stay every everywhere remember important"
)
GERMAN = (
    "nie niemals muss müssen musst nicht nur immer kein keine keinen keiner keinem darf darfst dürfen vermeide "
    "vermeiden ohne höchstens mindestens soll sollst sollen sollte ausschließlich verboten bitte stets"
)
FRENCH = (
    "jamais doit doivent devez dois toujours seulement uniquement évite éviter évitez sans interdit interdite "
    "obligatoire obligatoirement"
)
SPANISH = "nunca jamás debe deben debes siempre solo sólo solamente únicamente evita evitar prohibido prohibida"
WORDS = frozenset(f"{ENGLISH} {GERMAN} {FRENCH} {SPANISH}".split())
PHRASES = (
    "do not ", "does not ", " not to ", "no longer ", "may not ", "not allowed", "make sure", "at most", "at least",
    "no more than", "no less than", "not more than", " up to ", "from now on", "before you", "ask me", "tell me",
    "i like ", "i love ", "i dislike ", "i hate ", "'d rather ", "would rather ", "call me ",
    "in doubt", "instead of", "rather than", "stick to", "leave it", "leave the", "read only",
    " ne pas ", "au plus", "au moins", "il faut", " n'", "no uses", "no hagas", "no toques", "no borres", "no cambies",
    "no modifiques", "no puedes", "no escribas", "no elimines", "como máximo", "como mínimo", "hay que",
)  # fmt: skip
# Lines of programs that people paste: numbered lines, places in files, log lines, statements.
MACHINE = re.compile(
    r"^(?:\d+[|:│→]\s{2,}|\d+\t|[\w/-]*[/.][\w./-]+:\d+:|\[?\d{4}-\d\d-\d\d[T ]\d\d:|"
    r"\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR)\b[\]:])"
    r"|[{}]$|\);$|^(?:def|class|if|elif|except|return|raise|assert)\b.*[:)]$"
)
NE_PAS = re.compile(r"\bne \w+ pas\b")
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
CJK = re.compile(
    "しない|するな|ない(?:で|こと)|べき|必ず|決して|絶対|禁止|のみ|だけ|常に|避け|いけません|なければ|ください|"
    "不要|不得|不能|不可|不许|不准|禁止|必须|必須|只能|只有|仅|总是|永远|絕不|绝不|切勿|请勿|避免|务必|始终|一定"
)
ENDS = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
CLAUSES = re.compile(r"(?<=[;:,—；，])\s*")


class Pin(Struct, frozen=True):
    """A sentence that must survive word for word; `turn` counts user messages from 1, 0 is before the first."""

    text: str
    turn: int
    message: MessageId
    role: Role


@lru_cache(maxsize=4_096)
def pins_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that forbid, oblige or limit, as they stand."""
    pinned: dict[str, None] = {}
    for sentence in ENDS.split(text):
        pieces = [sentence] if len(sentence) <= LONGEST else CLAUSES.split(sentence)
        for piece in pieces:
            piece = piece.strip()
            if 3 < len(piece) <= LONGEST and _limits(piece):
                pinned[piece] = None
    return tuple(pinned)


def _limits(sentence: str) -> bool:
    """Tell whether a sentence holds a word or phrase that forbids, obliges or limits, in one of seven languages."""
    if MACHINE.search(sentence):
        return False
    if not sentence.isascii() and CJK.search(sentence):
        return True
    small = f" {sentence.lower().replace('’', chr(39))} "
    if not WORDS.isdisjoint(WORD.findall(small)):
        return True
    return any(phrase in small for phrase in PHRASES) or NE_PAS.search(small) is not None


@memoized
def pins_in(message: Message) -> tuple[str, ...]:
    """Return the sentences of a message's words that forbid, oblige or limit."""
    return pins_of(own_text(message))


def pins(transcript: Transcript) -> tuple[Pin, ...]:
    """Return all pins of a transcript in order, each sentence once, where it was first said."""
    by_text: dict[str, Pin] = {}
    turn = 0
    for message in transcript.messages:
        turn += is_turn(message)
        if digests_in(message):  # sent back by a client: the turns that it quotes are not here any more
            for number, words in quotations(entries_in([message]).lines(CONSTRAINTS)):
                for text in pins_of(words):
                    by_text.setdefault(text, Pin(text, number, message.id, "user"))
        if message.role in ("user", "system") and message.note is None:
            for text in pins_in(message):
                by_text.setdefault(text, Pin(text, turn, message.id, message.role))
    return tuple(by_text.values())


def instruction_text(messages: Iterable[Message]) -> str:
    """Return what users, systems and our own notes say in messages: the only places where a pin may stand."""
    return "\n".join(text_of(message) for message in messages if message.role in ("user", "system"))


def lost(view: View, messages: Sequence[Message] | None = None) -> tuple[Pin, ...]:
    """Return the pins of the view's transcript that its messages, or the messages given, do not hold word for word."""
    present = instruction_text(view.messages if messages is None else messages)
    return tuple(pin for pin in pins(view.transcript) if pin.text not in present)
