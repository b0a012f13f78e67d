"""The agents that can be recorded: how each is installed, pointed at the provider, run, and where its sessions lie."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from refold.testing.provider import ScriptedReply
from tools.recording.run import FAREWELL, QUESTION, SUMMARY, TASK, Run, Step, Tools, free_port

__all__ = ["AGENTS", "LOOP", "OPENAI", "Agent", "write_codex_settings", "write_gemini_settings"]


@dataclass(frozen=True)
class Agent:
    """An agent and the kind of file it leaves; `record` runs it and yields a name and the file for each session."""

    name: str
    kind: str
    registry: str  # npm or pypi
    packages: tuple[str, ...]
    tools: Tools
    record: Callable[[Run], Iterator[tuple[str, Path]]]
    environment: Mapping[str, str] = field(default_factory=dict)
    script: Callable[[Run], Sequence[Step]] = Run.steps


def _claude_code(run: Run) -> Iterator[tuple[str, Path]]:
    allowed = ("--allowedTools", "Bash Read Edit Agent")
    run.call("claude", "-p", TASK, *allowed)
    run.call("claude", "--continue", "-p", "/compact", *allowed)
    run.call("claude", "--continue", "-p", QUESTION, *allowed)
    (session,) = run.files(".claude/projects/*/*.jsonl")
    yield "session.jsonl", session
    (agent,) = run.files(".claude/projects/*/*/subagents/*.jsonl")
    yield "subagent.jsonl", agent


def _claude_code_script(run: Run) -> list[Step]:
    path = str(run.project / "greet.py")
    review = {"description": "Review", "prompt": "Is the greeting polite?", "subagent_type": "general-purpose"}
    return [
        *run.steps()[:-1],
        ScriptedReply("", [("Agent", review)]),
        ScriptedReply("", [("Read", {"file_path": path})]),
        "It is: the greeting begins with Good morning.",
        run.steps()[-1],
        f"<summary>{SUMMARY}</summary>",
        FAREWELL,
    ]


def write_codex_settings(run: Run, name: str = "scripted", *, websocket: bool = False) -> None:
    """Write Codex's settings; a provider with the name OpenAI is asked to compact by itself."""
    run.write(
        ".codex/config.toml",
        'model = "gpt-5"\nmodel_provider = "scripted"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        "check_for_update_on_startup = false\n[analytics]\nenabled = false\n[feedback]\nenabled = false\n"
        f'[model_providers.scripted]\nname = "{name}"\nbase_url = "{run.url}/v1"\n'
        f'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"\nsupports_websockets = {str(websocket).lower()}\n',
    )


def _codex(run: Run) -> Iterator[tuple[str, Path]]:
    write_codex_settings(run)
    run.call("codex", "exec", "--skip-git-repo-check", TASK)
    run.call(
        "codex",
        "exec",
        "--skip-git-repo-check",
        "-c",
        "model_auto_compact_token_limit=5000",
        "resume",
        "--last",
        QUESTION,
    )
    (session,) = run.files(".codex/sessions/**/*.jsonl")
    yield "rollout.jsonl", session


def _codex_exec(run: Run) -> Iterator[tuple[str, Path]]:
    write_codex_settings(run)
    file = run.home / "exec.jsonl"
    exec_ = ("codex", "exec", "--json", "--skip-git-repo-check")
    file.write_text(run.call(*exec_, TASK) + run.call(*exec_, "resume", "--last", QUESTION), encoding="utf-8")
    yield file.name, file


def _codex_edit(path: str, old: str, new: str) -> tuple[str, dict[str, str]]:
    return "exec_command", {"cmd": f"sed -i 's/{old}/{new}/' {path}"}


def write_gemini_settings(run: Run) -> None:
    """Write the settings of Gemini CLI: a key from the environment, nothing sent home."""
    run.write(
        ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        },
    )


def _gemini_cli(run: Run) -> Iterator[tuple[str, Path]]:
    write_gemini_settings(run)
    run.call("gemini", "--yolo", "--model", "gemini-2.5-pro", "--prompt", TASK)
    (session,) = run.files(".gemini/tmp/*/chats/*")
    yield "session.jsonl", session


def _gemini_cli_stream(run: Run) -> Iterator[tuple[str, Path]]:
    write_gemini_settings(run)
    file = run.home / "stream.jsonl"
    stream = ("gemini", "--yolo", "--model", "gemini-2.5-pro", "--output-format", "stream-json")
    file.write_text(run.call(*stream, "--prompt", TASK), encoding="utf-8")
    yield file.name, file


def _opencode(run: Run) -> Iterator[tuple[str, Path]]:
    options = {"options": {"baseURL": run.url + "/v1", "apiKey": "none"}}
    settings = {"autoupdate": False, "share": "disabled", "model": "anthropic/claude-opus-4-5"}
    run.write(".config/opencode/opencode.json", settings | {"provider": {"anthropic": options}})
    run.call("opencode", "run", TASK)
    small = options | {"models": {"claude-opus-4-5": {"limit": {"context": 9_600, "output": 1_000}}}}
    run.write(".config/opencode/opencode.json", settings | {"provider": {"anthropic": small}})
    run.call("opencode", "run", "--continue", QUESTION)
    (session,) = json.loads(run.call("opencode", "session", "list", "--format", "json"))
    file = run.home / "session.json"
    file.write_text(run.call("opencode", "export", session["id"]), encoding="utf-8")
    yield "session.json", file


