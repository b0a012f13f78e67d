"""Runs of a batch over threads: what is replayed, what is not, and what is refused."""

import json
import os
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from msgspec.structs import replace

from refold.batch import BatchProgress, BatchSettings, replay_files, run_batch
from refold.errors import OutsideError, UnreadableTranscript, UsageError
from tests.batch.transcripts import COSTS, MODEL, folder, once, rows, times, transcript


def run(inputs, out, settings=COSTS, **options):
    inputs = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    with ThreadPoolExecutor(1) as threads:
        given = {"executor": threads, "workers": 1} | options
        return run_batch([str(each) for each in inputs], str(out), settings, **given)


def test_each_file_has_one_row_for_each_policy_and_those_of_a_finished_run_are_not_replayed_again(tmp_path):
    paths = folder(tmp_path / "in", 9)
    assert run(tmp_path / "in", tmp_path / "out") == BatchProgress(9, finished=9)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").iterdir()}
    assert run(tmp_path / "in", tmp_path / "out") == BatchProgress(9, finished_before=9)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "results").iterdir()} == before
    assert times(tmp_path / "out") == times(tmp_path / "out", "none") == once(paths)


def test_files_that_join_are_replayed_and_those_that_go_keep_their_rows(tmp_path):
    paths = folder(tmp_path / "in", 4)
    run(tmp_path / "in", tmp_path / "out")
    paths[0].unlink()
    (tmp_path / "in" / "new.json").write_text(transcript(7))
    assert run(tmp_path / "in", tmp_path / "out") == BatchProgress(4, finished=1, finished_before=3)
    assert times(tmp_path / "out") == once([*paths, tmp_path / "in" / "new.json"])


def test_a_file_with_other_content_takes_the_place_of_its_old_rows(tmp_path):
    paths = folder(tmp_path / "in", 8)
    run(tmp_path / "in", tmp_path / "out")
    for path in paths[:5]:
        path.write_text(transcript(9))
    assert run(tmp_path / "in", tmp_path / "out").finished == 5
    calls = dict(rows(tmp_path / "out", "file, calls"))
    assert [calls[str(path)] for path in paths] == [9] * 5 + [6] * 3
    assert times(tmp_path / "out") == once(paths)


def test_content_decides_whether_a_file_has_changed_and_not_its_time(tmp_path):
    paths = folder(tmp_path / "in", 3)
    run(tmp_path / "in", tmp_path / "out")
    for path in paths:
        os.utime(path, (1, 1))
    assert run(tmp_path / "in", tmp_path / "out").finished == 0


def test_a_bad_file_is_a_row_with_its_error_and_stops_nothing(tmp_path):
    paths = folder(tmp_path / "in", 3)
    bad = {
        "empty.json": "",
        "broken.jsonl": '{"role": "user"',
        "list.json": "[1, 2]",
        "short.json": transcript(1),
        "unpriced.json": transcript().replace(MODEL, "nobody-knows-1"),
    }
    for name, text in bad.items():
        (tmp_path / "in" / name).write_text(text)
    settings = replace(COSTS, model=None)
    assert run(tmp_path / "in", tmp_path / "out", settings) == BatchProgress(8, finished=8, errors=5)
    assert times(tmp_path / "out") == once(paths) + Counter(list(bad))
    errors = {os.path.basename(file): error for file, error in rows(tmp_path / "out", "file, error") if error}
    assert set(errors) == set(bad)
    assert "the file is empty" in errors["empty.json"]
    assert "too few to replay" in errors["short.json"]
    assert "nobody-knows-1" in errors["unpriced.json"]
    assert not [error for error in errors.values() if "<bytes>" in error or str(tmp_path) in error]


if os.geteuid():  # root reads every file

    def test_a_file_without_permission_is_tried_again(tmp_path):
        paths = folder(tmp_path / "in", 2)
        paths[0].chmod(0)
        assert run(tmp_path / "in", tmp_path / "out").errors == 1
        paths[0].chmod(0o600)
        assert run(tmp_path / "in", tmp_path / "out") == BatchProgress(2, finished=1, finished_before=1)


