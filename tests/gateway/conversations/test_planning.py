import contextlib
import gzip
import json
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from refold._gateway import proxy
from refold._gateway.conversations import planning
from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold._text.text_cache import text_cache
from refold.testing.provider import ScriptedProvider
from tests.gateway.scripted_upstream import call, chat
from tests.gateway.serving_process import serving


@pytest.fixture
def all_large(monkeypatch):
    """Take every body for a large one."""
    monkeypatch.setattr(planning, "LARGE", 0)
    monkeypatch.setattr(proxy, "LARGE", 0)


def test_a_process_of_its_own_makes_the_plan_that_a_thread_makes(gateway, monkeypatch):
    serving, provider = gateway(window=8_000, background=False)
    here = call(serving.url, body=chat(10))[1]
    monkeypatch.setattr(planning, "LARGE", 0)
    other, elsewhere = gateway(window=8_000, background=False)
    there = call(other.url, body=chat(10))[1]
    assert here["x-refold-done"] == there["x-refold-done"] == "compacted"
    assert here["x-refold-plan"] == there["x-refold-plan"]
    assert provider.received[0].body == elsewhere.received[0].body


def test_after_a_plan_nothing_is_remembered_of_its_texts(gateway):
    lengths = []

    @text_cache
    def length(text):
        lengths.append(len(text))
        return len(text)

    serving, _ = gateway(window=8_000, background=False)
    assert length("text") == length("text") == 4
    assert len(lengths) == 1
    assert call(serving.url, body=chat(10))[1]["x-refold-done"] == "compacted"
    assert length("text") == 4
    assert len(lengths) == 2


def test_a_policy_that_no_other_process_can_be_sent_makes_its_plan_here(gateway, all_large, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from msgspec.structs import replace\n"
        "from refold import policies\n"
        "from refold.core.budget import Share\n"
        "from refold.core.policy import Pure, Step\n"
        "class Mine(Pure, frozen=True):\n"
        "    def edits(self, view, answers):\n"
        "        return ()\n"
        "found = policies.find('refold')\n"
        "POLICY = replace(found, trigger=Share(0.8), steps=(Step(Mine(), label='mine'), *found.steps))\n"
    )
    serving, _ = gateway(window=8_000, background=False, policy=str(file))
    status, headers, _ = call(serving.url, body=chat(10))
    assert (status, headers["x-refold-done"]) == (200, "compacted")


def test_a_history_that_cannot_fit_is_told_like_one_of_usual_size_and_planned_once(gateway, all_large, monkeypatch):
    monkeypatch.setattr(planning, "best_plan", None)  # in this process, whose threads would delay others
    serving, provider = gateway(window=8_000, background=False)
    body = chat(9)
    body["messages"].insert(0, {"role": "system", "content": "word " * 20_000})
    status, headers, _ = call(serving.url, body=body)
    assert (status, headers["x-refold-done"]) == (200, "forwarded")
    assert headers["x-refold-failed"] == "CannotFit"
    assert provider.received[0].body == body


