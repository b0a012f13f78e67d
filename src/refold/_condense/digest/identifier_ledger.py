"""Lists the identifiers of removed messages that are most likely needed again, and where each was last seen."""

from __future__ import annotations

import re
from collections import Counter
from heapq import nlargest
from itertools import chain, repeat
from operator import itemgetter
from string import ascii_letters
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import act_of, is_shell, plain_name, reads, writes
from refold._condense.call_outline import PARTS, call_line
from refold._condense.digest.identifier_kinds import (
    NAMED,
    WEIGHTS,
    Folders,
    IdentifierKind,
    argument_names,
    is_whole,
    kind_of,
    labeled,
    without_codes,
)
from refold._condense.digest.open_items import base_name
from refold._condense.file_views import FileWritten, TextReplaced, changes_of, command_of, is_scratch
from refold._condense.shell_commands import displayed_by
from refold._salience.atoms import KNOWN
from refold._salience.lazy_table import LazyTable
from refold._text.graphemes import grapheme_prefix
from refold._text.secrets import names_secret
from refold.core.messages import File, Image, Message, Text, ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = [
    "Atom",
    "asks_the_web",
    "atoms_in",
    "grouped",
    "identifiers_of",
    "ledger",
    "prepare",
    "ungrouped",
    "words_in",
]

