import contextlib
import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold.sessions import open_store
from refold.testing.provider import ScriptedProvider
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import call, chat
from tests.gateway.talking import Chat, behave
from tests.stores.conftest import postgres_server, postgres_url  # noqa: F401 # fixtures

WINDOW = 10_000


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """A store of each kind, by its place."""
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "gateway.db")


def test_any_replica_continues_any_conversation_with_the_same_bytes(store):
    with (
        ScriptedProvider(behave=behave, window=WINDOW) as provider,
        standing(provider, store=store, window=WINDOW, background=False) as one,
        standing(provider, store=store, window=WINDOW, background=False) as two,
    ):
        talker = Chat(one.url, streaming=False)
        there, here = Chat(two.url, streaming=False).client, talker.client
        plans = []
        for turn in range(30):
            talker.client = (here, there)[turn % 2]
            headers, calls = talker.ask()
            plans.append(headers.get("x-refold-plan"))
            if calls:
                talker.results(calls, ["".join(f"line {turn} {n}\n" for n in range(60)) for _ in calls])
            else:
                talker.messages.append({"role": "user", "content": "Go on."})
    assert {each.status for each in provider.received} == {200}
    changes = sum(new != old for old, new in itertools.pairwise(plans))
    assert changes == len(set(plans)) - 1, "no plan comes back after another took its place"
    assert len(set(plans)) > 3


@pytest.mark.parametrize("headers", [{}, {"x-refold-trigger": "1k"}], ids=["below", "above"])
def test_a_stored_conversation_in_which_nobody_has_written_is_not_read_again_for_each_request(
    store, headers, monkeypatch
):
    body = {**chat(9), "stream": True}  # without usage, as OpenAI streams where a client does not ask for it
    with ScriptedProvider(["ok"]) as provider, standing(provider, store=store, window=16_000, background=False) as one:
        for _ in range(3):
            plan = call(one.url, body=body, headers=headers)[1]["x-refold-plan"]
        stored, read = one.gateway._keeper._store, []
        for name in ("load", "entries", "version", "aversion"):
            method = getattr(stored, name)
            monkeypatch.setattr(stored, name, lambda *_, name=name, method=method: read.append(name) or method(*_))
        for number in range(5):
            body["messages"] += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": f"more {number}"}]
            assert call(one.url, body=body, headers=headers)[1]["x-refold-plan"] == plan
    assert read
    assert set(read) <= {"version", "aversion"}


def test_a_conversation_that_is_read_but_not_compacted_is_looked_for_in_the_store_once(store, monkeypatch):
    body = {**chat(9), "stream": True}
    with ScriptedProvider(["ok"]) as provider, standing(provider, store=store, window=32_000) as one:
        stored, asked = one.gateway._keeper._store, []
        for name in ("holder", "aversion"):
            method = getattr(stored, name)
            monkeypatch.setattr(stored, name, lambda *_, name=name, method=method: asked.append(name) or method(*_))
        for _ in range(3):
            body["messages"] += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "word " * 2_000}]
            assert call(one.url, body=body, headers={"x-refold-trigger": "24k"})[1]["x-refold-done"] == "forwarded"
            (conversation,) = one.gateway.tracker.all()
            assert len(conversation.transcript) == len(body["messages"])  # by its bytes alone it might be too large
    assert asked == ["aversion", "holder", "aversion", "aversion"]


def test_the_store_is_asked_once_whether_a_conversation_that_is_compacted_by_hand_is_there(store, monkeypatch):
    asked = []

    def compacted(serving):
        stored = serving.gateway._keeper._store
        for name in ("load", "aversion"):
            method = getattr(stored, name)
            monkeypatch.setattr(
                stored, name, lambda *_, name=name, do=method, **more: asked.append(name) or do(*_, **more)
            )
        assert call(serving.url, "POST", f"/v1/sessions/{id}/compact", body={"model": "gpt-4o"})[0] == 200
        return [asked.pop(0) for _ in asked[:]]

    more = {"store": store, "window": 16_000, "background": False}
    with ScriptedProvider(["ok"]) as provider:
        with standing(provider, **more) as one:
            id = call(one.url, body=chat(9))[1]["x-refold-conversation"]
            assert compacted(one) == ["aversion", "load", "aversion"]  # then its plans, and again before its lease
        with standing(provider, **more) as other:
            assert compacted(other) == ["load", "load", "load", "aversion"]  # then its messages and its plans


