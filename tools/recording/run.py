"""One run of an agent: a folder of its own, a small project, a scripted provider, and what the provider saw."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refold.testing.provider import ReceivedRequest, ScriptedProvider, ScriptedReply

__all__ = [
    "CHECK",
    "FAREWELL",
    "FILES",
    "QUESTION",
    "SUMMARY",
    "TASK",
    "TITLE",
    "Run",
    "Step",
    "Tools",
    "free_port",
    "prepared",
    "running",
    "without_tools",
]

# everything that a person or the model says is ours
TASK = "Make the greeting polite, as notes.md says, and see that check.sh passes."
QUESTION = "Which file says how to greet?"
TITLE = "Polite greeting"
SUMMARY = "The user wants a polite greeting. greet.py now says Good morning, and check.sh passes."
FAREWELL = "greet.py does; it says Good morning since the change."
CHECK = "sh check.sh"
FILES = {
    "greet.py": 'def greet(name):\n    return f"hi {name}"\n',
    "notes.md": "# Notes\n\nA greeting is polite: it begins with Good morning.\n",
    "check.sh": (
        'if grep -q "Good morning" greet.py\nthen echo "ok: the greeting is polite"\n'
        'else echo "failed: greet.py does not say Good morning" >&2; exit 1\nfi\n'
    ),
}

Step = ScriptedReply | str
Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Tools:
    """How an agent's own tools read a file, run a command and replace a text, as calls that a model makes."""

    read: Callable[[str], Call]
    run: Callable[[str], Call]
    edit: Callable[[str, str, str], Call]


@dataclass
class Run:
    """A run that goes on: where it happens, and the provider that the agent talks to."""

    root: Path
    folder: Path
    tools: Tools
    provider: ScriptedProvider
    url: str  # where the agent finds the provider, without a path
    environment: dict[str, str]
    answers: dict[int, ScriptedReply] = field(default_factory=dict)  # by the number of the request
    commands: list[str] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """The home folder of the run's user."""
        return self.root / "home" / "user"

    @property
    def project(self) -> Path:
        """The folder that the agent works in."""
        return self.home / "project"

    def write(self, path: str, content: str | Mapping[str, Any]) -> None:
        """Write a file of settings below the home folder; a mapping is written as JSON."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    def program(self, name: str) -> str:
        """Return the path of a program that was installed with the agent."""
        places = (self.folder / "node_modules" / ".bin" / name, self.folder / "bin" / name)
        return str(next((place for place in places if place.exists()), name))

    def call(self, name: str, *arguments: str) -> str:
        """Run a program of the agent's in the project and return its output; a failure raises with the end of it."""
        done = self.finished(name, *arguments)
        if done.returncode:
            raise RuntimeError(f"{name} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        return done.stdout

    def finished(
        self, name: str, *arguments: str, typed: str = "", seconds: float = 180
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the agent's in the project to its end; `typed` is what it reads from its standard input."""
        self.commands.append(shlex.join([name, *arguments]))
        return subprocess.run(
            [self.program(name), *arguments], cwd=self.project, env=self.environment, input=typed,
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip

    @contextmanager
    def in_background(self, name: str, *arguments: str, port: int) -> Iterator[None]:
        """Run a program next to what is called inside, from when it listens on `port` to the end."""
        self.commands.append(shlex.join([name, *arguments]))
        command = [self.program(name), *arguments]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=self.project, env=self.environment, **quiet) as process:
            try:
                for _ in range(200):
                    with socket.socket() as attempt:
                        if attempt.connect_ex(("127.0.0.1", port)) == 0:
                            break
                    time.sleep(0.1)
                yield
            finally:
                process.terminate()
                process.wait(30)

    def steps(self) -> list[Step]:
        """Return what the model does in the first turn: two calls at once, a failing command, an edit, an error."""
        read, run, edit = self.tools.read, self.tools.run, self.tools.edit
        path = str(self.project / "greet.py")
        return [
            ScriptedReply(
                "I read the code and the notes.",
                [read(path), read(str(self.project / "notes.md"))],
                thinking="Two files to read, and neither depends on the other.",
            ),
            ScriptedReply("The check tells what is missing.", [run(CHECK)]),
            ScriptedReply("", [edit(path, "hi {name}", "Good morning, {name}")]),
            ScriptedReply(
                "Once more, and a file that may exist.", [run(CHECK), read(str(self.project / "missing.md"))]
            ),
            "The greeting is polite now and the check passes. There is no missing.md.",
        ]

    def files(self, pattern: str) -> list[Path]:
        """Return the files below the home folder that match a pattern, the oldest first."""
        return sorted(self.home.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def _end_daemons(home: Path) -> None:
    """End what an agent left running in the background, known by the home folder that only this run has (on Linux)."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is not ours
            if f"HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGTERM)


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on."""
    with socket.socket() as attempt:
        attempt.bind(("127.0.0.1", 0))
        return int(attempt.getsockname()[1])


def without_tools(received: ReceivedRequest) -> str:
    """Return the answer to a request outside the conversation: agents ask for a title, or for a summary."""
    words = json.dumps(received.body).casefold()
    return SUMMARY if "summar" in words and "title" not in words else TITLE


@contextmanager
def running(
    folder: Path, tools: Tools, script: Callable[[Run], Sequence[Step]], environment: Mapping[str, str]
) -> Iterator[Run]:
    """Give a run with the project in place and the provider serving `script`; requests without tools get a title."""
    run: Run
    steps: Iterator[Step]

    def behave(received: ReceivedRequest) -> Step:
        step = next(steps, FAREWELL) if received.body.get("tools") else without_tools(received)
        run.answers[received.number] = step if isinstance(step, ScriptedReply) else ScriptedReply(step)
        return step

    with (
        ScriptedProvider(behave=behave, strict=False) as provider,
        prepared(folder, tools, provider, provider.url, FILES, environment) as run,
    ):
        steps = iter(script(run))
        yield run


@contextmanager
def prepared(
    folder: Path, tools: Tools, provider: ScriptedProvider, url: str, files: Mapping[str, str],
    environment: Mapping[str, str],
) -> Iterator[Run]:  # fmt: skip
    """Give a run with a home of its own and a project of `files`, whose agent finds the provider at `url`.

    In `environment`, `{url}` stands for that address and `{home}` for the home folder.
    """
    with tempfile.TemporaryDirectory(prefix="recording-", ignore_cleanup_errors=True) as place:
        root = Path(place).resolve()
        run = Run(root, folder, tools, provider, url, {})
        run.project.mkdir(parents=True)
        for name, text in files.items():
            (run.project / name).write_text(text, encoding="utf-8")
        base = {"HOME": str(run.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb"}
        base |= {"USER": "user", "LOGNAME": "user", "SHELL": "/bin/sh", "NO_PROXY": "127.0.0.1"}
        settings = {
            name: value.replace("{url}", url).replace("{home}", str(run.home)) for name, value in environment.items()
        }
        run.environment = base | settings
        try:
            yield run
        finally:
            _end_daemons(run.home)
