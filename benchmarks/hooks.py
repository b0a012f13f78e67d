"""What an installed agent waits for: the answer of a hook, and the start of the MCP server.

    python benchmarks/hooks.py            # a table: processor time and wall time, in milliseconds
    python benchmarks/hooks.py --json

Each row is the smallest and the median of fresh processes. Processor time is what can be compared on a machine with
other work, and `python -c pass` is the unit: what the same interpreter takes to do nothing. Where a server answers, its
own time is in the wall time alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from refold._install.hook_server import answering_hooks
from refold._install.options import InstallOptions

LINES = [f"step {number:05} of the build passed in {number * 7919 % 1000} ms" for number in range(700)]
SERVED = "beside `refold mcp`"
OPENING = (
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                 "clientInfo": {"name": "bench", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        installed = InstallOptions(Path(folder))
        for name, run in cases(installed).items():
            with answering_hooks(installed.data) if SERVED in name else nullcontext():
                run()  # compiles what it imports
                times = [timed(run) for _ in range(options.runs)]
            processor, wall = zip(*times, strict=True)
            rows.append({"case": name, "processor": figures(processor), "wall": figures(wall)})
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    print("| case | processor time: least, median | wall time: least, median |\n|---|---|---|")
    for row in rows:
        print("| {} | {:.0f}, {:.0f} ms | {:.0f}, {:.0f} ms |".format(row["case"], *row["processor"], *row["wall"]))
    return 0


def cases(installed: InstallOptions) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name."""

    def hook(event: str, **fields: object) -> Callable[[], object]:
        content = json.dumps({"hook_event_name": event, "session_id": "s", **fields}).encode()
        return lambda: ran(installed.hook_arguments("claude-code", event), content)

    def output(text: str) -> Callable[[], object]:
        return hook("PostToolUse", tool_name="Bash", tool_use_id="call", tool_input={"command": "make"},
                    tool_response={"stdout": text})  # fmt: skip

    program, words = installed.server
    long, longer, longest = (output("\n".join(LINES * times)[: 28_000 * times]) for times in (1, 10, 100))
    return {
        "`python -c pass`": lambda: ran([installed.python, "-c", "pass"], b""),
        "hook: a short output": output("ok"),
        "hook: a session starts": hook("SessionStart", source="startup"),
        "hook: an output of 28,000 characters": long,
        f"hook: the same, {SERVED}": long,
        "hook: an output of 280,000 characters": longer,
        f"hook: the same output, {SERVED}": longer,
        "hook: an output of 2,800,000 characters": longest,
        "`refold mcp`: to the answers of `initialize` and `tools/list`": lambda: answered([program, *words]),
    }


def ran(command: Sequence[str], content: bytes) -> None:
    """Run a program to its end."""
    subprocess.run(command, input=content, check=True, capture_output=True)


def answered(command: Sequence[str]) -> None:
    """Start a server, wait until it has said what tools it has, and end it; nothing else is waited for."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in OPENING:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
            if "id" in message:
                answer = json.loads(server.stdout.readline())
                assert answer["id"] == message["id"]
        assert answer["result"]["tools"]
        server.kill()


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of the processes that a call runs, and its wall time, in milliseconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run()
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), 1000 * wall


def figures(times: Sequence[float]) -> tuple[float, float]:
    """Return the least and the median."""
    return round(min(times), 1), round(statistics.median(times), 1)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