WORD = re.compile(r"[\w./@+~-]+")
SCRIPTS = re.compile(r"brows|javascript|eval(?!uation)|query|sql|run_?code|interpreter")  # in names of tools
CUT_WORD = re.compile(rf"{WORD.pattern}\Z")
BETWEEN = {code for code in range(128) if not WORD.fullmatch(chr(code))}  # ASCII signs that no word holds
FIRST_BYTES = (0xC2, 0xE2)  # in UTF-8, of signs beyond ASCII that no word holds: U+0080 to 00BF and 2000 to 2FFF
BLANKED = bytes(32 if code in BETWEEN or code in FIRST_BYTES else code for code in range(256))
AROUND = "./-+@~"  # signs of identifiers that none begins or ends with
SHORTEST, LONGEST = 3, 160  # characters of an identifier
MOST_CHARS = 4_000_000  # of the newest text that are looked through
EACH = 40_000  # characters at the start of one text, call or output
KEPT_CHARS = 1_000_000  # of the newest kept text that are looked through
LEAD = re.compile(r"(?:\./)?((?:(?:\.\./)+|~/|/|@)?\.?)")  # signs in front that belong to a path
COMMAND = 300  # characters of a call up to which it is a command and no text
MESSAGES, COMMANDS = "messages", "commands"
ELSEWHERE = "elsewhere"  # in digests of earlier releases
PATHS, NAMES, ADDRESSES, IDS, NUMBERS = ORDER = ("paths", "names", "addresses", "ids", "numbers")
IN_COMMANDS, IN_MESSAGES = "names in commands and their output", "names in messages"
SOURCES = {IN_COMMANDS: COMMANDS, IN_MESSAGES: MESSAGES}  # of names, by the title of their line
IN_FILE = re.compile(r"(.+) \(([^()]+)\)")  # a name with the file that has it, in digests of earlier releases
TITLES: dict[IdentifierKind, str] = {"path": PATHS, "url": ADDRESSES, "id": IDS, "number": NUMBERS}
# Kinds of which a word that a tool showed once, and nobody used, is asked for again in one of twenty cases, and one
# that only words of the assistant or the user have in one of sixty (97 cuts of 36 recorded sessions, where one in seven
# of the others is). So are of names of fields in JSON one in forty, and of what new code calls one in twenty-five.
PASSING: frozenset[IdentifierKind] = frozenset({"name", "dotted"})
# Kinds of which a word that only tools showed is hardly ever asked for again: of 130 on 32 recorded sessions, none was.
UNUSED: frozenset[IdentifierKind] = frozenset({"id", "number", "url"})
# Kinds of which a word that only a page of the web showed, or the text of a file once, is one of its examples or
# imports ("/workspace/my-app"): of 75 to 116 characters of such paths in each list (52 cuts of recorded sessions)
# hardly one is asked for again.
OF_A_TEXT: frozenset[IdentifierKind] = frozenset({"path", "words"})
# Of these hardly one in a hundred is asked for again (82 transcripts at a quarter and at a tenth): names of up to four
# letters, a few letters with a number (A15, WP4, TS2304), colours, packages with a version, scratch files, members of a
# variable of one letter (`m.sep`).
SHORT = 4
NUMBERED = re.compile(r"[A-Z][A-Za-z]{0,3}\d{1,4}|(?=[0-9A-F]*\d)[0-9A-F]{6}")
VERSIONED = re.compile(r"(?:[\w-]+/)?[\w.-]+@[\^~v]?\d[\w.]*$")
WEB = re.compile(r"web|fetch|brows|url|http|^code_?search")  # in names of tools
CUT = "…"  # in a line of a call that is not whole
FILE = re.compile(r"[\w-]\.[A-Za-z]\w{,4}\b")  # in such a line
LISTS = re.compile(r"glob|ls\b|list|find|tree")  # how names of tools begin that list files
LISTING = re.compile(r"\b(?:ls|find|tree|fd)\b|ls-files|--files\b|--stat\b|--name-only|git (?:status|pull)\b")
SEVERAL_FILES = 3  # files that one call shows or writes, of which nobody can tell which has a name
IN_CONTEXT = ("path", "words", "url", "id", "number")  # kinds that what stands around them decides on
ARGUMENT = re.compile(r'"([^"\\]{1,60})"\s*:\s*"(?:[^"\\]|\\.)*+"')  # of a call, as JSON
# Of JSON, in this order: what then stands behind a backslash is of the text inside.
ESCAPES = {"\\\\": "\0", "\\n": " ", "\\t": " ", "\\r": " ", '\\"': '"', "\\/": "/", "\0": "\\"}
OWN, SEEN, LATE = 2.0, 0.5, 1.5  # uses by the assistant or the user, showings by tools, how lately
DOTTED_PARTS = 3  # of a dotted name that was shown once: such a list is asked for one in eighty of them
# Names of numbers that say which one of many something is; others count or measure.
OF_ONE = re.compile(
    r"(?:^|[_-]|(?<=[a-z])(?=[A-Z]))(?i:ids?|no|nr|number|port|pid|issue|pr|pull|ticket|order|account|invoice|build|run|"
    r"job|version|rev|revision|user|customer|flight|reservation|booking|room|item|product|sku|phone|zip)$"
)
MOST_VALUES = 5  # numbers or ids of one name, and members of one series
SERIES = re.compile(r"([A-Z][A-Za-z0-9]*)-\d+")  # TASK-1, TASK-2
REPEATED = 2  # mentions from which a number or an id is one that is referred to
MANY = 4  # uses or showings from which more count for nothing
OWN_WORTH = [OWN * times for times in range(MANY + 1)]
SEEN_WORTH = [SEEN * times for times in range(MANY + 1)]
EARLIER = -1  # in place of a piece's number, for an identifier of an earlier digest
IMAGE_NAME = re.compile(r'"\$ref"\s*:\s*"[^"]*"')  # Gemini names an image of the same output, which leaves with it
LETTERS, ESCAPED = ascii_letters, "bfnrt"
WITHOUT_FIRST = itemgetter(slice(1, None))
AHEAD = 2  # times as many words as are asked for are looked at: not all are identifiers
LENGTH = 60  # characters that halve the worth of an identifier, since room is short


class RemovedPiece(NamedTuple):
    """A part of a message that left, with the message's place; `own` where a user or the assistant wrote it."""

    part: Text | ToolCall | ToolResult
    position: int
    message: Message
    own: bool = True


class _Candidate(Struct, frozen=True, order=True, gc=False):
    """A word that may be an identifier: its score, and the number of the piece that holds it last.

    `raw` is the word with the signs around it, `used` and `seen` tell how many pieces hold it: of users and the
    assistant, and of tools.
    """

    score: float
    word: str
    number: int
    raw: str
    used: int = 1
    seen: int = 0
    kind: IdentifierKind | None = None


class _Spelling(Struct, frozen=True, gc=False):
    """A word without the signs around it, its kind where it may be an identifier, and what divides its worth."""

    word: str
    kind: IdentifierKind | None
    penalty: float


