"""Pins: sentences of user and system messages that state a constraint, verbatim, with their position.

Only what a user or a system message says can become a pin; words of a tool, of a harness (`core._speakers`) or of the
model never do.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.digest.previous import digests_in, entries_in, own_text, quotations
from refold._condense.pasted import without_pasted
from refold._text.places import missing_from
from refold._text.sign_runs import SignRuns
from refold._text.text_cache import text_cache
from refold.core._speakers import is_turn
from refold.core.messages import Message, MessageId, Role, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = [
    "CONSTRAINTS",
    "NO_END",
    "Pin",
    "absent_pins",
    "instruction_text",
    "loses_pins",
    "lost",
    "may_limit",
    "pins",
    "pins_in",
    "pins_of",
    "places_of_pins",
    "sentences_of",
    "standing_in",
]

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
PORTUGUESE = (
    "deve devem devemos sempre somente apenas unicamente evite evitem proibido proibida obrigatório obrigatoriamente"
)
ITALIAN = (
    "mai deve devono dobbiamo sempre soltanto solamente unicamente evita evitare vietato vietata obbligatorio "
    "obbligatoriamente"
)
RUSSIAN = (
    "никогда нельзя должен должна должно должны всегда только обязательно запрещено запрещается избегай избегайте "
    "исключительно необходимо нужно"
)
WORDS = frozenset(f"{ENGLISH} {GERMAN} {FRENCH} {SPANISH} {PORTUGUESE} {ITALIAN} {RUSSIAN}".split())
PHRASES = (
    "do not ", "does not ", " not to ", "no longer ", "may not ", "not allowed", "make sure", "at most", "at least",
    "no more than", "no less than", "not more than", " up to ", "from now on", "before you", "ask me", "tell me if",
    "tell me when", "tell me before", "i like ", "i love ", "i dislike ", "i hate ", "'d rather ", "would rather ",
    "call me ",
    "in doubt", "instead of", "rather than", "stick to", "leave it", "leave the", "read only",
    " ne pas ", "au plus", "au moins", "il faut", " n'", "no uses", "no hagas", "no toques", "no borres", "no cambies",
    "no modifiques", "no puedes", "no escribas", "no elimines", "como máximo", "como mínimo", "hay que",
    "não use", "não altere", "não mude", "não modifique", "não apague", "não toque", "não faça", "não escreva",
    "no máximo", "no mínimo", "é preciso", "non usare", "non modificare", "non toccare", "non cancellare", "non fare",
    "non scrivere", "non cambiare", "al massimo", "al minimo", "bisogna", "не используй", "не трогай", "не меняй",
    "не удаляй", "не делай", "не пиши", "не изменяй", "не более", "не менее", "не должн",
)  # fmt: skip
PAS = " pas"  # the end of what `NE_PAS` finds
# Lines of programs that people paste: numbered lines, places in files, log lines, statements.
MACHINE = re.compile(
    r"^(?:\d+[|:│→]\s{2,}|\d+\t|[\w/-]*[/.][\w./-]+:\d+:|\[?\d{4}-\d\d-\d\d[T ]\d\d:|"
    r"\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR)\b[\]:]|"
    r"[A-Za-z_.]*(?:Error|Exception|Warning): |(?:error|warning)(?:\[\w+\])?: )"
    r"|[{}]$|\);$|^(?:def|class|if|elif|except|return|raise|assert)\b.*[:)]$"
)
NE_PAS = re.compile(r"\bne \w+ pas\b")
WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
WORD_SIGNS = SignRuns(r"[^\W_]|['-]")
LETTERS = SignRuns(r"[^\W_]")
CJK = re.compile(
    "しない|するな|ない(?:で|こと)|べき|必ず|決して|絶対|禁止|のみ|だけ|常に|避け|いけません|なければ(?:なら|いけ)|ください|"
    "不要|不得|不能|不可|不许|不准|禁止|必须|必須|只能|只有|仅|总是|永远|絕不|绝不|切勿|请勿|避免|务必|始终|一定|"
    "하지 ?마|말 ?것|안 ?(?:됩니다|돼|된다)|금지|절대|반드시|항상|해야 ?(?:합니다|해|한다)|이상|이하|"
    "만 (?:사용|수정|변경)"
)
# The end of a sentence with the sign before it, for which a text is searched quickest.
# A number with a period before small letters, digits or brackets ("build 1. and 2. (both)") ends none, nor do
# abbreviations that stand before other words. A script without small letters does not tell, so there it ends one.
NO_END = (
    r"(?!(?<=\d\.)[ \t]+[\da-zß-öø-ÿа-яё]|(?<=\d\.)[ \t]+[(\[&+/,-])"
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\bz\.B\.)(?<!\bd\.h\.)(?<!\bbzw\.)(?<!\bp\.ej\.)"
    r"(?!(?<=\betc\.)[ \t]+[a-z(])(?!(?<=\bapprox\.)[ \t])"
)
BORDER = re.compile(rf"[.!?\n。！？](?:(?<=\n)\n*|(?<=[.!?]){NO_END}[\"'”’)\]]*\s+|(?<=[。！？]))")
CLAUSES = re.compile(r"(?<=[;:,—；，])\s*|(?<=\d\.)\s+")


class Pin(Struct, frozen=True):
    """A sentence that must survive word for word; `turn` counts user messages from 1, 0 is before the first."""

    text: str
    turn: int
    message: MessageId
    role: Role


@text_cache
def pins_of(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that forbid, oblige or limit, as they stand, without those in what was pasted."""
    signs = _signs_in(text)
    if signs is None:
        return ()
    pinned: dict[str, None] = {}
    for sentence in sentences_of(without_pasted(text)):
        pieces = [sentence] if len(sentence) <= LONGEST else CLAUSES.split(sentence)
        for piece in pieces:
            piece = piece.strip()
            if 3 < len(piece) <= LONGEST and _limits(piece, *signs):
                pinned[piece] = None
    return tuple(pinned)


