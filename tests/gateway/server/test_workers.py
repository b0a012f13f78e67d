import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from refold._gateway import app
from refold._gateway.observability.shared_figures import SharedFigures, retire
from refold._gateway.server.serving import Serving
from refold._gateway.server.workers import share
from refold._gateway.settings import GatewaySettings
from refold.testing.provider import ScriptedProvider
from tests.gateway.scripted_upstream import ADMIN, call, chat

pytestmark = pytest.mark.service


@contextmanager
def served(provider, store, workers=2, *more):
    """Run `refold serve` with workers; yields its process and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "refold", "serve", "--port", str(port), "--openai", provider.openai_url, "--store", str(store)]
    words += ["--workers", str(workers), "--window", "8k", "--trigger", "0.8", "--no-background", *more]
    environment = {**os.environ, "REFOLD_ADMIN_TOKEN": ADMIN}
    with subprocess.Popen([sys.executable, *words], env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: alive(url) or process.poll() is not None)
            yield process, url
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


def until(found, seconds=30):
    """Return what a function finds as soon as it finds something."""
    end = time.monotonic() + seconds
    while not (result := found()) and time.monotonic() < end:
        time.sleep(0.05)
    return result


def alive(url):
    try:
        return call(url, "GET", "/livez")[0] == 200
    except OSError:
        return False


def workers_of(process):
    return [child for child in psutil.Process(process.pid).children() if works(child)]


def works(child):
    try:
        return any("spawn_main" in word for word in child.cmdline())
    except psutil.Error:  # it has ended meanwhile
        return False


def requests_counted(url):
    page = call(url, "GET", "/metrics")[2].decode()
    return sum(map(float, re.findall(r"^refold_requests_total\{[^}]*\} (\S+)", page, re.M)))


def test_workers_share_conversations_and_figures_and_end_together(tmp_path):
    with ScriptedProvider(["fine"] * 99) as provider, served(provider, tmp_path / "g.db") as (process, url):
        assert len(until(lambda: len(found := workers_of(process)) == 2 and found)) == 2
        plans = {call(url, body=chat(10))[1]["x-refold-plan"] for _ in range(12)}
        assert len(plans) == 1
        assert until(lambda: requests_counted(url) == 12)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def test_a_worker_that_dies_is_replaced_and_what_it_counted_stays(tmp_path):
    with ScriptedProvider(["fine"] * 99) as provider, served(provider, tmp_path / "g.db") as (process, url):
        for _ in range(8):
            call(url, body=chat(1))
        assert until(lambda: requests_counted(url) == 8)
        time.sleep(3)  # a worker that ends sooner was never at work
        first, *_ = workers_of(process)
        first.kill()
        assert until(lambda: len(workers_of(process)) == 2 and first.pid not in {w.pid for w in workers_of(process)})
        assert call(url, body=chat(1))[0] == 200
        assert until(lambda: requests_counted(url) == 9)


def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path):
    with ScriptedProvider(["fine"] * 99) as provider, served(provider, tmp_path / "g.db") as (process, _):
        left = workers_of(process)
        assert left
        process.kill()
        _, alive_still = psutil.wait_procs(left, timeout=20)
        assert not alive_still


def test_workers_need_a_store_that_they_can_share():
    words = [sys.executable, "-m", "refold", "serve", "--workers", "2", "--store", "memory", "--port", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "name a file or a database with --store" in done.stderr


PAGE = """# HELP refold_requests_total Requests
# TYPE refold_requests_total counter
refold_requests_total{done="forwarded"} %d.0
# HELP refold_conversations Conversations
# TYPE refold_conversations gauge
refold_conversations %d.0
# HELP refold_store_up Store
# TYPE refold_store_up gauge
refold_store_up %d.0
"""


def test_pages_are_added_up_and_a_worker_that_ended_leaves_its_counters(tmp_path):
    first, second = SharedFigures(tmp_path, 0), SharedFigures(tmp_path, 1)
    first.write((PAGE % (3, 5, 0)).encode())
    page = second.summed((PAGE % (4, 2, 1)).encode()).decode()
    assert 'refold_requests_total{done="forwarded"} 7.0' in page
    assert "refold_conversations 7.0" in page
    assert "refold_store_up 0.0" in page
    retire(Path(tmp_path), 0)
    page = second.summed((PAGE % (4, 2, 1)).encode()).decode()
    assert 'refold_requests_total{done="forwarded"} 7.0' in page
    assert "refold_conversations 2.0" in page
    assert "refold_store_up 1.0" in page


def test_a_worker_that_cannot_be_replaced_while_the_store_is_away_ends_no_other(tmp_path):
    store, away = tmp_path / "g.db", tmp_path / "away.db"
    with ScriptedProvider(["fine"] * 99) as provider, served(provider, store) as (process, url):
        time.sleep(3)
        store.rename(away)
        store.mkdir()  # nothing that a store could be opened in
        first, other = workers_of(process)
        first.kill()
        time.sleep(4)
        assert process.poll() is None
        assert other.is_running()
        store.rmdir()
        away.rename(store)
        assert until(lambda: len(workers_of(process)) == 2)
        assert call(url, body=chat(1))[0] == 200


def test_a_signal_while_the_workers_are_started_ends_them_all(tmp_path):
    words = [sys.executable, "-m", "refold", "serve", "--workers", "12", "--port", "0"]
    words += ["--store", str(tmp_path / "g.db")]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        started = until(lambda: workers_of(process))
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(timeout=20) is not None
        finally:
            process.kill()
    assert started


@pytest.mark.parametrize(("connections", "each"), [(0, 0), (2, 1), (9, 2)])
def test_a_limit_for_connections_is_none_for_no_worker(connections, each):
    assert share(GatewaySettings(connections=connections), 4).connections == each


def test_a_worker_goes_on_telling_its_figures_after_they_could_not_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(app, "TELL", 0.01)
    folder = tmp_path / "figures"
    serving = Serving(GatewaySettings(port=0, admin_token=ADMIN))
    serving.gateway.metrics.share(SharedFigures(folder, 0))
    with serving:
        assert b"refold_store_up 1.0" in call(serving.url, "GET", "/metrics")[2]
        folder.mkdir()
        assert until((folder / "0.prom").exists)
