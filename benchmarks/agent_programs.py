"""The agents that benchmarks/agents.py runs: versions, settings, and how each is started without a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from refold.testing.provider import ScriptedReply
from tools.recording.agents import AGENTS, OPENAI, write_codex_settings, write_gemini_settings
from tools.recording.run import Run

__all__ = ["NODE", "PROGRAMS", "Program"]

CLAUDE = ("--model", "claude-opus-5-5", "--allowedTools", "Bash Read")
COMPACTING = ("-c", "model_auto_compact_token_limit=24000")
NODE = "node@22.23.3"  # what some of the agents need, installed beside them

Call = tuple[str, Mapping[str, Any] | str]


def _nothing(run: Run) -> None:
    """Need no settings but the environment."""


@dataclass(frozen=True)
class Program:
    """An agent: its packages, the smallest window that its own instructions leave room in, and its command.

    `call` is the call with which its model runs a shell command, `end` the answer that ends the task. Without tools
    (`call` is None) the model answers each line that is typed with a long text.
    """

    packages: tuple[str, ...]
    window: int
    command: Callable[[str], Sequence[str]]
    call: Callable[[str], Call] | None
    environment: Mapping[str, str] = field(default_factory=dict)
    set_up: Callable[[Run], None] = _nothing
    end: Callable[[str], ScriptedReply] = ScriptedReply
    python: str = ""  # the version of Python; npm's where empty
    more: Callable[[str], Sequence[Sequence[str]]] | None = None  # commands for a further turn of the same session
    folder: str = ""  # that of another program, of which this is a variant
    text_beside_calls: bool = True  # whether its model says something in a turn that calls a tool
    parallel: bool = True  # whether its model calls several tools at once
    override: str = ""  # a requirement in place of one of the package's own

    @property
    def version(self) -> str:
        """The pinned version of the agent."""
        return self.packages[0].rpartition("=" if self.python else "@")[2]


def _opencode_settings(run: Run) -> None:
    model = {"gpt-4o": {"limit": {"context": 128_000, "output": 4_000}}}
    provider = {"openai": {"options": {"baseURL": f"{run.url}/v1", "apiKey": "none"}, "models": model}}
    settings = {"autoupdate": False, "share": "disabled", "model": "openai/gpt-4o", "provider": provider}
    run.write(".config/opencode/opencode.json", settings)


def _pi_settings(run: Run) -> None:
    smaller = {"claude-opus-4-5": {"maxTokens": 8_000}}
    run.write(".pi/agent/models.json", {"providers": {"anthropic": {"baseUrl": run.url, "modelOverrides": smaller}}})


def _qwen_settings(run: Run) -> None:
    run.write(
        ".qwen/settings.json", {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}
    )


def _vibe_settings(run: Run) -> None:
    run.write(
        ".vibe/config.toml",
        'active_model = "scripted"\nenable_telemetry = false\nenable_update_checks = false\n'
        f'[[providers]]\nname = "refold"\napi_base = "{run.url}/v1"\napi_key_env_var = "OPENAI_API_KEY"\n'
        'api_style = "openai"\nbackend = "generic"\n'
        '[[models]]\nname = "gpt-4o"\nprovider = "refold"\nalias = "scripted"\nmax_context_length = 1000000\n'
        "auto_compact_threshold = 900000\n",
    )


def _javascript(command: str) -> Call:
    words = json.dumps({"cmd": command, "max_output_tokens": 10_000})
    return "exec", f"text((await tools.exec_command({words})).output);"


def _finished(text: str) -> ScriptedReply:
    return ScriptedReply("", [("finish", {"message": text})])


def _submitted(text: str) -> ScriptedReply:
    return ScriptedReply(text, [("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})])


PROGRAMS = {
    "claude-code": Program(
        ("@anthropic-ai/claude-code@2.1.332",), 64_000,
        lambda task: ("claude", "-p", task, *CLAUDE),
        AGENTS["claude-code"].tools.run,
        {**AGENTS["claude-code"].environment, "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000"},
        more=lambda task: [("claude", "--continue", "-p", text, *CLAUDE) for text in ("/compact", task)],
    ),
    "codex": Program(
        ("@openai/codex@0.171.0",), 32_000,
        lambda task: ("codex", "exec", "--skip-git-repo-check", task),
        AGENTS["codex"].tools.run, AGENTS["codex"].environment, write_codex_settings,
        more=lambda task: [("codex", "exec", "--skip-git-repo-check", "resume", "--last", task)],
    ),
    "codex-native": Program(  # as with OpenAI itself: the provider is asked to compact
        ("@openai/codex@0.171.0",), 48_000,
        lambda task: ("codex", "exec", "--skip-git-repo-check", *COMPACTING, task),
        AGENTS["codex"].tools.run, AGENTS["codex"].environment, partial(write_codex_settings, name="OpenAI"),
        more=lambda task: [("codex", "exec", "--skip-git-repo-check", *COMPACTING, "resume", "--last", task)], folder="codex",
    ),
    "codex-websocket": Program(  # as codex-native, with new items alone over one connection
        ("@openai/codex@0.171.0",), 48_000,
        lambda task: ("codex", "exec", "--skip-git-repo-check", *COMPACTING, task),
        AGENTS["codex"].tools.run, AGENTS["codex"].environment, partial(write_codex_settings, name="OpenAI", websocket=True),
        more=lambda task: [("codex", "exec", "--skip-git-repo-check", *COMPACTING, "resume", "--last", task)], folder="codex",
    ),
    "codex-default": Program(  # as it is installed: its newest model has one tool, which takes a program, in its input
        ("@openai/codex@0.171.0",), 64_000,
        lambda task: ("codex", "exec", "--skip-git-repo-check", "-m", "gpt-6.2-sol", task),
        _javascript, AGENTS["codex"].environment, partial(write_codex_settings, name="OpenAI", websocket=True),
        more=lambda task: [
            ("codex", "exec", "--skip-git-repo-check", "-m", "gpt-6.2-sol", "resume", "--last", task)
        ],
        folder="codex", parallel=False,
    ),
    "opencode": Program(
        ("opencode-ai@1.18.33",), 32_000,
        lambda task: ("opencode", "run", "-m", "openai/gpt-4o", task),
        AGENTS["opencode"].tools.run, AGENTS["opencode"].environment, _opencode_settings,
        more=lambda task: [("opencode", "run", "--continue", "-m", "openai/gpt-4o", task)],
    ),
    "gemini-cli": Program(
        ("@google/gemini-cli@0.61.0",), 48_000,
        lambda task: ("gemini", "--yolo", "--model", "gemini-2.5-pro", "--prompt", task),
        AGENTS["gemini-cli"].tools.run, AGENTS["gemini-cli"].environment, write_gemini_settings,
        more=lambda task: [("gemini", "--yolo", "--model", "gemini-2.5-pro", "--resume", "latest", "--prompt", task)],
        text_beside_calls=False,  # its check for loops is valid for a history that begins with calls alone, not with text
    ),
    "qwen-code": Program(
        ("@qwen-code/qwen-code@0.24.4",), 48_000,
        lambda task: ("qwen", "--auth-type", "openai", "--model", "gpt-4o", "--yolo", task),
        lambda command: ("run_shell_command", {"command": command, "is_background": False}),
        OPENAI, _qwen_settings,
        more=lambda task: [("qwen", "--auth-type", "openai", "--model", "gpt-4o", "--yolo", "--continue", task)],
    ),
    "pi": Program(
        ("@earendil-works/pi-coding-agent@1.6.0",), 32_000,
        lambda task: ("pi", "--provider", "anthropic", "--model", "claude-opus-4-5", "--thinking", "low", "--print", task),
        AGENTS["pi"].tools.run, AGENTS["pi"].environment, _pi_settings,
        more=lambda task: [(
            "pi", "--provider", "anthropic", "--model", "claude-opus-4-5", "--thinking", "low", "--continue", "--print",
            task,
        )],
    ),
    "aider": Program(
        ("aider-chat==0.86.2",), 12_000,
        lambda _: (
            "aider", "--model", "openai/gpt-4o", "--no-git", "--yes-always", "--chat-mode", "ask", "--no-fancy-input",
            "--no-pretty", "--no-check-update", "--analytics-disable", "--no-show-release-notes",
            "--max-chat-history-tokens", "1000000",
        ),
        None, OPENAI, python="3.12",
    ),
    "mini-swe-agent": Program(
        ("mini-swe-agent==2.4.6",), 24_000,
        lambda task: ("mini", "-m", "openai/gpt-4o", "-t", task, "-y", "--exit-immediately", "-o", "session.traj.json"),
        AGENTS["mini-swe-agent"].tools.run, AGENTS["mini-swe-agent"].environment, end=_submitted, python="3.12",
    ),
    "openhands": Program(
        ("openhands==1.16.0",), 48_000,
        lambda task: ("openhands", "--headless", "--override-with-envs", "--exit-without-confirmation", "-t", task),
        lambda command: ("terminal", {"command": command, "security_risk": "LOW"}),
        {"LLM_API_KEY": "none", "LLM_BASE_URL": "{url}/v1", "LLM_MODEL": "openai/gpt-4o"}, end=_finished, python="3.12",
    ),
    "mistral-vibe": Program(
        ("mistral-vibe==3.0.3",), 32_000,
        lambda task: ("vibe", "--prompt", task, "--auto-approve", "--trust"),
        lambda command: ("bash", {"command": command}),
        {"OPENAI_API_KEY": "none"}, _vibe_settings, python="3.12",
        more=lambda task: [("vibe", "--continue", "--prompt", task, "--auto-approve", "--trust")],
        override="certifi>=2026",  # the version that it names was withdrawn
    ),
}  # fmt: skip
