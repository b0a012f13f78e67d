"""A gateway whose machine's clock is set while it runs: its clients notice nothing, and nothing is lost."""

import contextlib
import json
import os
import sqlite3
import time

import pytest

from refold._gateway.server.tokens import TokenFile
from refold.testing.provider import ScriptedProvider
from tests.gateway.scripted_upstream import ADMIN, call, chat
from tests.gateway.serving_process import serving

# the clock of a process, by as many seconds off as a file says
CLOCK = """
import os, time
true = time.time
def shifted():
    with open(os.environ["SHIFT"]) as file:
        return true() + float(file.read() or 0)
time.time = shifted
"""
DAY = 86_400


@contextlib.contextmanager
def gateways(provider, folder, count=2):
    """Gateways of one store, the first of them with a clock that `set_clock` sets; their addresses and a team's token."""
    (folder / "sitecustomize.py").write_text(CLOCK)
    shift = folder / "shift"
    shift.write_text("0")
    file = TokenFile(folder / "tokens.jsonl")
    token = file.create("team:red", rate=600)[1]
    options = "--store", str(folder / "g.db"), "--token-file", str(folder / "tokens.jsonl"), "--window", "16000"
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    with contextlib.ExitStack() as stack:
        set_clocks = [{"PYTHONPATH": path, "SHIFT": str(shift)}, {}][:count]
        urls = [
            stack.enter_context(serving(provider.openai_url, *options, REFOLD_ADMIN_TOKEN=ADMIN, **each))[1]
            for each in set_clocks
        ]
        yield urls, file, token, lambda seconds: shift.write_text(str(seconds))


@pytest.mark.parametrize("seconds", [-DAY, 400 * DAY], ids=["a day back", "a year on"])
def test_a_clock_that_is_set_while_conversations_run_changes_nothing_for_them(tmp_path, seconds):
    with (
        ScriptedProvider(["ok"], window=16_000) as provider,
        gateways(provider, tmp_path) as ((one, other), file, token, set_clock),
    ):
        red = {"x-refold-token": token}

        def ask(url, count, size=400):
            status, headers, _ = call(url, body=chat(count, size=size), headers=red)
            assert status == 200
            assert not headers.keys() & {"x-refold-failed", "x-refold-unsaved"}
            return headers

        first = ask(one, 9)
        id = first["x-refold-conversation"]
        for shift in (seconds, 0):
            set_clock(shift)
            assert ask(one, 9)["x-refold-plan"] == ask(other, 9)["x-refold-plan"] == first["x-refold-plan"]
            assert ask(one, 9, 401 + bool(shift))["x-refold-done"] == "compacted", "a new one"
            mine, theirs = ask(one, 12 - 2 * bool(shift)), ask(other, 12 - 2 * bool(shift))
            assert mine["x-refold-plan"] == theirs["x-refold-plan"], "of the replica whose clock was not set, too"
            listed = json.loads(call(one, "GET", "/v1/sessions", headers=red)[2])["sessions"]
            assert id in [each["id"] for each in listed]
            recalled = call(other, "GET", f"/v1/recall/{mine['x-refold-plan']}", headers=red)
            assert json.loads(recalled[2])["messages"]
            new = file.create("team:red")[1]
            time.sleep(1.1)
            assert call(one, "GET", f"/v1/sessions/{id}", headers={"x-refold-token": new})[0] == 200
    assert {each.status for each in provider.received} == {200}
    assert not [each for each in provider.received if each.violations or each.problems]
    with contextlib.closing(sqlite3.connect(tmp_path / "g.db")) as database:
        assert database.execute("SELECT count(*) FROM leases").fetchone() == (0,)
