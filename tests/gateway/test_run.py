import json
import os
import signal
import subprocess
import sys

import click
import pytest

from refold.core.budget import Exactly, Never, Share
from refold.testing.provider import ScriptedProvider
from tests.gateway.test_acting import searched

MAIN = [sys.executable, "-c", "from refold._cli.main import main; main()"]
AGENT = """
import json, os, urllib.request
from tests.gateway.scripted_upstream import chat
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
    assert "3 requests, 1 compaction, " in done.stderr
    assert "sent no conversation" not in done.stderr
    assert ", 0 input tokens not sent" not in done.stderr


def test_a_command_sees_the_addresses_for_all_clients():
    program = (
        "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.endswith(('_URL', '_BASE'))}))"
    )
    done = run("run", "--store", "memory", "--", sys.executable, "-c", program)
    seen = json.loads(done.stdout)
    assert {"OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} <= set(seen)
    assert seen["OPENAI_BASE_URL"] == seen["ANTHROPIC_BASE_URL"] + "/v1"


@pytest.mark.parametrize(("secrets", "added"), [({}, True), ({"REFOLD_GATEWAY_TOKEN": "secret"}, False)])
def test_codex_gets_the_address_as_an_option_unless_it_holds_a_token(tmp_path, secrets, added):
    codex = tmp_path / "codex"
    codex.write_text('#!/bin/sh\necho "$OPENAI_BASE_URL"\nprintf "%s\\n" "$@"\n')
    codex.chmod(0o700)
    done = run("run", "--store", "memory", "--", str(codex), "exec", "Fix it", **secrets)
    address, *words = done.stdout.splitlines()
    assert words == [*(["-c", f'openai_base_url="{address}"'] if added else []), "exec", "Fix it"]


def test_a_command_that_goes_around_the_gateway_is_told_of():
    done = run("run", "--store", "memory", "--", sys.executable, "-c", "")
    assert done.stderr.splitlines()[1].startswith(
        f"refold: {sys.executable} sent no conversation through the gateway: if it reads"
    )


@pytest.mark.parametrize(("arguments", "said"), [
    (["run", "--store", "memory", "--", "no-such-command-here"], "cannot be run"),
    (["run", "--policy", "none", "--", "true"], "policy"),
    (["run", "--model-window", "gpt-4o", "--", "true"], "NAME=VALUE"),
    (["serve", "--host", "0.0.0.0"], "token"),
    (["serve", "--openai", "nowhere"], "address"),
    (["serve", "--openai", "http://[::1"], "address"),
    (["serve", "--trigger", "lots"], "70%"),
    (["serve", "--route-policy", "messages=opal"], "/v1/messages"),
    (["run", "--store", "memory", "--", "/"], "name a program"),
])  # fmt: skip
def test_what_cannot_be_is_said_in_one_line(arguments, said):
    done = run(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_command_is_let_in_where_the_gateway_asks_for_a_token():
    program = AGENT.replace("(1, 9, 10)", "(1,)").replace("SystemExit(7)", "SystemExit(0)")
    with ScriptedProvider(["ok"]) as provider:
        done = run(
            "run", "--store", "memory", "--", sys.executable, "-c", program, REFOLD_GATEWAY_TOKEN="t/0 k",
            OPENAI_BASE_URL=provider.openai_url, PYTHONPATH=os.pathsep.join(filter(None, sys.path)) + os.pathsep + os.getcwd(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "1 request, " in done.stderr
        assert not [each for each in provider.received if "t/0" in str(each.headers)]


def test_a_proxy_is_not_asked_for_the_gateway():
    program = AGENT.replace("(1, 9, 10)", "(1,)").replace("SystemExit(7)", "SystemExit(os.environ['NO_PROXY'])")
    with ScriptedProvider(["ok"]) as provider:
        done = run(
            "run", "--store", "memory", "--", sys.executable, "-c", program, http_proxy="http://127.0.0.1:9",
            NO_PROXY="example.org", OPENAI_BASE_URL=provider.openai_url,
            PYTHONPATH=os.pathsep.join(filter(None, sys.path)) + os.pathsep + os.getcwd(),
        )  # fmt: skip
    assert "1 request, " in done.stderr, done.stderr
    assert "example.org,127.0.0.1" in done.stderr


WAITING = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(60)"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1"])
def test_what_ends_the_gateway_ends_the_command_first(name):
    number = getattr(signal, name)
    words = [*MAIN, "run", "--store", "memory", "--", sys.executable, "-c", WAITING]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as ours:
        pid = int(ours.stdout.readline())
        ours.send_signal(number)
        assert ours.wait(10) == 128 + number
        assert "0 requests" in ours.stderr.read()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


COUNTING = """
import signal, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
while not seen:
    time.sleep(0.01)
