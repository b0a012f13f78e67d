"""What calls are about: the file that one changes or reads, or what a command does, to what, and in which folder.

Two spellings of a command have the same target: flags, environment variables, runners such as `npx` or `uv run`, and
what else the line does do not count. A run shows what another would have shown if it does the same, or more of it.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import act_of, is_shell, plain_name, reads, subject, workdir, writes
from refold._condense.shell_commands import joined, plain_path, without_heredocs
from refold._salience.lazy_table import LazyTable
from refold._text.text_cache import word_cache
from refold.core.messages import ToolCall, memoized

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WRITE", "Target", "target_in", "target_of", "targets_of"]

KNOWN = 16_384  # paths, and pairs of folders, that are remembered
WRITE = "write"  # the task of a call that changes a file
COMMAND = re.compile(r"`(.+)`", re.S)
# What people run to see whether work is right; of `TOOLS` the second word says what is done: `npm run build`.
CHECKERS = re.compile(
    r"pytest|py\.test|tox|nox|unittest|mypy|pyright|ruff|flake8|pylint|jest|vitest|mocha|ava|playwright|cypress|tsc|"
    r"vue-tsc|tsgo|eslint|biome|prettier|rspec|rubocop|phpunit|ctest|ninja|cmake|msbuild|golangci-lint|swift|javac|"
    r"gcc|g\+\+|clang"
)
_TOOLS = (
    "go cargo npm deno dotnet git docker kubectl gh uv poetry pip npx mix bundle rake rails mage mise gradle mvn task "
    "make just nx turbo composer terraform helm brew apt apt-get conda"
)
_LOOKING = (
    "grep rg ls cat find head tail sed awk test [ [[ which wc diff stat command type tree file jq echo printf pwd cd "
    "env printenv date ps lsof du df readlink realpath basename dirname cut sort uniq tr xxd od hexdump ag fd whereis "
    "man "
    "sleep true false export set source . id whoami uname hostname nl less more strings exit return if then else fi "
    "for while do done wait kill pkill pgrep Select-String Get-Content Get-ChildItem Write-Output Write-Host Test-Path "
    "Get-Command Select-Object"
)
_GIT_LOOKS = "log show diff status grep blame rev-parse ls-files branch remote describe config ls-tree ls-remote"
_BUILDERS = "go cargo npm deno dotnet uv poetry mix bundle rake mage task nx turbo composer mise gradle mvn make just"
_FILTERS = "head tail sort uniq wc cut tr nl less more tee column xargs"  # of what others print
TOOLS, LOOKING, GIT_LOOKS, BUILDERS, FILTERS = (
    frozenset(words.split()) for words in (_TOOLS, _LOOKING, _GIT_LOOKS, _BUILDERS, _FILTERS)
)
SAME = {  # programs that do the same with the same words
    "pnpm": "npm",
    "yarn": "npm",
    "bun": "npm",
    "bunx": "npx",
    "pip3": "pip",
    "gradlew": "gradle",
    "mvnw": "mvn",
    "py.test": "pytest",
    "python3": "python",
    "gmake": "make",
    "tsgo": "tsc",
    "vue-tsc": "tsc",
}
SAME_VERBS = {"npm": {"t": "test", "i": "install", "ci": "install", "add": "install"}}
# A run that compiles shows that what only compiles goes well, too.
SHOWS = {
    "go test": ("go build",),
    "go vet": ("go build",),
    "cargo test": ("cargo build", "cargo check"),
    "cargo nextest": ("cargo build", "cargo check", "cargo test"),
    "cargo build": ("cargo check",),
    "cargo run": ("cargo build", "cargo check"),
    "cargo clippy": ("cargo check",),
    "dotnet test": ("dotnet build",),
    "mvn install": ("mvn test", "mvn compile", "mvn package", "mvn verify"),
    "mvn verify": ("mvn test", "mvn compile", "mvn package"),
    "mvn package": ("mvn test", "mvn compile"),
    "mvn test": ("mvn compile",),
    "gradle build": ("gradle test", "gradle compileJava", "gradle check"),
    "gradle test": ("gradle compileJava",),
    "npm build": ("tsc", "npm typecheck"),
    "npm check": ("tsc", "npm typecheck"),
    "npm typecheck": ("tsc",),
    "tsc": ("npm typecheck",),
    "git commit": ("git merge", "git cherry-pick", "git revert", "git pull"),  # what had conflicts is done by it
}
# Runners of a project's tests, whatever they are written in, or in one language only: all tests show each.
TESTERS = frozenset({"pytest", "unittest", "go test", "cargo test", "rspec", "phpunit", "ctest", "jest", "vitest"})
OF_NODE = frozenset({"jest", "vitest", "mocha", "ava"})
SUITES = {f"{program} test": TESTERS for program in ("make", "just", "task", "mise", "mage", "rake")} | {
    "npm test": OF_NODE,
    "tox": TESTERS,
    "nox": TESTERS,
}
ALL_TESTS = re.compile(r":(?:all|ci|unit)$")  # how tasks end that run the tests of a project, too: `test:ci`
CHECKING = re.compile(
    r"(?:unit-?|integration-?)?(?:test|check|lint|build|vet|typecheck|type-check|verify|ci|e2e|clippy|nextest|compile)"
    r"\b|package\b|(?:assemble|compile|test)\w*$",
    re.I,
)
SCRIPTS = re.compile(  # files that are run to see whether work is right
    r"(?:^|/)(?:(?:run[_-]?)?tests?(?:[_-]\w+)?|(?:run[_-]?)?(?:checks?|lint|verify|validate|ci)(?:[_-]\w+)*)\.(?:py|sh|[mc]?[jt]s|rb|ps1)$"
)
NAMED = frozenset(  # flags whose value names what of the objects is run
    {"-k", "-run", "-t", "--testNamePattern", "--test-name-pattern", "--grep", "-g", "--tests", "--test", "-Dtest"}
)
NARROWING = frozenset({"--filter", "-p", "--package", "-w", "--workspace", "-F", "-R", "--project"})
PLACES = frozenset({"-C", "--prefix", "--cwd", "--directory", "--dir"})  # flags whose value is a folder to run in
_VALUED = "-c --config -o --output --rootdir --manifest-path -f --file -m --reporter -n -j --jq --json"
VALUED = frozenset(_VALUED.split())
RUNNERS = re.compile(
    r"^(?:!|sudo|time|nice|nohup|env|exec|stdbuf \S+|timeout (?:-\S+ )*\S+|(?:uv|poetry|pipenv|pdm|hatch|rye) run|"
    r"corepack|(?:fnm|mise|nvm|volta|devbox|nix develop)\b(?: (?!--(?: |$))\S+)* (?:--|-c|--command)|direnv exec \S+|"
    r"npx(?: --yes| -y)?|bunx|pnpm (?:exec|dlx)|yarn (?:exec|dlx)|npm exec(?: --)?|bundle exec|"
    r"(?:\S*/)?python\d?(?:\.\d+)? -m|xargs(?: -\S+)*|[A-Za-z_][A-Za-z0-9_]*=(?:'[^']*'|\"[^\"]*\"|\S*)) "
)
RUNS_SCRIPT = re.compile(r"^(?:p?npm )?node --run (?=[\w:-])")  # of a project, as `npm run` does
SIMPLE = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^'\"|;&\n])+")  # commands between `|`, `;` and `&&`
OPEN_QUOTE = re.compile(r"['\"]")
# What a word must be to be the name of a program: no text, and no variable that is set.
PROGRAM = re.compile(r"\[\[?|[\w.@+:%~/\\ -]*\w[\w.@+:%~/\\ -]*")
KEYWORDS = re.compile(r"^(?:(?:then|do|else|if|elif|while|until) )+")  # of a shell, before a command
HIDDEN = re.compile(r"(?:^|/)\.\w")  # in a folder that tools of an agent stand in, not the work
WORD = re.compile(r"'[^']*'|\"[^\"]*\"|[^\s]+")
QUOTED = r"'[^']*'|\"(?:\\.|[^\"\\])*\""
REDIRECTED = re.compile(rf"({QUOTED})|\s*\d?>{{1,2}}\s*(?:&\d|{QUOTED}|\S+)")
SHELL_PROGRAMS = frozenset({"bash", "sh", "zsh"})
FOLDERS = frozenset({"cd", "pushd", "Set-Location"})  # commands that go to a folder
_INTERPRETERS = "python node tsx ts-node ruby perl php deno npm psql sqlite3 mysql"
INTERPRETERS = frozenset(_INTERPRETERS.split())
ABOUT_ITSELF = frozenset({"--help", "--version"})  # what is asked of a program about itself
INLINE = frozenset({"-e", "-c", "--eval", "-", "-p"})
EVERYTHING = frozenset({".", "./", "./...", "...", "*", "all"})
UNKNOWN = ("$", "~", "`")  # beginnings of folders that only the shell knows
PATH_LIKE = re.compile(r"/|::|\.\w{1,5}$")
WRITING_NAME = re.compile(r"edit|write|patch|replace|create", re.I)
LOOKING_NAME = re.compile(
    r"(?:^|_)(?:search|fetch|get|list|find|read|view|grep|glob|query|browse|lookup|describe|show|navigate|screenshot|snapshot)(?:_|$)|"
    r"(?:search|fetch)$"
)


class Target(Struct, frozen=True):
    """What a call is about: a file that it changes or reads, or what a command does (`task`), to what, and where.

    `names` are the tests that it is limited to. `once` tells of a command of its own, such as a script or a copy.
    `written` is the command as it stands in its line, without the others.
    """

    task: str
    objects: tuple[str, ...] = ()
    checks: bool = False
    looks: bool = False
    names: tuple[str, ...] = ()
    folder: str = ""
    once: bool = False
    written: str = ""

    def covers(self, other: Target) -> bool:
        """Tell whether what this does contains what the other did: the same, a folder of it, or all there is."""
        if self.task != other.task and other.task not in SHOWS.get(self.task, ()):
            suite = self.task.partition(":")[0] if ALL_TESTS.search(self.task) else self.task
            return not self.objects and not self.names and other.task in SUITES.get(suite, ())
        if self.folder != other.folder and not _may_contain(self.folder, other.folder):
            return False
        if self.names and not (other.names and all(_named(one, self.names) for one in other.names)):
            return False
        if not self.objects or (self.names and not other.objects):
            return True
        return bool(other.objects) and all(any(_within(one, mine) for mine in self.objects) for one in other.objects)


@memoized
def target_of(call: ToolCall) -> Target:
    """Return what a call is about: of a command the part that tells most.

    That is a check, or the last part that does not only look, or the last that does not only filter what others print.
    """
    return _chosen(targets_of(call))


@memoized
def targets_of(call: ToolCall) -> tuple[Target, ...]:
    """Return all that a call is about: of a shell command each of its parts, and the files that it writes."""
    about, plain = subject(call)
    written = writes(call)
    if is_shell(call) and plain:
        files = (Target(WRITE, (path,), looks=True) for path in written)
        return (*files, *_of_command(about, workdir(call)))
    if written:
        return (Target(WRITE, written),)
    if ref := reads(call):
        return (Target("read", (ref.path,), looks=True),)
    looks = act_of(call) == "search" or LOOKING_NAME.search(plain_name(call.name)) is not None
    return (Target(call.name, (about,), looks=looks),)


def target_in(line: str) -> Target:
    """Return what a call is about from its line in an earlier digest, which may be cut."""
    command = COMMAND.search(line)
    if command:
        return _chosen(_of_command(command[1].removeprefix("… ").removesuffix(" …")))
    name, _, rest = line.partition(" ")
    return Target(WRITE, (rest,)) if WRITING_NAME.search(name) else Target(name, (rest,))


def _chosen(targets: Sequence[Target]) -> Target:
    for wanted in (lambda each: each.checks, lambda each: not each.looks, lambda each: each.task not in FILTERS):
        if chosen := next(filter(wanted, reversed(targets)), None):
            return chosen
    return targets[-1]


def _of_command(command: str, folder: str = "") -> tuple[Target, ...]:
    """Return what each of the commands in a line does that is run in a folder."""
    targets: list[Target] = []
    line, end = REDIRECTED.sub(r"\1", without_heredocs(command)), 0
    for piece in SIMPLE.finditer(line):
        if OPEN_QUOTE.search(line, end, piece.start()):
            break  # what follows stands in a text of which the end was cut
        end = piece.end()
        simple = KEYWORDS.sub("", piece[0].strip(" ()\t{}"))
        words = [word.strip("'\"") for word in WORD.findall(simple)]
        if len(words) == 2 and words[0] in FOLDERS:
            folder = _folder_after(folder, words[1])
        elif done := _of_simple(simple, folder):
            targets += [replace(each, written=simple) for each in done]
    return tuple(targets) or (Target(command[:40], looks=True),)


def _of_simple(command: str, folder: str) -> tuple[Target, ...]:
    while match := RUNNERS.match(command):
        command = command[match.end() :].strip()
    command = RUNS_SCRIPT.sub("npm run ", command)
    words = [word.strip("'\"") for word in WORD.findall(command)]
    if not words or not PROGRAM.fullmatch(words[0]):
        return ()
    program = words[0].replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe")
    rest: Sequence[str] = words[1:]
    program = SAME.get(program, program)
    if program in SHELL_PROGRAMS and len(rest) == 2 and rest[0].endswith("c"):
        return _of_command(rest[1], folder)
    flags = takewhile(lambda word: word.startswith("-"), rest[:2])  # what follows a script is the script's own
    if program in INTERPRETERS and (not INLINE.isdisjoint(flags) or not rest):
        return (Target(command[:40], looks=True),)  # a probe: what it looks for is in its own text
    if not ABOUT_ITSELF.isdisjoint(rest):
        return (Target(command[:40], looks=True),)
    if program not in TOOLS or not rest:
        objects, names = _objects(rest)
        scripts = (words[0], *objects[:1]) if program in INTERPRETERS else words[:1]
        checks = CHECKERS.fullmatch(program) is not None or any(
            SCRIPTS.search(script) and not HIDDEN.search(script) for script in scripts
        )
        lasting = checks or program in BUILDERS
        return (Target(program, objects, lasting, program in LOOKING, names, folder, once=not lasting),)
    verb, rest, place = _verb(rest)
    if verb == "run" and rest and program not in ("go", "cargo", "docker", "gh", "dotnet"):
        verb, rest, place = _verb(rest, place)
    verb = SAME_VERBS.get(program, {}).get(verb, verb)
    looks = (program == "git" and verb in GIT_LOOKS) or (program, verb) == ("gh", "api")
    objects, names = ((), ()) if program == "git" else _objects(rest)
    checks = program in BUILDERS and (not verb or CHECKING.match(verb) is not None)
    return (Target(f"{program} {verb}".rstrip(), objects, checks, looks, names, _folder_after(folder, place)),)


def _folder_after(folder: str, place: str) -> str:
    """Return the folder that a command is in that was in one and goes to another, or stays."""
    return joined(folder, place) if place and place[0] not in "~$`-." else place or folder


def _verb(words: Sequence[str], place: str = "") -> tuple[str, Sequence[str], str]:
    """Return the first word that is no flag nor the value of one, the words without it, and the folder flags name."""
    narrowed: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word in PLACES:
            place = "".join(words[at + 1 : at + 2])
            at += 2
        elif word in NARROWING or word in VALUED:
            narrowed += words[at : at + 2]
            at += 2
        elif word.startswith("-"):
            at += 1
        else:
            return word, (*narrowed, *words[at + 1 :]), place
    return "", narrowed, place


def _objects(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a command is told to work on, and the names that flags limit it to."""
    objects: list[str] = []
    names: list[str] = []
    before = ""
    for word in words:
        flag, _, value = word.partition("=") if word.startswith("-") else ("", "", "")
        if before in NAMED or (flag in NAMED and value):
            names.append(value or word)
        elif before in VALUED or before in PLACES:
            pass
        elif flag in NARROWING and value:
            objects.append(value)
        elif not word.startswith("-") and (
            not before.startswith("-") or before in NARROWING or before == "--" or PATH_LIKE.search(word)
        ):
            objects.append(word)
        before = word
    return (() if EVERYTHING.intersection(objects) else tuple(objects)), tuple(names)


