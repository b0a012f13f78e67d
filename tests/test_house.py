"""The tool that measures the source tree, on small trees; and what it holds at zero, on this one."""

import functools

import pytest

from tools import house


@functools.cache
def source():
    return house.working_tree()


def tree(files=(), **top):
    """A package of the given files: paths below it, or names of modules directly in it, without the suffix."""
    return house.Tree({f"{path}.py": text for path, text in {**dict(files), **top}.items()})


@pytest.mark.parametrize("figure", house.ZEROS)
def test_what_is_held_at_zero_has_no_new_occurrence(figure):
    new = set(house.occurrences(figure, source())) - set(house.exceptions(figure))
    assert not new, f"see python tools/house.py --list {figure!r}"


@pytest.mark.parametrize("figure", house.ZEROS)
def test_no_exception_outlives_its_occurrence(figure):
    stale = set(house.exceptions(figure)) - set(house.occurrences(figure, source()))
    assert not stale, "run python tools/house.py --prune"


def test_the_exceptions_are_sorted_and_each_is_named_once():
    for figure in house.ZEROS:
        lines = house.exceptions(figure)
        assert lines == sorted(set(lines)), figure


def test_a_public_name_has_a_use_in_the_source_or_on_a_page(monkeypatch):
    code = tree(
        part=(
            "__all__ = ['for_tests', 'LIMIT']\nLIMIT: int = 5\nUSED = 1\n"
            "def for_tests(): return for_tests\ndef used_here(): ...\ndef _own(): used_here()\n"
            "def used_there(): ...\ndef exported(): ...\ndef looked_up(): ...\ndef documented(): ...\ndef plain(): ...\n"
        ),
        public="__all__ = ['exported']\nfrom refold.part import exported",
        other="import refold.part\nfrom refold.part import used_there, for_tests\nused_there(refold.part.USED)\n"
        "getattr(refold.part, 'looked_up')",
    )
    monkeypatch.setattr(house, "pages", lambda: ("Call `documented()` in plain words.\n\n::: refold.public\n",))
    assert house.names_without_use(code) == ["refold.part LIMIT", "refold.part for_tests", "refold.part plain"]


def test_lines_and_modules_are_counted_with_package_files():
    code = tree({"core/view": "a = 1\n\n# why\n", "core/__init__": ""})
    assert len(house.source_lines(code)) == 3
    assert house.modules(code) == ["refold.core", "refold.core.view"]


def test_a_private_function_that_is_read_once_is_counted_with_its_place():
    code = tree(
        a="def _once(): ...\ndef _twice(): ...\ndef _never(): ...\ndef public(): ...\n"
        "class C:\n    def _method(self): ...\n    def __init__(self): self._method()\n"
        "_once(); _twice(); _twice(); public()\n"
    )
    assert house.private_functions_used_once(code) == ["refold.a:1 _once", "refold.a:6 _method"]


def test_modules_with_one_importer_count_every_kind_of_import_once():
    code = tree(
        one="",
        two="",
        none="",
        a="import refold.one\nfrom refold.two import x",
        b="def f():\n    from refold import two",
        c="import os",
    )
    assert house.modules_with_one_importer(code) == ["refold.one"]


def test_relative_imports_name_the_modules_they_lead_to():
    code = tree({"p/__init__": "from . import a", "p/a": "from .b import x", "p/b": "from ..q import y", "q": ""})
    assert code.imports(code.modules["refold.p"], code.modules["refold.p"].nodes) == {"refold.p.a"}
    assert code.imports(code.modules["refold.p.a"], code.modules["refold.p.a"].nodes) == {"refold.p.b"}
    assert code.imports(code.modules["refold.p.b"], code.modules["refold.p.b"].nodes) == {"refold.q"}


def test_isinstance_and_any_are_counted_where_they_are_used():
    code = tree(a="from typing import Any\ndef f(x: Any, y: list[Any]):\n    return isinstance(x, int)\n")
    assert house.isinstance_calls(code) == ["refold.a:3"]
    assert house.any_annotations(code) == ["refold.a:2", "refold.a:2"]


