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
        *("ScriptedProvider", "Serving", "uvicorn", "start_server", "create_server", "bind"),
        *("HTTPServer", "ThreadingHTTPServer", "TCPServer", "postgres_server"),
    ]
)

# tests that start something which their source does not show: cases and pages are read from files
HIDDEN = ("agent/test_shell.py", "cases", "test_docs.py::test_the_python_of_a_page_runs")

# tests that take long without starting anything, most of them whole conversations under every policy and format
SLOW = (
    "laws",
    "agent/test_long.py",
    "agent/test_loop.py",
    "cli/test_bad_input.py",
    "cli/test_commands.py::test_the_demo_shows_every_example_and_how_to_go_on",
    "cli/test_replay.py",
    "policies/test_refold_bill.py",
    "replay/test_parallel.py",
    "replay/test_run.py",
    "sessions/test_session.py::test_a_view_that_grows_turn_by_turn_is_the_fold_of_all_plans",
    "stores/test_many.py",
    "test_docs.py::test_nothing_that_is_made_from_the_code_is_out_of_date",
    "test_recorded.py",
)


def is_slow(path: Path, test: str) -> bool:
    """Whether a test function of a file is one of the slow ones."""
    return any(_is_in(entry, path, test) for entry in SLOW)


def _is_in(entry: str, path: Path, test: str) -> bool:
    place, _, name = entry.partition("::")
    inside = path == TESTS / place or TESTS / place in path.parents
    return inside and name in ("", test)


def starts_something(path: Path, test: str, fixtures: Iterable[str] = ()) -> bool:
    """Whether a test function of a file, or one of the fixtures it needs, reaches a name in STARTERS."""
    if any(_is_in(entry, path, test) for entry in HIDDEN):
        return True
    return any(_reaches(place, name) for place, name in [(path, test), *_fixtures(path, fixtures)])


def _fixtures(path: Path, names: Iterable[str]) -> list[tuple[Path, str]]:
    """Where fixtures that a file may ask for by name can be defined: in it, or in a conftest.py above it."""
    folders = [folder for folder in path.parents if folder == TESTS or TESTS in folder.parents]
    return [(place, name) for name in names for place in (path, *(folder / "conftest.py" for folder in folders))]


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
    yield from _fixtures(path, module.fixtures.get(name, ()))
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
            for name in _defined(statement):
                self.uses.setdefault(name, set()).update(_names(statement))
                self.fixtures.setdefault(name, set()).update(_fixture_names(statement))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tests":
                base = TESTS.parent.joinpath(*node.module.split("."))
                for alias in node.names:
                    inner = base / f"{alias.name}.py"
                    home = (inner, "") if inner.exists() else (base.with_suffix(".py"), alias.name)
                    self.imports[alias.asname or alias.name] = home


@functools.cache
def _read(path: Path) -> _Module | None:
    return _Module(path) if path.exists() else None


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _names(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement reads, as `name`, `owner.name` or a parameter (a fixture asks for others by those)."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                yield name
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                yield f"{owner}.{name}"
            case ast.Attribute(attr=name):
                yield name


def _fixture_names(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(attr="getfixturevalue"), args=[ast.Constant(value=str(name))]):
                yield name
