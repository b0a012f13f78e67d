"""Says in a phrase what the edits of a file changed: values of keys, tables, what a report says, or the changed line.

Hard facts come first: of a file of settings the keys with their values, of SQL the tables. Of other files it is what
the answer that ended the turn says of the file, then the line that the edits changed in all, then what the assistant
said before an edit, the subject of a commit of one file, the definitions at which edits stand, the title of a text, or
what a command replaced in it. Where nothing says it nothing is told: a fragment of a line hides more than it tells.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import is_shell, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.announcements import SENTENCE, announces, points_back, whole_sentences
from refold._condense.digest.conclusions import LEADS, prose
from refold._condense.digest.definitions import defined_in, is_prose
from refold._condense.digest.outcomes import COMMITTED
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_ends, turns_at
from refold._condense.file_views import FileWritten, TextReplaced, command_of, is_scratch
from refold._condense.shell_commands import GIT, plain_path
from refold._text.secrets import holds_secret, names_secret
from refold.core._speakers import is_turn
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence, Set

    from refold.core.messages import Message
    from refold.core.transcript import Transcript

__all__ = ["FileWork", "phrase_in", "phrases"]

LONGEST = 120  # characters of a phrase
LOOKED_AT = 20_000  # characters of a text that an edit writes
FEWEST_WORDS, ANNOUNCED_WORDS = 3, 6  # of what is said of a file, and of an announcement that does not name it
REASON_WORDS = 10  # of a sentence that says what was wrong without a name of code
KEYS, VALUE = 5, 40  # keys of settings that a phrase tells, and characters of a value
SMALL = 2  # lines that edits change in all, where the phrase is the line
SHORTEST, BEGINNING = 12, 80  # characters of such a line at least, and of one that is the first of more
TWICE = 200  # characters of what was said before two edits
PLACES = 5  # definitions at which edits are told
TITLE = re.compile(r"^#{1,3} (\S.*)$", re.M)
COMMANDS = re.compile(r"\n|&&|;(?= )")  # between commands of a line
EDITS = re.compile(  # commands that change files in place
    r"sed (?:-\w+ )*-\w*i\b|perl (?:-\w+ )*-\w*i\b|"
    r"(?:npx |bunx )?(?:prettier|black|rustfmt)\b|ruff (?:format\b|check --fix\b)|(?:gofmt|goimports) -w\b"
)
BACK = 6  # messages before an edit in which it may be announced
EDITS_BACK = 12  # edits of a file, the newest, before which something may be said of it
STEM = 4  # letters of a file's name without its ending that mean the file where they stand in a sentence
SEVERAL = re.compile(r"^ ?(?!1 )\d+ files? changed", re.M)  # by a commit
ADDS_ALL = re.compile(rf"{GIT} (?:add (?:-A|-u|--all|\.(?:\s|$))|commit (?:-\w*a|--all))")
ADDED = re.compile(rf"{GIT} add (?!-)([^&|;\n]+)")  # what a command adds to the next commit
SUBSTITUTES = re.compile(r"(?<![\w/])s([|/#@,!])((?:\\.|(?!\1).)+)\1((?:\\.|(?!\1).)*)\1")  # of sed
# A key above others.
BLOCK = re.compile(r"^([ \t]*)[\"']?([A-Za-z_$][\w.$-]*)[\"']?[ \t]*:[ \t]*[{\[|>&]?[ \t]*$", re.M)
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
# What stands between a path and the words on it.
BEHIND = re.compile(r"^[`*_'\")\]]*\s*(?:\([^()]*\)\s*)?(?::(?!\d)|[|–—]|-+>?|→)\s*[*_]*\s*(?=\w|[`*_\"'(])")
_VERBS = (  # of changes
    "add change update remove fix replace rename move create rewrite extract extend switch split merge convert drop "
    "delete refactor implement bump wire restore simplify correct rework adjust expand tighten document port route "
    "edit patch clean make write use handle mirror expose preserve"
)
DONE = _VERBS.split()
REPORTED = re.compile(
    r"\b(?:now|rewrote|rewritten|wrote|written|made|built|"
    + "|".join(f"{verb.removesuffix('e')}(?:ed|s|es)|{verb}(?:d|{verb[-1]}ed|s)" for verb in DONE)
    + r")\b",
    re.I,
)
ANNOUNCES = re.compile(
    r"(?:sett?(?:ing)?|putt?(?:ing)?|" + "|".join((*DONE, *(f"{verb.removesuffix('e')}ing" for verb in DONE))) + r")\b",
    re.I,
)
POINTS = re.compile(  # an announcement of what only the words before it name
    r"\w+ (?:this|that|it|them|these|those|both|(?:the |all |a few |some )*(?:rest|remaining|others?|same|issues?))\b",
    re.I,
)
FOLDER = re.compile(r"\b(?:in|under|inside|across) `?([\w.-]+(?:/[\w.-]+)+/?)")  # where a sentence says that it is
BEGINS = re.compile(r"^(?:so|but|and|also|now|wait|ah|yes|no|ok(?:ay)?)\b[,!. ]*", re.I)
LOOKS = re.compile(  # how the words before a call begin that changes nothing, or that mean what stood before
    r"(?:(?:do|get) (?:it|this|that|them)\b|"
    r"(?:check|read|see|look|run|rerun|test|verify|find|search|inspect|start|try|wait|continue|view|understand|explore|"
    r"investigate|trace|debug|confirm|validate|review|commit|push|reproduc|measur|compar|build|rebuild)"
    r"(?:e|es|s|ing|ning|ting)?\b)",
    re.I,
)
WHY = re.compile(  # what says what was wrong, before an edit that is only pointed at ("let me fix that")
    r"n['’]t\b|\b(?:not|no|never|without|missing|wrong|stale|broken|fails?|leaks?|drops?|breaks?|cannot|instead|"
    r"needs?|should|must|only|too|unused|redundant|root cause|bug|mismatch|outdated|duplicated?)\b",
    re.I,
)
THING = re.compile(r"(?:the|both|an?|its|all|these|those) ", re.I)  # begins what may be a thing without a change
CHANGED = re.compile(  # what tells that something is said of the thing: a verb, or a part behind it
    r" [–—-] |[;:,] |\b(?:is|are|was|were|has|have|had|needs?|must|should|can|cannot|now|goes|gets|takes|becomes?|"
    r"stays?|asks?|fails?)\b|n['’]t\b|" + REPORTED.pattern,
    re.I,
)
SOUND = re.compile(r"\b(?:fine|ok(?:ay)?|good|correct|already|no \w+(?: \w+){0,4} found)\b", re.I)  # nothing was wrong
NAMING = re.compile(r"^[^:]{0,60}?:\s+(?=(?:\S+\s+){3})")  # a part that only names the file, before what is done to it
LEAD_IN = re.compile(
    r"^(?:(?:ok(?:ay)?|good|great|perfect|right|now|next|first|then|finally|meanwhile|also|so|and|but)\b[,.!:]?\s+)*"
    r"(?:(?:let me|let['’]s|i['’]ll|i will|i(?:['’]m| am)(?: also)?(?: going to)?|i need to|need to|i can|i should|"
    r"we need to|(?:now )?we can)\s+(?:now |also |first |then |just )?)?",
    re.I,
)
PARTS = re.compile(r"[A-Z][a-z]{3,}|[a-z]{4,}|[A-Z]{4,}")  # words, also within names of code
SAME = 0.7  # of the words of a phrase, more of which stand in another one
BORNE_OUT = 8  # what was said before an edit has at least one of its words in so many
CODE = re.compile(r"`[^`]+`|\w[._/]\w|[a-z][A-Z]|\w\(")  # what tells a name of code
NO_CODE = re.compile(
    r"(?:/[/*]|#|\*|--|<!--|import\b|from\b|package\b|use\b|[\W_]*$)"
)  # beginnings of lines that tell least
ALONE = re.compile(r"[\w.]+,")  # one of several arguments or names
COMMENTED = re.compile(r"//|/\*|\*(?= |/)|#(?![!\w\[])|--(?= )|<!--")
OPENING = 8  # lines at the beginning of a program that may say what it is
COMMENT = re.compile(
    r"[ \t]*(?://[/!]?|#(?![!\[])|\"\"\"|'''|/\*+|\*|--|<!--|;+|%+)[ \t]*(.*\w.*?)[ \t]*(?:\"\"\"|'''|\*/|-->)?[ \t]*$"
)
DISLIKED = re.compile(  # what the user says of a thing that is to be made anew
    r"\b(?:that|this|the|your) (?:\w+ ){1,3}(?:is|are|was|looks?) (?:\w+ )?"
    r"(?:hideous|ugly|awful|terrible|horrible|garbage|trash|crap|bad|wrong)\b",
    re.I,
)
WORDS, COMMENT_WORDS = re.compile(r"(?<!\S)[\w'’-]+[,.:]?(?!\S)"), 4  # of a comment that says what is done
ENDS_CODE = (";", "{", "}", "(", ")", "[", "]", ",", "=")  # ends of code that was made a comment
FORMAL = re.compile(  # comments for lawyers and for tools
    r"copyright|licen[cs]e|spdx|all rights reserved|eslint|prettier|@ts-|coding[:=]|noqa|type: ignore|generated by|"
    r"#(?:include|define|if|pragma)\b",
    re.I,
)
CLAUSE = re.compile(r"(?:[,;:]| [–—-]| \()(?= )|(?= \()")  # where a sentence that is too long is cut


class FileWork(Struct):
    """What was done to a file: the turn of its last edit, the messages of all, and the changes that can be read.

    `older` is how many of the changes were made before that turn.
    """

    path: str
    turn: int = 0
    positions: list[int] = []
    changes: list[TextReplaced | FileWritten] = []
    older: int = 0


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
    if not files:
        return {}
    bases = Counter(_base(work.path) for work in files)
    words = Counter(word for path in {work.path for work in files} for word in _name_words(path))
    reports = _reports(transcript)
    subjects, dislikes = _subjects(transcript, files), _dislikes(transcript)
    by_path: dict[str, str] = {}
    for work in files:
        phrase = (
            (_settings(transcript, work, bases) if SETTINGS.search(work.path) else "")
            or (_tables(work) if SQL.search(work.path) else "")
            or _reported(work, bases, _lines_of(reports[work.turn]) if work.turn in reports else ())
            or _line(work)
            or _title(work)
            or _opening(work)
            or _announcements(transcript, work, bases)
            or subjects.get(work.path, "")
            or _command(transcript, work)
            or _edits(work, LONGEST + BEGINNING)
            or _earlier(transcript, work, bases)
        )
        several = phrase and len(work.changes) - work.older > SMALL  # what is said is of one or two of them
        edits = _edits(work, LONGEST) if several else ""
        phrase = phrase if edits in phrase else f"{phrase}; {edits}"
        disliked = _disliked(work, words, dislikes.get(work.turn + 1, ()))
        if phrase or disliked:
            by_path[work.path] = "; ".join(filter(None, (disliked, phrase)))
    return by_path


@memoized
def _dislikes(transcript: Transcript) -> dict[int, tuple[str, ...]]:
    """Return by turn the clauses in which the user says of a thing that it is bad."""
    turns = zip(transcript.messages, turns_at(transcript), strict=True)
    clauses = ((turn, tuple(DISLIKED.findall(own_text(message)))) for message, turn in turns if is_turn(message))
    return {turn: words for turn, words in clauses if words}


def _disliked(work: FileWork, words: Counter[str], clauses: Sequence[str]) -> str:
    """Return the words with which the user rejects a file in the turn after its last edit, by what only it is named.

    `words` counts the files whose names have a word.
    """
    own = {word for word in _name_words(work.path) if words[word] == 1}
    clause = next((each for each in clauses if not own.isdisjoint(each.lower().split())), "")
    return f'rejected in turn {work.turn + 1}: "{one_line(clause, LONGEST)}"' if clause else ""


def _name_words(path: str) -> set[str]:
    """Return the words of a file's name that may mean it."""
    return {word for word in re.split(r"[^a-z]+", _base(path).lower()) if len(word) >= STEM}


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
        clauses = (match.start() for match in CLAUSE.finditer(line, LONGEST // 3, LONGEST))
        ends = [end for end in clauses if line.count("`", 0, end) % 2 == 0]
        phrase = line[: ends[-1]] if ends else one_line(line, LONGEST)
    phrase = phrase.rstrip(" .:")
    if phrase.count("`") % 2:
        phrase = phrase.replace("`", "")
    return phrase if len(phrase.split()) >= FEWEST_WORDS or not phrase.isascii() else ""


def _settings(transcript: Transcript, work: FileWork, bases: Counter[str]) -> str:
    """Return the keys that edits gave another value, the newest, each with what it was before and what it is now.

    Where edits add keys with others below, what was said of that comes first: a value tells least of such a change.
    """
    added = _blocks(work)
    if not added:
        return _values(work)
    return _announcements(transcript, work, bases) or f"adds {', '.join(added[:KEYS])}"


def _blocks(work: FileWork) -> list[str]:
    """Return the outermost keys with others below that edits add to a file that was there."""
    added: dict[str, int] = {}
    for change in work.changes:
        if not isinstance(change, TextReplaced):
            return []
        before = {key for _, key in BLOCK.findall(change.old[:LOOKED_AT])}
        added |= {key: len(indent) for indent, key in BLOCK.findall(change.new[:LOOKED_AT]) if key not in before}
    outermost = min(added.values(), default=0)
    return [key for key, indent in added.items() if indent == outermost]


def _values(work: FileWork) -> str:
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


def _edits(work: FileWork, room: int) -> str:
    """Return what the newest edits of the last turn did: the definitions they stand in, and the lines of others."""
    names: dict[str, None] = {}
    lines: dict[str, None] = {}
    last = ""
    for change in work.changes[work.older :]:
        if isinstance(change, TextReplaced):
            places, last = [*_edited_in(change)], _edit(change)
            for known, each in (*((names, name) for name in places), (lines, "" if places else last)):
                known.pop(each, None)
                known[each] = None
    phrase = f"last edit {last}" if last else ""
    if names:
        edited = f"edits at {', '.join(_quoted(name.strip('`')) for name in [*names][-PLACES:])}"
        both = f"{edited}; {phrase}"
        phrase = both if phrase and len(both) <= room else edited
    for line in reversed([each for each in lines if each not in ("", last)]):
        longer = "; ".join(filter(None, (line, phrase)))
        if len(longer) > room:
            break
        phrase = longer
    return phrase


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


def _opening(work: FileWork) -> str:
    """Return what a program that was written whole says of itself: the comment or text that it begins with."""
    change = work.changes[-1] if work.changes else None
    if not isinstance(change, FileWritten) or is_prose(work.path) or SETTINGS.search(work.path):
        return ""
    lines = [line for line in change.text[:LOOKED_AT].split("\n", OPENING)[:OPENING] if line.strip()]
    comments = (match[1].strip() for line in lines if (match := COMMENT.match(line)) and not FORMAL.search(line))
    opening = next((each for each in comments if len(each.split()) >= FEWEST_WORDS or not each.isascii()), "")
    return "" if _holds_secret(work.path, opening) else whole_sentences(opening, LONGEST).rstrip(" .")


def _command(transcript: Transcript, work: FileWork) -> str:
    """Return what a command replaced in a file, or the command, where that is how the file was changed last."""
    for call in transcript.messages[work.positions[-1]].calls:
        if is_shell(call) and work.path in writes(call):
            parts = (part.strip() for part in COMMANDS.split(command_of(call)))
            naming = [part for part in parts if EDITS.match(part) and _base(work.path) in part]
            if not naming or SECRETS.search(work.path) or names_secret(naming[-1]) or holds_secret(naming[-1]):
                continue
            pairs = [(old, new) for _, old, new in SUBSTITUTES.findall(naming[-1]) if old != new]
            if pairs and max(map(len, pairs[-1])) <= BEGINNING:
                return (
                    f"{_quoted(pairs[-1][0])} → {_quoted(pairs[-1][1])}"
                    if pairs[-1][1]
                    else f"without {_quoted(pairs[-1][0])}"
                )
            return "" if len(naming[-1]) > BEGINNING or SUBSTITUTES.search(naming[-1]) else f"by {_quoted(naming[-1])}"
    return ""


def _edit(change: TextReplaced) -> str:
    """Return what an edit does: a comment that says it, the line it replaces, or lines that it adds or removes."""
    if is_prose(change.path):
        return ""
    old, new = (
        [line.strip() for line in text[:LOOKED_AT].split("\n") if len(line.strip()) >= SHORTEST]
        for text in (change.old, change.new)
    )
    added, removed = ([each for each in some if each not in others] for some, others in ((new, old), (old, new)))
    before, after = (defined_in(text[:LOOKED_AT], change.path) for text in (change.old, change.new))
    if not added and (names := [each for each in before if each not in after][:PLACES]):
        return f"removes {', '.join(f'`{name}`' for name in names)}"
    if (added or removed) and all(COMMENTED.match(each) for each in (*added, *removed)):
        return "changes only comments"
    if comment := next(_comments(change.new, added), ""):
        quoted = comment.replace('"', "'")
        return f'says "{quoted}"'
    code = (each for each in added or removed if not (NO_CODE.match(each) or _holds_secret(change.path, each)))
    whole = sorted(filter(_is_whole, code), key=lambda each: ALONE.fullmatch(each) is not None)
    if not whole:
        return ""
    line = whole[0]
    if added:
        was = removed[0] if len(removed) == len(added) == 1 else ""
        pair = was and _is_whole(was) and not _holds_secret(change.path, was)
        return f"{_quoted(was)} → {_quoted(line)}" if pair else _quoted(line)
    lines = len([each for each in change.old.split("\n") if each.strip()]) - len(
        [each for each in change.new.split("\n") if each.strip()]
    )
    return f"removes {lines} lines with {_quoted(line)}" if lines > SMALL else f"removes {_quoted(line)}"


def _comments(text: str, added: Collection[str]) -> Iterator[str]:
    """Yield the sentences of comments that an edit adds whole, those that are code or may hold a secret aside."""
    for comment, lines in groupby(text[:LOOKED_AT].split("\n"), key=lambda line: COMMENT.match(line) is not None):
        block = [line.strip() for line in lines] if comment else []
        parts = [match[1].strip() for line in block if (match := COMMENT.match(line))]
        words = " ".join(parts)
        if (
            len(WORDS.findall(words)) >= COMMENT_WORDS
            and all(line in added for line in block if len(line) >= SHORTEST)
            and not parts[-1].endswith(ENDS_CODE)
            and not (FORMAL.search(words) or holds_secret(words) or names_secret(words))
        ):
            yield whole_sentences(words, LONGEST).rstrip(" .")


def _is_whole(line: str) -> bool:
    """Tell whether a line of code can be read alone: no string that another line begins, and not too long."""
    bare = line.rstrip("{([ ")
    closed = all(bare.count(one) == bare.count(other) for one, other in ("()", "[]", "{}"))
    part = line[0] in "'\"`|&+,)}]" or (line[0] == "." and bare != line) or (line[0] == "<" and line[-1] != ">")
    return len(line) <= BEGINNING and closed and not part and not line.count("`") % 2


def _subjects(transcript: Transcript, files: Collection[FileWork]) -> dict[str, str]:
    """Return by path the subject of the commit that followed the last edit of a file, of commits of one file."""
    by_path: dict[str, str] = {}
    commands: dict[str, str] = {}
    before = -1
    for position, message in enumerate(transcript.messages):
        for call in message.calls:
            if "commit" in call.arguments and is_shell(call) and "git " in (command := command_of(call)):
                commands[call.call_id] = command
        for result in message.results:
            command = commands.get(result.call_id, "")
            commits = COMMITTED.finditer(result.text[:LOOKED_AT]) if command else ()
            subjects = [commit["subject"] for commit in commits]
            if not subjects:
                continue
            every = ADDS_ALL.search(command) is not None
            arguments = [plain_path(each.strip("'\"")) for added in ADDED.findall(command) for each in added.split()]
            named = [
                work
                for work in files
                if before < work.positions[-1] <= position
                and not is_scratch(work.path)
                and (every or any(_is_below(plain_path(work.path), each) for each in arguments))
            ]
            several = SEVERAL.search(result.text) is not None
            if (
                len(subjects) == 1 and len(named) == 1 and not several
            ):  # of several files it does not say what was done to each
                by_path[named[0].path] = f"committed as {subjects[0].strip()[:LONGEST]!r}"
            before = position
    return by_path


def _is_below(path: str, folder: str) -> bool:
    """Tell whether a path is one that a command gives, relative or not, or below such a folder."""
    return f"/{folder.strip('/')}/" in f"/{path.strip('/')}/"


def _announcements(transcript: Transcript, work: FileWork, bases: Counter[str]) -> str:
    """Return what the assistant said before edits of the last turn that it does, of the last two that tell something.

    Of several files at once only what names the file is about it.
    """
    newest = [phrase for phrase, turn in _announced(transcript, work, bases).items() if turn == work.turn]
    both = "; ".join(reversed(newest[:2]))
    return both if len(both) <= TWICE else newest[0]


def _earlier(transcript: Transcript, work: FileWork, bases: Counter[str]) -> str:
    """Return what the assistant said last before edits of an earlier turn, with the turn."""
    return next((f"earlier: {each} (turn {turn})" for each, turn in _announced(transcript, work, bases).items()), "")


def _announced(transcript: Transcript, work: FileWork, bases: Counter[str]) -> dict[str, int]:
    """Return what the assistant said before edits of a file that it does to it, each with its turn, newest first."""
    turns = turns_at(transcript)
    by_turn: dict[str, int] = {}
    changed = _changed_words(work)
    for position in reversed(work.positions[-EDITS_BACK:]):
        phrase = _announcement_before(transcript, work.path, position, bases)
        if not phrase or not _is_borne_out(phrase, work.path, changed):
            continue
        if not any(_says_the_same(phrase, each) for each in by_turn):
            by_turn[phrase] = turns[position]
    return by_turn


def _changed_words(work: FileWork) -> frozenset[str]:
    """Return the words of the lines that edits of a file changed, and of the names that stand around them."""
    texts = (
        text[:LOOKED_AT]
        for change in work.changes
        for text in ((change.old, change.new) if isinstance(change, TextReplaced) else (change.text,))
    )
    return frozenset(word for text in texts for word in _content_words(text))


def _content_words(text: str) -> set[str]:
    """Return the words of a text that tell what it is about, those within names of code, too."""
    return {word for part in PARTS.findall(text) if (word := part.lower().removesuffix("s")) not in DONE}


def _is_borne_out(phrase: str, path: str, changed: Set[str]) -> bool:
    """Tell whether what was said before edits is about them: they have words of it.

    A reason need not have any, nor what is said in another language than that of the code.
    """
    if phrase.startswith("since ") or not phrase.isascii() or not changed:
        return True
    words = _content_words(phrase) - _content_words(_base(path))
    return len(words & changed) * BORNE_OUT >= len(words) > 0


def _says_the_same(phrase: str, other: str) -> bool:
    """Tell whether most words of a phrase stand in another one."""
    words = _content_words(phrase)
    return len(words & _content_words(other)) > len(words) * SAME


def _announcement_before(transcript: Transcript, path: str, position: int, bases: Counter[str]) -> str:
    """Return the sentence before an edit that says what is done, or what was wrong where it only points at that."""
    together = {_base(each) for call in transcript.messages[position].calls for each in writes(call)}
    base = _base(path)
    stem = base.partition(".")[0]
    for message in _before(transcript, position, path):
        text = prose(message).strip()
        if not text:
            continue
        sentences = [LEADS.sub("", each.strip(" -*#>|")) for each in SENTENCE.split(text)]
        for number, sentence in reversed([*enumerate(sentences)]):
            plain = LEAD_IN.sub("", sentence).rstrip(":").strip()
            named_stem = len(stem) >= STEM and bases[base] == 1 and re.search(rf"\b{re.escape(stem)}\b", sentence)
            names = base in sentence or bool(named_stem)
            if (len(together) > 1 and not names) or _about_another(plain, path, bases):
                continue
            introduces = number == len(sentences) - 1 and sentence.endswith((":", "："))
            if (ANNOUNCES.match(plain) and announces(sentence)) or introduces:
                words = NAMING.sub("", plain) if names else plain
                points = points_back(plain) or POINTS.match(plain) or LOOKS.match(plain)
                only_named = THING.match(words) and not CHANGED.search(words)  # "Now the homepage itself:"
                if _tells(words, base) and not (points or only_named):
                    return _whole(words) or words
                if number and (why := _reason(sentences[number - 1], path, bases)):
                    return why
        return ""
    return ""


def _tells(phrase: str, base: str) -> bool:
    """Tell whether a phrase says something of a file beside its name."""
    words = len(phrase.split())
    named = CODE.search(phrase.replace(base, "")) is not None
    return words >= ANNOUNCED_WORDS or (words >= FEWEST_WORDS and named) or (words > 0 and not phrase.isascii())


def _reason(sentence: str, path: str, bases: Counter[str]) -> str:
    """Return the sentence before one that points at it as what was wrong with a file, quoted; or nothing."""
    words = len(sentence.split())
    named = CODE.search(sentence) or words >= REASON_WORDS
    if (
        words < ANNOUNCED_WORDS
        or not (named and WHY.search(sentence))
        or SOUND.search(sentence)
        or points_back(sentence)
        or announces(sentence)
    ):
        return ""
    if _about_another(sentence, path, bases) or any(_base(each) != _base(path) for each in NAMED.findall(sentence)):
        return ""
    quoted = _whole(BEGINS.sub("", sentence).rstrip(":").replace('"', "'"))
    return f'since "{quoted}"' if quoted else ""


def _about_another(sentence: str, path: str, bases: Counter[str]) -> bool:
    """Tell whether a sentence names another changed file, or a folder in which this one is not, and not this one."""
    base, plain = _base(path), plain_path(path)
    if base in sentence:
        return False
    names = NAMED.findall(sentence)
    folders = FOLDER.findall(sentence)
    return any(_base(each) in bases for each in names) or any(each.strip("/") not in plain for each in folders)


def _before(transcript: Transcript, position: int, path: str) -> Iterator[Message]:
    """Yield the message of an edit and those of the assistant before it, as far as no other file is changed there."""
    for at in range(position, max(position - BACK, -1), -1):
        message = transcript.messages[at]
        if message.role == "user" and not message.results and at < position:
            return
        if message.role == "assistant":
            if at < position and any(each != path for call in message.calls for each in writes(call)):
                return
            yield message
