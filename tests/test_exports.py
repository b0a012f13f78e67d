import ast
import inspect
import re
from pathlib import Path

import refold

INIT = Path(refold.__file__)
API = Path(__file__).parent.parent / "docs" / "api"


def test_the_public_names_are_sorted_and_all_there():
    assert refold.__all__ == sorted(refold.__all__)
    assert all(hasattr(refold, name) for name in refold.__all__)


def test_the_package_file_only_imports_and_lists_names():
    kinds = {type(node) for node in ast.parse(INIT.read_text()).body}
    assert kinds <= {ast.Expr, ast.ImportFrom, ast.Assign}


def test_every_public_name_has_a_docstring_of_its_own():
    for name in refold.__all__:
        thing = getattr(refold, name)
        if callable(thing):
            assert thing.__doc__, name


def test_every_public_name_says_last_since_when_it_is_there():
    for name in refold.__all__:
        thing = getattr(refold, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue  # an alias of types has no docstring of its own
        last = inspect.getdoc(thing).splitlines()[-1]
        assert re.fullmatch(r"Added in \d+\.\d+\.\d+\.", last), name


def modules():
    """The dotted names of all modules of the package."""
    for path in sorted(INIT.parent.rglob("*.py")):
        parts = path.relative_to(INIT.parent.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_module_is_underscored_or_named_on_a_page_of_the_api():
    public = {name for name in modules() if "._" not in name}
    pages = "".join(path.read_text("utf-8") for path in API.glob("*.md"))
    named = set(re.findall(r"^::: (refold[\w.]*)$|`(refold[\w.]*)`", pages, re.M))
    assert public == {directive or mention for directive, mention in named}


def test_each_argument_has_an_entry_of_its_own_in_its_docstring():
    """The API reference knows no parameter that is called `first, second`."""
    sections = [text.partition("Args:\n")[2].partition("\n\n")[0] for text in docstrings()]
    assert not [entry for section in sections for entry in re.findall(r"^ *\w+, \w+:.*$", section, re.M)]


def docstrings():
    """The docstrings of all modules, classes and functions."""
    for path in sorted(INIT.parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""


def test_every_public_name_is_used_in_the_file_that_is_only_type_checked():
    text = (Path(__file__).parent / "typing" / "api.py").read_text("utf-8")
    assert not [name for name in refold.__all__ if not re.search(rf"\brefold\.{name}\b", text)]
