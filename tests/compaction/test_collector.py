"""The collector of cyclic garbage rests while a pass runs, and is left as it was found."""

import asyncio
import gc
import os
from threading import Barrier, Thread

import pytest

import refold
from refold._compaction import collector
from refold.testing import ScriptedSummarizer
from tools.sample_sessions.sized import sized

MESSAGES = sized(12_000)
OPTIONS = {"format": "openai-chat", "policy": "refold", "budget": 6_000}


@pytest.fixture(autouse=True)
def left_on():
    yield
    assert gc.isenabled()
    gc.enable()


def test_the_collector_rests_during_a_step_and_works_afterwards():
    during = []
    refold.compact(MESSAGES, observers=(lambda _: during.append(gc.isenabled()),), **OPTIONS)
    assert during == [False, False]  # at the start, and at the end


@pytest.mark.parametrize("waits", [False, True])
def test_the_collector_works_while_a_model_writes(waits):
    during = []

    def summarize(need):
        during.append(gc.isenabled())
        return ScriptedSummarizer()(need)

    if waits:
        asyncio.run(refold.acompact(MESSAGES, summarize=summarize, **OPTIONS))
    else:
        refold.compact(MESSAGES, summarize=summarize, **OPTIONS)
    assert during == [True]


def test_the_collector_works_after_a_pass_that_fails():
    with pytest.raises(refold.RefoldError):
        refold.compact(MESSAGES, **{**OPTIONS, "budget": 20})
    assert gc.isenabled()


def test_a_collector_that_is_switched_off_stays_off():
    gc.disable()
    refold.compact(MESSAGES, **OPTIONS)
    off = not gc.isenabled()
    gc.enable()
    assert off


def test_the_collector_rests_until_the_last_of_several_passes_ends():
    first_runs, second_done = Barrier(2, timeout=30), Barrier(2, timeout=30)
    during = []

    def hold(event):
        if not during:
            during.append(gc.isenabled())
            first_runs.wait()
            second_done.wait()
            during.append(gc.isenabled())

    thread = Thread(target=refold.compact, args=(MESSAGES,), kwargs={"observers": (hold,), **OPTIONS})
    thread.start()
    first_runs.wait()
    refold.compact(MESSAGES, **OPTIONS)
    still = gc.isenabled()
    second_done.wait()
    thread.join(30)
    assert during == [False, False]
    assert not still


def test_the_collector_works_again_where_passes_never_cease(monkeypatch):
    monkeypatch.setattr(collector, "LONGEST", 0.0)
    during = []

    def look(event):
        if not during:
            refold.compact(MESSAGES, **OPTIONS)
            during.append(gc.isenabled())

    refold.compact(MESSAGES, observers=(look,), **OPTIONS)
    assert during == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_process_that_is_forked_in_a_pass_has_its_collector():
    ended = []

    def fork(event):
        if not ended:
            if (child := os.fork()) == 0:
                os._exit(0 if gc.isenabled() else 1)
            ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    refold.compact(MESSAGES, observers=(fork,), **OPTIONS)
    assert ended == [0]
