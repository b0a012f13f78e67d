"""Batches on processes that are killed: workers, single files that kill their worker, and the whole run."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import psutil
import pytest
from msgspec.structs import replace

from refold.batch import run_batch
from tests.batch.transcripts import COSTS, folder, once, rows, times, transcript

POOL = partial(ProcessPoolExecutor, 2, mp_context=get_context("spawn"))
DEADLY = '''
"""A policy that ends its process where a message says so, as a crash in a C extension would."""
import os, signal
from msgspec.structs import replace
from refold.core.policy import Pure, Step, When
from refold.policies.opal import POLICY as OPAL

class Deadly(Pure, frozen=True):
    def edits(self, view, answers):
        if any("deadly" in str(message) for message in view.messages):
            os.kill(os.getpid(), signal.SIGKILL)
        return ()

POLICY = replace(OPAL, name="deadly", steps=(Step(Deadly(), When.EVERY_CALL, "die"), *OPAL.steps))
'''


def test_a_killed_worker_costs_no_file_and_doubles_none(tmp_path):
    paths = folder(tmp_path / "in", 12)
    killed = []

    def kill(progress):
        if progress.finished and not killed:
            worker = next(child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline()))
            worker.kill()
            killed.append(worker.pid)

    reached = run_batch(
        [str(tmp_path / "in")], str(tmp_path / "out"), COSTS, executor=POOL, workers=2, on_progress=kill
    )
    assert (reached.left, reached.errors, len(killed)) == (0, 0, 1)
    assert times(tmp_path / "out") == once(paths)


def test_a_file_that_kills_its_worker_each_time_becomes_a_row_and_the_others_are_replayed(tmp_path):
    paths = folder(tmp_path / "in", 4)
    paths[1].write_text(transcript(word="deadly"))
    (tmp_path / "deadly.py").write_text(DEADLY)
    settings = replace(COSTS, policies=(str(tmp_path / "deadly.py"),))
    reached = run_batch([str(tmp_path / "in")], str(tmp_path / "out"), settings, executor=POOL, workers=2)
    assert (reached.left, reached.errors) == (0, 1)
    assert times(tmp_path / "out", "deadly") == once(paths)
    ((file, error),) = [row for row in rows(tmp_path / "out", "file, error") if row[1]]
    assert (file, "signal 9" in error) == (str(paths[1]), True)


def started(*arguments):
    command = [sys.executable, "-m", "refold", "batch", *map(str, arguments), "-p", "opal", "-w", "8k", "--costs-only"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finished(out):
    return len(list((out / "manifest").glob("0*.json")))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on_with_the_same_command(tmp_path, number):
    paths = folder(tmp_path / "in", 16, turns=30)
    out = tmp_path / "out"
    first = started(tmp_path / "in", "-o", out, "--jobs", 1)
    while not finished(out):
        assert first.poll() is None
        time.sleep(0.05)
    os.killpg(first.pid, number)
    _, error = first.communicate(timeout=60)
    assert first.returncode == (130 if number == signal.SIGINT else -number)
    assert ("run the same command again to go on" in error) is (number == signal.SIGINT)
    before = finished(out)
    (out / "results" / ".half.parquet.x").write_bytes(b"PAR1")  # as a process that is ended while it writes leaves it
    (out / "results" / "00001-orphan.parquet").write_bytes(next((out / "results").glob("0*")).read_bytes())
    again = started(tmp_path / "in", "-o", out, "--jobs", 2)
    output, _ = again.communicate(timeout=120)
    assert (again.returncode, "by earlier runs" in output, finished(out) > before > 0) == (0, True, True)
    assert times(out) == once(paths)
    assert not list((out / "results").glob(".*"))


def test_the_workers_of_a_run_that_is_killed_end_too(tmp_path):
    folder(tmp_path / "in", 16, turns=30)
    first = started(tmp_path / "in", "-o", tmp_path / "out", "--jobs", 1)
    while not finished(tmp_path / "out"):
        assert first.poll() is None
        time.sleep(0.05)
    workers = psutil.Process(first.pid).children(recursive=True)
    first.kill()
    first.communicate(timeout=60)
    assert workers
    assert not psutil.wait_procs(workers, timeout=60)[1]
