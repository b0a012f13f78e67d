import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from refold import transcripts
from tests.shared import SESSIONS

Run = Callable[..., Result]
SMALL = ("--force", "--window", "200k", "--goal", "300")
RECORDED = SESSIONS / "claude-code" / "session.jsonl"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "cb45f880.jsonl"
    shutil.copy(RECORDED, path)
    path.chmod(0o600)
    os.utime(path, (1_790_000_000, 1_790_000_000))
    return path


def files(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def test_a_session_is_compacted_where_it_is_and_the_original_is_kept_beside_it(run: Run, session: Path) -> None:
    done = run("compact", "--in-place", *SMALL, session)
    assert done.exit_code == 0
    original = Path(f"{session}.orig")
    assert files(session) == [session.name, original.name]
    assert original.read_bytes() == RECORDED.read_bytes()
    assert original.stat().st_mtime == 1_790_000_000
    assert {path.stat().st_mode & 0o777 for path in (session, original)} == {0o600}
    assert len(transcripts.continued(session.read_bytes()).messages) < len(transcripts.read(original)[0].messages)
    assert f"the original is {original}" in done.stderr
    assert done.stdout == ""


def test_stats_of_a_session_that_was_compacted_count_its_context(run: Run, session: Path) -> None:
    assert run("compact", "--in-place", *SMALL, session).exit_code == 0
    done = run("stats", session, "--json")
    counted = json.loads(done.stdout)
    assert counted["messages"] == len(transcripts.continued(session.read_bytes()).messages)
    assert counted["messages"] < len(transcripts.read(session)[0].messages)
    assert "messages before the session's last compaction" in done.stderr


def test_a_backup_that_is_there_is_never_overwritten(run: Run, session: Path) -> None:
    original = Path(f"{session}.orig")
    original.write_text("of an earlier compaction")
    refused = run("compact", "--in-place", *SMALL, session)
    assert refused.exit_code == 2
    assert "is there already and would be lost" in refused.stderr
    assert original.read_text() == "of an earlier compaction"
    assert session.read_bytes() == RECORDED.read_bytes()
    other = session.with_name("kept.jsonl")
    assert run("compact", "--in-place", "--backup", other, *SMALL, session).exit_code == 0
    assert other.read_bytes() == RECORDED.read_bytes()


def test_a_session_that_needs_nothing_is_left_as_it_is(run: Run, session: Path) -> None:
    done = run("compact", "--in-place", "--window", "200k", session)
    assert done.exit_code == 0
    assert "nothing to do" in done.stderr
    assert files(session) == [session.name]
    assert session.stat().st_mtime == 1_790_000_000


def test_a_session_that_its_agent_writes_meanwhile_is_not_touched(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = transcripts.with_compaction

    def and_the_agent_too(*arguments: object, **keywords: object) -> bytes:
        with session.open("a") as stream:
            stream.write('{"type": "summary"}\n')
        return write(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(transcripts, "with_compaction", and_the_agent_too)
    refused = run("compact", "--in-place", *SMALL, session)
    assert refused.exit_code == 2
    assert "was changed while it was compacted" in refused.stderr
    assert session.read_bytes() == RECORDED.read_bytes() + b'{"type": "summary"}\n'
    assert files(session) == [session.name]


def test_a_broken_line_is_refused_with_its_number_and_nothing_is_written(run: Run, session: Path) -> None:
    session.write_bytes(RECORDED.read_bytes() + b'{"type": "user", "mess')
    before = session.read_bytes()
    refused = run("compact", "--in-place", *SMALL, session)
    assert refused.exit_code == 2
    assert f"{session}:{before.count(chr(10).encode()) + 1}" in refused.stderr
    assert session.read_bytes() == before
    assert files(session) == [session.name]


def test_of_several_sessions_one_that_cannot_be_written_is_noted_and_the_others_are(run: Run, session: Path) -> None:
    foreign = session.with_name("gemini.jsonl")
    shutil.copy(SESSIONS / "gemini-cli" / "session.jsonl", foreign)
    done = run("compact", "--in-place", *SMALL, session, foreign)
    assert done.exit_code == 1
    assert f"{foreign}" in done.stderr
    assert "cannot be written back" in done.stderr
    assert files(session) == [session.name, f"{session.name}.orig", foreign.name]


def test_the_report_for_machines_names_the_session(run: Run, session: Path) -> None:
    report = json.loads(run("compact", "--in-place", "--json", *SMALL, session).stderr)
    assert report["out"] == str(session)
    assert report["sizes"]["after"] < report["sizes"]["before"]


def test_options_that_make_no_sense_together_are_refused(run: Run, session: Path) -> None:
    for options, words in (
        (("--in-place", "-o", "out.json"), "--in-place and --out exclude each other"),
        (("--backup", "kept"), "give both"),
        (("--in-place", "--select", "2"), "leave out the options on reading"),
        (("--in-place", "--backup", "kept", session), "--backup names one file"),
    ):
        refused = run("compact", *options, RECORDED)
        assert refused.exit_code == 2
        assert words in refused.stderr
    assert "standard input has no place" in run("compact", "--in-place", "-", input="[]").stderr
    assert "no such file" in run("compact", "--in-place", session.with_name("missing.jsonl")).stderr


def test_a_file_system_without_links_gets_its_backup_too(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert run("compact", "--in-place", *SMALL, session).exit_code == 0
    assert files(session) == [session.name, f"{session.name}.orig"]
    assert Path(f"{session}.orig").read_bytes() == RECORDED.read_bytes()


def test_a_backup_that_cannot_be_written_leaves_the_session_as_it_is(run: Run, session: Path) -> None:
    refused = run("compact", "--in-place", "--backup", session.parent / "none" / "kept", *SMALL, session)
    assert refused.exit_code == 2
    assert session.read_bytes() == RECORDED.read_bytes()
    assert files(session) == [session.name]


def test_what_an_agent_appends_while_the_session_is_read_is_noticed(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def then_the_agent_writes(path: Path) -> bytes:
        content = read(path)
        with session.open("ab") as stream:
            stream.write(b'{"type": "summary"}\n')
        return content

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", then_the_agent_writes)
        refused = run("compact", "--in-place", *SMALL, session)
    assert refused.exit_code == 2
    assert "was changed while it was compacted" in refused.stderr
    assert session.read_bytes() == RECORDED.read_bytes() + b'{"type": "summary"}\n'
    assert files(session) == [session.name]


def test_an_agent_that_has_the_session_open_goes_on_writing_into_the_original(run: Run, session: Path) -> None:
    with session.open("ab") as agent:
        assert run("compact", "--in-place", *SMALL, session).exit_code == 0
        agent.write(b'{"type": "summary"}\n')
    assert Path(f"{session}.orig").read_bytes() == RECORDED.read_bytes() + b'{"type": "summary"}\n'


def test_a_session_that_is_written_at_the_last_moment_gets_its_own_file_back(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def after_the_agent(path: Path, place: Path) -> Path:
        with session.open("ab") as agent:
            agent.write(b'{"type": "summary"}\n')
        return replace(path, place)

    monkeypatch.setattr(Path, "replace", after_the_agent)
    refused = run("compact", "--in-place", *SMALL, session)
    assert refused.exit_code == 2
    assert session.read_bytes() == RECORDED.read_bytes() + b'{"type": "summary"}\n'
    assert files(session) == [session.name]


def test_a_session_whose_new_content_cannot_be_written_stays_without_a_backup(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert run("compact", "--in-place", *SMALL, session).exit_code == 2
    assert session.read_bytes() == RECORDED.read_bytes()
    assert files(session) == [session.name]


def test_a_plan_is_never_written_over_the_session_nor_over_the_plan_of_another(run: Run, session: Path) -> None:
    refused = run("compact", "--in-place", "--plan-out", session, *SMALL, session)
    assert refused.exit_code == 2
    assert "is the session, and would be lost" in refused.stderr
    second = session.with_name("second.jsonl")
    shutil.copy(session, second)
    refused = run("compact", "--in-place", "--plan-out", session.with_name("plan.json"), *SMALL, session, second)
    assert refused.exit_code == 2
    assert "--plan-out keeps one plan" in refused.stderr
    assert session.read_bytes() == second.read_bytes() == RECORDED.read_bytes()
    assert files(session) == [session.name, second.name]


if os.geteuid() == 0:  # only root may give a file away

    def test_a_session_stays_its_owners(run: Run, session: Path) -> None:
        os.chown(session, 12_345, 12_345)
        assert run("compact", "--in-place", *SMALL, session).exit_code == 0
        assert (session.stat().st_uid, session.stat().st_gid) == (12_345, 12_345)
