from refold.agent import Agent, tool
from refold.agent._subagents import DIGEST, subagent
from refold.core.budget import Budget
from refold.testing.client import ScriptedClient
from refold.testing.provider import ScriptedReply
from tests.agent.kit import Watched, echo, results


@tool
def read_file(path: str) -> str:
    return "word " * 1_500


def worker(client):
    return lambda: Agent(client, tools=[read_file], budget=Budget(8_000, 500))


def test_a_sub_agent_works_on_its_own_window_and_the_caller_gets_a_digest():
    reads = [ScriptedReply("", [("read_file", {"path": f"f{n}.py"})]) for n in range(8)]
    inner = ScriptedClient([*reads, "All is well."], window=8_000)
    run = Watched([ScriptedReply("", [("delegate", {"task": "look"})]), "Done."], tools=[subagent(worker(inner)), echo])
    assert run.agent.run("go") == "Done."
    (digest,) = results(run.agent.messages)
    assert digest.endswith("All is well.")
    assert "Files read: f0.py, f1.py" in digest
    assert "compactions" in digest
    assert "0 compactions" not in digest
    assert not run.agent.plans
    assert all(received.status == 200 for received in inner.received)


def test_a_digest_is_bounded_and_keeps_both_ends_of_a_long_answer():
    inner = ScriptedClient(["BEGIN " + "blah " * 10_000 + "END"])
    make = lambda: Agent(inner, budget=Budget(100_000))  # noqa: E731
    run = Watched([ScriptedReply("", [("delegate", {"task": "talk"})]), "Done."], tools=[subagent(make)])
    run.agent.run("go")
    (digest,) = results(run.agent.messages)
    assert len(digest) <= DIGEST
    assert "BEGIN" in digest
    assert digest.endswith("END")


def test_each_task_gets_a_fresh_agent_and_a_failure_is_told():
    inner = ScriptedClient(["one", "two"], faults={3: "malformed", 4: "malformed"})
    make = lambda: Agent(inner, budget=Budget(8_000), waits=())  # noqa: E731
    tasks = ScriptedReply("", [("delegate", {"task": str(n)}) for n in range(3)])
    run = Watched([tasks, "Done."], tools=[subagent(make)])
    run.agent.run("go")
    first, second, third = results(run.agent.messages)
    assert first.endswith("one")
    assert second.endswith("two")
    assert "1 calls" in second
    assert third.startswith("ConnectionError")
