"""The ledger: identifiers of what left the view that are most likely needed again, and where each was last seen."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from refold.core.messages import Reasoning, Text, ToolCall, ToolResult
from refold.stages.outline import call_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["Atom", "atoms_in", "grouped", "ledger"]

WORD = re.compile(r"[\w./@+-]+")
BETWEEN = {code: " " for code in range(128) if not WORD.fullmatch(chr(code))}  # ASCII signs that no word holds
SIGNS = "→…─│•—–‘’“”✓✔✗├└━┃■·×⎿●❯"  # signs beyond ASCII that tools print and that no word holds
SHORTEST, LONGEST = 3, 160  # characters of an identifier
NAMED = re.compile(
    r"(?P<path>.*\w/\w.*|/\w.*|[\w-]+\.(?:[jt]sx?|py|rs|go|java|kt|rb|php|c|h|cc|cpp|hpp|cs|md|toml|json|ya?ml|sql|sh|"
    r"txt|cfg|ini|html|css|lock|xml|csv|proto))|(?P<dotted>[A-Za-z_]\w*(?:\.\w+)+)|"
    r"(?P<name>(?=\w*[A-Za-z])(?:\w+_\w*|_\w+|[a-z]+[A-Z]\w*|(?:[A-Z][a-z0-9]+){2,}\w*|[A-Z]{2,}[a-z]\w+|(?=\w*\d)[A-Za-z0-9-]+[\w-]*|"
    r"[A-Z]{2,}-\d+))|(?P<number>\d{3,}(?:\.\d+)*)",
)
WEIGHTS = {"path": 1.5, "dotted": 1.2, "name": 1.0, "number": 0.6}  # of a reference, by its kind
OUTPUT_CHARS = 400_000  # of the newest output that are looked through
EACH_OUTPUT = 20_000  # characters at the start of one output
KEPT_CHARS = 400_000  # of the newest kept text that are looked through
SAID_ELSEWHERE = "messages"
SEVERAL = 4  # identifiers that are worth a line of their own
OWN, SEEN, LATE = 2.0, 0.5, 1.5  # what counts: uses by the assistant or the user, showings by tools, how lately
LENGTH = 60  # characters that halve the worth of an identifier, since room is short


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
        if SHORTEST <= len(word := raw.strip("./-+@")) <= LONGEST and NAMED.fullmatch(word)
    }


def ledger(view: View, left: Sequence[Message], kept: Iterable[str] = (), limit: int = 4_000) -> tuple[Atom, ...]:
    """Return identifiers that stand in messages that left and in no kept text, the likeliest needed first.

    What the assistant wrote itself counts most, then how often and how lately something was said.
    """
    used: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    last: dict[str, tuple[int, str]] = {}
    known: set[str] = set()
    spent = 0
    for place in range(len(left) - 1, -1, -1):
        for source, text, own in _said(view, left[place]):
            if not own:
                if spent >= OUTPUT_CHARS:
                    continue
                text = text[:EACH_OUTPUT]
                spent += len(text)
            found = _words(text)
            (used if own else seen).update(found)
            fresh = [word for word in dict.fromkeys(found) if word not in known]  # in order: plans are deterministic
            known.update(fresh)
            last.update((word, (place, source)) for word in fresh if not (word.isalpha() and word[1:].islower()))
    standing = _words_of(kept)
    atoms: dict[str, Atom] = {}
    for raw, (place, source) in last.items():
        word = raw.strip("./-+@")
        if not SHORTEST <= len(word) <= LONGEST or word in standing or raw in standing:
            continue
        kind = NAMED.fullmatch(word)
        if kind is None:
            continue
        weight = WEIGHTS[kind.lastgroup or "name"]
        score = OWN * min(used[raw], 4) + SEEN * min(seen[raw], 4) + LATE * (place + 1) / len(left)
        score *= weight / (1 + len(word) / LENGTH)
        if word not in atoms or atoms[word].score < score:
            atoms[word] = Atom(word, source, score)
    return tuple(sorted(atoms.values(), key=lambda atom: (-atom.score, atom.text))[:limit])


def grouped(atoms: Iterable[Atom]) -> tuple[str, ...]:
    """Return one line a source that has several identifiers, and one for all the others, best first."""
    lines: dict[str, list[str]] = {}
    for atom in atoms:
        lines.setdefault(atom.source, []).append(atom.text)
    several = [f"{source}: {', '.join(words)}" for source, words in lines.items() if len(words) >= SEVERAL]
    single = [word for words in lines.values() if len(words) < SEVERAL for word in words]
    return (*several, f"elsewhere: {', '.join(single)}") if single else tuple(several)


def _said(view: View, message: Message) -> Iterable[tuple[str, str, bool]]:
    """Yield source, text and whether the assistant or the user wrote it, for each part of a message."""
    for part in message.parts:
        match part:
            case Text(text=text):
                yield SAID_ELSEWHERE, text, True
            case ToolCall(arguments=arguments):
                yield part.name, arguments.replace("\\n", " ").replace('\\"', '"'), True
            case ToolResult():
                yield call_line(view.call_of(message, part), part), part.text, False
            case Reasoning():
                pass
            case _:
                pass


def _words(text: str) -> list[str]:
    """Return the words of a text; by the quicker of two equal ways where no letter is beyond ASCII."""
    for sign in "" if text.isascii() else SIGNS:
        text = text.replace(sign, " ")
    return text.translate(BETWEEN).split() if text.isascii() else WORD.findall(text)


def _words_of(texts: Iterable[str]) -> set[str]:
    words: set[str] = set()
    spent = 0
    for text in texts:
        words.update(_words(text))
        spent += len(text)
        if spent > KEPT_CHARS:
            break
    return words | {word.strip("./-+@") for word in words if not word.isalnum()}