def test_a_file_that_is_gone_when_it_is_its_turn_is_tried_again_and_its_error_goes(tmp_path):
    paths = folder(tmp_path / "in", 3)

    def vanish(progress):
        if not progress.finished:
            paths[2].rename(tmp_path / "away")

    assert run(tmp_path / "in", tmp_path / "out", on_progress=vanish).errors == 1
    (tmp_path / "away").rename(paths[2])
    assert run(tmp_path / "in", tmp_path / "out") == BatchProgress(3, finished=1, finished_before=2)
    assert times(tmp_path / "out") == once(paths)


def test_a_file_whose_name_is_not_utf_8_has_its_rows_once(tmp_path):
    (tmp_path / "in").mkdir()
    for number in (128, 129):
        with open(os.fsencode(tmp_path / "in") + bytes([47, number]) + b".json", "w") as stream:
            stream.write(transcript(number - 120))
    assert run(tmp_path / "in", tmp_path / "out").errors == 0
    assert run(tmp_path / "in", tmp_path / "out") == BatchProgress(2, finished_before=2)
    assert times(tmp_path / "out") == {r"\udc80.json": 1, r"\udc81.json": 1}


def test_results_within_the_folder_of_inputs_are_no_inputs(tmp_path):
    folder(tmp_path, 2)
    assert run(tmp_path, tmp_path / "out") == BatchProgress(2, finished=2)
    assert run(tmp_path, tmp_path / "out") == BatchProgress(2, finished_before=2)


def test_with_retry_files_with_an_error_are_replayed_again(tmp_path):
    folder(tmp_path / "in", 2)
    (tmp_path / "in" / "short.json").write_text(transcript(1))
    run(tmp_path / "in", tmp_path / "out")
    assert run(tmp_path / "in", tmp_path / "out").finished == 0
    assert run(tmp_path / "in", tmp_path / "out", retry=True) == BatchProgress(3, 1, 2, errors=1)
    assert times(tmp_path / "out")["short.json"] == 1


def test_all_conversations_of_a_file_are_replayed_where_they_are_selected(tmp_path):
    talk = json.loads(transcript())["messages"]
    (tmp_path / "runs.json").write_text(json.dumps([{"task_id": n, "traj": talk} for n in range(3)]))
    settings = BatchSettings(policies=(), model="gpt-4o", judge=False, kind="tau-bench")
    run(tmp_path / "runs.json", tmp_path / "one", settings)
    run(tmp_path / "runs.json", tmp_path / "all", replace(settings, select="all"))
    assert (len(rows(tmp_path / "one")), len(rows(tmp_path / "all"))) == (1, 3)


def test_what_was_really_paid_is_a_row_of_its_own(tmp_path):
    run("tests/data/sessions/codex/rollout.jsonl", tmp_path / "out", replace(COSTS, window=None, policies=()))
    recorded = rows(tmp_path / "out", "policy, calls, tokens_prompt, cache_misses, usd_total > 0")
    assert recorded[1] == ("recorded", 7, 54_961, 1, True)


def test_paths_of_memory_are_read_and_written(tmp_path):
    files = fsspec.filesystem("memory")
    for number in range(3):
        files.pipe(f"/batch-in/{number}.json", transcript(5 + number).encode())
    try:
        assert run("memory://batch-in", "memory://batch-out").finished == 3
        assert run("memory://batch-in/*.json", "memory://batch-out").finished_before == 3
        names = files.find("/batch-out")
    finally:
        files.rm("/batch-in", recursive=True)
        files.rm("/batch-out", recursive=True)
    assert not [name for name in names if "/." in name]
    assert sum(name.endswith(".parquet") for name in names) == sum("/manifest/" in name for name in names) > 0


def test_the_same_files_and_settings_always_give_the_same_table(tmp_path):
    paths = [str(path) for path in folder(tmp_path, 2)]
    assert replay_files(paths, COSTS).equals(replay_files(paths, COSTS))


def test_progress_is_told_from_the_beginning_to_the_end(tmp_path):
    folder(tmp_path / "in", 6)
    seen = []
    run(tmp_path / "in", tmp_path / "out", on_progress=seen.append)
    assert [each.left for each in (seen[0], seen[-1])] == [6, 0]
    assert [each.finished for each in seen] == sorted(each.finished for each in seen)


class FullDisk(MemoryFileSystem):
    """A storage that has room for a few files."""

    protocol = "fulldisk"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]
    room = 4

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if FullDisk.room == 0:
            raise OSError(28, "No space left on device", path)
        FullDisk.room -= 1
        super().pipe_file(path, value, mode, **kwargs)


