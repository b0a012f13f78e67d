"""Measures how the source tree is built, beside a revision of it: modules, names, imports, types.

    python tools/house.py                      # the working tree beside the revision the table began with
    python tools/house.py --rev HEAD~20        # beside another revision
    python tools/house.py --list "import cycles"
    python tools/house.py --prune              # drop the exceptions in tests/house that no longer occur

Each figure is a function from a tree to the places it counts, so `--list` can print them.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = "src/refold"
PACKAGE = "refold"
BEFORE = "e976836"
EXCEPTIONS = ROOT / "tests" / "house"

# words that no identifier may contain, because each had a private meaning in this code
BANNED_WORDS = frozenset(
    [
        *("told", "said", "asked", "held", "gone", "beside", "heads", "door", "whoever", "nobody", "shown"),
        *("mend", "mends", "mended", "mending", "mender", "weave", "weaver", "woven", "bringing", "carrying"),
    ]
)
# these are fine inside a name (`kept_messages`, `NotFound`), but none may be a name by itself
BANNED_NOUNS = frozenset({"kept", "made", "given", "found"})

# private names that their own documentation tells users to call
DOCUMENTED_PRIVATE_NAMES = frozenset(
    ["_replace", "_asdict", "_fields", "_make", "_field_defaults", "_mapping", "_exit", "_getframe", "_MEIPASS"]
)
# modules that can be imported but are in no documentation of their package
UNDOCUMENTED_MODULES = (
    "aiohttp.client_proto",
    "aiohttp.client_reqrep",
    "aiohttp.connector",
    "aiohttp.helpers",
    "uvicorn.protocols",
)


class Module:
    """One source file: its dotted name, its text and what is parsed from it once."""

    def __init__(self, name: str, text: str, *, is_package: bool) -> None:
        self.name = name
        self.text = text
        self.is_package = is_package

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def references(self) -> Counter[str]:
        """How often each name is read, as a variable or as an attribute."""
        return Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in self.nodes
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
        )

    @cached_property
    def imported_names(self) -> dict[str, str]:
        """Local names bound by import statements, with the dotted name that each stands for."""
        bound = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    bound[alias.asname or name] = name
            elif isinstance(node, ast.ImportFrom):
                base = self.base_of(node)
                bound.update({alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names})
        return bound

    def base_of(self, node: ast.ImportFrom) -> str:
        """The dotted name of what a `from` import names, relative or not."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        package = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*package, *([node.module] if node.module else [])])


class Tree:
    """The modules of a package, by dotted name."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """Read files, whose keys are paths below the package such as `core/view.py`."""
        self.modules: dict[str, Module] = {}
        for path, text in sorted(files.items()):
            parts = [PACKAGE, *path.removesuffix(".py").split("/")]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            self.modules[name] = Module(name, text, is_package=is_package)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())

    def module_named(self, dotted: str) -> str | None:
        """The module of this tree that a dotted name leads to: itself, or the one that defines the name."""
        if dotted in self.modules:
            return dotted
        parent = dotted.rpartition(".")[0]
        return parent if parent in self.modules else None

    def imports(self, module: Module, nodes: Iterable[ast.AST]) -> set[str]:
        """The modules of this tree that import statements among the nodes name."""
        targets = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                targets |= {f"{module.base_of(node)}.{alias.name}" for alias in node.names}
        named = {self.module_named(target) for target in targets}
        return {name for name in named if name is not None} - {module.name}


def working_tree(root: Path = ROOT) -> Tree:
    """Read the source files that lie in a checkout now."""
    base = root / SOURCE
    return Tree({str(path.relative_to(base)): path.read_text("utf-8") for path in base.rglob("*.py")})


def revision(rev: str) -> Tree:
    """Read the source files of a revision, without touching the checkout."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", rev, SOURCE]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return Tree(
            {
                member.name.removeprefix(f"{SOURCE}/"): tar.extractfile(member).read().decode()  # type: ignore[union-attr]
                for member in tar
                if member.isfile() and member.name.endswith(".py")
            }
        )


# The figures: each returns the places that it counts.