def branched(count):
    body = chat(count)
    body["messages"][2 * 11 + 3]["content"] = "another answer"
    return body


def test_a_branch_with_plans_of_its_own_and_of_its_origin_goes_on_elsewhere(store):
    with ScriptedProvider() as provider:
        with standing(provider, window=16_000, store=store, background=False) as one:
            made = {}
            for count in range(9, 22):
                for body in (chat, branched) if count > 11 else (chat,):
                    headers = call(one.url, body=body(count))[1]
                    assert "x-refold-failed" not in headers
                    made.setdefault(body, []).append(headers["x-refold-plan"])
        assert made[chat][0] not in made[branched][2:], "each has made plans since"
        with standing(provider, window=16_000, store=store, background=False) as other:
            for body in (branched, chat):
                assert call(other.url, body=body(21))[1]["x-refold-plan"] == made[body][-1]
    sent = [each.body for each in provider.received]
    assert sent[-2:] == [sent[-3], sent[-4]]


def test_two_replicas_asked_at_once_make_one_plan(store):
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, store=store, window=16_000, background=False) as one,
        standing(provider, store=store, window=16_000, background=False) as two,
    ):
        found = []
        threads = [
            threading.Thread(target=lambda url=url: found.append(call(url, body=chat(9))[1]["x-refold-plan"]))
            for url in (one.url, two.url) * 4
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        made = one.gateway.metrics.total_compactions + two.gateway.metrics.total_compactions
    assert len(found) == 8
    assert len(set(found)) == 1
    assert made == 1


PROGRAM = """
    import platform, sys, time
    from refold._gateway.server.serving import Serving
    from refold._gateway.settings import GatewaySettings

    address, store, policy, host = sys.argv[1:]
    platform.node = lambda: host
    settings = GatewaySettings(
        upstreams={"openai": address}, port=0, store=store, policy=policy, window=16_000, background=False
    )
    with Serving(settings) as serving:
        print(serving.url, flush=True)
        time.sleep(60)
"""

SLOW_POLICY = """
    import time
    from msgspec.structs import replace
    from refold import policies
    from refold.core.policy import Pure, Step

    class Slow(Pure, frozen=True):
        def edits(self, view, answers):
            print("compacting", flush=True)
            time.sleep(SECONDS)
            return ()

    refold = policies.find("refold")
    POLICY = replace(refold, name="slow", steps=(Step(Slow(), label="slow"), *refold.steps))
"""


@contextlib.contextmanager
def compacting(provider, store, folder, seconds, host):
    """A replica in a process of its own, in the middle of a compaction; `answers` gets what its client is answered."""
    policy = folder / "slow.py"
    policy.write_text(textwrap.dedent(SLOW_POLICY).replace("SECONDS", str(seconds)))
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), provider.openai_url, store, str(policy), host]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        url, answers = child.stdout.readline().strip(), []

        def ask():
            with contextlib.suppress(OSError):
                answers.append(call(url, body=chat(9)))

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            assert child.stdout.readline().strip() == "compacting"
            yield child, asking, answers
        finally:
            child.kill()
            asking.join()


@pytest.mark.parametrize(("host", "most"), [(platform.node(), 2), ("elsewhere", 5)])
def test_a_replica_killed_in_the_middle_of_a_compaction_is_replaced_by_the_other(store, tmp_path, host, most):
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, store=store, window=16_000, background=False) as other,
    ):
        with compacting(provider, store, tmp_path, 60, host) as (child, asking, _):
            os.kill(child.pid, signal.SIGKILL)
            killed = time.monotonic()
            child.wait()
            asking.join()
        status, headers, _ = call(other.url, body=chat(9))
        blocked = time.monotonic() - killed
    assert status == 200
    assert headers["x-refold-reason"] == "threshold"
    assert len(provider.received) == 1
    assert blocked < most


def test_a_replica_that_was_paused_in_a_compaction_does_not_write_over_the_one_that_took_its_place(store, tmp_path):
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, store=store, window=16_000, background=False) as other,
    ):
        with compacting(provider, store, tmp_path, 1, "elsewhere") as (child, asking, answers):
            os.kill(child.pid, signal.SIGSTOP)
            headers = call(other.url, body=chat(9))[1]
            plan, id = headers["x-refold-plan"], headers["x-refold-conversation"]
            os.kill(child.pid, signal.SIGCONT)
            asking.join()
            status, late, _ = answers[0]
        assert (status, late["x-refold-plan"], late["x-refold-policy"]) == (200, plan, "refold")
        stored = json.loads(call(other.url, "GET", f"/v1/sessions/{id}")[2])["plans"]
    assert [each["id"] for each in stored] == [plan]
    assert provider.received[0].body == provider.received[1].body