def _pi(run: Run) -> Iterator[tuple[str, Path]]:
    run.write(".pi/agent/models.json", {"providers": {"anthropic": {"baseUrl": run.url}}})
    model = ("--provider", "anthropic", "--model", "claude-opus-4-5", "--thinking", "low")
    run.call("pi", *model, "--print", TASK)
    run.write(".pi/agent/settings.json", {"compaction": {"reserveTokens": 197_800, "keepRecentTokens": 100}})
    run.call("pi", *model, "--continue", "--print", QUESTION)
    (session,) = run.files(".pi/agent/sessions/*/*.jsonl")
    yield "session.jsonl", session


def _cline(run: Run) -> Iterator[tuple[str, Path]]:
    run.call("cline", "auth", "-p", "openai", "-k", "none", "-m", "gpt-4o", "-b", run.url + "/v1")
    run.call("cline", TASK)
    (session,) = run.files(".cline/data/sessions/*/*.messages.json")
    yield "session.messages.json", session


def _continue_cli(run: Run) -> Iterator[tuple[str, Path]]:
    run.write(
        ".continue/config.yaml",
        "name: scripted\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: scripted\n    provider: openai\n"
        f"    model: gpt-4o\n    apiKey: none\n    apiBase: {run.url}/v1\n    roles: [chat]\n",
    )
    config = ("--config", str(run.home / ".continue/config.yaml"), "--auto")
    run.call("cn", *config, "--print", TASK)
    run.call("cn", *config, "--resume", "--print", QUESTION)
    (session,) = run.files(".continue/sessions/*-*.json")
    yield "session.json", session


def _copilot_cli(run: Run) -> Iterator[tuple[str, Path]]:
    quiet = ("--allow-all-tools", "--allow-all-paths", "--no-auto-update", "--disable-builtin-mcps", "--no-remote")
    run.call("copilot", *quiet, "--prompt", TASK)
    run.call("copilot", *quiet, "--continue", "--prompt", "/compact")
    run.call("copilot", *quiet, "--continue", "--prompt", QUESTION)
    (session,) = run.files(".copilot/session-state/**/*.jsonl")
    yield "events.jsonl", session


def _copilot_cli_script(run: Run) -> list[Step]:
    return [*run.steps(), SUMMARY, FAREWELL]


def _mini_swe_agent(run: Run) -> Iterator[tuple[str, Path]]:
    file = run.home / "session.traj.json"
    run.call("mini", "-m", "openai/gpt-4o", "-t", TASK, "-y", "--exit-immediately", "-o", str(file))
    yield file.name, file