time.sleep(0.5)
raise SystemExit(len(seen))
"""
IN_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def test_what_is_typed_in_a_terminal_reaches_the_command_once():
    words = [*MAIN, "run", "--store", "memory", "--", sys.executable, "-c", COUNTING]
    with subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as terminal:
        assert terminal.stdout.readline() == b"ready\r\n"
        terminal.stdin.write(b"\x03")
        terminal.stdin.flush()
        said = terminal.stdout.read()
    assert terminal.returncode == 1
    assert b"0 requests" in said


def test_a_command_that_dies_of_a_signal_gives_the_code_that_shells_give():
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run("run", "--store", "memory", "--", sys.executable, "-c", program).returncode == 137


def test_an_option_that_there_is_none_of_is_no_command():
    done = run("run", "--jsn", "--", "true")
    assert done.returncode == 2
    assert "no option --jsn" in done.stderr


SEND = """
import os, sys, urllib.request
for line in open(sys.argv[1], "rb"):
    urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", line,
        {"content-type": "application/json", "authorization": "Bearer k"}))
"""


def test_new_output_that_is_cut_is_reported_as_that_and_not_as_a_compaction(tmp_path):
    more = ({"role": "assistant", "content": "There."}, {"role": "user", "content": "Thanks."})
    bodies = tmp_path / "bodies.jsonl"
    bodies.write_text("".join(json.dumps(searched(2_000, *extra)) + "\n" for extra in ((), more)))
    with ScriptedProvider(["ok"]) as provider:
        done = run(
            "run", "--store", "memory", "--window", "40k", "--", sys.executable, "-c", SEND, str(bodies),
            OPENAI_BASE_URL=provider.openai_url,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 requests, 0 compactions, new output cut 1 time, " in done.stderr


def test_a_shadow_reports_what_it_planned():
    path = os.pathsep.join(filter(None, sys.path)) + os.pathsep + os.getcwd()
    with ScriptedProvider(["ok"]) as provider:
        done = run(
            "run", "--shadow", "--store", "memory", "--window", "16k", "--", sys.executable, "-c", AGENT,
            OPENAI_BASE_URL=provider.openai_url, PYTHONPATH=path,
        )  # fmt: skip
    assert "3 requests, 0 compactions, 2 plans in shadow, 0 input tokens not sent" in done.stderr


def settings(monkeypatch, tmp_path, *options, **environment):
    """Return the settings that a command line of `run` makes, in an empty folder."""
    from refold._cli import run as module

    found = []

    def taken(settings):
        found.append(settings)
        raise click.Abort

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "serving", taken)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(click.Abort):
        module.command.main([*options, "--", "true"], standalone_mode=False)
    return found[0]


def test_what_is_configured_holds_for_the_gateway_unless_an_option_says_otherwise(monkeypatch, tmp_path):
    (tmp_path / "refold.toml").write_text('policy = "opal"\nthreshold = 0.6\n[windows]\nmine = 32000\n')
    made = settings(
        monkeypatch,
        tmp_path,
        "--model-window",
        "yours=64k",
        REFOLD_WINDOW="50k",
        REFOLD_SUMMARIZER="small",
        OPENAI_API_KEY="none",
    )
    assert (made.policy, made.window, made.summarizer) == ("opal", 50_000, "small")
    assert made.windows == {"mine": 32_000, "yours": 64_000}
    assert made.trigger == Share(0.6, inclusive=True)
    assert made.redact
    made = settings(monkeypatch, tmp_path, "--summarizer", "small", "--keep-secrets", OPENAI_API_KEY="none")
    assert not made.redact
    made = settings(
        monkeypatch, tmp_path, "--policy", "vibe", "--window", "9k", "--trigger", "never", "--summarizer", "big"
    )
    assert (made.policy, made.window, made.summarizer, made.trigger) == ("vibe", 9_000, "big", Never())


def test_triggers_and_policies_of_models_and_routes_are_options(monkeypatch, tmp_path):
    made = settings(
        monkeypatch, tmp_path, "--route-policy", "/v1/messages=claude-code", "--route-trigger", "/v1beta/models=0.5",
        "--model-trigger", "gpt-4o=60k", "--model-policy", "gpt-4o=vibe", "--native-compaction", "pass",
        "--route-native-compaction", "/v1/messages=shadow", "--model-native-compaction", "gpt-4o=emulate",
    )  # fmt: skip
    assert made.trigger is None
    assert (made.policies, made.route_policies) == ({"gpt-4o": "vibe"}, {"/v1/messages": "claude-code"})
    assert made.triggers == {"gpt-4o": Exactly(60_000, inclusive=True)}
    assert made.route_triggers == {"/v1beta/models": Share(0.5, inclusive=True)}
    assert (made.native_compaction, made.route_native_compaction) == ("pass", {"/v1/messages": "shadow"})
    assert made.model_native_compaction == {"gpt-4o": "emulate"}


@pytest.mark.parametrize(("environment", "value"), [
    ({}, "true"), ({"ENABLE_TOOL_SEARCH": "auto"}, "auto"), ({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, None),
])  # fmt: skip
def test_claude_code_keeps_its_tool_search_where_upstream_is_anthropics_own(environment, value):
    program = "import json, os; print(json.dumps(os.environ.get('ENABLE_TOOL_SEARCH')))"
    done = run("run", "--store", "memory", "--", sys.executable, "-c", program, **environment)
    assert json.loads(done.stdout) == value


CONTROL = """
import json, os, urllib.error, urllib.request
place = os.environ["ANTHROPIC_BASE_URL"]
def status(path, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(place + path, headers=headers)).status
    except urllib.error.HTTPError as error:
        return error.code