def test_a_lease_that_a_replica_of_a_wrong_clock_left_blocks_nobody(tmp_path):
    place = str(tmp_path / "gateway.db")
    with ScriptedProvider(["ok"]) as provider, standing(provider, store=place, window=16_000, background=False) as one:
        with open_store(place) as before:  # on a machine whose clock was a day ahead, and was set back since
            id = call(one.url, body=chat(1))[1]["x-refold-conversation"]
            before.create(id, "openai-chat")
            before._clock = lambda: time.time() + 86_400
            before.lease(id, "elsewhere/1/x", 60)
        begun = time.monotonic()
        assert call(one.url, body=chat(9))[1]["x-refold-done"] == "compacted"
    assert time.monotonic() - begun < 5


def test_a_clock_that_is_set_deletes_no_conversation_for_its_age(tmp_path):
    place = str(tmp_path / "gateway.db")
    settings = {"store": place, "window": 16_000, "background": False}
    with ScriptedProvider(["ok"]) as provider:
        with standing(provider, **settings) as one:
            id = call(one.url, body=chat(9))[1]["x-refold-conversation"]
        with standing(provider, **settings, retention=3.0) as two:
            two.gateway._keeper._store._clock = lambda: time.time() + 86_400
            time.sleep(2)
            two.gateway._keeper._store._clock = lambda: time.time() - 86_400
            time.sleep(2)
            assert call(two.url, "GET", f"/v1/sessions/{id}")[0] == 200
            two.gateway._keeper._store._clock = None
            end = time.monotonic() + 20
            while call(two.url, "GET", f"/v1/sessions/{id}")[0] != 404:  # once the clock goes on as it should
                assert time.monotonic() < end
                time.sleep(0.1)


def test_a_store_that_breaks_lets_requests_pass(tmp_path):
    place = tmp_path / "gateway.db"
    with ScriptedProvider(["ok"]) as provider:
        upstreams = {"openai": provider.openai_url}
        with Serving(
            GatewaySettings(upstreams=upstreams, port=0, store=str(place), window=16_000, background=False)
        ) as serving:
            serving.gateway._keeper._store.close()
            for file in tmp_path.iterdir():
                file.unlink()
            place.mkdir()
            assert call(serving.url, body=chat(9))[0] == 200
            shutil.rmtree(place)


def test_what_one_replica_deletes_no_other_remembers(store):
    more = {"window": 16_000, "background": False, "store": store}
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, **more) as one,
        standing(provider, **more) as two,
    ):
        headers = call(one.url, body=chat(9))[1]
        plan, id = headers["x-refold-plan"], headers["x-refold-conversation"]
        assert call(two.url, body=chat(9))[1]["x-refold-plan"] == plan
        assert call(one.url, "DELETE", f"/v1/sessions/{id}")[0] == 200
        assert json.loads(call(two.url, "GET", "/v1/sessions")[2])["sessions"] == []
        assert call(two.url, "GET", f"/v1/sessions/{id}")[0] == 404
        assert json.loads(call(two.url, "GET", f"/v1/recall/{plan}")[2])["messages"] == []
        assert call(two.url, body=chat(9), headers={"x-refold-trigger": "never"})[1]["x-refold-done"] == "forwarded"
        assert provider.received[-1].body == chat(9), "the client's messages, under no plan"
    with open_store(store) as stored:
        assert stored.sessions() == ()


def test_a_request_after_a_deletion_at_another_replica_begins_a_conversation_of_its_own(store):
    more = {"window": 16_000, "background": False, "store": store}
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, **more) as one,
        standing(provider, **more) as two,
    ):
        first = call(two.url, body=chat(9))[1]
        call(one.url, "DELETE", f"/v1/sessions/{first['x-refold-conversation']}")
        again = call(two.url, body=chat(9))[1]
        assert again["x-refold-done"] == "compacted"
        assert two.gateway.metrics.total_compactions == 2, "anew, and not by the plan that was deleted"
        kept = json.loads(call(one.url, "GET", f"/v1/sessions/{again['x-refold-conversation']}")[2])
        assert [plan["messages"] for plan in kept["plans"]] == [len(chat(9)["messages"])]


