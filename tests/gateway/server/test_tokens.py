import json
import os
import stat

import pytest

from refold._gateway.server import tokens
from refold._gateway.server.tokens import TokenFile
from refold.errors import UsageError


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "CHECKED", 0.0)
    return TokenFile(tmp_path / "folder" / "tokens.jsonl")


def written(file):
    return (file._path).read_text()


def test_a_token_is_found_by_its_text_alone_and_the_file_does_not_hold_it(file):
    token, text = file.create("team:red", rate=5, max_body=100)
    _, other = file.create("user:ann")
    found = file.find(text)
    assert (found.owner, found.rate, found.max_body, found.admin) == ("team:red", 5, 100, False)
    assert file.find(other).owner == "user:ann"
    secret = text.split("_", 2)[2]
    assert secret not in written(file)
    wrong = [
        f"refold_{token.id}_",
        f"refold_{token.id}_{secret[:-1]}",
        f"refold_00000000_{secret}",
        secret,
        "refold_",
        "",
        "é",
    ]
    wrong.append(text.replace(secret, other.split("_", 2)[2]))
    assert [file.find(each) for each in wrong] == [None] * len(wrong)


def test_a_revoked_token_is_not_found_from_then_on_and_others_are(file):
    token, text = file.create("team:red")
    other, still = file.create("", admin=True)
    assert file.find(text)
    assert file.revoke(token.id).revoked
    assert file.find(text) is None
    assert file.find(still).admin
    assert file.in_force() == (other,)
    with pytest.raises(UsageError, match="no token"):
        file.revoke(token.id)
    file.revoke(other.id)
    assert not file.in_force()


def test_only_the_owner_of_the_file_reads_it(file):
    file.create("team:red")
    assert file._path.stat().st_mode & 0o777 == 0o600
    assert file._path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "a/b", "a:b", "ü", "a\nb"])
def test_a_name_is_one_word(file, name):
    with pytest.raises(UsageError, match="no name"):
        file.create(f"team:{name}")
    assert not file._path.exists()


@pytest.mark.parametrize("line", ["{", "[]", '{"id":"x"}', '{"id":"x","hash":"y","created":1,"later":2}'])
def test_a_damaged_file_is_named_with_its_line_and_left_and_what_was_read_stays_in_force(file, line):
    _, text = file.create("team:red")
    assert file.find(text)
    with file._path.open("a") as opened:
        opened.write(f"\n{line}\n")
    before = written(file)
    for act in (file.in_force, lambda: file.create("team:blue")):
        with pytest.raises(UsageError, match=r"tokens\.jsonl: line 3"):
            act()
    assert written(file) == before
    assert file.find(text)


def test_a_line_without_an_end_takes_no_token_into_it(file):
    _, first = file.create("team:red")
    file._path.write_bytes(file._path.read_bytes().rstrip())
    _, second = file.create("team:blue")
    assert file.find(first)
    assert file.find(second)


def test_a_file_that_is_removed_holds_no_token(file):
    _, text = file.create("team:red")
    assert file.find(text)
    file._path.unlink()
    assert file.find(text) is None


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match=r"--token-file"):
        TokenFile(tmp_path / "taken" / "tokens.jsonl").create("team:red")


def test_what_is_no_regular_file_is_refused_and_left_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o644)
    with pytest.raises(UsageError, match="not a regular file"):
        TokenFile(pipe).create("user:ann")
    assert stat.S_IMODE(pipe.stat().st_mode) == 0o644


def test_each_line_is_whole_json(file):
    token, _ = file.create("team:red")
    file.revoke(token.id)
    first, last = map(json.loads, written(file).splitlines())
    assert first["id"] == last["id"] == token.id
    assert "revoked" in last
