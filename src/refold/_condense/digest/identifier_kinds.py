"""What sort of identifier a word is, and which words only look like identifiers.

A list of identifiers is read by an agent that wants to open, call, or look something up by its name. Words of the right
shape that lead nowhere take room from those that do: positions in a file (`L10`, `340p`, the numbers in front of the
lines of a search), rests of colour codes (`31m`), durations, timestamps, references to elements of one page (`ref_12`),
ids and numbers that nothing names, ids that somebody made up (`abc1234`), words of prose with a slash between them
(`input/output`), parts of a style or a drawing (`w-2/3`, `3v0a3`), colours, regular expressions (`/SET/i.test`),
phrases of a script without blanks that have a name in them, rests of paths (`_test.go` of `*_test.go`), devices and
what git keeps for itself, members that a language has itself (`lines.join`), and names of tools' arguments.

Some of these cannot be told from the word alone: a number or an id needs the word that says what it is (`labeled`),
words with a slash are a path where another path goes through them (`Folders`), and a path is whole where no pattern,
variable or cut stands at its ends (`is_whole`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from refold._condense.call_facts import arguments_of
from refold._salience.words import UNSPACED
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Iterable

    from refold.core.messages import ToolCall

__all__ = [
    "NAMED",
    "WEIGHTS",
    "Folders",
    "IdentifierKind",
    "argument_names",
    "is_whole",
    "kind_of",
    "labeled",
    "without_codes",
]

IdentifierKind: TypeAlias = Literal["path", "words", "url", "dotted", "name", "id", "number"]

EXTENSIONS = (
    r"[jt]sx?|py|rs|go|java|kt|rb|php|c|h|cc|cpp|hpp|cs|swift|dart|sql|sh|ps1|tf|vue|svelte|html|s?css|proto|"
    r"md|mdx|txt|toml|json|jsonl|ya?ml|cfg|ini|lock|xml|csv|tsv|ipynb|pdf|png|svg"
)
NAMED = re.compile(
    rf"(?P<path>.*\w/\w.*|/\w.*|[\w-]+\.(?:{EXTENSIONS}))|(?P<dotted>[A-Za-z_]\w*(?:\.\w+)+)|"
    r"(?P<name>(?=\w*[A-Za-z])(?:\w+_\w*|_\w+|[a-z]+[A-Z]\w*|(?:[A-Z][a-z0-9]+){2,}\w*|[A-Z]{2,}[a-z]\w+|(?=\w*\d)[A-Za-z0-9-]+[\w-]*|"
    r"[A-Z]{2,}-\d+))|(?P<number>\d{3,}(?:\.\d+)*)",
)
# Of a reference, by its kind. Chosen by hand; benchmarks/recall.py measures what they give together (docs/salience.md).
WEIGHTS: dict[IdentifierKind, float] = {
    "path": 1.5, "words": 1.5, "url": 0.7, "dotted": 0.8, "name": 1.0, "id": 1.0, "number": 0.6,
}  # fmt: skip
ENDING = re.compile(rf"\.(?:{EXTENSIONS})$")
JUNK = re.compile(
    r"L\d+(?:[-:]L?\d+)?|[\d.]+[-x,:/][\d.]+|0o\d+|.*\w\.{2,3}\w.*|"  # lines, ranges, sizes, modes, main...origin/main
    r"\d+(?:\.\d+)?[A-Za-z]{1,3}|"  # 31m, 340p, 450ms, 14rem
    r"\d[\w.]*(?:px|fr|r?em|vh|vw)(?:_\w*)?|(?:[a-z]+-)+\d+/\d+|"  # 0_0_30px_rgba, w-2/3 of a style
    r"(?i:\d+(?:[achlmqstvz]-?\d+)+)|"  # 3v0a3 of a drawing
    r"[A-Z]\w*\d-[a-z]+|"  # S3-compatible, L1-style
    r"(?:s\d+)?[ef]\d+|(?:f\d+)?e\d+|ref_\d+|uid_?\d+|"  # elements of a page
    r"u[0-9a-f]{4}\w{0,3}|x[0-9a-f]{2}|"  # rests of escapes
    r"\d{4}-\d\d-\d\d(?:T.*)?|\d{8}T\d+Z?|\d+T\d+.*|"  # dates and times
    r"(?:\w\.)+\w|"  # e.g
    r"_*[A-Za-z]+_+|"  # emphasis in Markdown
    r"\d{1,2}[a-z]{3,}\w*|"  # the number of a line and its first word
    r".*\.(?:" + EXTENSIONS + r")-\d+|"  # a line of a search
    r".+/[dgimsuvy]{0,8}\.(?:test|exec|source)|"  # a call of a regular expression
    r"r\d{1,2}/[\w-]+/SKILL\.md|"  # of the list of skills that a harness gives
    r"dev/(?:null|tty|stdin|stdout|stderr|u?random|zero|fd/.*)|"
    r"(?:.+/\.)?git/(?:(?:\w+_)?HEAD|COMMIT_EDITMSG|index|shallow|packed-refs|config|description|"
    r"(?:hooks|info|logs|objects|refs)(?:/.*)?)"
)
RISING = ("abcdef", "01234567890")  # letters and digits, one after the other, are an id of an example
HEX = re.compile(r"(?=[0-9a-f-]*[a-f])(?=[0-9a-f-]*\d)[0-9a-f]{6,}(?:-[0-9a-f]{2,})*")
RUNS = re.compile(r"\d+|[a-z]+|[A-Z]+")
SCATTERED = 6  # runs of digits, small and capital letters from which a long word is an id
LONG = 12  # characters of such an id, at least
HOST = re.compile(r"(?:[A-Za-z0-9-]+\.)+[a-z]{2,}")
PLAIN = re.compile(r"[^\W_]+(?:-[^\W_]+)*(?:\.js)?")  # of and/or, deep-clone/merge, 2FA/TOTP, React/Next.js
COLOR = 6  # hexadecimal digits of a colour; what Git shortens an id to has more
ESCAPE = r"\\(?:[\\nrt\"]|(?:u00|x)1b\[[0-9;]*m|u[0-9a-f]{4}|x[0-9a-f]{2})"  # a sign in JSON or source code
ESCAPED = re.compile(ESCAPE)
# A path of Windows, or words between escapes.
BACKSLASHED = re.compile(rf"(?P<run>(?<![\w.~\\-])(?:[A-Za-z]:|[\w.~-]++)(?:\\[\w.~@-]+)+)|{ESCAPE}")
NO_ESCAPE = r"\\(?![nrtbfuxv0-9_])"  # a separator of a path of Windows, where it cannot begin an escape
SEPARATOR = re.compile(NO_ESCAPE)
WINDOWS = re.compile(rf"{NO_ESCAPE}\w{{2,}}[\\.]")  # stands in most paths of Windows, and in no other common text
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\[(?:\d{1,3}(?:;\d{1,3})*)?m|%[0-9A-F]{2}")  # of terminals and URLs
SLASH = "\\"
MARKS = ("%", "\x1b[", "[0m", "[39m")  # one of these stands in every text with codes
LABEL = re.compile(r"(?<![\w./-])([A-Za-z][\w-]{2,30})[\"'`]?(?:[ \t]*[:=#][ \t]*|(?P<loose>[ \t]+))[\"'`#]?$")
LABELING, BEHIND_SIGNS = (":", "=", "#"), " \t\n\"'`"  # what stands behind a label in output, and behind that
PLACEHOLDER = re.compile(r"<[\w -]+>\Z")  # <name>/file; an element has its end behind the path
QUERY = re.compile(r"\?\w+=")
# Before the rest of a path that has blanks, in quotes or on a line of its own: "/Volumes/A disk/".
IN_A_PATH = re.compile(r'(?:^|")(?:~|[A-Za-z]:)?/[^"\n]* \Z', re.M)
LONG_PATH = 120  # characters of it that are looked at
UNIT = re.compile(r"[ ]([a-z]{4,20})\b")
BEFORE, AFTER = 40, 24  # characters around a number that are searched for what it counts
# Before or behind a number, these say where it stands in a text or nothing at all.
NO_LABELS = frozenset({
    "line", "lines", "row", "rows", "col", "column", "columns", "offset", "limit", "page", "pages", "chars",
    "characters", "bytes", "the", "and", "for", "with", "from", "into", "than", "then", "that", "this", "are", "was",
    "were", "has", "have", "not", "but", "only", "about", "over", "under", "all", "more", "most", "least", "after",
    "before", "until", "showing", "shows", "total", "number", "times", "chunk", "end", "start", "head", "tail",
    "first", "last", "next", "time", "date",
})  # fmt: skip

# Members that a language has itself: nobody has to look up `lines.join` or `os.Exit`.
JAVASCRIPT = (
    "length size push pop shift slice splice join map filter reduce find some every includes indexOf forEach concat "
    "sort reverse keys values entries has get set add delete clear trim split replace match test exec toString "
    "toFixed startsWith endsWith toLowerCase toUpperCase padStart padEnd substring charAt then catch finally bind call "
    "apply parse stringify random floor ceil round min max abs now"
)
PYTHON = (
    "append extend insert remove strip lstrip rstrip format encode decode lower upper startswith endswith items update "
    "copy read write close open exists mkdir"
)
GO = (
    "Println Printf Sprintf Fprintf Errorf Error String Close Read Write Lock Unlock Exit Fatal Fatalf Fatals Helper "
    "Split TrimSpace Contains HasPrefix HasSuffix Join Dir Base Rel Second Minute Hour Millisecond Args"
)
BUILT_IN = frozenset(f"{JAVASCRIPT} {PYTHON} {GO}".split())
# Names that stand alone of what every program of a browser, of Node or of a test runner has.
EVERYWHERE = (
    "useState useEffect useRef useMemo useCallback useContext setTimeout clearTimeout setInterval clearInterval "
    "addEventListener removeEventListener querySelector querySelectorAll getElementById createElement appendChild "
    "innerHeight innerWidth clientHeight clientWidth localStorage sessionStorage getAttribute setAttribute className "
    "readFileSync writeFileSync existsSync mkdirSync readdirSync readFile writeFile parseInt parseFloat isArray "
    "arrayBuffer TextEncoder TextDecoder ReturnType ReadonlyArray WritableStream encodeURIComponent beforeAll afterAll "
    "beforeEach afterEach toHaveLength toBeCloseTo toEqual toBe toContain toThrow devDependencies node_modules"
)
LANGUAGE = frozenset({*EVERYWHERE.split(), *(name for name in BUILT_IN if not name.islower())})
# What the members of their own libraries begin with: `strings.TrimLeft`, `Number.isNaN`, `fs.readFileSync`.
LIBRARY_NAMES = (
    "console Object Number Promise Array Math JSON String Buffer process fs errors exec bytes strings strconv regexp "
    "filepath fmt sync sha256 hex os sys re assert self this"
)
LIBRARIES = frozenset(LIBRARY_NAMES.split())


class Folders:
    """The folders that known paths go through: plain words with a slash between them are a path if they are there."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._inside: set[str] = set()
        for folder in {path.rpartition("/")[0] for path in paths}:
            parts = folder.split("/")
            self._inside.update(
                "/".join(parts[start:stop]) for start in range(len(parts)) for stop in range(start + 2, len(parts) + 1)
            )

    def __contains__(self, words: str) -> bool:
        return words in self._inside


