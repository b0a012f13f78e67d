"""Pins: the sentences of user and system messages that set a limit, word for word, with where they were said.

Only what a user or a system message says can become a pin; words of a tool or of the model never do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.messages import Message, MessageId, Role, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["Pin", "lost", "pins", "pins_of", "said_in"]

LONGEST = 600  # characters; a longer sentence is split at its clauses, a longer clause is no prose

# Words that forbid, oblige or limit; matched in text of users and systems only, so that a false hit costs a line.
ENGLISH = (
    r"never|must(?:n['’]?t)?|only|don['’]?t|do not|does not|not to|no longer|always|avoid|cannot|can['’]?t|may not|"
    r"shall|should(?:n['’]?t)?|won['’]?t|not allowed|forbidden|prohibited|required?|requires|ensure|make sure|"
    r"without|unless|except|at (?:most|least)|no more than|no less than|not more than|up to|within|exactly|"
    r"from now on|read[- ]only|before you|ask me|tell me|in doubt|instead of|rather than|prefer|stick to|"
    r"leave \w+ (?:alone|as|untouched)|keep|stay|every(?:where)?|remember|important"
)
GERMAN = (
    r"nie(?:mals)?|muss|müssen|musst|nicht|nur|immer|kein(?:e|en|er|em|es)?|darf(?:st)?|dürfen|vermeide[n]?|ohne|"
    r"höchstens|mindestens|soll(?:st|en|te)?|ausschließlich|verboten|bitte|stets"
)
FRENCH = (
    r"jamais|ne [\w'’]+ pas|n['’]\w+ pas|ne pas|doit|doivent|devez|dois|toujours|seulement|uniquement|évite[rz]?|sans|"
    r"interdit[e]?s?|au (?:plus|moins)|obligatoire(?:ment)?|il faut"
)
SPANISH = (
    r"nunca|jamás|debe[ns]?|debes|siempre|solo|sólo|solamente|únicamente|evita[r]?|sin|no (?:uses?|hagas|toques?|"
    r"borres?|cambies?|modifiques?|debes?|puedes?|escribas?|elimines?)|prohibid[oa]s?|como (?:máximo|mínimo)|hay que"
)
WORDS = re.compile(rf"\b(?:{ENGLISH}|{GERMAN}|{FRENCH}|{SPANISH})\b", re.I)
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


def pins_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that forbid, oblige or limit, as they stand."""
    found: dict[str, None] = {}
    for sentence in ENDS.split(text):
        pieces = [sentence] if len(sentence) <= LONGEST else CLAUSES.split(sentence)
        for piece in pieces:
            piece = piece.strip()
            if 3 < len(piece) <= LONGEST and (WORDS.search(piece) or CJK.search(piece)):
                found[piece] = None
    return tuple(found)


def pins(transcript: Transcript) -> tuple[Pin, ...]:
    """Return all pins of a transcript in order, each sentence once, where it was first said."""
    found: dict[str, Pin] = {}
    turn = 0
    for message in transcript.messages:
        turn += message.role == "user" and message.note is None
        if message.role in ("user", "system") and message.note is None:
            for text in pins_of(text_of(message)):
                found.setdefault(text, Pin(text, turn, message.id, message.role))
    return tuple(found.values())


def said_in(messages: Iterable[Message]) -> str:
    """Return what users, systems and our own notes say in messages: the only places where a pin may stand."""
    return "\n".join(text_of(message) for message in messages if message.role in ("user", "system"))


def lost(view: View, wanted: Iterable[Pin] | None = None) -> tuple[Pin, ...]:
    """Return the pins that the view no longer holds word for word; `wanted` are all of the transcript's by default."""
    said = said_in(view.messages)
    return tuple(pin for pin in (pins(view.transcript) if wanted is None else wanted) if pin.text not in said)