def places_of_pins(text: str, pins: frozenset[str]) -> list[int]:
    """Return where the sentences of a text begin that are pins, in order; blanks may stand before them."""
    return [start for start, stop in _sentences(text) if text[start:stop].strip() in pins] if pins else []


def may_limit(text: str) -> bool:
    """Tell quickly whether it is worth to look at each sentence of a text."""
    return _signs_in(text) is not None


def _signs_in(text: str) -> tuple[frozenset[str], list[str]] | None:
    """Return the words and the phrases that a sentence of a text may limit by; None where no sentence does.

    Neither has to be there in other languages, and where PAS is.
    """
    small = _small(text)
    words, phrases = _words_in(small), _phrases_in(small)
    return (words, phrases) if words or phrases or PAS in small or not text.isascii() else None


def _small(text: str) -> str:
    """Return a text as words and phrases are looked for in it."""
    return text.lower().replace("’", "'")


def _words_in(small: str) -> frozenset[str]:
    """Return those of `WORDS` that a text in small letters holds."""
    runs = WORD_SIGNS(small)
    words = WORDS.intersection(runs)
    if "'" not in small and "-" not in small:
        return words
    return words.union(WORDS.intersection(WORD.findall(" ".join(run for run in runs if not run.isalnum()))))


def _phrases_in(small: str) -> list[str]:
    """Return the phrases that a sentence of a text in small letters may hold, by their first words: it has few."""
    firsts = FIRST_WORDS.intersection(LETTERS(small))
    possible = chain(BEGINNINGS, *map(PHRASES_BY_FIRST_WORD.__getitem__, firsts))
    return [phrase for phrase, stem in possible if stem in small]


