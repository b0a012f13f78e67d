"""What came of calls: which failed, which passed later, and which were tries that led nowhere.

An error is open until the same thing has gone well: the same file changed, or the same command in another spelling,
with other flags, from another folder, or on more than before (a folder instead of one of its files). Searches and
listings that fail are no errors: they ask whether something is there, and it was not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import is_shell, reads, subject, writes
from refold._condense.call_outline import call_line, exit_code, first_error, one_line
from refold._condense.digest.turns import turns_at
from refold.core.messages import ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = [
    "CallOutcome",
    "Target",
    "answered",
    "code_of",
    "failed",
    "outcomes",
    "target_in",
    "target_of",
    "verdict_of",
]

MOST = 150  # outcomes that are looked for
UNREPORTED = "no failure shown"  # of a check whose output says nothing
AT_END = 2_000  # characters at the end of a run's output, where it says whether it passed
COMMAND = re.compile(r"`(.+)`", re.S)
# What people run to see whether work is right; of `TOOLS` the second word says what is done: `npm run build`.
CHECKERS = re.compile(
    r"pytest|py\.test|tox|nox|unittest|mypy|pyright|ruff|flake8|pylint|jest|vitest|mocha|ava|playwright|cypress|tsc|"
    r"eslint|biome|prettier|rspec|rubocop|phpunit|ctest|ninja|cmake|make|just|gradlew?|mvnw?|msbuild|golangci-lint|"
    r"swift|javac|gcc|g\+\+|clang"
)
_TOOLS = (
    "go cargo npm pnpm yarn bun deno dotnet git docker kubectl gh uv poetry pip pip3 npx bunx mix bundle rake rails "
    "mage mise mvn task nx turbo composer terraform helm brew apt apt-get conda python python3 node"
)
_LOOKING = (
    "grep rg ls cat find head tail sed awk test [ which wc diff stat command type tree file jq echo printf pwd cd env "
    "printenv date ps lsof du df readlink realpath basename dirname cut sort uniq tr xxd od hexdump ag fd whereis man "
    "sleep true false export set source . id whoami uname hostname nl less more strings"
)
_GIT_LOOKS = "log show diff status grep blame rev-parse ls-files branch remote describe config"
_BUILDERS = "go cargo npm pnpm yarn bun deno dotnet uv poetry bunx mix bundle rake mage task nx turbo composer mise mvn"
TOOLS, LOOKING, GIT_LOOKS, BUILDERS = (frozenset(words.split()) for words in (_TOOLS, _LOOKING, _GIT_LOOKS, _BUILDERS))
CHECKING = re.compile(r"(?:test|check|lint|build|vet|typecheck|type-check|verify|ci|e2e|clippy|compile)\b", re.I)
NARROWING = frozenset(
    {"-k", "-run", "-t", "--testNamePattern", "--grep", "-g", "--filter", "-p", "--package", "--test"}
)
RUNNERS = re.compile(
    r"^(?:sudo|time|nice|nohup|env|exec|stdbuf \S+|timeout (?:-\S+ )*\S+|(?:uv|poetry|pipenv|pdm|hatch|rye) run|"
    r"npx(?: --yes| -y)?|bunx|pnpm (?:exec|dlx)|yarn (?:exec|dlx)|bundle exec|python\d?(?:\.\d+)? -m|"
    r"xargs(?: -\S+)*|[A-Z_][A-Z0-9_]*=\S*) "
)
SIMPLE = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^'\"|;&\n])+")  # commands between `|`, `;` and `&&`
WORD = re.compile(r"'[^']*'|\"[^\"]*\"|[^\s]+")
REDIRECTED = re.compile(r"\s*\d?>{1,2}\s*(?:&\d|\S+)")
SHELL_PROGRAMS = frozenset({"bash", "sh", "zsh"})
_INTERPRETERS = "python python3 node tsx ts-node ruby perl php deno bun psql sqlite3 mysql"
INTERPRETERS = frozenset(_INTERPRETERS.split())
INLINE = frozenset({"-e", "-c", "--eval"})
EVERYTHING = frozenset({".", "./", "./...", "...", "*", "all"})
FAILED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?\b(?! handl))|^(?:FAIL|--- FAIL|FAILED)\b|npm ERR!|ERR_PNPM|"
    r"^error(?:\[E\d+\])?:|error TS\d+|BUILD FAILED|BUILD FAILURE|FAILED \(|^panic:|^Traceback \(most|"
    r"^make(?:\[\d+\])?: \*\*\*|Test Suites?: \d+ failed|test result: FAILED",
    re.M,
)
PASSED = re.compile(
    r"\b[1-9]\d* (?:passed|passing)|^(?:ok|PASS|OK)\b|test result: ok|BUILD SUCCESS|0 errors|no issues found|"
    r"All checks passed|Success:|Tests?:\s+\d+ passed|Compiled successfully",
    re.M,
)
# A tool that was refused or not there says nothing about the work.
NO_ERROR = re.compile(
    r"temporarily unavailable|doesn't want to (?:proceed|take this action)|user (?:rejected|declined|denied|cancel)|"
    r"\[Request interrupted|tool use was rejected|interrupted by (?:the )?user|operation was aborted|Cancelled:",
    re.I,
)


class Target(Struct, frozen=True):
    """What a call is about: a file that it changes or reads, or what a command does (`task`) and to what."""

    task: str
    objects: tuple[str, ...] = ()
    checks: bool = False
    looks: bool = False

    def covers(self, other: Target) -> bool:
        """Tell whether what this does contains what the other did: the same, a folder of it, or all there is."""
        if self.task != other.task:
            return False
        return not self.objects or all(any(_within(one, mine) for mine in self.objects) for one in other.objects)


class CallOutcome(Struct, frozen=True):
    """What came of a call: the call as one line, how it ended, whether it failed, and whether that is still so."""

    call: str
    ended: str
    failed: bool
    shell: bool
    target: Target
    open: bool = False
    turn: int = 0


def outcomes(view: View, messages: Sequence[Message], later: Sequence[Message] = ()) -> tuple[CallOutcome, ...]:
    """Return the outcome of each shell command and each failed call, newest first, the same call only once.

    `later` are messages that stay, in which a failed call may have gone well.
    """
    index, turns = view.transcript.index, turns_at(view.transcript)
    passed: dict[str, list[tuple[int, Target]]] = {}
    for message in (*later, *messages):
        for call, result in answered(view, [message]):
            if not failed(call, result):
                target = target_of(call)
                passed.setdefault(target.task, []).append((index.get(message.id, -1), target))
    results: dict[str, CallOutcome] = {}
    for message in reversed(messages):
        if len(results) >= MOST:
            break
        position = index.get(message.id, -1)
        for call, result in answered(view, [message]):
            shell = is_shell(call)
            line = call_line(call)
            if not (shell or result.is_error) or line in results or NO_ERROR.search(result.text[:400]):
                continue
            bad, target = failed(call, result), target_of(call)
            is_open = bad and not any(at > position and each.covers(target) for at, each in passed.get(target.task, ()))
            turn = turns[position] if position >= 0 else 0
            results[line] = CallOutcome(line, ended(call, result), bad, shell, target, is_open, turn)
    return tuple(results.values())


def answered(view: View, messages: Iterable[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    """Yield the calls that messages answer, with the results, the last of a message first."""
    for message in messages:
        for result in reversed(message.results):
            call = view.call_of(message, result)
            if call is not None:
                yield call, result


def failed(call: ToolCall, result: ToolResult) -> bool:
    """Tell whether a call failed: by its flag, by its exit code, or, of a check, by what it printed at its end."""
    return result.is_error or (
        is_shell(call) and (bool(code_of(result)) or (target_of(call).checks and verdict_of(result) == "failed"))
    )


def ended(call: ToolCall, result: ToolResult) -> str:
    """Return how a call ended: passed or failed where that is known, else its exit code, and its first error."""
    code = code_of(result)
    how = f"exit code {code}" if code is not None else "error" if result.is_error else ""
    if target_of(call).checks and is_shell(call) and not how.startswith("exit code"):
        how = verdict_of(result) or how or UNREPORTED
    if failed(call, result) and (wrong := first_error(result.text) or _failing_line(result)):
        return f"{how}: {wrong}" if how else wrong
    if result.is_error and how == "error" and (first := one_line(result.text, 120)):
        return f"error: {first}"
    return how


@memoized
def code_of(result: ToolResult) -> int | None:
    """Return the exit code that an output names."""
    return exit_code(result.text)


@memoized
def verdict_of(result: ToolResult) -> str:
    """Return what the output of a check says at its end: that it failed or passed, or nothing."""
    end = result.text[-AT_END:]
    return "failed" if FAILED.search(end) else "passed" if PASSED.search(end) else ""


def _failing_line(result: ToolResult) -> str:
    """Return the line at the end of a check's output that says that it failed, or nothing."""
    end = result.text[-AT_END:]
    match = FAILED.search(end)
    return one_line(end[end.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0], 140) if match else ""