def _named(name: str, among: Sequence[str]) -> bool:
    return any(mine.strip("^$") in name for mine in among)


def _within(path: str, other: str) -> bool:
    """Tell whether a path, or a test in a file, is another one or stands inside it; relative ones end absolute ones."""
    path, other = BARE[path], BARE[other]
    if other not in path:  # holds for most
        return other.endswith(f"/{path}")
    if path == other or path.startswith((f"{other}/", f"{other}::", f"{other}.", f"{other}#")):
        return True
    file = path.split("::", 1)[0]
    return file.endswith(f"/{other}") or f"/{other}/" in file or other.endswith(f"/{path}")


BARE = LazyTable(lambda path: plain_path(path).removesuffix("/...").rstrip("/"), KNOWN)  # paths as they are compared


@word_cache(KNOWN)
def _may_contain(folder: str, other: str) -> bool:
    """Tell whether a command in one folder may do all that one in another does: not where the two are apart."""
    mine, theirs = (plain_path(each).rstrip("/").split("/") for each in (folder, other))
    if not folder or not other or folder == "." or folder.startswith(UNKNOWN) or other.startswith(UNKNOWN):
        return True
    absolute, other_absolute = (not parts[0] for parts in (mine, theirs))
    if absolute == other_absolute:
        return theirs[: len(mine)] == mine
    longer, shorter = (mine, theirs) if absolute else (theirs, mine)
    return longer[-len(shorter) :] == shorter or (absolute and shorter[0] not in longer)
