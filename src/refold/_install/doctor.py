"""What can be seen of an installation: is everything in its place, is it called, what failed, and which versions."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold._install.agents import AGENTS, plan_of
from refold._install.changes import InstallRecord
from refold._install.hook import LOG
from refold.errors import UsageError

if TYPE_CHECKING:
    from refold._install.options import InstallOptions

__all__ = ["Finding", "calls", "findings", "installed"]

SLOW = 100  # milliseconds that a hook may take


class Finding(Struct, frozen=True):
    """One thing that was looked at: whether it is well, and in words what was found."""

    what: str
    well: bool
    words: str


def installed(data: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the agents that have an installation, each with its options."""
    for path in sorted((data / "installed").glob("*.json")):
        name = next((agent for agent in AGENTS if path.stem == agent or path.stem.startswith(f"{agent}-")), "")
        if name:
            yield name, InstallRecord(path).load()["options"]


def findings(agent: str, options: InstallOptions) -> Iterator[Finding]:
    """Yield what is found of an agent's installation; nothing is started but the agent's program for its version."""
    yield _version(agent)
    try:
        changed = [change.path for change in plan_of(agent, options, install=True) if change.now != change.after]
    except UsageError as error:
        yield Finding("settings", False, str(error))
        return
    words = "as installed" if not changed else f"{changed[0]} is not as installed: run `refold install {agent}` again"
    yield Finding("settings", not changed, words)
    if options.hooks:
        yield from _hooks(agent, options.data)
    if options.gateway:
        yield _gateway(options.gateway)


def calls(data: Path) -> list[dict[str, Any]]:
    """Return the calls of hooks in the log, oldest first."""
    entries = []
    for name in (f"{LOG}.1", LOG):
        try:
            lines = (data / name).read_text("utf-8").splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                entries.append(json.loads(line))
            except ValueError:  # a line that is not whole
                continue
    return entries


def _hooks(agent: str, data: Path) -> Iterator[Finding]:
    own = [entry for entry in calls(data) if entry.get("agent") == agent]
    timed = [entry for entry in own if "ms" in entry]
    if not timed:
        yield Finding("hooks", False, f"never called: start {agent} and let it run a command")
        return
    by_event: dict[str, int] = {}
    for entry in timed:
        by_event[entry["event"]] = by_event.get(entry["event"], 0) + 1
    last = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timed[-1]["at"]))
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(by_event.items()))
    shortened = sum("shortened" in entry for entry in own)
    digests = sum("digest" in entry for entry in own)
    yield Finding("hooks", True, f"{counts}; {shortened:,} outputs shortened, {digests:,} digests; last at {last}")
    times = sorted(entry["ms"] for entry in timed)
    late = sum(each > SLOW for each in times)
    words = f"median {times[len(times) // 2]:,.0f} ms, longest {times[-1]:,.0f} ms, {late:,} over {SLOW} ms"
    yield Finding("time", late <= len(times) // 20, words)
    faults = [entry for entry in own if "error" in entry]
    if faults:
        yield Finding("faults", False, f"{len(faults):,}, the last: {faults[-1]['event']}: {faults[-1]['error']}")


def _version(agent: str) -> Finding:
    program = shutil.which(AGENTS[agent].program)
    if program is None:
        return Finding("version", False, f"{AGENTS[agent].program} is not in PATH")
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("version", False, f"{program} does not say its version ({type(error).__name__})")
    words = " ".join((done.stdout or done.stderr).split())[:80]
    return Finding("version", done.returncode == 0, f"{AGENTS[agent].program} {words}")


def _gateway(url: str) -> Finding:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    try:
        with urlopen(f"{url}/livez", timeout=5) as answer:  # noqa: S310 # the user's own gateway
            return Finding("gateway", answer.status == 200, f"{url} answers")
    except HTTPError as error:
        return Finding("gateway", False, f"{url} answers {error.code}: is it a gateway of refold?")
    except (URLError, OSError) as error:
        why = getattr(error, "reason", error)  # of a URLError, what the system says
        why = getattr(why, "strerror", None) or why
        return Finding("gateway", False, f"{url} does not answer ({why}): start `refold serve`")