@memoized
def target_of(call: ToolCall) -> Target:
    """Return what a call is about."""
    about, plain = subject(call)
    if is_shell(call) and plain:
        return _of_command(about)
    if paths := writes(call):
        return Target("write", paths)
    if ref := reads(call):
        return Target("read", (ref.path,), looks=True)
    return Target(call.name, (about,))


def target_in(line: str) -> Target:
    """Return what a call is about from its line in an earlier digest, which may be cut."""
    command = COMMAND.search(line)
    if command:
        return _of_command(command[1].removesuffix(" …"))
    name, _, rest = line.partition(" ")
    return (
        Target("write", (rest,)) if re.search(r"edit|write|patch|replace|create", name, re.I) else Target(name, (rest,))
    )


def _of_command(command: str) -> Target:
    """Return what the most telling of the commands in a line does: a check, else the last that is not only looking."""
    pieces = SIMPLE.findall(REDIRECTED.sub("", command.split("<<", 1)[0]))
    targets = [target for piece in pieces if (target := _of_simple(piece.strip(" ()")))]
    for wanted in (lambda each: each.checks, lambda each: not each.looks):
        if chosen := next(filter(wanted, reversed(targets)), None):
            return chosen
    return targets[0] if targets else Target(command[:40], looks=True)


def _of_simple(command: str) -> Target | None:
    while match := RUNNERS.match(command):
        command = command[match.end() :].strip()
    words = [word.strip("'\"") for word in WORD.findall(command)]
    if not words:
        return None
    program, rest = words[0].rsplit("/", 1)[-1], words[1:]
    if program in SHELL_PROGRAMS and len(rest) == 2 and rest[0].endswith("c"):
        return _of_command(rest[1])
    if program in INTERPRETERS and INLINE.intersection(rest[:2]):  # a probe: what it looks for is in its own text
        return Target(command, looks=True)
    if program in TOOLS and rest:
        verb = next((word for word in rest if not word.startswith("-")), "")
        rest = rest[rest.index(verb) + 1 :] if verb else rest
        if verb == "run" and rest:
            verb, rest = rest[0], rest[1:]
        looks = (program == "git" and verb in GIT_LOOKS) or (program, verb) == ("gh", "api")
        objects = () if program == "git" else _objects(rest)
        if program in ("python", "python3", "node"):
            return Target(f"{program} {verb}", ())
        checks = program in BUILDERS and CHECKING.match(verb) is not None
        return Target(f"{program} {verb}", objects, checks, looks)
    checks = CHECKERS.fullmatch(program) is not None
    return Target(program, _objects(rest), checks, program in LOOKING)


def _objects(words: Sequence[str]) -> tuple[str, ...]:
    """Return what a command is told to work on: words that are no flags, and the values of flags that narrow it."""
    objects: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        if not word.startswith("-") and (not before.startswith("-") or before in NARROWING or "/" in word):
            objects.append(word)
    return () if EVERYTHING.intersection(objects) else tuple(objects)


def _within(path: str, other: str) -> bool:
    """Tell whether a path, or a test in a file, is another one or stands inside it."""
    other = other.rstrip("/")
    return path == other or path.startswith((f"{other}/", f"{other}::", f"{other}.")) or path.endswith(f"/{other}")