def kind_of(word: str, lead: str = "") -> IdentifierKind | None:
    """Return what sort of identifier a word is, None where it is none; `lead` are the signs before it.

    "words" are plain words with a slash between them, which may or may not be a path; numbers and ids need `labeled`.
    """
    if word.isdecimal():
        return "number" if len(word) > 2 else None
    if "_" in word and word.isidentifier() and word.isascii():
        if not word.strip("_0123456789") or JUNK.fullmatch(word):
            return None
        return "id" if _scattered(word) else "name"
    match = NAMED.fullmatch(word)
    if match is None or JUNK.fullmatch(word):
        return None
    if not word.isascii() and UNSPACED.search(word) and not (match.lastgroup == "path" and ENDING.search(word)):
        return None
    if word in LANGUAGE:
        return None
    kind: IdentifierKind = match.lastgroup or "name"  # type: ignore[assignment]  # the groups are kinds
    if kind == "path":
        return _kind_of_path(word, lead)
    if kind == "dotted" and (word.rpartition(".")[2] in BUILT_IN or word.partition(".")[0] in LIBRARIES):
        return None
    if kind == "name" and (HEX.fullmatch(word) or _scattered(word)):
        return None if _is_made_up(word) or len(word) == COLOR else "id"
    return kind


def _kind_of_path(word: str, lead: str) -> IdentifierKind | None:
    parts = word.split("/")
    if len(parts) > 1 and len(parts[0]) == 1 and "/" not in lead:  # a/ and b/ of a diff, s/ of an editor
        return None
    if lead.endswith("//") or (len(parts) > 1 and "/" not in lead and HOST.fullmatch(parts[0])):
        return "url"
    if len(parts) > 1 and "/" not in lead and all(map(PLAIN.fullmatch, parts)):
        return "words"
    return "id" if any(map(_scattered, parts)) else "path"


