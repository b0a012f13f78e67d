"""Types the quick starts of the README into an empty Debian, and measures the time to the first result of each.

    .venv/bin/python tools/try_quick_starts.py                      # all of them
    .venv/bin/python tools/try_quick_starts.py library framework    # some
    .venv/bin/python tools/try_quick_starts.py test                 # `make test`, which takes long

It needs root and debootstrap (Debian: `apt install debootstrap`). The system has Python 3.11 with its venv, make and
the usual certificates (`python3.11`, `python3.11-venv`, `make`, `ca-certificates`), no git and no compiler, and each
trial a fresh copy of the last commit. What the README does not give is outside of the system, as it is for a user: an
agent to be run (mini-swe-agent, installed by pip before the clock starts), and a provider, which a script plays. pip
uses the index that it has on this machine.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from refold.testing.provider import ScriptedProvider, ScriptedReply  # noqa: E402

FOLDER = Path(tempfile.gettempdir()) / "refold-quick-starts"
PACKAGES = ("python3.11", "python3.11-venv", "make", "ca-certificates")
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.S | re.M)
MINI = "../agent/bin/mini -m openai/gpt-4o -t Count -y --exit-immediately"
# An agent of pip's in place of the one that the README names, which needs Node and an account.
AGENT = "mini-swe-agent==2.4.6"


@dataclass(frozen=True)
class Trial:
    """What is typed for one quick start, and what must then be on the screen.

    `sections` are headings of the README whose blocks are typed in order: shell as it stands, Python as a file that is
    then run. `typed` comes instead of them.
    """

    shown: str
    sections: Sequence[str] = ()
    typed: str = ""
    before: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[str, str] = ("", "")
    answers: Sequence[ScriptedReply | str] = ()


COUNTED = "Each worker had 400 errors."
READS_LOGS = [ScriptedReply("", [("read_log", {"worker": worker})]) for worker in range(30)]
COUNTS = [ScriptedReply("Go on.", [("bash", {"command": f"seq {number}00 {number + 5}00"})]) for number in range(30)]
SUBMITS = ScriptedReply("Done.", [("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})])

TRIALS = {
    "library": Trial("valid: True", ("Install", "An agent of your own")),
    "framework": Trial(COUNTED, ("Install", "An agent in a framework"), answers=(*READS_LOGS, COUNTED)),
    "agent": Trial(
        "input tokens not sent", ("Install", "An agent that you cannot change"),
        replaced=("refold run -- claude", f"refold run --window 24k -- {MINI}"),
        before=f"python3.11 -m venv agent && agent/bin/pip install -q {AGENT}",
        environment={"MSWEA_CONFIGURED": "true"}, answers=(*COUNTS, SUBMITS),
    ),
    "recorded": Trial("small.json: valid for anthropic", ("Install", "Recorded sessions")),
    "demo": Trial("gives back all", typed="make demo"),
    "test": Trial("passed", typed="make test"),
}  # fmt: skip


def main() -> None:
    """Run the trials and print a line for each; exit with 1 if one of them did not show its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", nargs="*", choices=[*TRIALS, []], metavar="TRIAL", help=", ".join(TRIALS))
    parser.add_argument("--system", type=Path, default=FOLDER, help="where Debian is put")
    parser.add_argument("--mirror", default="", help="where Debian comes from; by default where debootstrap says")
    options = parser.parse_args()
    if os.geteuid() or not shutil.which("debootstrap"):
        raise SystemExit("this needs root and debootstrap (apt install debootstrap)")
    _make_system(options.system, options.mirror)
    results = [_tried(name, options.system) for name in options.trials or [name for name in TRIALS if name != "test"]]
    raise SystemExit(not all(results))


def _make_system(system: Path, mirror: str) -> None:
    """Install Debian and the packages, unless an earlier run did; the certificates are those of this machine."""
    if not (system / "usr/bin/make").exists():
        _run("debootstrap", "--variant=minbase", "bookworm", system, *([mirror] if mirror else []))
        shutil.copy("/etc/resolv.conf", system / "etc/resolv.conf")
        install = "apt-get update && apt-get install -y --no-install-recommends " + " ".join(PACKAGES)
        _inside(system, install, {"DEBIAN_FRONTEND": "noninteractive"}, Path("/"))
    shutil.copy(f"/{CERTIFICATES}", system / CERTIFICATES)


def _tried(name: str, system: Path) -> bool:
    """Type one quick start in a home of its own and print how long it took and how it ended."""
    trial = TRIALS[name]
    home = system / "home" / name
    shutil.rmtree(home, ignore_errors=True)
    copy = home / "refold"
    copy.mkdir(parents=True)
    archive = home / "refold.tar"
    _run("git", "-C", ROOT, "archive", "-o", archive, "HEAD")
    shutil.unpack_archive(archive, copy, filter="data")
    if trial.before:
        _inside(system, trial.before, {}, home)
    shutil.rmtree(home / ".cache", ignore_errors=True)  # what pip has downloaded already
    typed = trial.typed or "".join(_typed((copy / "README.md").read_text("utf-8"), trial))
    with ScriptedProvider(trial.answers or None) as provider:
        variables = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": provider.openai_url, **trial.environment}
        start = time.monotonic()
        code, printed = _inside(system, typed, variables, copy)
        minutes = (time.monotonic() - start) / 60
        calls = len(provider.received)
        largest = max((request.tokens for request in provider.received), default=0)
    fine = code == 0 and trial.shown in printed
    asked = f", {calls} calls of the model, the largest of {largest:,} tokens" if calls else ""
    print(f"{name}: {'ok' if fine else 'FAILED'} after {minutes:.1f} minutes{asked}", flush=True)
    if not fine:
        print(f"--- typed\n{typed}\n--- printed, exit code {code}\n{printed[-4000:]}\n---")
    return fine


def _typed(readme: str, trial: Trial) -> Iterator[str]:
    """Yield what a reader types for the sections: the shell's lines, and each Python block into a file, run once."""
    for section in trial.sections:
        text = readme.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
        program = ""
        for language, block in BLOCK.findall(text):
            if language == "sh":
                yield block.replace(*trial.replaced) if trial.replaced[0] else block
            else:
                program += block
        if program:
            yield f"cat > agent.py <<'END'\n{program}END\npython agent.py\n"


def _inside(system: Path, typed: str, variables: Mapping[str, str], folder: Path) -> tuple[int, str]:
    """Run a script in the system, in a mount and process namespace of its own; return exit code and output."""
    where = f"/{folder.relative_to(system)}" if folder.is_absolute() and folder.is_relative_to(system) else str(folder)
    home = str(Path(where).parent) if where.endswith("refold") else where
    mount = 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" /bin/bash -e -c "$2"'
    environment = {
        "HOME": home, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TERM": "xterm",
        "PIP_CERT": f"/{CERTIFICATES}", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **_index(), **variables,
    }  # fmt: skip
    done = subprocess.run(
        [_program("unshare"), "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", mount, "bash", system,
         f"cd {where}\n{typed}"],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def _run(program: str, *arguments: str | Path) -> None:
    subprocess.run([_program(program), *arguments], check=True)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SystemExit(f"this needs the program {name}")
    return path


def _index() -> dict[str, str]:
    """Return the variables of pip's index on this machine, where it is not the usual one."""
    found = {name: value for name, value in os.environ.items() if name in ("PIP_INDEX_URL", "PIP_TRUSTED_HOST")}
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    url = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return {"PIP_INDEX_URL": url, **found} if url else found


if __name__ == "__main__":
    main()