def test_a_large_conversation_that_goes_on_is_the_same_conversation(gateway, all_large):
    serving, _ = gateway(window=200_000)
    body = chat(4)
    first = call(serving.url, body=body)[1]["x-refold-conversation"]
    longer = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "So."}, *chat(1)["messages"]]}
    packed = gzip.compress(json.dumps(longer).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    assert call(serving.url, body=packed, headers=headers)[1]["x-refold-conversation"] == first


def test_compactions_that_take_long_hold_up_no_other_request(gateway, controlled, monkeypatch):
    monkeypatch.setattr(proxy, "LARGE", 0)
    many = min(32, (os.cpu_count() or 1) + 4)  # threads that Python's event loop has
    begun, go_on = threading.Semaphore(0), threading.Event()
    controlled.actions.append(lambda: (begun.release(), go_on.wait(30)))
    serving, _ = gateway(window=8_000, background=False, policy=controlled.path)
    packed, headers = gzip.compress(json.dumps(chat(1)).encode()), {"content-encoding": "gzip"}
    with ThreadPoolExecutor(many) as clients:
        own = [{"x-refold-session": f"s{number}"} for number in range(many)]
        slow = [clients.submit(call, serving.url, body=chat(10), headers=each) for each in own]
        try:
            assert all(begun.acquire(timeout=20) for _ in range(planning.AT_ONCE))
            quick = ThreadPoolExecutor(1).submit(call, serving.url, body=packed, headers=headers)
            assert "x-refold-conversation" in quick.result(timeout=10)[1]
        finally:
            go_on.set()
        assert {each.result()[0] for each in slow} == {200}


def test_the_process_for_large_plans_leaves_an_interrupt_to_the_gateway(gateway, all_large):
    serving, _ = gateway(window=8_000, background=False)
    before = set(multiprocessing.active_children())
    assert call(serving.url, body=chat(10))[1]["x-refold-done"] == "compacted"
    (made,) = set(multiprocessing.active_children()) - before
    os.kill(made.pid, signal.SIGINT)
    again = call(serving.url, body=chat(10), headers={"x-refold-session": "other"})[1]
    assert again["x-refold-done"] == "compacted"
    assert made in multiprocessing.active_children()


def test_a_process_that_is_replaced_or_killed_makes_every_plan_that_it_was_asked_for(gateway, all_large, monkeypatch):
    monkeypatch.setattr(planning, "LARGE_TASKS", 2)
    serving, _ = gateway(window=8_000, background=False)

    def compacted(session):
        return call(serving.url, body=chat(10), headers={"x-refold-session": session})[1]["x-refold-done"]

    with ThreadPoolExecutor(5) as clients:
        assert list(clients.map(compacted, "abcde")) == ["compacted"] * 5
    (last,) = multiprocessing.active_children()
    last.kill()
    last.join()
    assert [compacted(session) for session in "fg"] == ["compacted"] * 2


def test_a_process_that_hangs_is_ended_and_its_request_goes_on_as_it_is(gateway, all_large, monkeypatch):
    serving, _ = gateway(window=8_000, background=False)

    def done(words):  # other words make another conversation
        return call(serving.url, body=chat(10, words))[1].get("x-refold-done")

    assert done(400) == "compacted"
    monkeypatch.setattr(planning, "PATIENCE", 0.2)
    (made,) = multiprocessing.active_children()
    os.kill(made.pid, signal.SIGSTOP)
    assert done(401) != "compacted"
    assert made not in multiprocessing.active_children()
    monkeypatch.setattr(planning, "PATIENCE", 60)
    assert done(402) == "compacted"


def test_a_conversation_whose_plan_hung_takes_no_process_from_others_until_it_has_grown(
    gateway, all_large, monkeypatch
):
    serving, _ = gateway(window=8_000, background=False)
    assert call(serving.url, body=chat(10, 400))[1]["x-refold-done"] == "compacted"
    monkeypatch.setattr(planning, "PATIENCE", 0.2)
    (made,) = multiprocessing.active_children()
    os.kill(made.pid, signal.SIGSTOP)
    assert call(serving.url, body=chat(10, 401))[1]["x-refold-failed"] == "PlanningHung"
    monkeypatch.setattr(planning, "PATIENCE", 60)
    assert call(serving.url, body=chat(10, 401))[1]["x-refold-failed"] == "PlanningHung"
    assert not multiprocessing.active_children()
    assert call(serving.url, body=chat(12, 401))[1]["x-refold-done"] == "compacted"


def test_a_large_plan_whose_process_is_killed_is_made_by_another_one_and_not_in_the_gateway(
    gateway, all_large, monkeypatch
):
    serving, _ = gateway(window=8_000, background=False)
    assert call(serving.url, body=chat(10))[1]["x-refold-done"] == "compacted"
    (made,) = multiprocessing.active_children()
    made.kill()
    monkeypatch.setattr(planning, "best_plan", None)  # in this process, of whose memory it would be
    assert call(serving.url, body=chat(10, 401))[1]["x-refold-done"] == "compacted"


class Hangs:
    """What hangs when it is read: sent to a process in place of a plan's input."""

    def __reduce__(self):
        return time.sleep, (60,)


def test_a_process_that_hangs_ends_by_itself_since_its_gateway_may_have_been_killed():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=planning._make_plans, args=(theirs, 0.3), daemon=True)
    process.start()
    assert ours.recv() is None
    ours.send(Hangs())
    process.join(10)
    assert process.exitcode == -signal.SIGALRM


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="processes are told by /proc")
def test_a_gateway_that_is_stopped_leaves_no_planning_process_nor_its_remains(all_large):
    with ScriptedProvider() as provider:
        settings = GatewaySettings(upstreams={"openai": provider.openai_url}, port=0, window=8_000, background=False)
        with Serving(settings) as own:
            assert call(own.url, body=chat(10))[1]["x-refold-done"] == "compacted"
            (made,) = multiprocessing.active_children()
        assert not os.path.exists(f"/proc/{made.pid}")


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="processes are told by /proc")
def test_a_gateway_in_a_process_of_its_own_makes_plans_in_another_which_ends_with_it_though_it_is_killed():
    def commands():
        found = {}
        for each in filter(str.isdigit, os.listdir("/proc")):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{each}/stat") as stat,
                open(f"/proc/{each}/cmdline") as command,
            ):
                found[int(each)] = int(stat.read().rpartition(")")[2].split()[1]), command.read()
        return found

    deadline, number, planners = time.monotonic() + 60, 0, []
    with (
        ScriptedProvider() as provider,
        serving(provider.openai_url, "--window", "8k", "--no-background") as (own, url),
    ):
        while time.monotonic() < deadline and not planners:
            headers = {"x-refold-session": f"s{number}"}
            assert call(url, body=chat(10), headers=headers)[1]["x-refold-done"] == "compacted"
            found = commands()
            planners = [id for id, (parent, command) in found.items() if parent == own.pid and "spawn_main" in command]
            number += 1
        own.kill()
    (planner,) = planners
    while time.monotonic() < deadline and commands().get(planner, (0, ""))[1]:  # which a zombie has none of
        time.sleep(0.05)
    assert not commands().get(planner, (0, ""))[1]


def test_a_compaction_by_hand_goes_on_when_one_beside_the_traffic_has_its_plan(gateway, controlled, tmp_path):
    begun, go_on = threading.Event(), threading.Event()
    controlled.actions.append(lambda: (begun.set(), go_on.wait(30)))
    serving, _ = gateway(window=26_000, policy=controlled.path, background=True, store=str(tmp_path / "gateway.db"))
    id = call(serving.url, body=chat(9))[1]["x-refold-conversation"]
    assert begun.wait(10)
    with ThreadPoolExecutor(1) as clients:  # it holds the conversation's lock, and waits for the lease
        by_hand = clients.submit(call, serving.url, "POST", f"/v1/sessions/{id}/compact", {})
        time.sleep(0.3)
        controlled.actions.clear()
        go_on.set()
        assert by_hand.result(timeout=20)[0] == 200
