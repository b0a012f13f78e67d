"""`refold batch` on bad input: one line, exit code 2, nothing written."""

import importlib

import pytest
from click.testing import CliRunner

from refold._cli.main import cli
from refold.batch import _packages
from tests.batch.transcripts import folder, transcript


@pytest.fixture
def run(tmp_path):
    def invoke(*arguments):
        given = ["batch", *map(str, arguments), "-o", str(tmp_path / "out"), "-w", "8k", "--costs-only"]
        return CliRunner().invoke(cli, given)

    return invoke


def refused(result, reason):
    assert result.exit_code == 2
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_empty_folder_and_a_missing_file_are_refused(run, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(run(tmp_path / "empty"), "in this folder")
    refused(run(tmp_path / "gone.json"), "no such file or folder")
    assert not (tmp_path / "out").exists()


def test_an_unknown_storage_and_one_without_its_package_are_refused(run):
    refused(run("nope://bucket/logs"), "nope")
    refused(run("s3://bucket/logs"), "needs one more package")


def test_an_unknown_policy_is_refused_before_anything_is_written(run, tmp_path):
    folder(tmp_path / "in", 1)
    refused(run(tmp_path / "in", "-p", "opl"), "opal")
    assert not (tmp_path / "out").exists()


def test_jobs_and_a_scheduler_together_are_refused(run, tmp_path):
    folder(tmp_path / "in", 1)
    refused(run(tmp_path / "in", "--jobs", 2, "--scheduler", "tcp://127.0.0.1:1"), "give one")


def test_a_scheduler_that_does_not_answer_is_named(run, tmp_path, monkeypatch):
    from refold._cli import batch

    folder(tmp_path / "in", 1)
    monkeypatch.setattr(batch, "PATIENCE", "0.2s")
    refused(run(tmp_path / "in", "--scheduler", "tcp://127.0.0.1:1"), "no scheduler answers there")


def test_a_package_that_is_missing_is_named_with_its_extra(run, tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}", name=name)

    folder(tmp_path / "in", 1)
    monkeypatch.setattr(_packages, "import_module", missing)
    refused(run(tmp_path / "in"), "pip install 'refold[batch]'")
    refused(run(tmp_path / "in", "--scheduler", "tcp://127.0.0.1:1"), "pip install 'refold[dask]'")
    monkeypatch.setattr(_packages, "import_module", importlib.import_module)


def test_results_of_other_settings_and_errors_are_told_in_words(run, tmp_path):
    folder(tmp_path / "in", 2)
    (tmp_path / "in" / "bad.json").write_text(transcript(1))
    result = run(tmp_path / "in", "-p", "opal", "--jobs", 1)
    assert (result.exit_code, result.stdout.splitlines()[:2]) == (
        0,
        ["3 files replayed.", "1 of them with an error: the report says why."],
    )
    refused(run(tmp_path / "in", "-p", "vibe"), "policies opal, now vibe")


def test_a_batch_of_which_every_file_has_an_error_is_no_success(run, tmp_path):
    folder(tmp_path / "in", 0)
    (tmp_path / "in" / "bad.json").write_text(transcript(1))
    for _ in range(2):  # the second run finds it done
        result = run(tmp_path / "in", "-p", "opal", "--jobs", 1)
        assert (result.exit_code, "1 of them with an error: the report says why." in result.stdout) == (1, True)