class Atom(Struct, frozen=True):
    """An identifier, kept whole or not at all; `source` says where it was last seen.

    `written` is how a list writes it: a path with the signs in front, a number or an id with what it is.
    """

    text: str
    source: str
    score: float
    kind: IdentifierKind = "name"
    written: str = ""


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
    earlier = {_bare(written): (written, source) for written, source in before}
    best, passing = _best_spellings(pieces, len(left), standing_words, earlier.keys(), AHEAD * limit)
    for word, (written, _) in earlier.items():
        if word in best:
            best[word] = _used_once_more(best[word])
        elif word not in standing_words:
            kind = kind_of(word, written.partition(word)[0])
            best[word] = _Candidate(OWN / _length_penalty(word), word, EARLIER, written, kind=kind)
    candidates: Iterable[_Candidate] = best.values()
    if len(best) > AHEAD * limit:
        candidates = nlargest(AHEAD * limit, candidates)
    arguments = frozenset().union(*(argument_names(call) for message in left for call in message.calls))
    ranked = _of_kinds(candidates, arguments | _only_in_scripts(view, pieces))
    known = standing_words.union(best, passing)
    ends = frozenset(map(WITHOUT_FIRST, known))
    folders = Folders(word for _, word, each, kind in ranked if kind == "path" and not _is_rest(each, known, ends))
    atoms: list[Atom] = []
    sources = LazyTable(lambda number: _source(view, pieces[number]))
    printers = LazyTable(lambda number: _printed_by(view, pieces[number]))
    beginnings = LazyTable(lambda number: _text_of(pieces[number].part))
    labels: Counter[str] = Counter()
    for negative, word, candidate, kind in ranked:
        if len(atoms) >= limit:
            break
        number = candidate.number
        if number == EARLIER:
            if _is_rest(candidate, known, ends):
                continue
            written, source = earlier[word]
        else:
            part = pieces[number].part
            if _leads_nowhere(candidate, kind, part):
                continue
            if not candidate.used and _passed_by(candidate, kind, printers[number]):  # nobody took it up
                continue
            if _is_rest(candidate, known, ends):
                continue
            if kind in PASSING and _is_by_the_way(candidate, part):  # last, since it searches the part
                continue
            beginning = beginnings[number] if kind in IN_CONTEXT else ""
            source = sources[number]
            if kind in PASSING and _was_removed(view.transcript, word, source, pieces[number].message):
                continue
            written = _written(candidate, kind, pieces[number], beginning, folders)
        series = SERIES.fullmatch(word) if kind == "name" else None
        if series or kind in ("number", "id"):
            label = series[1] if series else written.partition(" ")[0]
            labels[label] += 1
            if label in arguments or (label and labels[label] > MOST_VALUES):  # of a call's setting, or of a column
                continue
        if written:
            atoms.append(Atom(word, source, -negative, "path" if kind == "words" else kind, written))
    return tuple(atoms)


def _only_in_scripts(view: View, pieces: Sequence[RemovedPiece]) -> frozenset[str]:
    """Return the words that only programs run in a browser or a database, and their output, have."""
    scripts = {id(piece.part) for piece in pieces if isinstance(piece.part, ToolCall) and _is_script(piece.part)}
    if not scripts:
        return frozenset()
    inside, outside = set[str](), set[str]()
    for piece in pieces:
        part = piece.part
        if isinstance(part, Text):
            outside.update(_of_texts(piece.message)[part.text])
            continue
        call = part if isinstance(part, ToolCall) else view.call_of(piece.message, part)
        (inside if id(call) in scripts else outside).update(identifiers_of(part))
    return frozenset(SPELLINGS[raw].word for raw in inside) - {SPELLINGS[raw].word for raw in outside}


def _is_script(call: ToolCall) -> bool:
    """Tell whether a call runs a program that the assistant wrote for one look."""
    runs = len(call.arguments) > COMMAND and SCRIPTS.search(plain_name(call.name)) is not None
    return runs and not (writes(call) or is_shell(call))


