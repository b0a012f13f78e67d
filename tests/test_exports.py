import ast
from pathlib import Path

import refold

INIT = Path(refold.__file__)


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
