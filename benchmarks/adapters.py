"""What a turn costs in an adapter at turn 50 and at turn 1,000, through the real framework.

    .venv-adapters/langchain/bin/python -m benchmarks.adapters langchain     # after `make adapters`
    .venv-adapters/strands/bin/python -m benchmarks.adapters strands --turns 200

The harness is that of the adapter's tests, the provider the scripted one. A turn is two calls of the model, with one
output of a tool; compactions are in force. What is measured is the processor time of our own functions and of what
they call of Python's, not the framework's: it copies, stores and sends its history as it likes. A profiler takes the
time, which makes it larger, early and late alike. A figure is the mean of thirty turns: that is more than from one
compaction to the next, and there has been one before.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from refold.testing.adapters import AdapterHarness, AgentSetup
from refold.testing.provider import ReceivedRequest, ScriptedProvider, ScriptedReply

ROOT = Path(__file__).resolve().parent.parent
OURS = str(ROOT / "src" / "refold")
TESTING = str(ROOT / "src" / "refold" / "testing")
EARLY, MEASURED = 50, 30  # the turn that is early, and turns that are measured up to it and up to the last
WINDOW = 16_000


def main(arguments: Sequence[str]) -> int:
    """Print a line for an adapter."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("adapter", help="the name of its module in tests/adapters, such as openai-agents")
    parser.add_argument("--turns", type=int, default=1_000)
    options = parser.parse_args(arguments)
    module = importlib.import_module(f"tests.adapters.test_{options.adapter.replace('-', '_')}")
    harness = next(
        each for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, AdapterHarness) and each.__module__ == module.__name__
    )  # fmt: skip
    times = costs(harness, options.turns)
    early, late = (statistics.mean(times[last - MEASURED : last]) for last in (EARLY, options.turns))
    print(f"| {options.adapter} | {early * 1000:.1f} ms | {late * 1000:.1f} ms | {late / early:.2f} |")
    return 0


def costs(harness: type[AdapterHarness], turns: int) -> list[float]:
    """Return the seconds that our functions take in each turn, 0 of those that are not measured."""

    def behave(received: ReceivedRequest) -> ScriptedReply:
        if received.messages[-1].results:
            return ScriptedReply("I have read it.")
        return ScriptedReply("I read it.", [("read", {"path": f"part_{received.number}.py"})])

    def read(path: str) -> str:
        return "\n".join(f"{path}:{line}: limit_{line} = {line * 31 % 89}" for line in range(40))

    times = []
    with TemporaryDirectory() as folder, ScriptedProvider(behave=behave, strict=False) as provider:
        agent = harness(
            AgentSetup(provider.openai_url, provider.url, harness.model, "You read parts of programs.", read,
                       Path(folder), {"window": WINDOW})
        )  # fmt: skip
        try:
            for turn in range(1, turns + 1):
                measured = EARLY - MEASURED < turn <= EARLY or turn > turns - MEASURED
                profile = cProfile.Profile(time.thread_time)
                if measured:
                    profile.enable()
                agent.run("alpha", f"alpha: where is the limit set? This is question {turn}.")
                profile.disable()
                times.append(own_time(profile) if measured else 0.0)
                provider.received.clear()  # else it keeps all requests
        finally:
            agent.close()
    return times


def own_time(profile: cProfile.Profile) -> float:
    """Return the time in our functions, and in the functions written in C that they call."""
    total = 0.0
    for entry in profile.getstats():
        name = getattr(entry.code, "co_filename", "")
        if name.startswith(OURS) and not name.startswith(TESTING):
            total += entry.inlinetime + sum(each.inlinetime for each in entry.calls or () if isinstance(each.code, str))
    return total


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
