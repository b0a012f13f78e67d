"""Settings for property tests (many examples in a deep run, see depth.py), and what a quick run leaves out."""

import functools
import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import selection
from tests.depth import DEEP
from tests.shared import SHARED

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
for _name, _examples in (("few", 6), ("usual", 10)):
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, derandomize=True, suppress_health_check=_SLOW
    )
settings.register_profile("full", max_examples=300, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full" if DEEP else "usual"))

# a run in the background may ignore these, and the commands that it starts would inherit that
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

# each client of an SDK, and each command, would read all authorities of the system, for 25 to 75 ms; none is needed here
os.environ.setdefault("SSL_CERT_FILE", str(Path(__file__).parent / "data" / "no_authority.pem"))


def pytest_configure(config):
    config.addinivalue_line("markers", "service: starts a server or a process; set by tests/selection.py")
    config.addinivalue_line("markers", "slow: takes long without starting anything; set by tests/selection.py")
    if "not service" in config.option.markexpr:
        sys.addaudithook(_refuse_services)
    if "not slow" in config.option.markexpr and "HYPOTHESIS_PROFILE" not in os.environ and not DEEP:
        settings.load_profile("few")


def pytest_ignore_collect(collection_path, config):
    """Do not even import what a quick run leaves out as a whole file or folder."""
    if "not slow" in config.option.markexpr and selection.is_slow(collection_path, ""):
        return True
    return None


def pytest_collection(session):
    """Collect ten thousand tests without looking for garbage, which would go through all of them again and again."""
    gc.disable()


def pytest_collection_finish(session):
    gc.freeze()  # nor is there any among the tests and modules when it is looked for later
    gc.enable()


def pytest_collection_modifyitems(config, items):
    for item in items if config.option.markexpr else ():
        if isinstance(item, pytest.Function):
            for mark in _marks(item.path, item.originalname, tuple(item.fixturenames)):
                item.add_marker(mark)


@functools.cache
def _marks(path, test, fixtures):
    service = ["service"] if selection.starts_something(path, test, fixtures) else []
    return service + (["slow"] if selection.is_slow(path, test) else [])


_STARTS = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "socket.bind"})


def _refuse_services(event, arguments):
    """Fail a test of a quick run that starts something: tests/selection.py did not see that."""
    starts = event in _STARTS and (event != "socket.bind" or arguments[1][0] != "::1")  # urllib3 tries that, imported
    if starts and os.environ.get("PYTEST_CURRENT_TEST", "").endswith("(call)"):
        pytest.fail(f"a quick test does {event}: name what starts it in tests/selection.py")


# tests of other people's files are collected where there are some, so that nothing is skipped elsewhere
collect_ignore_glob = [] if (SHARED / "data").is_dir() else ["*/test_shared_*.py"]