def _mini_swe_agent_script(run: Run) -> list[Step]:
    end = {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
    return [*run.steps()[:-1], ScriptedReply("The greeting is polite now.", [("bash", end)])]


def _langgraph(run: Run) -> Iterator[tuple[str, Path]]:
    file = run.home / "thread.json"
    run.call("python", str(SCRIPTS / "langgraph_thread.py"), str(file), TASK, QUESTION)
    yield file.name, file


def _litellm(run: Run) -> Iterator[tuple[str, Path]]:
    file = run.home / "calls.jsonl"
    run.call("python", str(SCRIPTS / "litellm_calls.py"), str(file), TASK)
    yield file.name, file


def _recorded_stream(run: Run) -> Iterator[tuple[str, Path]]:
    file = run.home / "events.jsonl"
    run.call("python", str(SCRIPTS / "responses_stream.py"), str(file), TASK)
    yield file.name, file


def _http_recording(run: Run) -> Iterator[tuple[str, Path]]:
    file = run.home / "exchanges.json"
    run.call("node", str(SCRIPTS / "nock_calls.mjs"), str(run.folder / "node_modules" / "_.js"), str(file), TASK)
    yield file.name, file


def _request_log(run: Run) -> Iterator[tuple[str, Path]]:
    file, port = run.home / "traffic.har", free_port()
    proxy = ["--mode", f"reverse:{run.url}", "--listen-host", "127.0.0.1", "--listen-port", str(port)]
    with run.in_background("mitmdump", *proxy, "--set", f"hardump={file}", port=port):
        run.environment["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{port}"
        run.call(sys.executable, str(SCRIPTS / "anthropic_calls.py"), TASK)
    file.write_text(file.read_text(encoding="utf-8").replace(f":{port}", ":8000"), encoding="utf-8")
    yield file.name, file


SCRIPTS = Path(__file__).parent / "scripts"
OPENAI = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "{url}/v1"}
LOOP = Tools(
    lambda path: ("read", {"path": path}),
    lambda command: ("run", {"command": command}),
    lambda path, old, new: ("run", {"command": f"sed -i 's/{old}/{new}/' {path}"}),
)
_CODEX = Agent(
    "codex", "codex", "npm", ("@openai/codex",),
    Tools(
        lambda path: ("exec_command", {"cmd": f"cat {path}"}),
        lambda command: ("exec_command", {"cmd": command}),
        _codex_edit,
    ),
    _codex, {"OPENAI_API_KEY": "none", "CODEX_HOME": "{home}/.codex"},
)  # fmt: skip
_GEMINI_CLI = Agent(
    "gemini-cli", "gemini-cli", "npm", ("@google/gemini-cli",),
    Tools(
        lambda path: ("read_file", {"file_path": path}),
        lambda command: ("run_shell_command", {"command": command}),
        lambda path, old, new: (
            "replace",
            {"file_path": path, "instruction": "Greet.", "old_string": old, "new_string": new},
        ),
    ),
    _gemini_cli,
    {
        "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_TELEMETRY_ENABLED": "false",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
)  # fmt: skip
AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            "claude-code", "claude-code", "npm", ("@anthropic-ai/claude-code",),
            Tools(
                lambda path: ("Read", {"file_path": path}),
                lambda command: ("Bash", {"command": command, "description": "Run a command"}),
                lambda path, old, new: ("Edit", {"file_path": path, "old_string": old, "new_string": new}),
            ),
            _claude_code,
            {
                "ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1",
                "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
            },
            _claude_code_script,
        ),
        _CODEX,
        replace(_CODEX, name="codex-exec", kind="codex-exec", record=_codex_exec),
        _GEMINI_CLI,
        replace(_GEMINI_CLI, name="gemini-cli-stream", kind="gemini-cli-stream", record=_gemini_cli_stream),
        Agent(
            "opencode", "opencode", "npm", ("opencode-ai",),
            Tools(
                lambda path: ("read", {"filePath": path}),
                lambda command: ("bash", {"command": command, "description": "Run a command"}),
                lambda path, old, new: ("edit", {"filePath": path, "oldString": old, "newString": new}),
            ),
            _opencode,
            {
                "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            },
        ),
        Agent(
            "pi", "pi", "npm", ("@mariozechner/pi-coding-agent",),
            Tools(
                lambda path: ("read", {"path": path}),
                lambda command: ("bash", {"command": command}),
                lambda path, old, new: ("edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}),
            ),
            _pi, {"ANTHROPIC_API_KEY": "none", "PI_OFFLINE": "1"},
        ),
        Agent(
            "cline", "cline", "npm", ("cline",),
            Tools(
                lambda path: ("read_files", {"files": [{"path": path}]}),
                lambda command: ("run_commands", {"commands": [command]}),
                lambda path, old, new: (
                    "run_commands", {"commands": [f"sed -i 's/{old}/{new}/' {path}"]},
                ),
            ),
            _cline, {"CLINE_TELEMETRY_DISABLED": "1"},
        ),
        Agent(
            "continue-cli", "continue-cli", "npm", ("@continuedev/cli",),
            Tools(
                lambda path: ("Read", {"filepath": path}),
                lambda command: ("Bash", {"command": command}),
                lambda path, old, new: (
                    "MultiEdit", {"file_path": path, "edits": [{"old_string": old, "new_string": new}]}
                ),
            ),
            _continue_cli, {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"},
        ),
        Agent(
            "copilot-cli", "copilot-cli", "npm", ("@github/copilot",),
            Tools(
                lambda path: ("view", {"path": path}),
                lambda command: ("bash", {"command": command, "description": "Run a command"}),
                lambda path, old, new: (
                    "bash", {"command": f"sed -i 's/{old}/{new}/' {path}", "description": "Run a command"}
                ),
            ),
            _copilot_cli,
            {
                "COPILOT_PROVIDER_BASE_URL": "{url}/v1", "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "gpt-4o",
                "COPILOT_OFFLINE": "true",
            },
            _copilot_cli_script,
        ),
        Agent(
            "mini-swe-agent", "mini-swe-agent", "pypi", ("mini-swe-agent",),
            Tools(
                lambda path: ("bash", {"command": f"cat {path}"}),
                lambda command: ("bash", {"command": command}),
                lambda path, old, new: ("bash", {"command": f"sed -i 's/{old}/{new}/' {path}"}),
            ),
            _mini_swe_agent,
            OPENAI | {"MSWEA_CONFIGURED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            _mini_swe_agent_script,
        ),
        Agent(
            "langgraph", "langgraph", "pypi", ("langgraph", "langchain", "langchain-openai"), LOOP, _langgraph, OPENAI,
        ),
        Agent(
            "litellm", "litellm", "pypi", ("litellm",), LOOP, _litellm,
            OPENAI | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        ),
        Agent("recorded-stream", "recorded-stream", "pypi", ("openai",), LOOP, _recorded_stream, OPENAI),
        Agent("http-recording", "http-recording", "npm", ("nock@14", "openai"), LOOP, _http_recording, OPENAI),
        Agent(
            "request-log", "request-log", "pypi", ("mitmproxy",), LOOP, _request_log,
            {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "none"},
        ),
    )
}  # fmt: skip
