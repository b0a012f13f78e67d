import os
import stat

import pytest

from refold._files import write_atomically


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_written_whole_and_its_folder_made(tmp_path):
    path = tmp_path / "a" / "b.json"
    write_atomically(path, b"{}", mode=0o600)
    assert path.read_bytes() == b"{}"
    assert mode(path) == 0o600
    assert os.listdir(path.parent) == ["b.json"]


def test_a_file_that_is_there_keeps_its_mode(tmp_path):
    path = tmp_path / "b.json"
    path.write_text("old")
    path.chmod(0o640)
    write_atomically(path, b"new", mode=0o600)
    assert (path.read_bytes(), mode(path)) == (b"new", 0o640)


def test_what_was_there_stays_where_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "b.json"
    path.write_text("old")
    monkeypatch.setattr(os, "fdopen", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_atomically(path, b"new")
    assert os.listdir(tmp_path) == ["b.json"]
    assert path.read_text() == "old"
