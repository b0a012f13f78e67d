"""Reads off the output of tests and builds which of them failed, and the line that says why, word for word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_outline import first_error, one_line
from refold.core.messages import memoized

if TYPE_CHECKING:
    from refold.core.messages import ToolResult

__all__ = ["counted", "failing", "failing_places", "failure_line", "passing_end", "warnings"]

LISTED = 3  # names of tests that are listed
NAME, REASON = 90, 140  # characters of a name and of the line that says why
LOOKED_AT = 60_000  # characters at the end of an output
NEAR = 2_500  # characters behind a name that are searched for the reason
# How runners name a test that failed, one line for each family; the name is the first group that matched.
NAMES = re.compile(
    r"^(?:FAILED|ERROR) (\S+::\S+|\S+\.py)(?= - |\s*$)|"  # pytest: short summary
    r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))|"  # unittest
    r"^_{4,} (?:ERROR (?:collecting|at \w+ of) )?(\S.*?) _{4,}\s*$|"  # pytest: headings of failures
    r"^\s*--- FAIL: (\S+)|"  # go test
    r"^test (\S+) \.\.\. FAILED\b|"  # cargo test
    r"^\s*(?:FAIL|×|❯)\s+(?:\|[^|]+\|\s+)?(\S+\.(?:test|spec)\.\w+(?: > .+)?)\s*$|"  # vitest, jest: files
    r"^\s*● (?!Console|Cannot log)(\S.*?\S)\s*$|"  # jest: the test within its blocks
    r"^\s*(?:✕|✖|✗|×|✘) (?!failing tests)(\S.*?) \(?\d+(?:\.\d+)? ?m?s\)?\s*$|"  # jest, vitest, node
    r"^\(fail\) (.+?)(?: \[[\d.]+m?s\])?\s*$|"  # bun
    r"^\s*not ok \d+ -? ?(.+?)\s*$|"  # TAP
    r"^\s+\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Not Run)[^)]*\)|"  # ctest
    r"^\[ERROR\]\s+(\w[\w.$]*[.:]\w+(?::\d+)? \S.*)|"  # JUnit under Maven
    r"^(\w[\w.$]* > .+?) FAILED\s*$|"  # JUnit under Gradle
    r"^\[  FAILED  \] (\w+[./]\S+)|"  # GoogleTest
    r"^rspec (\./\S+)|"  # RSpec
    r"^\s*\d+\) (\S+::\S+)\s*$|"  # PHPUnit
    r"^\s+Failed (\S+) \[",  # dotnet test
    re.M,
)
NUMBERED = re.compile(r"^\s+\d+\) (\S.*?):?\s*$", re.M)  # Mocha, RSpec
NUMBERING = re.compile(r"^\s*\d+ failing\b|^Failures:\s*$", re.M)
FILE = re.compile(r"(\S+\.\w{1,5})(?=::| > |$)")
PACKAGE = re.compile(r"^FAIL\s+(\S+/\S+)(?=\s|$)", re.M)  # of Go
# Lines that say why: what a compiler or an assertion prints. The best sort first.
REASONS = (
    re.compile(r"^E +(?!assert\b)\S.*$|^\s*[\w.]*(?:Error|Exception|Failure)\b: .+$|^.*\bpanicked at .+$", re.M),
    re.compile(
        r"^E +\S.*$|^\s+\S+_test\.go:\d+: .+$|^\s*Error:\s+\S.*$|^\S+\.\w+:\d+(?::\d+)?: (?:fatal )?error: .+$|"
        r"^\s*(?:AssertionError|panic:).*$|^error(?:\[E\d+\])?: (?!script \").+$|^\./?\S+\.go:\d+:\d+: .+$|"
        r"^\S+\(\d+,\d+\): error .+$|^\S+:\d+:\d+ - error .+$|^\s*(?:Expected|Received|expected|got)\b.*$|"
        r"^\s+\d+:\d+\s+error\s+.+$|^\S+:\d+: error: .+$",
        re.M,
    ),
    re.compile(r"^\W*(?:Found )?[1-9]\d* (?:errors?|problems?)\b.*$", re.M),  # where nothing says which
)
# How compilers and linters count their warnings, where they count no errors, and how one begins.
WARNINGS_COUNTED = re.compile(
    r"\bgenerated (\d+) warnings?\b|\b0 errors?(?:,| and) (\d+) warnings?\b|^(\d+) warnings? generated|"
    r"^\s*(\d+) Warning\(s\)",
    re.M,
)
# How runners count what passed, and the share of the code that the tests ran.
PASSING = re.compile(r"(?<![\w.])[1-9]\d* (?:pass(?:ed|ing)?|passes)\b")
COUNTS = re.compile(r"(?<![\w.])[1-9]\d* (?:pass(?:ed|ing|es)?|fail(?:ed|ing|ures?)?|errors?|skipped)\b")
BELOW = re.compile(r"\s*\n\s*([1-9]\d* (?:fail(?:ed|ing)?|errors?))\b")  # of runners that count on lines of their own
COVERAGE = re.compile(r"^(?:TOTAL\b|All files\b|Total coverage:).*?(\d+(?:\.\d+)?)(?: ?%| *\|)", re.M)
FAILING = re.compile(r"(?<![\w.])[1-9]\d* (?:fail(?:ed|ing|ures?)?|errors?)\b")
TALLIES = 2  # lines that count; more are of several runs
WARNING = re.compile(r"^(?:\S+:\d+(?::\d+)?: )?warning(?:\[[\w:-]+\])?: (?!.*\bgenerated \d)(\S.*)$", re.M)


@memoized
def warnings(result: ToolResult) -> str:
    """Return how many warnings the output of a check counts, and the first of them; nothing where it has none."""
    text = result.text[-LOOKED_AT:]
    if "arning" not in text:
        return ""
    first = WARNING.search(text)
    counted = [int(next(filter(None, match.groups()))) for match in WARNINGS_COUNTED.finditer(text)]
    number = max(counted, default=len(WARNING.findall(text)))
    what = f": {one_line(first[1], NAME)}" if first else ""
    return f"{number} warning{'s' * (number > 1)}{what}" if number else ""


@memoized
def counted(result: ToolResult) -> str:
    """Return how many tests an output counts, and the share of the code that they ran; nothing of several runs."""
    text = result.text[-LOOKED_AT:]
    lines = [line for line in text.split("\n") if PASSING.search(line)] if " pass" in text else []
    tally = ", ".join(COUNTS.findall(lines[-1])) if 0 < len(lines) <= TALLIES else ""
    covered = COVERAGE.findall(text)
    return ", ".join(filter(None, (tally, f"coverage {covered[-1]} %" if len(covered) == 1 else "")))


def passing_end(text: str) -> int:
    """Return where the last count of tests ends of which none has failed; 0 where there is none."""
    matches = [*PASSING.finditer(text)]
    line = text[text.rfind("\n", 0, matches[-1].start()) + 1 :] if matches else ""
    if not matches or BELOW.match(text, matches[-1].end()) or FAILING.search(line.partition("\n")[0]):
        return 0
    return matches[-1].end()


@memoized
def failing(result: ToolResult) -> tuple[str, ...]:
    """Return the names of the tests that an output says have failed, in order, each once."""
    text = result.text[-LOOKED_AT:]
    names = [next(filter(None, match.groups())) for match in NAMES.finditer(text)]
    if not names and (start := NUMBERING.search(text)):
        names = NUMBERED.findall(text, start.end())
    return tuple(dict.fromkeys(one_line(name, NAME) for name in names))


def failing_places(result: ToolResult) -> tuple[str, ...]:
    """Return the files or packages of all tests that failed; nothing where one of them is not known."""
    packages = PACKAGE.findall(result.text[-LOOKED_AT:])
    names = failing(result)
    files = [match[1] for name in names if (match := FILE.match(name))]
    return tuple(dict.fromkeys(packages or (files if len(files) == len(names) else ())))


def failure_line(result: ToolResult) -> str:
    """Return the tests that failed and the line that says why, or only that, as far as an output names them."""
    names, why = failing(result), _reason(result)
    if not names:
        return why
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ": ".join(filter(None, (", ".join(names[:LISTED]) + more, why)))


def _reason(result: ToolResult) -> str:
    """Return the line that says why the first test failed, or what went wrong at all."""
    text = result.text[-LOOKED_AT:]
    first = NAMES.search(text)
    near = text[first.start() : first.end() + NEAR] if first else text
    if first and " - " in (line := near.partition("\n")[0]) and near.startswith(("FAILED", "ERROR")):
        return one_line(line.partition(" - ")[2], REASON)  # pytest says it behind the name
    for piece in (near, text) if first else (text,):
        for reasons in REASONS:
            if match := reasons.search(piece, 1 if first and piece is near else 0):
                return _with_next(piece, match[0])
    return "" if first else _with_next(text, first_error(result.text))


def _with_next(text: str, line: str) -> str:
    """Return a line of a text, with the one below it where it only introduces that."""
    below = text.partition(line)[2].strip().partition("\n")[0] if line.endswith(":") else ""
    return one_line(f"{line} {below.strip(' -*')}", REASON)
