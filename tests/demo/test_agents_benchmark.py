"""benchmarks/agents.py with an agent of twenty lines in the place of a real one."""

import json
import sys

import pytest

from benchmarks import agents

MINI = """#!{python}
import json, os, subprocess, sys, urllib.request
task = sys.argv[sys.argv.index("-t") + 1]
tool = {{"type": "function", "function": {{"name": "bash", "parameters": {{"type": "object", "properties": {{}}}}}}}}
messages = [{{"role": "user", "content": {task}}}]
while True:
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({{"model": "gpt-4o", "messages": messages, "tools": [tool]{more}}}).encode(),
        {{"content-type": "application/json"}},
    )
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    messages.append({{key: value for key, value in message.items() if key in ("role", "content", "tool_calls")}})
    for call in message["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        if "COMPLETE_TASK" in command:
            print(message["content"])
            raise SystemExit({code})
        output = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
        messages.append({{"role": "tool", "tool_call_id": call["id"], "content": output}})
"""


@pytest.fixture
def ran(tmp_path, capsys):
    """Returns a function that puts a program in the place of mini-swe-agent and returns exit code and row."""

    def run(*options, task="task", more="", code=0):
        program = tmp_path / "mini-swe-agent" / "bin" / "mini"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(MINI.format(python=sys.executable, task=task, more=more, code=code))
        program.chmod(0o755)
        given = ["--home", str(tmp_path), "--agents", "mini-swe-agent", "--json", "--window", "20k", *options]
        ended = agents.main(given)
        return ended, json.loads(capsys.readouterr().out)

    return run


def test_an_agent_that_comes_through_is_a_row_with_its_compactions(ran):
    ended, row = ran("--calls", "20")
    assert ended == 0, row
    assert row["finished"]
    assert row["rule_known"]
    assert (row["reports"], row["invalid"], row["errors"], row["exit_code"]) == (20, 0, {}, 0)
    assert row["compactions"] >= 1
    assert row["largest"] <= 20_000


@pytest.mark.parametrize(("wrong", "column", "shown"), [
    ({"more": ", 'tools_of_mine': 1"}, "errors", {"400": 1}),
    ({"task": "'Read reports.'"}, "rule_known", False),
    ({"code": 3}, "exit_code", 3),
], ids=["invalid-requests", "a-lost-rule", "an-exit-code"])  # fmt: skip
def test_what_an_agent_does_wrong_is_in_its_row_and_the_exit_code(ran, wrong, column, shown):
    ended, row = ran("--calls", "2", **wrong)
    assert ended == 1
    assert row[column] == shown


def test_calls_between_compactions_are_counted_within_a_conversation():
    request = {"event": "request", "operation": "chat"}
    compaction = {"event": "compaction", "cause": "threshold"}
    cut = {"event": "compaction", "cause": "new-output"}
    first = [request] * 7 + [compaction] + [{**request, "plans": 1}] * 6
    again = [compaction] + [{**request, "plans": 2}] * 3 + [cut] + [{**request, "plans": 3}] * 2
    third = [compaction, {**request, "plans": 4}]
    resumed = [compaction, {**request, "plans": 1}]
    assert agents._compactions([*first, *again, *third, *resumed]) == (4, 5)
