"""Installs refold into real agents, lets each work, and takes it out again.

    python tools/try_install.py --agents FOLDER                  # those that FOLDER has
    python tools/try_install.py --agents FOLDER claude-code codex

Each agent gets a home of its own with settings of a user, and a scripted provider on the loopback interface. `refold
install` is run, then the agent: its model runs a command with a long output. What the next request says of the output
must be the shortened one, with its original in the file that it names; `refold doctor` must say that the hook was
called; and after `refold uninstall` every file of settings must be as it was, byte for byte (a file that the agent
itself writes: every value). FOLDER is that of benchmarks/agents.py. Claude Code and pi need a newer Node
than Debian's: put it first in PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from refold.testing.provider import ScriptedReply  # noqa: E402
from tools.recording.agents import AGENTS  # noqa: E402
from tools.recording.run import FAREWELL, QUESTION, SUMMARY, TASK, Run, Step, running  # noqa: E402

LINES = 850  # below the 30,000 characters from which Claude Code itself shows a part only
COMMAND = f"seq -f 'step %05g of the build passed' {LINES}"
LAST = f"step {LINES:05} of the build passed"
MIDDLE = f"step {LINES // 2:05} of the build passed"
PARTS = "[parts of the output]"
FILE = re.compile(r"or read (\S+\.txt)")
CLAUDE = ("--allowedTools", "Bash Read")


@dataclass(frozen=True)
class Trial:
    """How an agent is set up and run, and what is looked at.

    `settings` are files below the home folder, of which `restless` are written by the agent too. `digest` tells
    whether the agent compacts in `play` and is told the digest then; `gateway` whether it finds its provider by the
    address of a gateway alone, which is the scripted provider itself here.
    """

    settings: dict[str, str]
    play: Callable[[Run], object]
    restless: tuple[str, ...] = ()
    digest: bool = False
    gateway: bool = False


def _claude_code(run: Run) -> None:
    run.call("claude", "-p", TASK, *CLAUDE)
    run.call("claude", "--continue", "-p", "/compact", *CLAUDE)
    run.call("claude", "--continue", "-p", "What now?", *CLAUDE)


def _codex(run: Run) -> None:
    # hooks must be trusted at the terminal first, which a run without one cannot
    exec_ = ("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust")
    run.call("codex", *exec_, TASK)
    run.call("codex", *exec_, "-c", "model_auto_compact_token_limit=5000", "resume", "--last", QUESTION)
    run.call("codex", *exec_, "resume", "--last", QUESTION)


def _gemini_cli(run: Run) -> None:
    run.call("gemini", "--yolo", "--model", "gemini-2.5-pro", "--prompt", TASK)


def _pi(run: Run) -> None:
    model = ("--provider", "anthropic", "--model", "claude-opus-4-5", "--thinking", "low")
    run.call("pi", *model, "--print", TASK)
    run.write(".pi/agent/settings.json", {"compaction": {"reserveTokens": 197_800, "keepRecentTokens": 100}})
    run.call("pi", *model, "--continue", "--print", QUESTION)
    run.call("pi", *model, "--continue", "--print", QUESTION)


def _opencode(run: Run) -> None:
    run.call("opencode", "run", TASK)
    path = run.home / ".config/opencode/opencode.json"
    settings = path.read_text()
    small = '"models": {"claude-opus-4-5": {"limit": {"context": 11500, "output": 1000}}}, "options"'
    path.write_text(settings.replace('"options"', small))
    run.call("opencode", "run", "--continue", QUESTION)
    run.call("opencode", "run", "--continue", QUESTION)
    path.write_text(settings)


TRIALS = {
    "claude-code": Trial(
        {
            ".claude/settings.json": '{\n    "model": "claude-opus-5-5",\n    "env": {"EDITOR": "vi"},\n\n    "hooks": '
            '{"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}',
            ".claude.json": '{"theme": "dark", "mcpServers": {}}',
        },
        _claude_code,
        restless=(".claude.json",),
        digest=True,
    ),
    "codex": Trial(
        {
            ".codex/config.toml": '# mine\nmodel = "gpt-5"\nmodel_provider = "scripted"\n'
            'tool_output_token_limit = 20000\napproval_policy = "never"\n'
            'sandbox_mode = "danger-full-access"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n'
            '[feedback]\nenabled = false\n[model_providers.scripted]\nname = "scripted"\nbase_url = "{url}/v1"\n'
            'wire_api = "responses"\nenv_key = "OPENAI_API_KEY"',
        },
        _codex,
        digest=True,
    ),
    "pi": Trial({".pi/agent/extensions/other.ts": "export default function () {}"}, _pi, digest=True, gateway=True),
    "opencode": Trial(
        {
            ".config/opencode/opencode.json": '{"$schema": "https://opencode.ai/config.json", '
            '"autoupdate": false, "share": "disabled", "model": '
            '"anthropic/claude-opus-4-5",\n  "provider": {"anthropic": {"options": {"apiKey": "none"}}}}'
        },
        _opencode,
        digest=True,
        gateway=True,
    ),
    "gemini-cli": Trial(
        {
            ".gemini/settings.json": '{\n\t"security": {"auth": {"selectedType": "gemini-api-key"}},\n\t"privacy": '
            '{"usageStatisticsEnabled": false},\n\t"general": {"enableAutoUpdate": false}\n}\n'
        },
        _gemini_cli,
        gateway=True,
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Try the chosen agents and print a line for each; return 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="AGENT", help=", ".join(TRIALS))
    parser.add_argument("--agents", type=Path, required=True, metavar="FOLDER", help="where the agents are installed")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(TRIALS):
        parser.error(f"there is no trial of {unknown.pop()}; there are {', '.join(TRIALS)}")
    failed = 0
    for name in options.names or [name for name in TRIALS if (options.agents / name).is_dir()]:
        try:
            print(f"{name}: {tried(name, options.agents.resolve() / name)}", flush=True)
        except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
            failed = 1
            print(f"{name}: {error}", file=sys.stderr)
    return failed


def tried(name: str, folder: Path) -> str:
    """Install, run the agent, look, and uninstall; return what was found.

    Raises:
        ValueError: something is not as it must be.
    """
    agent, trial = AGENTS[name], TRIALS[name]
    with running(folder, agent.tools, _script, agent.environment) as run:
        for path, text in trial.settings.items():
            run.write(path, text.replace("{url}", run.url))
        before = {path: (run.home / path).read_bytes() for path in trial.settings}
        files = _listed(run.home)
        if trial.gateway:
            run.environment.pop("GOOGLE_GEMINI_BASE_URL", None)
        _refold(run, "install", name, *(("--gateway", run.url) if trial.gateway else ()))
        installed = _listed(run.home) - files
        for path in trial.settings:
            _require("refold" in (run.home / path).read_text() or bool(installed), f"{path} is unchanged")
        trial.play(run)
        words = _shortened(run)
        if trial.digest:
            sent = json.dumps([received.body for received in run.provider.received])
            _require("record of the session before its compaction" in sent, "the digest was in no request")
            words += "; the digest came after the compaction"
        findings = json.loads(_refold(run, "doctor", name, "--json", may_fail=True))["findings"]
        unwell = [each for each in findings if not each["well"] and each["what"] not in ("time", "version", "gateway")]
        _require(not unwell, f"doctor: {unwell}")
        hooks = {each["what"]: each["words"] for each in findings}
        restless = {path: json.loads((run.home / path).read_bytes()) for path in trial.restless}  # as the agent left it
        _refold(run, "uninstall", name)
        for path, content in before.items():
            now = (run.home / path).read_bytes()
            if path in trial.restless:
                _require("refold" not in now.decode(), f"{path} still names refold")
                same = {**json.loads(now), "mcpServers": 0} == {**restless[path], "mcpServers": 0}
                _require(same, f"{path} has lost values")
            else:
                _require(now == content, f"{path} is not as it was")
        for path in installed:
            inside = ".local/share/refold" in path
            _require(inside or not (run.home / path).exists(), f"{path} is still there")
        return f"{words}; hooks: {hooks['hooks']}; {hooks.get('time', '')}; uninstalled: {len(before)} files as before"


def _script(run: Run) -> list[Step]:
    return [
        ScriptedReply("The build.", [run.tools.run(COMMAND)], thinking="First the build."),
        "It passed.",
        f"<summary>{SUMMARY}</summary>",
        FAREWELL,
    ]


def _shortened(run: Run) -> str:
    """Return the sizes of the output and of what the next request has of it."""
    for received in run.provider.received:
        body = json.dumps(received.body)
        if PARTS in body and LAST in body:
            break
    else:
        raise ValueError("no request has a shortened output")
    (file,) = set(FILE.findall(body))
    whole = Path(file).read_text(encoding="utf-8")
    _require(all(line in whole for line in (LAST, MIDDLE)), f"{file} is not the whole output")
    lines = sum(f"step {number:05} of the build" in body for number in range(1, LINES + 1))
    _require(lines < LINES * 0.7, f"{lines} of {LINES} lines are in the request")
    return f"{lines:,} of {LINES:,} lines in the next request, all in the file"


def _refold(run: Run, *words: str, may_fail: bool = False) -> str:
    environment = {**run.environment, "PYTHONPATH": str(ROOT / "src")}
    environment["PATH"] = f"{run.folder / 'node_modules' / '.bin'}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "refold", *words], env=environment, cwd=run.project, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode and not may_fail:
        raise RuntimeError(f"refold {' '.join(words)}: {done.stderr}")
    return done.stdout


def _listed(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
