"""Says in a phrase what the edits of a file changed: values of keys, tables, what a report says, or the changed line.

Hard facts come first: of a file of settings the keys with their values, of SQL the tables. Of other files it is what
the answer that ended the turn says of the file, then the line that the edits changed in all, then what the assistant
announced before the last edit, then the definitions at which edits stand, the title of a text, or the command that
changed the file.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import is_shell, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.announcements import SENTENCE, announces, points_back
from refold._condense.digest.conclusions import LEADS, prose
from refold._condense.digest.definitions import defined_in, is_prose
from refold._condense.digest.turns import turn_ends, turns_at
from refold._condense.file_views import FileWritten, TextReplaced, command_of
from refold._condense.shell_commands import plain_path
from refold._text.secrets import holds_secret, names_secret
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.transcript import Transcript

__all__ = ["FileWork", "phrase_in", "phrases"]

LONGEST = 120  # characters of a phrase
LOOKED_AT = 20_000  # characters of a text that an edit writes
FEWEST_WORDS, ANNOUNCED_WORDS = 3, 6  # of what is said of a file, and of an announcement that does not name it
KEYS, VALUE = 5, 40  # keys of settings that a phrase tells, and characters of a value
SMALL = 2  # lines that edits change in all, where the phrase is the line
SHORTEST, BEGINNING = 12, 80  # characters of such a line at least, and of one that is the first of more
PLACES = 5  # definitions at which edits are told
TITLE = re.compile(r"^#{1,3} (\S.*)$", re.M)
COMMANDS = re.compile(r"\n|&&|;(?= )")  # between commands of a line
EDITS = re.compile(  # commands that change files in place
    r"sed (?:-\w+ )*-\w*i\b|perl (?:-\w+ )*-\w*i\b|"
    r"(?:npx |bunx )?(?:prettier|black|rustfmt)\b|ruff (?:format\b|check --fix\b)|(?:gofmt|goimports) -w\b"
)
BACK = 4  # messages before an edit in which it may be announced
SETTINGS = re.compile(r"\.(?:json[c5]?|toml|ya?ml|ini|cfg|conf|properties|env)$|(?:^|[/\\])\.env[\w.]*$", re.I)
KEY = re.compile(
    r"^[ \t]*(?:export )?[\"']?([A-Za-z_$][\w.$-]*)[\"']?[ \t]*[:=][ \t]*(?![{\[|>&]?[ \t]*$)(.+?),?[ \t]*$", re.M
)
SECRETS = re.compile(r"(?:^|[/\\])\.env[\w.]*$")  # files of settings that programs read their keys from
TABLES = re.compile(
    r"^[ \t]*(create|alter|drop) (?:temp(?:orary)? )?(?:table|view|materialized view)\s+(?:if (?:not )?exists )?"
    r"[\"`\[]?([\w.]+)",
    re.I | re.M,
)
SQL = re.compile(r"\.sql$", re.I)
NAMED = re.compile(r"(?<![\w.@~/\\:-])[\w.@~/\\:-]*[\w-]\.\w{1,8}(?![\w/\\])")  # what may be a path in a text
LINK = re.compile(r"\[([^\[\]\n]*)\]\([^)\n]*\)")
BULLET = re.compile(r"^\s*(?:[-*•|]|\d+[.)]|#{1,6})\s+")
BEHIND = re.compile(
    r"^[`*_'\")\]]*\s*(?:\([^()]*\)\s*)?(?::(?!\d)|[|–—]|-+>?|→)\s*[*_]*\s*(?=\w|[`*_\"'(])"
)  # after a path
_VERBS = (  # of changes
    "add change update remove fix replace rename move create rewrite extract extend switch split merge convert drop "
    "delete refactor implement bump wire restore simplify correct rework adjust expand tighten document port route"
)
DONE = _VERBS.split()
REPORTED = re.compile(
    r"\b(?:now|rewrote|rewritten|wrote|written|made|built|"
    + "|".join(f"{verb.removesuffix('e')}(?:ed|s|es)|{verb}(?:d|{verb[-1]}ed|s)" for verb in DONE)
    + r")\b",
    re.I,
)
ANNOUNCES = re.compile(
    r"(?:write|make|set|use|put|handle|"
    + "|".join((*DONE, *(f"{verb.removesuffix('e')}ing" for verb in DONE)))
    + r")\b(?! (?:this|that|it|them|these|those)\b)",  # what these mean stands before it
    re.I,
)
LEAD_IN = re.compile(
    r"^(?:(?:ok(?:ay)?|good|great|perfect|right|now|next|first|then|finally|also|so|and|but)\b[,.!:]?\s+)*"
    r"(?:(?:let me|let['’]s|i['’]ll|i will|i['’]m(?: going to)?|i need to|need to|i can|i should|we need to)\s+"
    r"(?:now |also |first |then )?)?",
    re.I,
)
CODE = re.compile(r"`[^`]+`|\w[._/]\w|[a-z][A-Z]|\w\(")  # what tells a name of code
NO_CODE = re.compile(
    r"(?:/[/*]|#|\*|--|<!--|import\b|from\b|package\b|use\b|[\W_]*$)"
)  # beginnings of lines that tell least
CLAUSE = re.compile(r"(?:[,;:]| [–—-]| \()(?= )|(?= \()")  # where a sentence that is too long is cut


class FileWork(Struct):
    """What was done to a file: the turn and the message of its last edit, and the changes that can be read."""

    path: str
    turn: int = 0
    position: int = 0
    changes: list[TextReplaced | FileWritten] = []


@memoized
def _reports(transcript: Transcript) -> dict[int, Message]:
    """Return the answers that ended turns, by turn."""
    ends = turn_ends(transcript)
    turns = zip(transcript.messages, turns_at(transcript), strict=True)
    return {turn: message for message, turn in turns if message.id in ends}


@memoized
def _lines_of(report: Message) -> tuple[str, ...]:
    return tuple(line for line in LINK.sub(r"\1", prose(report)).split("\n") if line.strip())


def phrases(transcript: Transcript, files: Collection[FileWork]) -> dict[str, str]:
    """Return by path what changed in files, in a phrase; nothing for those of which nothing says it."""
    bases = Counter(_base(work.path) for work in files)
    at_once = Counter(work.position for work in files)
    reports = _reports(transcript)
    by_path: dict[str, str] = {}
    for work in files:
        alone = at_once[work.position] == 1
        phrase = (
            (_settings(work) if SETTINGS.search(work.path) else "")
            or (_tables(work) if SQL.search(work.path) else "")
            or _reported(work, bases, _lines_of(reports[work.turn]) if work.turn in reports else ())
            or _line(work)
            or _announced(transcript, work, alone=alone)
            or _places(work)
            or _last_line(work)
            or _title(work)
            or _command(transcript, work)
        )
        if phrase:
            by_path[work.path] = phrase
    return by_path


def phrase_in(line: str) -> str:
    """Return what a line says of the file that it begins with."""
    match = BEHIND.match(line)
    return _whole(line[match.end() :]) if match else ""


def _base(path: str) -> str:
    return plain_path(path).rsplit("/", 1)[-1]


def _reported(work: FileWork, bases: Counter[str], lines: Sequence[str]) -> str:
    """Return what the answer that ended the turn of the last edit says of a file: first where it begins with it."""
    base = _base(work.path)
    naming = [(at, line) for at, line in enumerate(lines) if base in line]
    for at, line in naming:
        plain = BULLET.sub("", line, count=1).lstrip("`*_ ")
        match = NAMED.match(plain)
        if match is None or not _names(match[0], work.path, bases):
            continue
        if phrase := phrase_in(plain[match.end() :]):
            return phrase
        rest = plain[match.end() :].strip("`*_ :()")
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if not rest and BULLET.match(below) and not NAMED.match(BULLET.sub("", below, count=1).lstrip("`*_ ")):
            return _whole(BULLET.sub("", below, count=1))
    for _, line in naming:
        for sentence in SENTENCE.split(BULLET.sub("", line, count=1)):
            named = NAMED.findall(sentence)
            own = next((each for each in named if _names(each, work.path, bases)), None)
            if (
                own is not None
                and len({_base(each) for each in named}) <= SMALL
                and REPORTED.search(sentence)
                and not (sentence.rstrip().endswith(("?", ":")) or points_back(sentence) or announces(sentence))
            ):
                return _whole(re.sub(rf" (?:in|to|of) `?{re.escape(own)}`?\.?$", "", sentence.strip()))
    return ""


def _names(written: str, path: str, bases: Counter[str]) -> bool:
    """Tell whether what stands in a text is a file: its path, the end of it, or its name where no other has it."""
    named, plain = plain_path(re.sub(r":[\d:-]+$", "", written.rstrip(":"))), plain_path(path)
    if "/" in named:
        return f"/{plain}".endswith(f"/{named.lstrip('/')}") or f"/{named}".endswith(f"/{plain}")
    return named == plain.rsplit("/", 1)[-1] and bases[named] == 1


def _whole(text: str) -> str:
    """Return a text as a phrase: as many of its sentences as have room, else its first clauses."""
    line = one_line(text.strip().replace("**", "").rstrip("|").rstrip(), 4 * LONGEST)
    phrase = ""
    for sentence in SENTENCE.split(line):
        longer = f"{phrase} {sentence}".strip()
        if len(longer) > LONGEST:
            break
        phrase = longer
    if len(phrase.split()) < FEWEST_WORDS and (line := line[len(phrase) :].strip()):  # a label, and what it is about
        ends = [match.start() for match in CLAUSE.finditer(line, LONGEST // 3, LONGEST)]
        phrase = line[: ends[-1]] if ends else one_line(line, LONGEST)
    phrase = phrase.rstrip(" .:")
    if phrase.count("`") % 2:
        phrase = phrase.replace("`", "")
    return phrase if len(phrase.split()) >= FEWEST_WORDS or not phrase.isascii() else ""


def _settings(work: FileWork) -> str:
    """Return the keys that edits gave another value, the newest, each with what it was before and what it is now."""
    before: dict[str, str] = {}
    now: dict[str, str] = {}
    for change in work.changes:
        if not isinstance(change, TextReplaced):
            before, now = {}, {}  # written whole: nobody knows what the values were
            continue
        old, new = (dict(KEY.findall(text[:LOOKED_AT])) for text in (change.old, change.new))
        for key, value in new.items():
            if old.get(key) != value:
                before.setdefault(key, old.get(key, ""))
                now.pop(key, None)
                now[key] = value
        for key in old.keys() - new.keys():
            now.pop(key, None)
    pairs = [
        f"{key}: {'changed' if before[key] else 'set'}"
        if _is_secret(work.path, key)
        else f"{key}: {' → '.join(filter(None, (_value(before[key]), _value(value))))}"
        for key, value in now.items()
        if value != before[key]
    ]
    phrase = ""
    for pair in reversed(pairs[-KEYS:]):
        longer = f"{pair}, {phrase}" if phrase else pair
        if len(longer) > LONGEST:
            break
        phrase = longer
    return phrase


def _is_secret(path: str, key: str) -> bool:
    """Tell whether a setting may hold what a phrase does not repeat."""
    return SECRETS.search(path) is not None or names_secret(key)


def _holds_secret(path: str, line: str) -> bool:
    """Tell whether a line of a file sets a secret."""
    key = KEY.match(line)
    return SECRETS.search(path) is not None or (key is not None and _is_secret(path, key[1]))


def _value(text: str) -> str:
    return one_line(text.strip("\"'"), VALUE)


def _tables(work: FileWork) -> str:
    """Return the tables that statements of SQL create, change or drop."""
    tables: dict[str, dict[str, None]] = {}
    for change in work.changes:
        text, old = (change.new, change.old) if isinstance(change, TextReplaced) else (change.text, "")
        before = TABLES.findall(old[:LOOKED_AT])
        for act, name in TABLES.findall(text[:LOOKED_AT]):
            if (act, name) not in before:
                tables.setdefault(f"{act.lower()}s", {})[name] = None
    return _whole("; ".join(f"{act} table {', '.join(names)}" for act, names in tables.items()))


def _line(work: FileWork) -> str:
    """Return the line that edits changed in all, where they changed hardly more than one."""
    lines: Counter[str] = Counter()
    for change in work.changes:
        if not isinstance(change, TextReplaced) or change.every:
            return ""
        for text, step in ((change.new, 1), (change.old, -1)):
            if len(text) > LOOKED_AT:
                return ""
            for line in text.split("\n"):
                lines[line.strip()] += step
    added = [line for line, times in lines.items() if times > 0 and line]
    removed = [line for line, times in lines.items() if times < 0 and line]
    if not 0 < len(added) + len(removed) <= SMALL or len(added) > 1:
        return ""
    if any(NO_CODE.match(line) or _holds_secret(work.path, line) for line in (*added, *removed)):
        return ""
    if not added:
        return f"without {_quoted(removed[0])}"
    pair = " → ".join(map(_quoted, (*removed, *added)))
    return pair if len(pair) <= LONGEST else f"now {_quoted(added[0])}"


def _quoted(line: str, limit: int = LONGEST) -> str:
    plain = line.replace("`", "'")
    return f"`{one_line(plain, limit)}`"


def _places(work: FileWork) -> str:
    """Return the definitions in which edits stand, the newest, with the last changed line where there is room."""
    names: dict[str, None] = {}
    for change in work.changes:
        for name in _edited_in(change) if isinstance(change, TextReplaced) else ():
            names.pop(name, None)
            names[name] = None
    if not names:
        return ""
    places = f"edits at {', '.join(f'`{name}`' for name in [*names][-PLACES:])}"
    last = _last_line(work)
    both = f"{places}; {last}"
    return both if last and len(both) <= LONGEST + BEGINNING else places


def _edited_in(change: TextReplaced) -> Iterator[str]:
    """Yield the definitions whose lines an edit changed; those that only showed where it belongs are none."""
    old, new = (text[:LOOKED_AT].split("\n") for text in (change.old, change.new))
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    first = next((line for line in (*added, *removed) if line.strip()), "")
    if (first[:1].isspace() or is_prose(change.path)) and not defined_in(first, change.path):
        yield from [*defined_in("\n".join(new[:start]), change.path)][-1:]
    before = defined_in("\n".join(removed), change.path)
    yield from (name for name in defined_in("\n".join(added), change.path) if name in before)


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many entries two lists have in common at their beginnings."""
    pairs = zip(first, second, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))