def _is_made_up(word: str) -> bool:
    """Tell whether letters and digits of an id follow each other as in `abc1234`."""
    letters = word.rstrip("0123456789")
    return letters in RISING[0] and word[len(letters) :] in RISING[1]


def _scattered(word: str) -> bool:
    """Tell whether letters and digits of a word follow each other as in an id that a machine has made."""
    return len(word) >= LONG and any(char.isdigit() for char in word) and len(RUNS.findall(word)) >= SCATTERED


def labeled(text: str, word: str, *, prose: bool = True) -> str:
    """Return a number or an id together with the word that says what it is, nothing where no word does.

    In `prose` a word beside it is enough; in output, where that may be another column, it must be a name with `:`, `=`
    or `#`.
    """
    at = text.rfind(word)
    while at >= 0:
        before = text[max(at - BEFORE, 0) : at]
        if not (prose or before.rstrip(BEHIND_SIGNS).endswith(LABELING)):  # quickly found, and so with most numbers
            at = text.rfind(word, 0, at)
            continue
        label = LABEL.search(before)
        end = at + len(word)
        known = label and label[1].lower() not in NO_LABELS
        if label and known and (prose or not (label["loose"] or text[end : end + 1] in (":", "-"))):
            return f"{label[1]} {word}"
        unit = UNIT.match(text[end : end + AFTER]) if prose else None
        if unit and unit[1] not in NO_LABELS and not text[at - 1 : at].isalnum():
            return f"{word} {unit[1]}"
        at = text.rfind(word, 0, at)
    return ""