def _was_removed(transcript: Transcript, word: str, source: str, message: Message) -> bool:
    """Tell whether a change of a file took a word out of it, then or after it was shown."""
    log, at = _changed_words(transcript).get(base_name(source)), transcript.index[message.id]
    if log is None:
        return False
    return log.removed.get(word, -1) >= at or (log.whole > at and word not in log.words)


class _ChangedWords(Struct):
    """Words that edits took out of a file, with the place of the message that did, and what it was last written as."""

    removed: dict[str, int]
    whole: int = -1
    words: frozenset[str] = frozenset()


@memoized
def _changed_words(transcript: Transcript) -> dict[str, _ChangedWords]:
    """Return what changes did to the words of each file, by its name."""
    files: dict[str, _ChangedWords] = {}
    for at, message in enumerate(transcript.messages):
        for name, old, new in chain.from_iterable(map(_words_of_changes, message.calls)):
            log = files.setdefault(name, _ChangedWords({}))
            if old is None:
                log.removed, log.whole, log.words = {}, at, new
                continue
            log.removed |= dict.fromkeys(old - new, at)
            for word in log.removed.keys() & new:
                del log.removed[word]
    return files


@memoized
def _words_of_changes(call: ToolCall) -> tuple[tuple[str, frozenset[str] | None, frozenset[str]], ...]:
    """Return the files that a call changes, with the words of the text that it replaces and of the new one.

    The first are None where the file is written as a whole.
    """
    return tuple(
        (base_name(change.path), None, _bare_words(change.text))
        if isinstance(change, FileWritten)
        else (base_name(change.path), _bare_words(change.old), _bare_words(change.new))
        for change in changes_of(call)
        if isinstance(change, FileWritten | TextReplaced)
    )


def _bare_words(text: str) -> frozenset[str]:
    return frozenset(SPELLINGS[raw].word for raw in _words(text))


def _leads_nowhere(candidate: _Candidate, kind: IdentifierKind, part: Text | ToolCall | ToolResult) -> bool:
    """Tell whether a word is of a sort that is not asked for again, whatever it stood in."""
    word = candidate.word
    if kind == "url":
        return candidate.used < REPEATED and not (isinstance(part, ToolCall) and is_shell(part))
    if kind == "path":
        return VERSIONED.match(word) is not None or (is_scratch(f"/{word}") and candidate.used < REPEATED)
    if kind == "name" and (len(word) <= SHORT or NUMBERED.fullmatch(word)):
        return True
    if kind == "dotted" and word[1] == "." and not candidate.used:
        return True
    # a variable of a program that the assistant wrote for one look, in a browser or a database
    return (
        kind in PASSING
        and isinstance(part, ToolCall)
        and candidate.used + candidate.seen < REPEATED
        and len(part.arguments) > COMMAND
        and not (writes(part) or is_shell(part))
    )


def _is_by_the_way(candidate: _Candidate, part: Text | ToolCall | ToolResult) -> bool:
    """Tell whether a name is of words alone, the name of a field in JSON, or of what the assistant's code calls."""
    match part:
        case Text():
            return not candidate.seen
        case ToolCall(arguments=text):
            return not candidate.seen and f"{candidate.word}(" in text
        case ToolResult(text=text):
            fields = text.count(f'"{candidate.word}":')
            return fields > 0 and fields == text.count(candidate.word)


def _passed_by(candidate: _Candidate, kind: IdentifierKind, printer: str) -> bool:
    """Tell whether a word that nobody used only passed by: of those hardly one in thirty is asked for again."""
    if kind in OF_A_TEXT:
        in_passing = printer == "long" or (printer in ("listing", "files") and "/" not in candidate.word)
        from_root = candidate.raw.startswith(("/", "~"))
        return in_passing or from_root or printer == "web" or (not printer and candidate.seen < REPEATED)
    if kind not in PASSING:
        return kind in UNUSED
    return printer in ("tool", "web", "files") or candidate.seen < REPEATED


def _printed_by(view: View, piece: RemovedPiece) -> Literal["command", "listing", "long", "tool", "files", "web", ""]:
    """Return what printed a piece, nothing where it is the content of a file or was written.

    Of commands a listing of files and one whose line is too long to be told whole stand apart, of tools one that lists.
    """
    call = view.call_of(piece.message, piece.part) if isinstance(piece.part, ToolResult) else None
    if call is None or reads(call) is not None:
        return ""
    if is_shell(call):
        line = call_line(call)
        return "listing" if LISTING.search(line) else "long" if CUT in line and not FILE.search(line) else "command"
    return "web" if asks_the_web(call) else "files" if LISTS.match(plain_name(call.name)) else "tool"