def _title(work: FileWork) -> str:
    """Return the first heading of a text for readers that was written whole."""
    change = work.changes[-1] if work.changes else None
    if not isinstance(change, FileWritten) or not is_prose(work.path):
        return ""
    heading = TITLE.search(change.text[:LOOKED_AT])
    return one_line(heading[1], LONGEST) if heading else ""


def _command(transcript: Transcript, work: FileWork) -> str:
    """Return the part of a command that names a file, where that is how the file was changed last."""
    for call in transcript.messages[work.position].calls:
        if is_shell(call) and work.path in writes(call):
            parts = (part.strip() for part in COMMANDS.split(command_of(call)))
            naming = [part for part in parts if EDITS.match(part) and _base(work.path) in part]
            if naming and not (SECRETS.search(work.path) or names_secret(naming[-1]) or holds_secret(naming[-1])):
                return f"by {_quoted(naming[-1], BEGINNING)}"
    return ""


def _last_line(work: FileWork) -> str:
    """Return the first line of code that the last edit of a file adds."""
    change = work.changes[-1] if work.changes else None
    if not isinstance(change, TextReplaced):
        return ""
    before = {line.strip() for line in change.old[:LOOKED_AT].split("\n")}
    for line in change.new[:LOOKED_AT].split("\n"):
        plain = line.strip()
        if len(plain) >= SHORTEST and plain not in before and not NO_CODE.match(plain):
            return "" if _holds_secret(work.path, plain) else f"last edit {_quoted(plain, BEGINNING)}"
    return ""


def _announced(transcript: Transcript, work: FileWork, *, alone: bool) -> str:
    """Return the sentence that announced the last edit of a file; of several at once only what names the file."""
    for message in _before(transcript, work.position):
        base = _base(work.path)
        sentences = (LEADS.sub("", each.strip(" -*#>|")) for each in reversed(SENTENCE.split(prose(message))))
        for sentence in filter(announces, sentences):
            plain = LEAD_IN.sub("", sentence).rstrip(":")
            words = len(plain.split())
            telling = words >= ANNOUNCED_WORDS or (words >= FEWEST_WORDS and CODE.search(plain.replace(base, "")))
            if telling and ANNOUNCES.match(plain) and (alone or base in sentence):
                return _whole(plain)
        if prose(message).strip():
            return ""
    return ""


def _before(transcript: Transcript, position: int) -> Iterator[Message]:
    """Yield the message of an edit and those of the assistant right before it that change nothing themselves."""
    for message in reversed(transcript.messages[max(position - BACK, 0) : position + 1]):
        if message.role == "user" and not message.results:
            return
        if message.role == "assistant":
            if message is not transcript.messages[position] and any(map(writes, message.calls)):
                return
            yield message
