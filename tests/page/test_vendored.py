"""What comes from others is the very file of its package, has its licence beside it, and is part of the wheel."""

import json
from hashlib import sha256
from importlib.resources import files

import pytest

VENDOR = files("refold._page") / "static" / "vendor"
ROWS = json.loads((VENDOR / "versions.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_file_of_others_is_unchanged_and_has_its_licence(row):
    assert sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["sha256"]
    assert (VENDOR / row["license_file"]).read_text().strip()
    assert row["license"] in ("MIT", "0BSD")
    assert all(row[name] for name in ("package", "version", "source"))


def test_no_file_of_others_is_without_its_row():
    named = {row[name] for row in ROWS for name in ("file", "license_file")} | {"versions.json"}
    assert {entry.name for entry in VENDOR.iterdir()} == named


def test_no_file_of_the_page_loads_anything_from_elsewhere():
    folder = files("refold._page")
    own = [entry for part in ("static", "templates") for entry in (folder / part).iterdir() if entry.is_file()]
    for entry in own:
        text = entry.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, entry.name
        assert not [mark for mark in ("<script>", "<style", " style=", " onclick=") if mark in text], entry.name