def source_lines(tree: Tree) -> list[str]:
    """Every line of every source file, with the comments and the empty ones."""
    return [f"{module.name}:{number}" for module in tree for number in range(1, module.text.count("\n") + 1)]


def modules(tree: Tree) -> list[str]:
    """Every source file, with those of packages (`__init__.py`)."""
    return list(tree.modules)


def private_functions_used_once(tree: Tree) -> list[str]:
    """Functions of modules and methods of classes, underscored, whose name is read exactly once in their module."""
    return [
        f"{module.name}:{function.lineno} {function.name}"
        for module in tree
        for function in functions_and_methods(module.tree)
        if is_private(function.name) and module.references[function.name] == 1
    ]


def functions_and_methods(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for owner in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        yield from (node for node in owner.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def modules_with_one_importer(tree: Tree) -> list[str]:
    """Modules that exactly one other module imports, anywhere in its code and also for type checking only."""
    importers = Counter(name for module in tree for name in tree.imports(module, module.nodes))
    return [name for name in tree.modules if importers[name] == 1]


def isinstance_calls(tree: Tree) -> list[str]:
    """Every call of `isinstance`."""
    return [
        f"{module.name}:{node.lineno}"
        for module in tree
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    ]


def any_annotations(tree: Tree) -> list[str]:
    """Every use of `typing.Any`, not counting its import."""
    return [
        f"{module.name}:{node.lineno}"
        for module in tree
        for node in module.nodes
        if isinstance(node, ast.Name) and node.id == "Any"
    ]


def ambiguous_class_names(tree: Tree) -> list[str]:
    """Names of classes that two modules define, with the modules."""
    homes = defaultdict(list)
    for module in tree:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module.name)
    return [f"{name}: {', '.join(places)}" for name, places in sorted(homes.items()) if len(set(places)) > 1]


def import_cycles(tree: Tree) -> list[str]:
    """Sets of modules that import each other while they are loaded, without what is imported for type checking only.

    `from package import module` needs the package as well, whose own imports may still be running; the root package is
    exempt, because it is loaded before everything.
    """
    return cycles(tree, {module.name: list(running(module.tree.body, functions=False)) for module in tree})


def import_cycles_with_lazy_imports(tree: Tree) -> list[str]:
    """Sets of modules that import each other, counting also the imports inside functions."""
    return cycles(tree, {module.name: list(running(module.tree.body, functions=True)) for module in tree})


def cycles(tree: Tree, statements: Mapping[str, list[ast.stmt]]) -> list[str]:
    """Sets of modules that reach each other by import statements."""
    graph = {}
    for name, nodes in statements.items():
        module = tree.modules[name]
        bases = {module.base_of(node) for node in nodes if isinstance(node, ast.ImportFrom)}
        packages = {base for base in bases if base in tree.modules} - {PACKAGE, name}
        graph[name] = tree.imports(module, nodes) | packages
    return sorted(" ".join(sorted(cycle)) for cycle in strongly_connected(graph) if len(cycle) > 1)


def running(body: Iterable[ast.stmt], *, functions: bool) -> Iterator[ast.stmt]:
    """Statements that are not for type checking only; those inside functions where `functions` is true."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING"):
            yield from running(statement.orelse, functions=functions)
        elif functions or not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from running(getattr(statement, field, []), functions=functions)


def strongly_connected(graph: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Yield the strongly connected components of a graph (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> Iterator[set[str]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                yield from visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            yield component

    for node in graph:
        if node not in index:
            yield from visit(node)


def foreign_private_parts(tree: Tree) -> list[str]:
    """Private parts of other packages that the source imports, reads, sets or overrides.

    Found without running anything: an underscored name in an import from elsewhere, a module that its package does not
    document, an underscored attribute that nothing in the source defines, and in a class with a base from elsewhere an
    underscored attribute that the class reads without setting it, or sets without reading it.
    """
    own = {name for module in tree for name in private_definitions(module.nodes)}
    parts: list[str] = []
    for module in tree:
        parts += [f"{module.name}: {name}" for name in sorted(foreign_imports(module)) if is_internal(name)]
        inside: set[int] = set()
        for owner in module.nodes:
            if isinstance(owner, ast.ClassDef) and has_foreign_base(owner, module):
                inside |= {id(node) for node in ast.walk(owner)}
                parts += [f"{module.name}: {name}" for name in sorted(unpaired_private_names(owner))]
        loaded = {node.attr for node in module.nodes if isinstance(node, ast.Attribute) and id(node) not in inside}
        parts += [f"{module.name}: {name}" for name in sorted(loaded) if is_private(name) and name not in own]
    return [part for part in parts if part.rpartition(" ")[2] not in DOCUMENTED_PRIVATE_NAMES]


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__")) and name.strip("_") != ""


def is_internal(dotted: str) -> bool:
    if any(is_private(part) for part in dotted.split(".")):
        return True
    return any(dotted == name or dotted.startswith(name + ".") for name in UNDOCUMENTED_MODULES)


def foreign_imports(module: Module) -> set[str]:
    return {
        name
        for name in module.imported_names.values()
        if name.split(".")[0] not in {PACKAGE, "__future__"} and name.split(".")[0]
    }


def private_definitions(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Underscored names that the nodes define: functions, classes, variables, attributes, slots."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=asname):
                yield (asname or name).rpartition(".")[2]


def has_foreign_base(owner: ast.ClassDef, module: Module) -> bool:
    """Whether a class derives from one that is neither this package's nor the language's."""
    for base in owner.bases:
        dotted = ast.unparse(base).partition("[")[0]
        first, _, rest = dotted.partition(".")
        whole = ".".join(filter(None, (module.imported_names.get(first, ""), rest)))
        root = whole.partition(".")[0]
        if root and root != PACKAGE and root not in sys.stdlib_module_names and root not in {"msgspec", "click"}:
            return True
    return False


def unpaired_private_names(owner: ast.ClassDef) -> set[str]:
    """Private names of `self` that a class only reads or only sets: the other half is in its base."""
    inner = [node for node in ast.walk(owner) if node is not owner]
    defined = {name for name in private_definitions(inner) if is_private(name)}
    attributes = [node for node in inner if isinstance(node, ast.Attribute) and is_private(node.attr)]
    own = [node for node in attributes if isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}]
    read = {node.attr for node in attributes if isinstance(node.ctx, ast.Load)}
    return ({node.attr for node in own} - defined) | (defined - read)


def banned_identifiers(tree: Tree) -> list[str]:
    """Names of the source (modules, classes, functions, parameters, variables, attributes) with a banned word."""
    names = {part for module in tree for part in module.name.split(".")}
    names |= {name for module in tree for name in defined_names(module.nodes)}
    return sorted(name for name in names if is_banned(name))


def is_banned(name: str) -> bool:
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return bool(BANNED_WORDS & words) or name.strip("_").lower() in BANNED_NOUNS


def defined_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that the nodes define; names that come from other packages are not theirs."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name


def names_without_use(tree: Tree) -> list[str]:
    """Public functions and constants of modules that nothing else in the source uses and no page of the docs names.

    What only a test uses is one of them. A name in the source's strings is used, too, unless `__all__` holds it.
    """
    strings = {text for module in tree for text in looked_up(module)}
    attributes = {node.attr for module in tree for node in module.nodes if isinstance(node, ast.Attribute)}
    imported = {
        module.imported_names[node.id].rpartition(".")[2]
        for module in tree
        for node in module.nodes
        if isinstance(node, ast.Name) and node.id in module.imported_names
    }
    elsewhere = strings | attributes | imported | documented_names(tree)
    return [
        f"{module.name} {name}"
        for module in tree
        for name, node in public_definitions(module.tree)
        if name not in elsewhere and not reads(module, name, apart_from=node)
    ]


def public_definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The functions and constants that a module itself defines, with the statements."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from ((name, node) for name in names if not name.startswith("_"))


def reads(module: Module, name: str, *, apart_from: ast.stmt) -> bool:
    """Whether a module reads a name anywhere but in the statement that defines it."""
    own = {id(node) for node in ast.walk(apart_from)}
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == name and id(node) not in own
        for node in module.nodes
    )


def looked_up(module: Module) -> Iterator[str]:
    """Strings of a module that may name something to look up: all but those of `__all__`."""
    exported: set[int] = set()
    for node in module.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            exported |= {id(inner) for inner in ast.walk(node)}
    for node in module.nodes:
        if isinstance(node, ast.Constant) and id(node) not in exported:
            yield from filter(str.isidentifier, [node.value] if isinstance(node.value, str) else [])


@cache
def pages() -> tuple[str, ...]:
    """The texts in which users find names: the docs, the README and the entry points of the package."""
    files = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "pyproject.toml"]
    return tuple(path.read_text("utf-8") for path in files)


def documented_names(tree: Tree) -> set[str]:
    """Names in code on a page of the docs, and all that the modules with an API page export."""
    named = set()
    for page in pages():
        code = re.findall(r"```.*?```|`[^`\n]+`|^[\w.-]+ = .*$", page, re.S | re.M)
        named |= {word for piece in code for word in re.findall(r"\w+", piece)}
    listed = {name for page in pages() for name in re.findall(r"^::: ([\w.]+)", page, re.M)}
    for module in tree:
        if module.name in listed:
            named |= set(exported_names(module))
    return named


def exported_names(module: Module) -> Iterator[str]:
    """The names in `__all__` of a module."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            yield from (inner.value for inner in ast.walk(node.value) if isinstance(inner, ast.Constant))


FIGURES: dict[str, Callable[[Tree], list[str]]] = {
    "source lines": source_lines,
    "modules": modules,
    "private functions used once": private_functions_used_once,
    "modules with one importer": modules_with_one_importer,
    "isinstance": isinstance_calls,
    "Any": any_annotations,
    "class names with more than one meaning": ambiguous_class_names,
    "import cycles at run time": import_cycles,
    "import cycles with lazy imports": import_cycles_with_lazy_imports,
    "private parts of other packages": foreign_private_parts,
    "identifiers with a banned word": banned_identifiers,
    "names without use": names_without_use,
}

# figure that a test keeps at zero -> the file in tests/house with the places where it is not zero yet, one a line
ZEROS = {
    "class names with more than one meaning": "class_names.txt",
    "import cycles at run time": "import_cycles.txt",
    "import cycles with lazy imports": "lazy_import_cycles.txt",
    "private parts of other packages": "private_parts.txt",
    "identifiers with a banned word": "banned_identifiers.txt",
    "names without use": "unused_names.txt",
}


def exceptions(figure: str) -> list[str]:
    """The places where a figure is allowed not to be zero."""
    path = EXCEPTIONS / ZEROS[figure]
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def occurrences(figure: str, tree: Tree) -> list[str]:
    """The places where a figure is not zero, as its exceptions name them: without what changes when a module moves."""
    places = FIGURES[figure](tree)
    match figure:
        case "class names with more than one meaning":
            return [place.partition(": ")[0] for place in places]
        case "private parts of other packages":
            return sorted({place.partition(": ")[2] for place in places})
        case _:
            return places


def prune(tree: Tree) -> None:
    """Delete exceptions that no longer occur; never add one."""
    for figure, file in ZEROS.items():
        there = set(occurrences(figure, tree))
        path = EXCEPTIONS / file
        lines = path.read_text("utf-8").splitlines()
        path.write_text("".join(f"{line}\n" for line in lines if line.startswith("#") or line in there), "utf-8")


def table(before: Tree, after: Tree, rev: str) -> str:
    """The figures of two trees as a table in Markdown."""
    rows = [f"| figure | {rev} | working tree |", "| --- | ---: | ---: |"]
    rows += [f"| {name} | {len(figure(before)):,} | {len(figure(after)):,} |" for name, figure in FIGURES.items()]
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rev", default=BEFORE, help="the revision to compare with (default: %(default)s)")
    parser.add_argument("--list", metavar="FIGURE", choices=list(FIGURES), help="print the places of one figure")
    parser.add_argument("--prune", action="store_true", help="delete exceptions that no longer occur")
    options = parser.parse_args(arguments)
    if options.prune:
        prune(working_tree())
    elif options.list:
        print("\n".join(FIGURES[options.list](working_tree())))
    else:
        print(table(revision(options.rev), working_tree(), options.rev))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
