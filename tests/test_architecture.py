"""Who may import whom; the only other place than the architecture page where this table stands."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "refold"
PURE = {
    "difflib",
    "__future__",
    "typing",
    "enum",
    "collections.abc",
    "functools",
    "hashlib",
    "re",
    "math",
    "msgspec",
    "msgspec.structs",
    "json",
    "base64",
    "struct",
    "binascii",
    "unicodedata",
    "itertools",
    "dataclasses",
    "heapq",
    "bisect",
    "operator",
    "collections",
    "pathlib",
    "importlib.resources",
    "warnings",
    "statistics",
    "string",
    "datetime",
    "contextlib",
    "bz2",
    "zlib",
    "os.path",
}

# folder or module -> refold folders it may import at run time; `errors` is open to all
MAY_IMPORT = {
    "core": {"core"},
    "rules": {"core", "rules"},
    "prompts": {"prompts"},
    "salience": {"core", "salience"},
    "replay": {
        *("core", "formats", "policies", "stages", "salience", "limits", "counting", "outside", "request", "result"),
        *("api", "transcripts", "replay"),
    },
    "stages": {"core", "rules", "prompts", "salience", "stages"},
    "policies": {"core", "stages", "prompts", "policies"},
    "formats": {"core", "rules", "formats"},
    "limits": {"core", "limits"},
    "counting": {"core", "limits", "counting"},
    "outside": {"core", "limits", "formats", "stages", "counting", "guard", "no_summary", "outside"},
    "inventions": set(),
    "atomic": set(),
    "token_numbers": set(),
    "learned": {"atomic"},
    "config": {"core", "limits", "policies", "stages", "token_numbers"},
    "refused": {"core", "limits", "outside", "policies", "stages", "request", "api"},
    "recovery": {"core", "limits", "outside", "refused", "request", "api", "aio", "learned"},
    "guard": {"core", "prompts", "stages", "inventions", "no_summary"},
    "no_summary": {"core", "stages"},
    "transcripts": {"core", "formats", "limits", "transcripts"},
    "request": {"core", "formats", "rules", "policies", "limits", "counting"},
    "result": {"core", "formats", "request"},
    "meter": {"core", "formats", "request", "result"},
    "api": {"core", "formats", "policies", "stages", "limits", "counting", "outside", "request", "result", "meter"},
    "aio": {"core", "formats", "policies", "limits", "counting", "outside", "request", "result", "api", "meter"},
    "sessions": {
        "core",
        "formats",
        "policies",
        "stages",
        "limits",
        "counting",
        "outside",
        "request",
        "result",
        "meter",
        "api",
        "aio",
        "sessions",
    },
    "testing": {"core", "rules", "formats", "limits", "counting", "demo", "outside", "testing"},
    "agent": {
        *("core", "formats", "policies", "stages", "limits", "counting", "outside", "request", "result", "meter"),
        *("api", "sessions", "recovery", "learned", "config", "atomic", "agent"),
    },
    "gateway": {
        *("core", "formats", "policies", "stages", "limits", "counting", "outside", "request", "result", "meter"),
        *("api", "sessions", "recovery", "learned", "config", "token_numbers", "gateway"),
    },
    "errors": set(),
    "demo": {"core", "counting", "demo"},
}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def imports(path):
    """Every module named in an import statement that runs (not only for type checking)."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and getattr(branch.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "refold":
            yield from (f"refold.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def place(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_the_table_allows(path):
    folder = place(path)
    if folder in {"cli", "__init__", "__main__"}:
        return
    allowed = MAY_IMPORT[folder] | {"errors", folder}
    used = {name.split(".")[1] for name in imports(path) if name.startswith("refold.")}
    assert used <= allowed, f"{path.relative_to(SOURCE)} imports {sorted(used - allowed)}"


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if place(path) in {"core", "rules", "stages", "policies", "formats"}],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_the_inner_folders_need_msgspec_and_the_standard_library_without_io(path):
    foreign = {name for name in imports(path) if not name.startswith("refold")}
    lazy = (
        {"importlib", "importlib.metadata", "importlib.util", "pkgutil", "difflib", "os.path"}
        if place(path) in {"policies", "formats"}
        else set()
    )
    assert foreign <= PURE | lazy, sorted(foreign - PURE - lazy)


def test_nobody_imports_the_command_line():
    for path in modules():
        if place(path) not in {"cli", "__main__"}:
            assert not any(name.startswith("refold.cli") for name in imports(path)), path


def test_a_policy_file_holds_no_branch_loop_or_function():
    for path in (SOURCE / "policies").glob("[a-z]*.py"):
        tree = ast.parse(path.read_text())
        found = [
            type(node).__name__
            for node in ast.walk(tree)
            if isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef)
        ]
        assert not found, f"{path.name} holds {found}"


def test_modules_and_functions_stay_small():
    long = []
    for path in modules():
        text = path.read_text()
        if text.count("\n") > 400:
            long.append(f"{path.relative_to(SOURCE)}: {text.count(chr(10))} lines")
        long += [
            f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > 50
        ]
    assert not long, long


def body_lines(node):
    """Lines from the first statement after the docstring: a signature and its explanation are not logic."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return node.end_lineno - body[0].lineno + 1 if body else 0


def test_importing_refold_loads_no_network_database_event_loop_or_tokenizer():
    program = (
        "import sys; bare = set(sys.modules); import refold; "
        "import refold.policies; [refold.policies.find(name) for name in refold.policies.names()]; "
        "print(*sorted(set(sys.modules) - bare))"
    )
    loaded = set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )
    forbidden = {
        "asyncio",
        "socket",
        "ssl",
        "sqlite3",
        "urllib.request",
        "http",
        "http.client",
        "splintr",
        "rich",
        "click",
        "email",
        "importlib.metadata",
        "openai",
        "anthropic",
        "tenacity",
        "tomllib",
    }
    assert not loaded & forbidden
