import json
import os
import subprocess
import sys

import pytest

from refold.testing.provider import ScriptedProvider

MAIN = [sys.executable, "-c", "from refold.cli.main import main; main()"]
AGENT = """
import json, os, urllib.request
from tests.gateway.wire import chat
for count in (1, 9, 10):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(chat(count)).encode(), {"content-type": "application/json", "authorization": "Bearer k"})
    assert json.load(urllib.request.urlopen(request))["choices"]
raise SystemExit(7)
"""


def run(*arguments, **environment):
    held = {name: value for name, value in os.environ.items() if not name.endswith(("_BASE_URL", "_API_BASE"))}
    return subprocess.run(
        [*MAIN, *arguments], capture_output=True, text=True, timeout=60, env={**held, **environment}, check=False
    )


def test_a_command_runs_behind_a_gateway_and_its_exit_code_and_the_savings_are_told():
    with ScriptedProvider(["ok"]) as provider:
        done = run(
            "run", "--store", "memory", "--window", "16k", "--", sys.executable, "-c", AGENT,
            OPENAI_BASE_URL=provider.openai_url, PYTHONPATH=os.pathsep.join(filter(None, sys.path)) + os.pathsep + os.getcwd(),
        )  # fmt: skip
        assert done.returncode == 7, done.stderr
        assert [each.status for each in provider.received] == [200] * 3
    assert "3 requests, 1 compactions" in done.stderr
    assert "0 input tokens not sent" not in done.stderr


def test_a_command_sees_the_addresses_for_all_clients():
    program = (
        "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.endswith(('_URL', '_BASE'))}))"
    )
    done = run("run", "--store", "memory", "--", sys.executable, "-c", program)
    seen = json.loads(done.stdout)
    assert {"OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} <= set(seen)
    assert seen["OPENAI_BASE_URL"] == seen["ANTHROPIC_BASE_URL"] + "/v1"


@pytest.mark.parametrize(("arguments", "said"), [
    (["run", "--store", "memory", "--", "no-such-command-here"], "cannot be run"),
    (["run", "--policy", "none", "--", "true"], "policy"),
    (["run", "--model-window", "gpt-4o", "--", "true"], "MODEL=VALUE"),
    (["serve", "--host", "0.0.0.0"], "token"),
    (["serve", "--openai", "nowhere"], "address"),
])  # fmt: skip
def test_what_cannot_be_is_said_in_one_line(arguments, said):
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