def asks_the_web(call: ToolCall) -> bool:
    """Tell whether a call looks at a page of the web or searches it, by its tool's name."""
    return WEB.search(plain_name(call.name)) is not None


def _is_rest(candidate: _Candidate, known: Set[str], ends: Set[str]) -> bool:
    """Tell whether a known word is this one with a letter before it, which a tool cut, or without an escape's letter.

    One that the assistant uses is no rest. `ends` are the known words without their first signs.
    """
    word = candidate.word
    if candidate.used > 1 or not word[:1].isalpha():
        return False
    return (word in ends and any(letter + word in known for letter in LETTERS)) or (
        word[0] in ESCAPED and word[1:] in known
    )


def _of_kinds(
    candidates: Iterable[_Candidate], arguments: frozenset[str]
) -> list[tuple[float, str, _Candidate, IdentifierKind]]:
    """Return the candidates that are identifiers with word and kind, best first by their score and its weight."""
    ranked: list[tuple[float, str, _Candidate, IdentifierKind]] = []
    for candidate in candidates:
        kind, word = candidate.kind, candidate.word
        if kind is None or word in arguments:
            continue
        chain = kind == "dotted" and word.count(".") >= DOTTED_PARTS - 1
        if (chain or kind in ("id", "number")) and not candidate.used and candidate.seen < REPEATED:
            continue
        ranked.append((-candidate.score * WEIGHTS[kind], word, candidate, kind))
    ranked.sort()  # no two have the same word
    return ranked


def _written(candidate: _Candidate, kind: IdentifierKind, piece: RemovedPiece, text: str, folders: Folders) -> str:
    """Return how a list writes an identifier, nothing where its surroundings show that it is none.

    `text` is the beginning of what the piece says, which is asked for only of kinds `IN_CONTEXT`.
    """
    word, raw = candidate.word, candidate.raw
    match kind:
        case "number" | "id":
            named = labeled(text, word, prose=piece.own)
            says = isinstance(piece.part, Text) or kind == "id" or OF_ONE.search(named.partition(" ")[0])
            return named if says else ""
        case "words" if not (word in folders or _in_command(piece.part)):
            return ""
        case "url" if raw.startswith("//"):
            scheme = next((each for each in ("https:", "http:") if f"{each}{raw}" in text), "")
            return f"{scheme}//{word}" if scheme else ""
        case "path" | "words" if not is_whole(text, raw) or (raw.startswith("../") and not candidate.used):
            return ""
        case "path" | "words":
            lead = LEAD.fullmatch(raw.partition(word)[0])
            return f"{lead[1]}{word}" if lead else word
        case _:
            return word


def _in_command(part: Text | ToolCall | ToolResult) -> bool:
    """Tell whether a part is a call without a longer text, where even plain words with a slash are a path or branch."""
    return isinstance(part, ToolCall) and len(part.arguments) <= COMMAND


def _bare(written: str) -> str:
    """Return the word that `_written` was made of."""
    if " " in written:
        first, last = written.split(" ", 1)
        return first if first[0].isdecimal() else last
    return written.partition("://")[2].strip(AROUND) or written.strip(AROUND)


def _used_once_more(candidate: _Candidate) -> _Candidate:
    """Return a candidate that an earlier ledger holds, too."""
    more = OWN_WORTH[min(candidate.used + 1, MANY)] - OWN_WORTH[min(candidate.used, MANY)]
    score = candidate.score + more / _length_penalty(candidate.word)
    return replace(candidate, score=score, used=candidate.used + 1)


def _is_excerpt(piece: RemovedPiece) -> bool:
    """Tell whether a piece is what an earlier plan left of an output."""
    return isinstance(piece.part, ToolResult) and piece.part.text.startswith(PARTS)