def test_a_full_disk_ends_the_run_and_keeps_what_was_finished(tmp_path):
    fsspec.register_implementation("fulldisk", FullDisk, clobber=True)
    folder(tmp_path / "in", 8)
    with pytest.raises(OSError, match="No space left"):
        run(tmp_path / "in", "fulldisk://out")
    FullDisk.room = 100
    reached = run(tmp_path / "in", "fulldisk://out")
    assert 0 < reached.finished_before < 8
    assert reached.left == 0


def test_results_of_other_settings_are_refused_with_the_differences(tmp_path):
    folder(tmp_path / "in", 1)
    run(tmp_path / "in", tmp_path / "out")
    with pytest.raises(UsageError, match=r"other settings \(policies opal, now vibe; window 8000, now 9000\)"):
        run(tmp_path / "in", tmp_path / "out", replace(COSTS, window=9_000, policies=("vibe",)))


@pytest.mark.parametrize(("key", "value", "reason"), [("schema", 99, "columns of version 99"), ("code", "x", "refold")])
def test_results_of_another_version_are_refused(tmp_path, key, value, reason):
    folder(tmp_path / "in", 1)
    run(tmp_path / "in", tmp_path / "out")
    head = tmp_path / "out" / "batch.json"
    head.write_text(json.dumps(json.loads(head.read_text()) | {key: value}))
    with pytest.raises(UsageError, match=reason):
        run(tmp_path / "in", tmp_path / "out")


def test_a_folder_with_other_files_is_refused_and_left_as_it_is(tmp_path):
    folder(tmp_path / "in", 1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        run(tmp_path / "in", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    folder(tmp_path / "in", 1)
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="this is a file"):
        run(tmp_path / "in", tmp_path / "out")


def test_two_runs_at_once_are_refused(tmp_path):
    folder(tmp_path / "in", 1)
    refused = []

    def second(progress):
        with pytest.raises(UsageError, match="another process is writing"):
            run(tmp_path / "in", tmp_path / "out")
        refused.append(progress)

    run(tmp_path / "in", tmp_path / "out", on_progress=second)
    assert refused


def test_inputs_that_are_not_there_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, reason in (("empty", "no .json"), ("none", "no such file"), ("*.json", "no file matches")):
        with pytest.raises(UnreadableTranscript, match=reason):
            run(tmp_path / name, tmp_path / "out")
    with pytest.raises(UsageError, match="wxyz"):
        run("wxyz://bucket", tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Breaking(ThreadPoolExecutor):
    """An executor whose workers die over the first tasks, as a pool of processes says it."""

    deaths = 3

    def submit(self, *args, **options):
        if Breaking.deaths:
            Breaking.deaths -= 1
            future = Future()
            future.set_exception(BrokenProcessPool("a child process terminated abruptly"))
            return future
        return super().submit(*args, **options)


def test_an_executor_that_cannot_be_made_again_is_an_error_and_one_that_can_is_renewed(tmp_path, monkeypatch):
    paths = folder(tmp_path / "in", 4)
    monkeypatch.setattr(Breaking, "deaths", 3)
    with Breaking(1) as broken, pytest.raises(OutsideError, match="pass a function that returns an executor"):
        run(tmp_path / "in", tmp_path / "out", executor=broken)
    assert run(tmp_path / "in", tmp_path / "out", executor=lambda: Breaking(1)).left == 0
    assert times(tmp_path / "out") == once(paths)


def test_workers_that_always_die_end_the_run_with_the_reason(tmp_path, monkeypatch):
    folder(tmp_path / "in", 2)
    monkeypatch.setattr(Breaking, "deaths", 1_000)
    with pytest.raises(OutsideError, match="workers die before they finish"):
        run(tmp_path / "in", tmp_path / "out", executor=lambda: Breaking(1))


def test_a_file_that_several_names_lead_to_is_replayed_once_and_results_are_no_transcripts_by_any_name(tmp_path):
    paths = folder(tmp_path / "in", 3)
    other = tmp_path / "other"
    other.symlink_to("in")
    inputs = [tmp_path / "in", other, tmp_path / "in" / ".." / "in" / paths[0].name]
    assert run(inputs, other / "out") == BatchProgress(3, finished=3)
    assert run(inputs, other / "out") == BatchProgress(3, finished_before=3)
    assert times(tmp_path / "in" / "out") == once(paths)
