"""Lists the identifiers of removed messages that are most likely needed again, and where each was last seen."""

from __future__ import annotations

import re
from collections import Counter
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from refold._condense.call_facts import reads, writes
from refold._condense.call_outline import call_line
from refold._salience.atoms import spoken
from refold._text.graphemes import grapheme_prefix
from refold.core.messages import Message, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.view import View

__all__ = ["Atom", "atoms_in", "grouped", "ledger", "ungrouped", "words_in"]

WORD = re.compile(r"[\w./@+-]+")
BETWEEN = {code: " " for code in range(128) if not WORD.fullmatch(chr(code))}  # ASCII signs that no word holds
FIRST_BYTES = (0xC2, 0xE2)  # in UTF-8, of signs beyond ASCII that no word holds: U+0080 to 00BF and 2000 to 2FFF
BLANKED = bytes(32 if code in BETWEEN or code in FIRST_BYTES else code for code in range(256))
AROUND = "./-+@"  # signs of identifiers that none begins or ends with
SHORTEST, LONGEST = 3, 160  # characters of an identifier
NAMED = re.compile(
    r"(?P<path>.*\w/\w.*|/\w.*|[\w-]+\.(?:[jt]sx?|py|rs|go|java|kt|rb|php|c|h|cc|cpp|hpp|cs|md|toml|json|ya?ml|sql|sh|"
    r"txt|cfg|ini|html|css|lock|xml|csv|proto))|(?P<dotted>[A-Za-z_]\w*(?:\.\w+)+)|"
    r"(?P<name>(?=\w*[A-Za-z])(?:\w+_\w*|_\w+|[a-z]+[A-Z]\w*|(?:[A-Z][a-z0-9]+){2,}\w*|[A-Z]{2,}[a-z]\w+|(?=\w*\d)[A-Za-z0-9-]+[\w-]*|"
    r"[A-Z]{2,}-\d+))|(?P<number>\d{3,}(?:\.\d+)*)",
)
# Chosen by hand; benchmarks/recall.py measures what they give together (docs/salience.md).
WEIGHTS = {"path": 1.5, "dotted": 1.2, "name": 1.0, "number": 0.6}  # of a reference, by its kind
OUTPUT_CHARS = 200_000  # of the newest output that are looked through
OWN_CHARS = 200_000  # of the newest words and calls of users and the assistant
EACH_OWN = 40_000  # characters at the start of one of them
EACH_OUTPUT = 20_000  # characters at the start of one output
KEPT_CHARS = 200_000  # of the newest kept text that are looked through
MESSAGES = "messages"
ELSEWHERE = "elsewhere"
SEVERAL = 4  # identifiers that are worth a line of their own
OWN, SEEN, LATE = 2.0, 0.5, 1.5  # uses by the assistant or the user, showings by tools, how lately
MANY = 4  # uses or showings from which more count for nothing
OWN_WORTH = [OWN * times for times in range(MANY + 1)]
SEEN_WORTH = [SEEN * times for times in range(MANY + 1)]
EARLIER = -1  # in place of a piece's number, for an identifier of an earlier digest
AHEAD = 2  # times as many words as are asked for are looked at: not all are identifiers
LENGTH = 60  # characters that halve the worth of an identifier, since room is short


class RemovedPiece(NamedTuple):
    """A text of a message that left, with the message's place; `own` where a user or the assistant wrote it."""

    text: str
    position: int
    message: Message
    part: ToolCall | ToolResult | None = None
    own: bool = True


class _Candidate(NamedTuple):
    """A word that may be an identifier: its score, and the number of the piece that holds it last."""

    score: float
    word: str
    number: int


class Atom(Struct, frozen=True):
    """An identifier, kept whole or not at all; `source` says where it was last seen."""

    text: str
    source: str
    score: float


def atoms_in(text: str) -> set[str]:
    """Return the identifiers of a text: paths, dotted names, compound names, ids, numbers of three or more digits."""
    return {
        word
        for raw in set(_words(text))
        if SHORTEST <= len(word := raw.strip(AROUND)) <= LONGEST and NAMED.fullmatch(word)
    }


def ledger(
    view: View,
    left: Sequence[Message],
    standing: Iterable[str] = (),
    limit: int = 4_000,
    before: Sequence[tuple[str, str]] = (),
) -> tuple[Atom, ...]:
    """Return identifiers of messages that left which no standing text holds, the likeliest needed first.

    What the assistant wrote itself counts most, then how often and how lately something was mentioned. `before` are
    identifiers of an earlier ledger with their sources; each counts as one that was used once.
    """
    pieces = _pieces(left)
    standing_words = words_in(standing)
    best = _best_spellings(_scores(pieces, len(left), standing_words))
    earlier = {word: source for word, source in before if word not in standing_words and word not in best}
    best |= {word: _Candidate(OWN / _length_penalty(word), word, EARLIER) for word in earlier}
    candidates: Iterable[_Candidate] = best.values()
    if len(best) > AHEAD * limit:
        candidates = nlargest(AHEAD * limit, candidates)
    ranked = [(-score * weight, word, number) for score, word, number in candidates if (weight := _weight(word))]
    ranked.sort()
    sources: dict[int, str] = {}
    for _, _, number in ranked[:limit]:
        if number != EARLIER and number not in sources:
            sources[number] = _source(view, pieces[number])
    return tuple(Atom(word, sources.get(number) or earlier[word], -score) for score, word, number in ranked[:limit])


