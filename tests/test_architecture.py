"""Who may import whom; the only other place than the architecture page where this table stands."""

import ast
import functools
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
    "threading",
}

# A package or module may import its own package, `errors`, and what stands in a layer above its own.
LAYERS = (
    ("_text", "_samples"),
    ("core", "_prompts", "_files"),
    ("_rules", "_salience", "models"),
    ("formats", "_condense", "_counting"),
    ("stages", "_recall"),
    ("policies",),
    ("clients", "config", "transcripts"),
    ("summaries",),
    ("handlers",),
    ("_compaction",),
    ("api",),
    ("aio",),
    ("recovery", "sessions", "replay", "testing"),
    ("_inspect",),
    ("_page",),
    ("adapt", "agent", "_gateway", "_install", "_mcp", "batch"),
    ("_cli", "__init__"),
    ("__main__",),
)


def modules():
    return sorted(SOURCE.rglob("*.py"))


@functools.cache
def imports(path):
    return tuple(_imports(path))


def _imports(path):
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
def test_a_module_imports_only_what_stands_in_a_layer_above_its_own(path):
    package = place(path)
    if package == "errors":
        return
    layer = next(number for number, names in enumerate(LAYERS) if package in names)
    allowed = {package, "errors"}.union(*LAYERS[:layer])
    used = {name.split(".")[1] for name in imports(path) if name.startswith("refold.")}
    assert used <= allowed, f"{path.relative_to(SOURCE)} imports {sorted(used - allowed)}"


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in modules()
        if place(path) in {"_text", "core", "_rules", "_condense", "stages", "policies", "formats"}
    ],
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
        if place(path) not in {"_cli", "__main__"}:
            assert not any(name.startswith("refold._cli") for name in imports(path)), path


def test_a_policy_file_holds_no_branch_loop_or_function():
    for path in (SOURCE / "policies").glob("[a-z]*.py"):
        tree = ast.parse(path.read_text())
        found = [
            type(node).__name__
            for node in ast.walk(tree)
            if isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef)
        ]
        assert not found, f"{path.name} holds {found}"


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
