"""Batches on a Dask cluster of two worker processes on this machine."""

import json
import os

import dask
import distributed
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from refold._cli.main import cli
from refold.batch import run_batch
from tests.batch.test_processes import DEADLY
from tests.batch.transcripts import COSTS, folder, once, rows, times, transcript


@pytest.fixture(scope="module")
def cluster():
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.admin.log-length": 0}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=100
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


def test_a_killed_worker_costs_no_file_and_doubles_none(client, tmp_path):
    paths = folder(tmp_path / "in", 12)
    pids = list(client.run(os.getpid).values())

    def kill(progress):
        if progress.finished and len(pids) > 1:
            os.kill(pids.pop(), 9)

    reached = run_batch(
        [str(tmp_path / "in")], str(tmp_path / "out"), COSTS, executor=client.get_executor(pure=False), workers=2,
        on_progress=kill,
    )  # fmt: skip
    assert (reached.left, reached.errors, len(pids)) == (0, 0, 1)
    assert times(tmp_path / "out") == once(paths)


def test_a_file_that_kills_its_worker_each_time_becomes_a_row(client, tmp_path):
    paths = folder(tmp_path / "in", 2)
    paths[1].write_text(transcript(word="deadly"))
    (tmp_path / "deadly.py").write_text(DEADLY)
    settings = replace(COSTS, policies=(str(tmp_path / "deadly.py"),))
    reached = run_batch([str(tmp_path / "in")], str(tmp_path / "out"), settings, executor=client.get_executor)
    assert (reached.left, reached.errors) == (0, 1)
    assert [os.path.basename(file) for file, error in rows(tmp_path / "out", "file, error") if error] == ["001.json"]
    assert times(tmp_path / "out", "deadly") == once(paths)


def test_the_command_takes_the_address_of_a_scheduler(cluster, tmp_path):
    paths = folder(tmp_path / "in", 6)
    arguments = ["batch", tmp_path / "in", "-o", tmp_path / "out", "-p", "opal", "-w", "8k", "--costs-only", "--json"]
    arguments += ["--scheduler", cluster.scheduler_address]
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert (result.exit_code, json.loads(result.stdout)["finished"]) == (0, 6)
    assert times(tmp_path / "out") == once(paths)