def test_what_is_deleted_at_one_replica_while_another_compacts_it_is_not_stored_anew(store, controlled):
    more = {"window": 16_000, "background": False, "store": store}
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, **more) as one,
        standing(provider, **more, policies={"gpt-4o-mini": controlled.path}) as two,
    ):
        id = call(two.url, body=chat(9))[1]["x-refold-conversation"]
        deleted = []
        controlled.actions.append(lambda: deleted.append(call(one.url, "DELETE", f"/v1/sessions/{id}")[0]))
        assert call(two.url, body=chat(18, model="gpt-4o-mini"))[0] == 200
        assert deleted == [200]
    with open_store(store) as stored:
        assert stored.sessions() == ()


def test_what_one_replica_kept_another_recalls_rewinds_and_counts_as_used(store):
    more = {"window": 16_000, "background": False, "store": store}
    with (
        ScriptedProvider(["ok"]) as provider,
        standing(provider, **more) as one,
        standing(provider, **more, retention=1.2) as two,
    ):
        headers = call(one.url, body=chat(9))[1]
        plan, id = headers["x-refold-plan"], headers["x-refold-conversation"]
        hidden = json.loads(call(one.url, "GET", f"/v1/recall/{plan}")[2])["messages"]
        assert hidden
        assert json.loads(call(two.url, "GET", f"/v1/recall/{plan}")[2])["messages"] == hidden
        assert call(two.url, "GET", "/readyz")[0] == 200
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert call(two.url, body=chat(9))[1]["x-refold-plan"] == plan
            time.sleep(0.1)
        assert len(json.loads(call(one.url, "GET", f"/v1/sessions/{id}")[2])["plans"]) == 1
        assert one.gateway.metrics.total_compactions + two.gateway.metrics.total_compactions == 1
        one.stop()
    with ScriptedProvider(["ok"]) as provider, standing(provider, **more) as three:
        assert json.loads(call(three.url, path=f"/v1/sessions/{id}/rewind", body={"to": 0})[2])["plans"] == []
        call(three.url, body=chat(9), headers={"x-refold-trigger": "never"})
        assert provider.received[0].body == chat(9)


def test_any_replica_shows_the_plans_that_another_has_made_since(store):
    more = {"window": 16_000, "background": False, "store": store}
    with ScriptedProvider(["ok"]) as provider, standing(provider, **more) as one, standing(provider, **more) as two:
        id = call(one.url, body=chat(9))[1]["x-refold-conversation"]
        call(two.url, body=chat(9))
        assert call(one.url, body=chat(18))[1]["x-refold-done"] == "compacted"
        shown = [json.loads(call(each.url, "GET", f"/v1/sessions/{id}")[2])["plans"] for each in (one, two)]
    assert len(shown[0]) == 2
    assert shown[1] == shown[0]


@pytest.mark.parametrize("to", ["newest", -1, 0])
def test_any_replica_takes_back_the_plans_that_another_has_made_since(store, to):
    more = {"window": 16_000, "background": False, "store": store}
    with ScriptedProvider(["ok"]) as provider, standing(provider, **more) as one, standing(provider, **more) as two:
        id = call(one.url, body=chat(9))[1]["x-refold-conversation"]
        call(two.url, body=chat(9))
        assert call(one.url, body=chat(18))[1]["x-refold-done"] == "compacted"
        plans = [each["id"] for each in json.loads(call(one.url, "GET", f"/v1/sessions/{id}")[2])["plans"]]
        assert len(plans) == 2
        body = {"to": plans[1] if to == "newest" else to}
        status, _, body = call(two.url, path=f"/v1/sessions/{id}/rewind", body=body)
        assert status == 200, body
        left = {"newest": plans, -1: plans[:1], 0: []}[to]
        assert [each["id"] for each in json.loads(body)["plans"]] == left
        for each in (one, two):
            shown = json.loads(call(each.url, "GET", f"/v1/sessions/{id}")[2])["plans"]
            assert [each["id"] for each in shown] == left
            assert call(each.url, body=chat(18), headers={"x-refold-trigger": "never"})[0] == 200
        sent = [received.body["messages"] for received in provider.received[-2:]]
    assert sent[0] == sent[1]
    assert (sent[0] == chat(18)["messages"]) == (not left)