own = {"x-refold-token": os.environ["REFOLD_ADMIN_TOKEN"]}
print(json.dumps([status(path, **headers) for path in ("/v1/sessions", "/metrics") for headers in ({}, own)]))
"""


@pytest.mark.parametrize("key", ["", "sk-upstream"])
def test_a_command_has_a_token_for_the_gateways_own_routes(key):
    done = run("run", "--store", "memory", "--", sys.executable, "-c", CONTROL, REFOLD_OPENAI_KEY=key)
    assert json.loads(done.stdout) == [200 if key else 401, 200, 403 if key else 401, 200]


def test_a_command_needs_no_key_of_the_provider_where_the_gateway_has_it():
    program = AGENT.replace("(1, 9, 10)", "(1,)").replace("SystemExit(7)", "SystemExit(0)")
    with ScriptedProvider(["ok"], key="sk-upstream") as provider:
        done = run(
            "run", "--store", "memory", "--", sys.executable, "-c", program, REFOLD_OPENAI_KEY="sk-upstream",
            OPENAI_BASE_URL=provider.openai_url, PYTHONPATH=os.pathsep.join(filter(None, sys.path)) + os.pathsep + os.getcwd(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert [each.status for each in provider.received] == [200]
    assert "sk-upstream" not in done.stdout + done.stderr


def test_a_command_gets_none_of_the_gateways_own_secrets():
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    names = ("OPENAI_KEY", "ANTHROPIC_KEY", "GEMINI_KEY", "GATEWAY_TOKEN", "ADMIN_TOKEN", "STORE_KEY")
    secrets = {f"REFOLD_{name}": f"hush-{number}" for number, name in enumerate(names)}
    done = run("run", "--store", "memory", "--", sys.executable, "-c", program, ANOTHER="stays", **secrets)
    seen = json.loads(done.stdout)
    assert "hush-" not in done.stdout
    assert seen["ANOTHER"] == "stays"
    assert [name for name in secrets if name in seen] == ["REFOLD_ADMIN_TOKEN"]