def _scores(pieces: Sequence[RemovedPiece], messages: int, standing: set[str]) -> Iterator[_Candidate]:
    """Yield the words of pieces that may be identifiers, with their score and the piece that holds them last."""
    used: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    last: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        words = _words(piece.text)
        (used if piece.own else seen).update(words)
        last.update(dict.fromkeys(words, number))
    late = [LATE * (piece.position + 1) / messages for piece in pieces]
    uses, sightings = used.get, seen.get  # a counter's own look-up is slow where it has nothing
    for raw, number in last.items():
        if raw in standing or (raw.isalpha() and raw[1:].islower()):  # a word of prose
            continue
        word = raw if raw.isalnum() else raw.strip(AROUND)
        if not SHORTEST <= len(word) <= LONGEST or word in standing:
            continue
        worth = OWN_WORTH[min(uses(raw, 0), MANY)] + SEEN_WORTH[min(sightings(raw, 0), MANY)] + late[number]
        yield _Candidate(worth / _length_penalty(word), word, number)


def _best_spellings(candidates: Iterable[_Candidate]) -> dict[str, _Candidate]:
    """Return the best candidate of each word: it may stand with and without signs around it."""
    best: dict[str, _Candidate] = {}
    for candidate in candidates:
        known = best.get(candidate.word)
        if known is None or known.score < candidate.score:
            best[candidate.word] = candidate
    return best


def _length_penalty(word: str) -> float:
    return 1 + len(word) / LENGTH


def grouped(atoms: Iterable[Atom]) -> tuple[str, ...]:
    """Return one line a source that has several identifiers, and one for all the others, best first."""
    lines: dict[str, list[str]] = {}
    for atom in atoms:
        lines.setdefault(atom.source, []).append(atom.text)
    several = [f"{source}: {', '.join(words)}" for source, words in lines.items() if len(words) >= SEVERAL]
    single = [word for words in lines.values() if len(words) < SEVERAL for word in words]
    return (*several, f"{ELSEWHERE}: {', '.join(single)}") if single else tuple(several)


def ungrouped(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return identifiers with their sources from lines that `grouped` has made."""
    parted = (line.rpartition(": ") for line in lines)
    return tuple(
        (word, MESSAGES if source == ELSEWHERE else source)
        for source, _, words in parted
        for word in words.split(", ")
        if word
    )


def words_in(texts: Iterable[str]) -> set[str]:
    """Return the words of texts, as they stand and without the signs around them, until enough was looked through."""
    words: set[str] = set()
    spent = 0
    for text in texts:
        words.update(_words(text))
        spent += len(text)
        if spent > KEPT_CHARS:
            break
    return words | {word.strip(AROUND) for word in words if not word.isalnum()}


def _pieces(left: Sequence[Message]) -> list[RemovedPiece]:
    """Return the beginnings of the newest texts, calls and output, oldest first."""
    pieces: list[RemovedPiece] = []
    output_spent = own_spent = 0
    for position in range(len(left) - 1, -1, -1):
        message = left[position]
        for part in message.parts:
            match part:
                case Text(text=text) if own_spent < OWN_CHARS:
                    text = grapheme_prefix(text, EACH_OWN)
                    own_spent += len(text)
                    pieces.append(RemovedPiece(text, position, message))
                case ToolCall() if own_spent < OWN_CHARS:
                    text = grapheme_prefix(spoken(part), EACH_OWN)
                    own_spent += len(text)
                    pieces.append(RemovedPiece(text, position, message, part))
                case ToolResult() if output_spent < OUTPUT_CHARS:
                    text = grapheme_prefix(part.text, EACH_OUTPUT)
                    output_spent += len(text)
                    pieces.append(RemovedPiece(text, position, message, part, own=False))
                case _:
                    pass
    pieces.reverse()
    return pieces


def _source(view: View, piece: RemovedPiece) -> str:
    match piece.part:
        case ToolCall(name=name) as call:
            return next(iter(writes(call)), name)
        case ToolResult() as result:
            answered = view.call_of(piece.message, result)
            ref = reads(answered) if answered else None
            return ref.path if ref else call_line(answered, result)
        case _:
            return MESSAGES


def _weight(word: str) -> float:
    """Return the weight of an identifier by its kind, 0 where a word is none; the common kinds without the pattern."""
    if word.isdecimal():
        return WEIGHTS["number"]
    if "_" in word and word.isidentifier() and word.isascii():
        return WEIGHTS["name"] if word.strip("_0123456789") else 0.0
    kind = NAMED.fullmatch(word)
    return WEIGHTS[kind.lastgroup or "name"] if kind else 0.0


def _words(text: str) -> list[str]:
    """Return the words of a text: what stands between blanks and signs that no identifier holds."""
    if text.isascii():
        return text.translate(BETWEEN).split()
    return text.encode("utf-8", "surrogatepass").translate(BLANKED).decode("utf-8", "ignore").split()