def is_whole(text: str, path: str) -> bool:
    """Tell whether a path, with the signs around it, stands in a text other than as the rest of something longer.

    A pattern (`*_test.go`), a blank in a quoted path, a variable (`$HOME/a`, `${base}/a`), a placeholder (`<name>/a`),
    a port (`:8000/a`), the query of an address (`a.php?id=`) or an ellipsis may have cut it.
    """
    at = text.rfind(path)
    while at >= 0:
        end = at + len(path)
        before, after = text[at - 1 : at] if at else " ", text[end : end + 1]
        cut_before = (
            before in "*…$\\"
            or (before in "})]" and path[0] in "/_-.")
            or (before == ">" and after != "<" and PLACEHOLDER.search(text, max(at - BEFORE, 0), at))
            or (before == ":" and path.partition("/")[0].isdecimal())
            or (before == " " and IN_A_PATH.search(text, max(at - LONG_PATH, 0), at))
            or (path.startswith("...") and path[3:4].isalnum())
        )
        cut_after = path[-1] != "/" and (
            after in ("*", "…", "$")
            or (after == "?" and QUERY.match(text, end))
            or (after == "{" and path[-1] in "_-")
            or path.endswith("...")
        )
        if not (cut_before or cut_after):
            return True
        at = text.rfind(path, 0, at)
    return False


@memoized
def argument_names(call: ToolCall) -> frozenset[str]:
    """Return the names of a call's arguments, those inside of others too: the tool's words, not the work's."""
    names: set[str] = set()
    waiting: list[object] = [arguments_of(call)]
    while waiting:
        match waiting.pop():
            case dict() as value:
                names.update(value)
                waiting += value.values()
            case list() as value:
                waiting += value
            case _:
                pass
    return frozenset(names)


def without_codes(text: str) -> str:
    """Return a text with a blank for each code that colors a terminal, or stands for a sign in JSON or a URL.

    A path of Windows is parted at its separators, also where one of them and the next letter look like a code. Where it
    cannot be told which of the two a word stands behind, the word is left out.
    """
    if "\\" in text:
        text = text.replace("\\_", "_")  # in Markdown
        if ":\\" in text or WINDOWS.search(text):
            text = BACKSLASHED.sub(_in_path if ":\\" in text else _in_run, text)
        else:
            text = ESCAPED.sub(" ", text)
    return CODES.sub(" ", text) if any(map(text.__contains__, MARKS)) else text


def _in_run(match: re.Match[str]) -> str:
    """Part a run of words and backslashes at its separators if it is a path, else at its escapes."""
    run: str | None = match["run"]
    if run is None:
        return " "
    return run.replace("\\", " ") if SEPARATOR.search(run) else ESCAPED.sub(" ", run)


def _in_path(match: re.Match[str]) -> str:
    """Do the same in a text that has paths of Windows: what may be either is left out."""
    run: str | None = match["run"]
    return f"{run.partition(SLASH)[0]} " if run and not SEPARATOR.search(run) else _in_run(match)
