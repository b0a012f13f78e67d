"""What a quick run leaves out."""

import pytest

from tests import selection

FILES = {
    "conftest.py": "import pytest\nfrom tests.kit import serve\n@pytest.fixture\ndef address():\n    yield serve()\n",
    "test_it.py": """
import subprocess
import refold

COMMAND = subprocess.run

def helper(): COMMAND(["true"])
def test_pure(): refold.count("words")
def test_direct(): subprocess.run(["true"])
def test_by_a_helper(): helper()
def test_with_a_fixture(address): ...
def test_with_a_fixture_by_name(request): request.getfixturevalue("address")
""",
    "kit.py": "from refold.testing.provider import ScriptedProvider\ndef serve(): return ScriptedProvider()\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    root = tmp_path / "tests"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    monkeypatch.setattr(selection, "TESTS", root)
    return root


@pytest.mark.parametrize(
    ("test", "starts"),
    {
        "test_pure": False,
        "test_direct": True,
        "test_by_a_helper": True,
        "test_with_a_fixture": True,
        "test_with_a_fixture_by_name": True,
    }.items(),
)
def test_a_test_that_starts_something_is_known_by_its_source(folder, test, starts):
    fixtures = ["address"] if test == "test_with_a_fixture" else []
    assert selection.starts_something(folder / "test_it.py", test, fixtures) is starts


@pytest.mark.parametrize("entry", [*selection.SLOW, *selection.HIDDEN])
def test_what_is_left_out_by_name_is_there(entry):
    place, _, name = entry.partition("::")
    path = selection.TESTS / place
    assert path.exists()
    assert not name or f"\ndef {name}(" in path.read_text("utf-8")


def test_a_folder_a_file_and_a_single_test_are_left_out_by_name():
    tests = selection.TESTS
    assert selection.is_slow(tests / "laws" / "test_any.py", "test_x")
    assert selection.is_slow(tests / "agent" / "test_long.py", "test_x")
    path, name = next(entry for entry in selection.SLOW if "::" in entry).split("::")
    assert selection.is_slow(tests / path, name)
    assert not selection.is_slow(tests / path, "test_x")
