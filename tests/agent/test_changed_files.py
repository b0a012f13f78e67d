import os

import pytest

from refold.agent._changed_files import Files, attached
from refold.config import Settings
from refold.core.budget import Budget
from refold.core.messages import ToolCall
from refold.core.needs import FileNeed
from refold.errors import UsageError
from refold.models._file_budget import file_budget
from tests.agent.kit import Watched


def read(path, name="read_file"):
    return ToolCall("c1", name, f'{{"path": "{path}"}}')


def later(path):
    stamp = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(stamp, stamp))


def test_a_file_that_changed_since_it_was_read_is_told_once(tmp_path):
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.py").write_text("1")
    files = Files(tmp_path)
    files.note(read("a.py"))
    files.note(read("b.py"))
    assert files.changed() == ()
    later(tmp_path / "a.py")
    assert files.changed() == ("a.py",)
    assert files.changed() == ()


def test_what_the_agent_writes_itself_is_no_change(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("1")
    files = Files(tmp_path)
    files.note(read("a.py"))
    later(path)
    files.note(read("a.py", "write_file"))
    assert files.changed() == ()


def test_a_file_that_is_gone_has_changed_and_a_failed_read_is_not_remembered(tmp_path):
    (tmp_path / "a.py").write_text("1")
    files = Files(tmp_path)
    files.note(read("a.py"))
    files.note(read("b.py"), is_error=True)
    (tmp_path / "a.py").unlink()
    (tmp_path / "b.py").write_text("new")
    assert files.changed() == ("a.py",)


def test_nothing_outside_the_folder_is_read(tmp_path):
    (tmp_path / "secret").write_text("x")
    inside = tmp_path / "work"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    for path in ("../secret", str(tmp_path / "secret"), "link", "gone"):
        with pytest.raises(UsageError, match="is not a file in"):
            Files(inside).restore(FileNeed(path, 100))


def test_a_restored_file_is_cut_to_the_tokens_it_may_have(tmp_path):
    (tmp_path / "a.py").write_text("word " * 50_000)
    text = Files(tmp_path).restore(FileNeed("a.py", 5_000))
    assert 15_000 < len(text) <= 20_000
    assert text.endswith("...")


def test_attachments_stay_within_their_share_of_the_window(tmp_path):
    (tmp_path / "small.txt").write_text("x" * 1_000)
    (tmp_path / "large.txt").write_text("y" * 400_000)
    found = attached([tmp_path / "small.txt", tmp_path / "large.txt"], file_budget(20_000, 10_000))
    assert found[0].content == "x" * 1_000
    assert sum(len(file.content) for file in found) <= 6_000 * 4
    assert "of 400,000 characters" in found[1].content


@pytest.mark.parametrize(("settings", "share"), [(None, 0.6), (Settings(file_read_budget_percent=0.1), 0.1)])
def test_files_that_go_with_a_request_leave_room_for_the_conversation(tmp_path, settings, share):
    (tmp_path / "log.txt").write_text("line of a log\n" * 100_000)
    run = Watched(["Seen."], budget=Budget(20_000, 1_000), settings=settings)
    assert run.agent.run("Look.", attach=[tmp_path / "log.txt"]) == "Seen."
    text = run.agent.originals[0]["content"][1]["text"]
    assert text.startswith(f'<file path="{tmp_path / "log.txt"}">\nline of a log\n')
    assert len(text) <= 19_000 * share * 4 + len(str(tmp_path)) + 60
    assert len(text) > 19_000 * share * 2


def test_what_can_be_no_path_is_no_file_of_the_folder(tmp_path):
    files = Files(tmp_path)
    files.note(ToolCall("c1", "read_file", '{"path": "a\\u0000b"}'))
    assert files.changed() == ()
    with pytest.raises(UsageError, match="is not a file"):
        files.restore(FileNeed("a\0b", 100))
