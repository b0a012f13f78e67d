"""Records session files of real agents that talk to the scripted provider, for tests/data/sessions.

    python tools/record_sessions.py --agents FOLDER                    # every agent that FOLDER has
    python tools/record_sessions.py --agents FOLDER codex pi           # these alone
    python tools/record_sessions.py --agents FOLDER --install codex    # installs it into FOLDER first, with npm or uv
    python tools/record_sessions.py --list

FOLDER is outside the project and has a folder for each agent. An agent runs in a temporary folder with a home of its
own and an environment that names the provider on the loopback interface, switches telemetry off and holds no key.
What it writes is scrubbed (tools/recording/scrub.py) and described in MANIFEST.json: the package and its version, the
day, the commands, and what the provider saw: for every request its size, and the calls in the answer.
"""

from __future__ import annotations

import argparse
import datetime
import getpass
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from tools.recording.agents import AGENTS, Agent  # noqa: E402
from tools.recording.run import FAREWELL, FILES, QUESTION, SUMMARY, TASK, Run, running  # noqa: E402
from tools.recording.scrub import leaks, scrub  # noqa: E402

SESSIONS = ROOT / "tests" / "data" / "sessions"
MANIFEST = SESSIONS / "MANIFEST.json"
OURS = (TASK, QUESTION, SUMMARY, FAREWELL)
LINES = [line for text in FILES.values() for line in text.splitlines() if len(line) > 12] + ["Good morning, {name}"]


def main(arguments: Sequence[str]) -> int:
    """Record the chosen agents; return 1 when one failed or a file would reveal something of the machine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="AGENT", help="one of --list; all that FOLDER has by default")
    parser.add_argument("--agents", type=Path, metavar="FOLDER", help="where the agents are installed")
    parser.add_argument("--install", action="store_true", help="install the agents into FOLDER first")
    parser.add_argument("--list", action="store_true", help="list the agents that can be recorded")
    options = parser.parse_args(arguments)
    if options.list or not options.agents:
        for agent in AGENTS.values():
            print(f"{agent.name:16} {agent.registry:5} {' '.join(agent.packages)}")
        return 0
    names = options.names or [name for name in AGENTS if (options.agents / name).is_dir()]
    failed = 0
    for name in names:
        agent, folder = AGENTS[name], options.agents.resolve() / name
        try:
            if options.install:
                install(agent.registry, agent.packages, folder)
            record(agent, folder)
        except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
            failed = 1
            print(f"{name}: {error}", file=sys.stderr)
    return failed


def install(registry: str, packages: Sequence[str], folder: Path, python: str = "") -> None:
    """Install an agent's packages into its folder; Python's for an interpreter of the version `python`."""
    folder.mkdir(parents=True, exist_ok=True)
    if registry == "npm":
        commands = [["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]]
    else:
        commands = [
            ["uv", "venv", "--clear", *(["--python", python] if python else []), str(folder)],
            ["uv", "pip", "install", "--python", str(folder / "bin" / "python"), *packages],
        ]
    for command in commands:
        subprocess.run(command, check=True)


def version(agent: Agent, folder: Path) -> str:
    """Return the installed version of an agent's first package."""
    package = agent.packages[0].rpartition("@")[0] or agent.packages[0]
    if agent.registry == "npm":
        return str(json.loads((folder / "node_modules" / package / "package.json").read_bytes())["version"])
    code = f"import importlib.metadata as m; print(m.version({agent.packages[0]!r}))"
    done = subprocess.run([folder / "bin" / "python", "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def record(agent: Agent, folder: Path) -> None:
    """Run an agent, write its files, and its entry in the manifest."""
    target = SESSIONS / agent.name
    with running(folder, agent.tools, agent.script, agent.environment) as run:
        port = int(run.provider.url.rpartition(":")[2])
        files = {
            name: scrub(path.read_text(encoding="utf-8"), run.root, port, OURS, LINES)
            for name, path in agent.record(run)
        }
        entry = {
            "kind": agent.kind,
            "package": agent.packages[0],
            "version": version(agent, folder),
            "recorded": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "commands": [command.replace(str(run.root), "") for command in run.commands],
            "files": sorted(files),
            "requests": seen(run),
        }
        described = json.dumps(entry)
        for path, instead in {run.root: "", ROOT: ".", folder: "FOLDER", sys.executable: "python"}.items():
            described = described.replace(str(path), instead)
        entry = json.loads(re.sub(r"127\.0\.0\.1:\d+|listen-port \d+", _without_port, described))
    for name, text in {**files, "MANIFEST.json": json.dumps(entry)}.items():
        if found := leaks(text, secrets()):
            raise ValueError(f"{name} still has {', '.join(sorted(set(found))[:9])}")
    if not files:
        raise ValueError("no session file was left")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
    manifest = json.loads(MANIFEST.read_bytes()) if MANIFEST.exists() else {}
    manifest[agent.name] = entry
    MANIFEST.write_text(
        json.dumps(dict(sorted(manifest.items())), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    print(f"{agent.name} {entry['version']}: " + ", ".join(f"{name} ({len(text):,})" for name, text in files.items()))


def _without_port(match: re.Match[str]) -> str:
    return re.sub(r"\d+$", "8000", match.group())


def seen(run: Run) -> Iterable[dict[str, Any]]:
    """Return what the provider saw, for every request that it answered: sizes in tokens, and the calls it gave."""
    return [
        {
            "tokens": received.tokens,
            "cached": received.cached,
            "tools": len(received.tools) or len(received.body.get("tools") or ()),
            "calls": [[name, arguments] for name, arguments in run.answers[received.number].calls],
        }
        for received in run.provider.received
        if received.number in run.answers
    ]


def secrets() -> list[str]:
    """Return words that identify this machine or its user, where they are no common words."""
    words = {platform.node(), getpass.getuser()} - {"user", "root", "localhost", ""}
    return sorted(words)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
