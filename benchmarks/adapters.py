"""What a turn costs in an adapter at turn 50 and at turn 1,000, through the real framework.

    .venv-adapters/langchain/bin/python -m benchmarks.adapters langchain     # after `make adapters`
    .venv-adapters/strands/bin/python -m benchmarks.adapters strands --turns 200

The harness is that of the adapter's tests, the provider the scripted one. A measured turn is two calls of the model,
with one output of a tool; compactions are in force. The turns between the early and the late ones are short, and written
into the framework's own history without a call of the model, since some frameworks write the whole history at each step:
a thousand turns take hours, and gigabytes of LangGraph's checkpointer. One turn in forty of them runs, and compacts.

What is measured is the processor time of our own functions and of what they call of Python's, and beside it that of the
framework, which copies, stores and sends its history as it likes. A profiler takes the time, which makes it larger, early
and late alike. Garbage is collected between measured turns only: it takes time for all objects of the process, from
whoever allocates next. Figures are of twenty turns: their median is a turn without a compaction, their mean has the
compactions, which are frequent in this small window and read the originals of the whole history.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import importlib
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.adapter_histories import FILLS
from refold.testing.adapters import AdapterHarness, AgentSetup
from refold.testing.provider import ReceivedRequest, ScriptedProvider, ScriptedReply

ROOT = Path(__file__).resolve().parent.parent
OURS = str(ROOT / "src" / "refold")
TESTING = str(ROOT / "src" / "refold" / "testing")
EARLY, MEASURED = 50, 20  # the turn that is early, and turns that are measured up to it and up to the last
FIRST = 10  # turns that run before those that are measured late: a compaction falls among them
WRITTEN = 40  # turns of which one runs and the others are written into the history
WINDOW = 6_000  # small, as SDKs take milliseconds for each message of a request
NAME = "alpha"  # of the conversation
QUESTION = f"{NAME}: where is the limit set? This is question {{}}."


class TurnCost(NamedTuple):
    """The processor seconds of a turn: in our functions, and in all others."""

    refold: float
    framework: float


FIGURES: dict[str, Callable[[list[TurnCost]], float]] = {
    "refold, median": lambda costs: statistics.median(cost.refold for cost in costs),
    "refold, mean": lambda costs: statistics.mean(cost.refold for cost in costs),
    "framework, median": lambda costs: statistics.median(cost.framework for cost in costs),
}


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
    costs = costs_of(harness, FILLS[options.adapter], options.turns)
    turn = f"turn {options.turns:,}"
    print(f"| {options.adapter} | turn {EARLY} | {turn} | times |")
    print("| --- | ---: | ---: | ---: |")
    for name, figure in FIGURES.items():
        early, late = (1_000 * figure(some) for some in costs)
        print(f"| {name} | {early:.1f} ms | {late:.1f} ms | {late / early:.1f} |")
    return 0


def costs_of(
    harness: type[AdapterHarness], fill: Callable[[AdapterHarness, str, list[tuple[str, str]]], None], turns: int
) -> tuple[list[TurnCost], list[TurnCost]]:
    """Return what the last turns up to the early one cost, and those up to the last."""

    def behave(received: ReceivedRequest) -> ScriptedReply:
        if received.messages[-1].results:
            return ScriptedReply("I have read it.")
        return ScriptedReply("I read it.", [("read", {"path": f"part_{received.number}.py"})])

    def read(path: str, lines: int = 40) -> str:
        return "\n".join(f"{path}:{line}: limit_{line} = {line * 31 % 89}" for line in range(lines))

    early: list[TurnCost] = []
    late: list[TurnCost] = []
    with TemporaryDirectory() as folder, ScriptedProvider(behave=behave, strict=False) as provider:
        agent = harness(
            AgentSetup(provider.openai_url, provider.url, harness.model, "You read parts of programs.", read,
                       Path(folder), {"window": WINDOW})
        )  # fmt: skip
        try:
            notes: list[tuple[str, str]] = []
            for turn in range(1, turns + 1):
                if EARLY < turn <= turns - MEASURED - FIRST and turn % WRITTEN:
                    notes.append((f"{NAME}: take note of {turn}.\n{read(f'note_{turn}.md', 15)}", "Noted."))
                    continue
                if notes:
                    fill(agent, NAME, notes)
                    notes = []
                if EARLY - MEASURED < turn <= EARLY or turn > turns - MEASURED:
                    cost = cost_of(lambda: agent.run(NAME, QUESTION.format(turn)))  # noqa: B023 - called at once
                    (early if turn <= EARLY else late).append(cost)
                else:
                    agent.run(NAME, QUESTION.format(turn))
                provider.received.clear()  # else it keeps all requests
        finally:
            agent.close()
    return early, late


def cost_of(run: Callable[[], object]) -> TurnCost:
    """Return the time in our functions and in the functions written in C that they call, and the framework's.

    Some frameworks run an agent in a thread of its own. The provider's threads are left out.
    """
    profiles = [cProfile.Profile(time.thread_time)]

    def begin(*_: object) -> None:
        sys.setprofile(None)
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    gc.collect()
    gc.disable()
    profiles[0].enable()
    run()
    profiles[0].disable()
    gc.enable()
    threading.setprofile(None)  # type: ignore[arg-type] # which ends it
    total = own = 0.0
    for number, profile in enumerate(profiles):
        entries = profile.getstats()
        if number and any(getattr(entry.code, "co_filename", "").startswith(TESTING) for entry in entries):
            continue
        for entry in entries:
            total += entry.inlinetime
            name = getattr(entry.code, "co_filename", "")
            if name.startswith(OURS) and not name.startswith(TESTING):
                own += entry.inlinetime
                own += sum(each.inlinetime for each in entry.calls or () if isinstance(each.code, str))
    return TurnCost(own, total - own)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
