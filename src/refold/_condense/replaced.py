"""Finds sentences of a user that a later turn of the same user took back, and marks them where they stand.

Nothing that a user said is removed: a sentence that was replaced stays word for word, with a mark behind it. A reader
would else find two values and take the first. To be marked, all of this must hold of a sentence and a later turn:

- the later turn says that something changes ("instead", "no longer", "rather", "not X but Y"), in one of ten languages;
- it has a value that the sentence has not (a number, or an identifier), in place of one that the sentence has;
- both are about the same: they have two words in common that users' turns seldom have, one of them long; one such word
  is enough where the later turn names the old value as such ("9090 instead of 8080").
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_numbers
from refold._condense.pins import sentences_of
from refold._salience.atoms import kind_of, names_of
from refold._salience.words import words_of
from refold.core.messages import Text, memoized

if TYPE_CHECKING:
    from collections.abc import Collection

    from refold._condense.fit_draft import Draft
    from refold.core.messages import Message, MessageId
    from refold.core.transcript import Transcript

__all__ = ["Replacement", "mark_replaced", "replacements"]

CHANGE = re.compile(
    r"\b(?:instead|no longer|rather than|i(?:'d| would) rather|changed my mind|on second thought|scratch that|"
    r"not [^.!?\n]{1,60} but|stattdessen|anstatt|anstelle|statt|doch nicht|doch lieber|nicht mehr|anders überlegt|"
    r"nicht [^.!?\n]{1,60} sondern|plutôt|au lieu|à la place|chang\w+ d'avis|ne [^.!?\n]{1,40} plus|en lugar|en vez|"
    r"en su lugar|mejor|cambi\w+ de (?:idea|opinión)|ya no|em vez|ao invés|em lugar|mud\w+ de ideia|invece|anziché|"
    r"al posto|cambiato idea|non più|вместо|больше не|передумал\w*|лучше)\b"
    r"|代わりに|ではなく|じゃなく|やっぱり|考え直|気が変わ|変更し|改为|改成|改用|换成|而不是|不再|改主意|換成|改為|"
    r"대신|말고|마음이 바뀌",
    re.I,
)
# One of these stands in what `CHANGE` finds in ASCII text: searched first, since most turns hold none of them.
CHANGING = (
    "instead", "longer", "rather", "my mind", "second thought", "scratch that", "not ", "statt", "anstelle", "doch ",
    "nicht ", "au lieu", "avis", " plus", "lugar", " vez", "mejor", "cambi", "ya no", "ideia", "invece", "al posto",
)  # fmt: skip
IN_PLACE = re.compile(  # before the old value
    r"\b(?:instead of|rather than|no longer|not|statt|anstelle von|nicht|au lieu de|plutôt que|en (?:lugar|vez) de|"
    r"em vez de|invece di|вместо)\b",
    re.I,
)
NEAR = 40  # characters in which the old value follows
NUMBER = re.compile(r"(?<![A-Za-z0-9_.-])\d[\d.,:]*(?<![.,:])(?![A-Za-z_])")
LONGEST = 600  # characters of a turn that takes something back; a longer one is a task of its own
LONG = 5  # letters of a word that says what a sentence is about
SHARED = 2  # words that both must have
SELDOM, PART = 3, 0.2  # sentences that may have such a word, and their share
MOST_CHANGES = 100  # newest turns that are looked at as taking something back
MOST_SENTENCES = 300  # that may have a word that is seldom, however many there are
MARK = "[replaced in user turn "


class Replacement(Struct, frozen=True):
    """A sentence of a message, and the number of the user's turn that replaced it."""

    message: MessageId
    sentence: str
    turn: int


class _Sentence(Struct, frozen=True, gc=False):
    """A sentence, or a short turn, with what it says."""

    message: MessageId
    text: str
    numbers: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]