def _best_spellings(
    pieces: Sequence[RemovedPiece], messages: int, standing: Set[str], earlier: Set[str], most: int
) -> tuple[dict[str, _Candidate], Set[str]]:
    """Return the best candidate of each identifier of pieces: it may stand with and without signs around it.

    Where there are no more than `most`, those that only passed by are returned as words: most of a long conversation.
    """
    words_of = [
        _of_texts(piece.message)[piece.part.text] if isinstance(piece.part, Text) else identifiers_of(piece.part)
        for piece in pieces
    ]
    of_pieces = list(zip(pieces, words_of, strict=True))
    used = Counter(chain.from_iterable([words for piece, words in of_pieces if piece.own]))
    seen = Counter(chain.from_iterable([words for piece, words in of_pieces if not piece.own]))
    # an earlier plan chose these among all of an output: that they stand there tells more than one mention
    seen.update(chain.from_iterable([words for piece, words in of_pieces if _is_excerpt(piece)]))
    numbers = chain.from_iterable(map(repeat, range(len(pieces)), map(len, words_of)))
    last = dict(zip(chain.from_iterable(words_of), numbers, strict=True))  # the piece that holds a spelling last
    spelled = [(raw, spelling) for raw in last if (spelling := SPELLINGS[raw]).word not in standing]
    passing: Set[str] = set()
    if len(spelled) + len(earlier) <= most:
        of_tools, others = set[str](), set(earlier)
        for raw, spelling in spelled:
            (of_tools if spelling.kind in UNUSED and raw not in used else others).add(spelling.word)
        passing = of_tools - others
    late = [LATE * (piece.position + 1) / messages for piece in pieces]
    uses, sightings = used.get, seen.get  # a counter's own look-up is slow where it has nothing
    best: dict[str, _Candidate] = {}
    for raw, spelling in spelled:
        word = spelling.word
        if word in passing:
            continue
        own, by_tools, number = uses(raw, 0), sightings(raw, 0), last[raw]
        worth = OWN_WORTH[own if own < MANY else MANY] + SEEN_WORTH[by_tools if by_tools < MANY else MANY]
        score = (worth + late[number]) / spelling.penalty
        known = best.get(word)
        if known is None or known.score < score:
            best[word] = _Candidate(score, word, number, raw, own, by_tools, spelling.kind)
    return best, passing


def _length_penalty(word: str) -> float:
    return 1 + len(word) / LENGTH


def _without_parts(atoms: Iterable[Atom]) -> list[Atom]:
    """Return identifiers without the paths that another of them ends in."""
    listed = list(atoms)
    inside: set[str] = set()
    for atom in listed:
        parts = atom.text.split("/")
        inside.update("/".join(parts[start:]) for start in range(1, len(parts)))
    return [atom for atom in listed if atom.text not in inside]


def grouped(atoms: Iterable[Atom]) -> tuple[str, ...]:
    """Return identifiers as lines by what they are, best first: names by the file that showed them.

    The lines are paths, names of each file, those of commands and of messages, addresses, and ids and numbers with what
    they are.
    """
    lines: dict[str, list[str]] = {PATHS: []}
    of_files: dict[str, list[str]] = {}
    for atom in _without_parts(atoms):
        written = atom.written or atom.text
        if title := TITLES.get(atom.kind):
            lines.setdefault(title, []).append(written)
        elif _leads_back(atom.source):
            of_files.setdefault(atom.source, []).append(written)
        else:
            lines.setdefault(IN_MESSAGES if atom.source == MESSAGES else IN_COMMANDS, []).append(written)
    lines |= of_files
    titles = (PATHS, *of_files, *SOURCES, *ORDER[2:])
    return tuple(f"{title}: {', '.join(lines[title])}" for title in titles if lines.get(title))