def _by_first_word(phrases: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """Return phrases by the word that they begin with, each with what is searched.

    A sentence that begins or ends with a phrase holds it without the blanks at its ends. What is one word alone may be
    the beginning of a longer one, so it stands under no word.
    """
    by_word: dict[str, list[tuple[str, str]]] = {}
    for phrase in phrases:
        stem = phrase.strip()
        first = LETTERS(stem)[0]
        by_word.setdefault("" if stem == first else first, []).append((phrase, stem))
    return by_word


PHRASES_BY_FIRST_WORD = _by_first_word(PHRASES)
BEGINNINGS = PHRASES_BY_FIRST_WORD.pop("", [])
FIRST_WORDS = frozenset(PHRASES_BY_FIRST_WORD)


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of a text, without the blanks and quotation marks behind them."""
    return (text[start:stop] for start, stop in _sentences(text))


@text_cache  # a cut of a long turn asks for them again
def _sentences(text: str) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    start = 0
    for border in BORDER.finditer(text):
        first = border.start()
        spans.append((start, first if text[first] == "\n" else first + 1))
        start = border.end()
    return (*spans, (start, len(text)))


def _limits(sentence: str, words: frozenset[str], phrases: Sequence[str]) -> bool:
    """Tell whether a sentence holds a word or phrase that forbids, obliges or limits, in one of ten languages.

    `words` and `phrases` are those that its text may hold.
    """
    small = f" {_small(sentence)} "
    return (
        (any(map(small.__contains__, words)) and bool(_words_in(small)))
        or any(_holds(small, phrase) for phrase in phrases)
        or (PAS in small and NE_PAS.search(small) is not None)
        or (not sentence.isascii() and CJK.search(sentence) is not None)
    ) and not MACHINE.search(sentence)


def _holds(small: str, phrase: str) -> bool:
    """Tell whether a text holds a phrase that does not begin within a word, as "at most" does in "that most"."""
    at = small.find(phrase)
    while at > 0 and phrase[0].isalnum() and small[at - 1].isalnum():
        at = small.find(phrase, at + 1)
    return at >= 0


@memoized
def pins_in(message: Message) -> tuple[str, ...]:
    """Return the sentences of a message's words that forbid, oblige or limit."""
    return pins_of(own_text(message))


@memoized
def standing_in(message: Message) -> frozenset[str]:
    """Return the pinned sentences that stand in a message, and others where a plan has changed it: quicker to tell."""
    return frozenset(map(str.strip, sentences_of(own_text(message))) if message.patches else pins_in(message))


@memoized
def pins(transcript: Transcript) -> tuple[Pin, ...]:
    """Return all pins of a transcript in order, each sentence once, where it was first said."""
    by_text: dict[str, Pin] = {}
    turn = 0
    for message in transcript.messages:
        turn += is_turn(message)
        for number, text in _quoted_pins(message):  # sent back by a client: the turns are not here any more
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
    messages = view.messages if messages is None else messages
    absent = frozenset(absent_pins(pins(view.transcript), messages))
    return tuple(pin for pin in pins(view.transcript) if pin.text in absent) if absent else ()


def loses_pins(view: View, messages: Sequence[Message]) -> bool:
    """Tell whether messages do not hold every pin of the view's transcript word for word."""
    return next(absent_pins(pins(view.transcript), messages), None) is not None


def absent_pins(every: Sequence[Pin], messages: Sequence[Message]) -> Iterator[str]:
    """Yield the texts of pins that messages do not hold; what is pinned there needs no search."""
    holding = [message for message in messages if message.role in ("user", "system")]
    present: set[str] = set()
    for message in holding:
        present.update(text for _, text in _quoted_pins(message))
        present.update(standing_in(message))
    yield from missing_from(instruction_text(holding), [pin.text for pin in every if pin.text not in present])


@memoized
def _quoted_pins(message: Message) -> tuple[tuple[int, str], ...]:
    """Return the pins that a digest in a message quotes, with their turns."""
    if not digests_in(message):
        return ()
    quoted = quotations(entries_in([message]).lines(CONSTRAINTS))
    return tuple((number, text) for number, words in quoted for text in pins_of(words))