@memoized
def replacements(transcript: Transcript) -> tuple[Replacement, ...]:
    """Return the sentences of users that later turns replaced, in order; each once, with the newest turn."""
    turns = turn_numbers(transcript)
    spoken = [message for message in transcript.messages if message.id in turns]
    changing = [number for number, message in enumerate(spoken) if number and _changes(message)][-MOST_CHANGES:]
    if not changing:  # then nobody has to read them
        return ()
    before: list[_Sentence] = []
    starts: list[int] = []  # how many sentences come before each turn
    for message in spoken:
        starts.append(len(before))
        before += _sentences(message)
    common = Counter(word for sentence in before for word in sentence.words)
    most = min(max(SELDOM, len(before) * PART), MOST_SENTENCES)
    holding: dict[str, list[int]] = {word: [] for word, number in common.items() if number <= most}
    for number, sentence in enumerate(before):
        for word in sentence.words & holding.keys():
            holding[word].append(number)
    replaced: dict[tuple[MessageId, str], Replacement] = {}
    for turn in changing:
        later = _read(spoken[turn].id, own_text(spoken[turn]))
        near = {number for word in later.words & holding.keys() for number in holding[word] if number < starts[turn]}
        for number in sorted(near):
            sentence = before[number]
            if _replaces(later, sentence, holding.keys()):
                replaced[sentence.message, sentence.text] = Replacement(
                    sentence.message, sentence.text, turns[spoken[turn].id]
                )
    return tuple(replaced.values())


@memoized
def _changes(message: Message) -> bool:
    """Tell whether a turn may take something back."""
    text = own_text(message)
    if len(text) > LONGEST or (text.isascii() and not any(map(text.lower().__contains__, CHANGING))):
        return False
    return CHANGE.search(text) is not None


@memoized
def _sentences(message: Message) -> tuple[_Sentence, ...]:
    """Return what each sentence of a turn says."""
    sentences = map(str.strip, sentences_of(own_text(message)))
    return tuple(_read(message.id, sentence) for sentence in sentences if MARK not in sentence)


def mark_replaced(draft: Draft) -> None:
    """Put a mark behind each sentence of the view that was replaced, wherever a draft shows it word for word."""
    for replacement in replacements(draft.view.transcript):
        position = draft.view.index.get(replacement.message)
        original = draft.view.original(replacement.message)
        if position is None or original is None:
            continue
        for part in original.parts:
            if isinstance(part, Text) and not part.ours and replacement.sentence in part.text:
                draft.annotate(position, part.at, partial(_marked, replacement))
                break


def _marked(replacement: Replacement, text: str) -> str:
    """Return a text with a mark on a line of its own behind the sentence, where the sentence stands without one."""
    head, sentence, tail = text.partition(replacement.sentence)
    if not sentence or tail.lstrip().startswith(MARK):
        return text
    rest = tail.lstrip(" ")
    between = "\n" if rest and not rest.startswith("\n") else ""
    return f"{head}{sentence}\n{MARK}{replacement.turn}]{between}{rest}"


def _read(message: MessageId, text: str) -> _Sentence:
    names = frozenset(name for name in names_of(text) if kind_of(name) != "number")
    return _Sentence(message, text, frozenset(NUMBER.findall(text)), names, words_of(text))


def _replaces(later: _Sentence, sentence: _Sentence, seldom: Collection[str]) -> bool:
    """Tell whether a turn that changes something changes what a sentence says."""
    old, new = sentence.numbers | sentence.names, later.numbers | later.names
    named = any(
        value in later.text[match.end() : match.end() + NEAR]
        for match in IN_PLACE.finditer(later.text)
        for value in old
    )
    if not (named and new - old) and not (sentence.numbers - later.numbers and later.numbers - sentence.numbers):
        return False
    of_values = words_of(" ".join(old | new)) if named else sentence.numbers | later.numbers
    shared = {word for word in sentence.words & later.words if word in seldom and word not in of_values}
    about = [word for word in shared if len(word) >= LONG or not word.isascii()]
    return bool(about) and (named or len(shared) >= SHARED)