def ungrouped(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return identifiers, as they were written, with their sources from lines that `grouped` has made."""
    parted = (line.rpartition(": ") for line in lines)
    return tuple(
        (named[1], named[2])
        if source == NAMES and (named := IN_FILE.fullmatch(word))
        else (word, SOURCES.get(source, MESSAGES if source in (*ORDER, ELSEWHERE) else source))
        for source, _, words in parted
        for word in words.split(", ")
        if word
    )


def _leads_back(source: str) -> bool:
    """Tell whether a source is a file: of a call its names alone are told."""
    return any(sign in source for sign in "/.\\")


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
    """Return the texts, calls and output of messages in order, the newest characters of them only."""
    pieces: list[RemovedPiece] = []
    spent = 0
    for position in range(len(left) - 1, -1, -1):
        if spent > MOST_CHARS:
            break
        message = left[position]
        for part in message.parts:
            match part:
                case Text(text=text) | ToolCall(arguments=text):
                    pieces.append(RemovedPiece(part, position, message))
                case ToolResult(text=text):
                    pieces.append(RemovedPiece(part, position, message, own=False))
                case _:
                    continue
            spent += min(len(text), EACH)
    pieces.reverse()
    return pieces


def prepare(message: Message) -> None:
    """Find the identifiers of a message and the names of its calls' arguments; the message and its parts remember."""
    _of_texts(message)
    for call in message.calls:
        identifiers_of(call)
        argument_names(call)
    for result in message.results:
        identifiers_of(result)


@memoized
def _of_texts(message: Message) -> dict[str, tuple[str, ...]]:
    """Return the identifiers of each text of a message."""
    return {part.text: _identifiers(part) for part in message.parts if isinstance(part, Text)}


@memoized
def identifiers_of(part: ToolCall | ToolResult) -> tuple[str, ...]:
    """Return the identifiers of a call or an output, each once, with the signs around them; the part remembers them."""
    return _identifiers(part)


def _identifiers(part: Text | ToolCall | ToolResult) -> tuple[str, ...]:
    words = dict.fromkeys(_words(_text_of(part)))
    worth_a_look = [raw for raw in words if not (raw.isalpha() and raw[1:].islower())]  # not a word of prose
    return tuple([raw for raw in worth_a_look if SPELLINGS[raw].kind is not None])


def _spelling(raw: str) -> _Spelling:
    word = raw if raw.isalnum() else raw.strip(AROUND)
    kind = kind_of(word, raw.partition(word)[0]) if SHORTEST <= len(word) <= LONGEST else None
    return _Spelling(word, kind, _length_penalty(word))


SPELLINGS = LazyTable(_spelling, KNOWN)  # by the word with the signs around it


def _text_of(part: Text | ToolCall | ToolResult) -> str:
    """Return the beginning of what a part says, in whole words."""
    text = part.arguments if isinstance(part, ToolCall) else part.text
    if isinstance(part, ToolCall) and act_of(part) is None and names_secret(text):
        text = ARGUMENT.sub(lambda pair: "" if names_secret(pair[1]) else pair[0], text)
    if len(text) > EACH:
        text = grapheme_prefix(text, EACH)
        text = text[:-LONGEST] + CUT_WORD.sub("", text[-LONGEST:])
    if isinstance(part, ToolCall) and "\\" in text:
        for escape, sign in ESCAPES.items():
            text = text.replace(escape, sign)
    text = without_codes(text)
    if isinstance(part, ToolResult) and any(isinstance(inner, Image | File) for inner in part.content):
        return IMAGE_NAME.sub(" ", text)
    return text


def _source(view: View, piece: RemovedPiece) -> str:
    match piece.part:
        case ToolCall() as call:
            return _source_of_files(writes(call))
        case ToolResult() as result:
            answered = view.call_of(piece.message, result)
            ref = reads(answered) if answered else None
            return ref.path if ref else _source_of_result(answered)
        case _:
            return MESSAGES


def _source_of_result(call: ToolCall | None) -> str:
    """Return the file or the two of which a command shows parts, else that it is one."""
    parts = displayed_by(command_of(call)) if call and is_shell(call) else ()
    return _source_of_files(path for path, *_ in parts)


def _source_of_files(paths: Iterable[str]) -> str:
    """Return the file or the two that a call reads or writes, else that it is a command."""
    files = list(dict.fromkeys(paths))
    return ", ".join(files) if 0 < len(files) < SEVERAL_FILES else COMMANDS


def _words(text: str) -> list[str]:
    """Return the words of a text: what stands between blanks and signs that no identifier holds."""
    return text.encode("utf-8", "surrogatepass").translate(BLANKED).decode("utf-8", "ignore").split()
