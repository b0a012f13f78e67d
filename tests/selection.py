"""Which tests `make quick` leaves out: those that start servers or processes, and the slow ones.

What a test starts is read off its source: its own, that of its fixtures, and that of the helpers in tests/ that either
uses. So a new test needs no mark. In a quick run, a test that starts something all the same fails (see conftest.py).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

TESTS = Path(__file__).parent

# names of classes, functions and modules that start a server or a process
STARTERS = frozenset(
    [
        *("subprocess", "Popen", "fork", "multiprocessing", "ProcessPoolExecutor", "create_subprocess_exec"),
        *("LocalCluster",),
        *("ScriptedProvider", "Serving", "uvicorn", "start_server", "create_server", "bind"),
        *("HTTPServer", "ThreadingHTTPServer", "TCPServer", "postgres_server"),
    ]
)

# tests that start something which their source does not show: cases and pages are read from files
HIDDEN = (
    "agent/test_shell.py",
    "cases",
    "tools/test_record_sessions.py",
    "test_docs.py::test_the_python_of_a_page_runs",
)

# tests that take long without starting anything, most of them whole conversations under every policy and format
SLOW = (
    "conformance/test_differential.py",
    "laws",
    "agent/test_long.py",
    "agent/test_loop.py",
    "agent/test_session.py",
    "cli/test_bad_input.py",
    "cli/test_commands.py::test_the_demo_compares_all_policies",
    "cli/test_replay.py",
    "conformance/test_wolffish.py::test_w11_41_outputs_of_60_kb_make_a_task_file_of_under_100_kb_and_a_log_of_everything",
    "conformance/test_wolffish.py::test_w13_compaction_happens_before_each_call_of_the_model_and_nowhere_else_and_tools_run_in_order",
    "conformance/test_wolffish.py::test_w19_the_task_ends_so_where_the_provider_counts_every_character_as_a_token",
    "golden",
    "policies/test_refold_bill.py",
    "replay/test_parallel.py",
    "replay/test_run.py",
    "rules/test_call_index.py",
    "sessions/test_preserved_thinking.py",
    "sessions/test_session.py::test_a_view_that_grows_turn_by_turn_is_the_fold_of_all_plans",
    "stores/test_many.py",
    "test_docs.py::test_nothing_that_is_made_from_the_code_is_out_of_date",
    "test_recorded.py",
    "text/test_graphemes.py",
    "transcripts/test_shared_files.py",
)


def is_slow(path: Path, test: str) -> bool:
    """Whether a test function of a file is one of the slow ones."""
    return _is_in(SLOW, path, test)


def _is_in(entries: Iterable[str], path: Path, test: str) -> bool:
    place = path.relative_to(TESTS).as_posix() if TESTS in path.parents else ""
    names = {place, f"{place}::{test}", *(folder.as_posix() for folder in Path(place).parents)}
    return not names.isdisjoint(entries)


def starts_something(path: Path, test: str, fixtures: Iterable[str] = ()) -> bool:
    """Whether a test function of a file, or one of the fixtures it needs, reaches a name in STARTERS."""
    if _is_in(HIDDEN, path, test):
        return True
    return any(_reaches(place, name) for place, name in [(path, test), *_fixtures(path, fixtures)])


def _fixtures(path: Path, names: Iterable[str]) -> list[tuple[Path, str]]:
    """Where fixtures that a file may ask for by name can be defined: in it, or in a conftest.py above it."""
    return [(place, name) for name in names for place in (path, *_conftests(path.parent))]


@functools.cache
def _conftests(folder: Path) -> list[Path]:
    folders = [each for each in (folder, *folder.parents) if each == TESTS or TESTS in each.parents]
    return [each / "conftest.py" for each in folders if (each / "conftest.py").exists()]


@functools.cache
def _reaches(path: Path, name: str) -> bool:
    waiting, seen = [(path, name)], set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        if place[1] in STARTERS:
            return True
        waiting += _used(*place)
    return False


def _used(path: Path, name: str) -> Iterator[tuple[Path, str]]:
    """The names that what a file calls by a name uses, each with the file that defines it where that is known."""
    module = _read(path)
    if module is None:
        return
    if name in module.fixtures:
        yield from _fixtures(path, module.fixtures[name])
    for used in module.uses.get(name, ()):
        yield module.imports.get(used, (path, used))
        owner, _, attribute = used.rpartition(".")
        if attribute and owner:
            yield (module.imports[owner][0], attribute) if owner in module.imports else (path, attribute)


class _Module:
    """The top-level names of a test file: what each uses, and which come from other files in tests/."""

    def __init__(self, path: Path) -> None:
        self.uses: dict[str, set[str]] = {}
        self.fixtures: dict[str, set[str]] = {}  # those that are asked for by name while a test runs
        self.imports: dict[str, tuple[Path, str]] = {}
        for statement in ast.parse(path.read_text("utf-8")).body:
            self._read(statement)

    def _read(self, statement: ast.stmt) -> None:
        defined: set[str] = set()
        used: set[str] = set()
        by_name: set[str] = set()
        is_definition = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if is_definition:
            defined.add(statement.name)
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) if not is_definition:
                    defined.add(name)
                case ast.Name(id=name) | ast.arg(arg=name):  # a parameter of a fixture or a test is a fixture
                    used.add(name)
                case ast.Attribute(value=ast.Name(id=owner), attr=name):
                    used.add(f"{owner}.{name}")
                case ast.Attribute(attr=name):
                    used.add(name)
                case ast.Call(func=ast.Attribute(attr="getfixturevalue"), args=[ast.Constant(value=str(name))]):
                    by_name.add(name)
                case ast.ImportFrom(module=str(module), names=aliases) if module.partition(".")[0] == "tests":
                    self._import(TESTS.parent.joinpath(*module.split(".")), aliases)
        for name in defined:
            self.uses.setdefault(name, set()).update(used)
            if by_name:
                self.fixtures.setdefault(name, set()).update(by_name)

    def _import(self, base: Path, aliases: list[ast.alias]) -> None:
        for alias in aliases:
            inner = base / f"{alias.name}.py"
            home = (inner, "") if inner.exists() else (base.with_suffix(".py"), alias.name)
            self.imports[alias.asname or alias.name] = home


@functools.cache
def _read(path: Path) -> _Module | None:
    return _Module(path) if path.exists() else None