def test_a_class_name_that_two_modules_define_has_two_meanings():
    code = tree(a="class Row: ...\nclass Own: ...", b="def f():\n    class Row: ...", c="from refold.a import Row")
    assert house.ambiguous_class_names(code) == ["Row: refold.a, refold.b"]


def test_a_cycle_at_run_time_leaves_out_functions_and_type_checking():
    code = tree(
        a="from refold.b import x",
        b="try:\n    from refold.c import y\nexcept ImportError: ...",
        c="import refold.a",
        d="from refold.e import x",
        e="def f():\n    from refold.d import y",
        g="from refold.h import x",
        h="import typing\nif typing.TYPE_CHECKING:\n    from refold.g import y",
    )
    assert house.import_cycles(code) == ["refold.a refold.b refold.c"]
    assert house.import_cycles_with_lazy_imports(code) == ["refold.a refold.b refold.c", "refold.d refold.e"]


def test_importing_a_module_from_a_package_needs_the_package_unless_it_is_the_root():
    package = {"p/__init__": "from refold.p.a import x", "p/a": "from refold.p import b", "p/b": ""}
    code = tree(package, __init__="from refold import p")
    assert house.import_cycles(code) == ["refold.p refold.p.a"]


def test_private_parts_of_other_packages_are_found_in_imports_attributes_and_subclasses():
    code = tree(
        a="from aiohttp import _x\nimport aiohttp._y as y\nfrom aiohttp.client_proto import ResponseHandler\n"
        "from refold._own import _fine\nimport __future__\n",
        b="def f(thing):\n    thing._theirs = 1\n    thing._other\n    return thing._mine\n"
        "class C:\n    def __init__(self):\n        self._mine = 1\n",
        c="import aiohttp\nclass D(aiohttp.Connector):\n    def __init__(self):\n"
        "        self._own = 1\n        self._factory = self._loop\n        print(self._own)\n",
    )
    assert house.foreign_private_parts(code) == [
        "refold.a: aiohttp._x",
        "refold.a: aiohttp._y",
        "refold.a: aiohttp.client_proto.ResponseHandler",
        "refold.b: _other",
        "refold.c: _factory",
        "refold.c: _loop",
    ]


def test_a_banned_word_is_found_in_every_kind_of_name_and_only_as_a_whole_word():
    code = tree(
        doors="",
        told="class HeadsUp: ...\ndef f(beside_it, asking): ...\nSAID = 1\nfor kept in x: ...\nkept_messages = found_at = NotFound = 1\n"
        "match x:\n    case {'a': held}: ...\ntry: ...\nexcept OSError as gone: ...\nself.woven = lambda asked: 0\nimport os as whoever\n",
    )
    assert house.banned_identifiers(code) == [
        *("HeadsUp", "SAID", "asked", "beside_it", "gone", "held", "kept", "told", "whoever", "woven"),
    ]


def test_exceptions_that_no_longer_occur_are_pruned_and_none_is_added(tmp_path, monkeypatch):
    for file in house.ZEROS.values():
        (tmp_path / file).write_text("# why\n")
    (tmp_path / "banned_identifiers.txt").write_text("# why\nheld\ntold\n")
    monkeypatch.setattr(house, "EXCEPTIONS", tmp_path)
    house.prune(tree(a="told = gone = 1\n"))
    assert (tmp_path / "banned_identifiers.txt").read_text() == "# why\ntold\n"


def test_the_table_has_a_row_for_each_figure(capsys, monkeypatch):
    monkeypatch.setattr(house, "revision", lambda rev: tree(a="x = 1\n"))
    monkeypatch.setattr(house, "working_tree", lambda: tree(a="x = 1\n" * 1_200, b=""))
    house.main(["--rev", "before"])
    printed = capsys.readouterr().out
    assert "| figure | before | working tree |" in printed
    assert "| source lines | 1 | 1,200 |" in printed
    assert printed.count("\n") == len(house.FIGURES) + 2


def test_the_places_of_one_figure_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(house, "working_tree", lambda: tree(a="isinstance(x, y)\n"))
    house.main(["--list", "isinstance"])
    assert capsys.readouterr().out == "refold.a:1\n"
