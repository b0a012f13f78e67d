"""How long a check, a pass and the import take; one run, medians, beside what others need.

    python benchmarks/speed.py                     tables
    python benchmarks/speed.py --json              the same figures as JSON
    python benchmarks/speed.py --sizes 50k,200k --policies refold
    python benchmarks/speed.py --shapes            worst shapes of a million tokens; --tokens 10M for more
    python benchmarks/speed.py --session           a session of two million tokens in a window of 200,000

Three things are measured. (1) The check before each model call with `refold.Meter`, exact o200k counts: once cold,
then after each of ten appended exchanges. (2) One pass without a model to half the size: with a meter that has checked
the messages as they came, as an agent has it; once more after another exchange; and cold. The first is told as a
multiple of `json.loads` of the same conversation, too, since machines differ. Each conversation begins with an emptied
memo of counts, so nothing is known that an agent would not know. (3) `import refold` in a fresh interpreter.

With `--shapes` one cold pass to a quarter is measured instead, for conversations that are hard to read quickly
(`tools.sample_sessions.shapes`): seconds of processor time, tokens a second, the time as a multiple of one search for
words in the same text, and the time as a multiple of that for half as many tokens, which is 2 where time is linear.
Peers of `benchmarks/peers` that are installed run beside it, each until it has taken a minute.

With `--session` messages join a `refold.sessions.Session` one by one, and after each it is asked whether a compaction
is due, compacted if so, and its view taken, as in an agent. For each quarter of the conversation the table has the mean
of what such a call takes where nothing is compacted, and the median of the compactions.

All times are processor time, but that of the import. The collector of cyclic garbage runs before each pass and not in
it. Checks in a row run as in any program; a collection before each empties the processor's caches, as a long wait for
a model may, and has a row of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import subprocess
import sys
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import refold
from refold import policies
from refold._counting.memo import forget
from refold.sessions import Session, open_store

sys.path.append(str(Path(__file__).resolve().parent.parent))

from tools.sample_sessions.shapes import SHAPES
from tools.sample_sessions.sized import exchanges, sized

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"50k": 50_000, "200k": 200_000, "1M": 1_000_000}
REPEATS = {"50k": 9, "200k": 7, "1M": 3}
GOALS = {"check": 0.2, "import": 150.0, "pass": {"200k": 60.0, "1M": 250.0}}
SHAPE_GOAL = 500_000  # tokens a second
SESSION_WINDOW = 200_000
WORD = re.compile(r"\w+")
UNWANTED = ("asyncio", "socket", "ssl", "sqlite3", "http", "urllib.request", "splintr")
IMPORT = """
import sys, time
before = set(sys.modules)
start = time.perf_counter()
import refold
print((time.perf_counter() - start) * 1000, *sorted(set(sys.modules) - before))
"""


def timed(work: Callable[[], object]) -> float:
    """Return the milliseconds of one call, without a garbage collection in it."""
    gc.collect()
    gc.disable()
    try:
        return clocked(work)
    finally:
        gc.enable()


def clocked(work: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of one call."""
    start = process_time()
    work()
    return (process_time() - start) * 1000


def measure_check(tokens: int) -> dict[str, Any]:
    """Return the cold check and the medians of checks after one more exchange: in a row, and with cold caches."""
    messages = sized(tokens)
    forget()
    meter = refold.Meter(window=4_000_000, format="openai-chat", counter="exact")
    cold = timed(partial(meter.check, messages))
    row: list[float] = []
    alone: list[float] = []
    for times, clock in ((row, clocked), (alone, timed)):
        for exchange in islice(exchanges(99 - len(row)), 10):
            messages = messages + exchange
            times.append(clock(partial(meter.check, messages)))
    counts = [clocked(partial(refold.count, other, format="openai-chat")) for other in islice(exchanges(98), 10)]
    unchanged = [clocked(partial(meter.check, messages)) for _ in range(10)]
    exact = meter.check(messages).tokens == refold.check(messages, window=4_000_000, counter="exact").tokens
    return {
        "cold": cold, "appended": median(row), "slowest": max(row), "alone": median(alone),
        "counting": median(counts), "unchanged": median(unchanged), "exact": exact,
    }  # fmt: skip


def measure_pass(policy: str, tokens: int, repeats: int) -> dict[str, Any]:
    """Return the median milliseconds of a pass to half the size, with and without a meter, and of `json.loads`.

    `again` is a pass over the same messages and one more exchange, with the meter of the first.
    """
    metered: list[float] = []
    again: list[float] = []
    cold: list[float] = []
    loads, used = [], ""
    for seed in range(repeats):
        messages = sized(tokens, seed)
        text = json.dumps(messages)
        loads.append(min(timed(partial(json.loads, text)) for _ in range(3)))
        forget()
        meter = refold.Meter(budget=tokens, format="openai-chat", policy=policy)
        for end in range(1, len(messages) + 1):  # as an agent does, before every call
            meter.check(messages[:end])
        used = compacted(messages, policy, tokens // 2, meter, metered)
        longer = messages + next(exchanges(97))
        meter.check(longer)
        compacted(longer, policy, tokens // 2, meter, again)
        forget()
        compacted(messages, policy, tokens // 2, None, cold)
    unit = median(loads)
    return {
        "metered": median(metered),
        "ratio": median(metered) / unit,
        "again": median(again),
        "cold": median(cold),
        "loads": unit,
        "used": used,
    }


def compacted(messages: list[Any], policy: str, goal: int, meter: refold.Meter | None, times: list[float]) -> str:
    """Time one pass and return the share of the goal that it used, or the name of the error."""
    said: list[str] = []

    def run() -> None:
        try:
            done = refold.compact(messages, format="openai-chat", policy=policy, budget=goal, meter=meter)
            said.append(f"{done.sizes.after / goal:.0%}")
        except refold.RefoldError as error:
            said.append(type(error).__name__)

    times.append(timed(run))
    return said[0]


def measure_import() -> dict[str, Any]:
    """Return the median milliseconds of `import refold` in a fresh interpreter, and modules that should not be there."""
    runs = [
        subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(9)
    ]
    modules = runs[0][1:]
    return {
        "ms": median(float(run[0]) for run in runs),
        "modules": len(modules),
        "of_refold": sum(name.split(".")[0] == "refold" for name in modules),
        "unwanted": sorted(name for name in modules if name in UNWANTED),
    }


def measure_shape(policy: str, shape: str, tokens: int) -> dict[str, Any]:
    """Return what a cold pass to a quarter takes for a shape of that many tokens, and for one of half as many."""
    half = shape_pass(policy, SHAPES[shape](tokens // 2, 2))
    whole = shape_pass(policy, SHAPES[shape](tokens, 1))
    return whole | {"growth": whole["seconds"] / half["seconds"] * half["tokens"] / whole["tokens"] * 2}


def shape_pass(policy: str, messages: list[Any]) -> dict[str, Any]:
    """Return the size of a conversation, seconds of processor time of a cold pass, and that as searches for words."""
    tokens = refold.count(messages, format="openai-chat", counter="exact")
    text = json.dumps(messages)
    start = process_time()
    for _ in range(3):
        WORD.findall(text)
    search = (process_time() - start) / 3
    forget()
    gc.collect()  # and then it runs as in any program: it has a part in what a million names cost
    outcome = ""
    start = process_time()
    try:
        done = refold.compact(messages, format="openai-chat", policy=policy, budget=tokens // 4, counter="exact")
        outcome = f"{done.sizes.after / (tokens // 4):.0%}"
    except refold.RefoldError as error:
        outcome = type(error).__name__
    seconds = process_time() - start
    rate = int(tokens / seconds)
    return {"tokens": tokens, "seconds": seconds, "rate": rate, "searches": seconds / search, "used": outcome}


def measure_session(policy: str, tokens: int) -> list[dict[str, Any]]:
    """Return for each quarter of a long session what calls took between compactions, and the compactions."""
    messages = sized(tokens)
    forget()
    session = Session(open_store("memory"), window=SESSION_WINDOW, policy=policy, format="openai-chat")
    quarters: list[dict[str, Any]] = []
    for quarter in range(4):
        between: list[float] = []
        compactions: list[float] = []
        for message in messages[len(messages) * quarter // 4 : len(messages) * (quarter + 1) // 4]:
            before = len(session.plans)
            taken = clocked(partial(session_call, session, message))
            (between if len(session.plans) == before else compactions).append(taken)
        quarters.append({"calls": len(between), "between": mean(between), "compactions": compactions})
    return quarters


def session_call(session: Session, message: Any) -> None:
    """Do what an agent does before each call of its model."""
    session.append([message])
    if session.needs_compaction():
        session.compact()
    session.view()


def measure_peers(shape: str, tokens: int, names: str) -> dict[str, float | str]:
    """Return tokens a second of each peer that is installed, or why there are none."""
    sys.path.insert(0, str(Path(__file__).with_name("peers")))
    from adapters import peers
    from environments import Trouble, Worker, python_of

    messages = SHAPES[shape](tokens, 1)
    rates: dict[str, float | str] = {}
    for peer in peers():
        if not peer.family or not peer.budgeted or not python_of(peer.family).exists() or names == "none":
            continue
        if names and peer.name not in names.split(","):
            continue
        worker = None
        try:
            worker = Worker(peer.family, peer.name)
            with suppress(Trouble):  # a peer may refuse so small a goal
                worker.ask({"messages": sized(5_000), "budget": 2_500})  # what is imported at the first pass
            answer = worker.ask({"messages": messages, "budget": tokens // 4})
            rates[peer.name] = answer.get("error") or tokens / answer["seconds"]
        except Trouble as trouble:
            rates[peer.name] = str(trouble)
        finally:
            if worker:
                worker.close()
    return rates


def show_shapes(found: dict[str, Any], console: Console) -> None:
    """Print a table for each policy, and one for the peers."""
    columns = ("", "tokens", "seconds", "tokens/s", "searches", "growth", "goal used")
    for policy, shapes in found["shapes"].items():
        rows = [
            (
                *(name, f"{got['tokens']:,}", f"{got['seconds']:.2f}", f"{got['rate']:,}"),
                *(f"{got['searches']:.0f}x", f"{got['growth']:.1f}x", got["used"]),
            )
            for name, got in shapes.items()
        ]
        title = f"Cold pass of {policy} to a quarter (goal: {SHAPE_GOAL:,} tokens/s, growth 2x with twice the tokens)"
        console.print(_table(title, columns, rows, [], []))
    for shape, rates in found["peers"].items():
        rows = [(name, rate if isinstance(rate, str) else f"{rate:,.0f}") for name, rate in rates.items()]
        if rows:
            console.print(_table(f"Peers, {shape}", ("", "tokens/s"), rows, [], []))


def show_session(found: dict[str, Any], console: Console) -> None:
    """Print a table for each policy."""
    columns = ("quarter", "calls", "between compactions", "compactions", "median", "slowest")
    for policy, quarters in found["session"].items():
        rows = [
            (
                *(str(number), f"{got['calls']:,}", f"{got['between']:.2f}", str(len(times := got["compactions"]))),
                *(f"{figure(times):,.0f}" if times else "-" for figure in (median, max)),
            )
            for number, got in enumerate(quarters, 1)
        ]
        title = f"A session under {policy}, one message a call, in a window of {SESSION_WINDOW:,} tokens, ms"
        console.print(_table(title, columns, rows, [], []))


def show(found: dict[str, Any], console: Console) -> None:
    """Print the tables, with what others need below each."""
    peers = json.loads(Path(__file__).with_name("peers.json").read_bytes())
    sizes = list(found["check"])
    rows = [(name, *(f"{found['check'][size][key]:.3f}" for size in sizes)) for name, key in KINDS]
    title = f"Check before a call, ms (goal: under {GOALS['check']} at every size)"
    console.print(_table(title, ("", *sizes), rows, peers["check"], sizes))
    console.print(f"first check of a process, which loads vocabulary, format and policy: {found['first']:.0f} ms")
    if not all(each["exact"] for each in found["check"].values()):
        console.print("[red]a meter's count differs from a full count[/red]")
    rows = []
    for policy, by_size in found["pass"].items():
        rows.append((policy, *(f"{each['metered']:,.1f}" for each in by_size.values())))
        rows.append(("  times json.loads", *(f"{each['ratio']:.1f}x" for each in by_size.values())))
        rows.append(("  once more, after one more exchange", *(f"{each['again']:,.1f}" for each in by_size.values())))
        rows.append(("  without a meter", *(f"{each['cold']:,.0f}" for each in by_size.values())))
        rows.append(("  share of the goal used", *(each["used"] for each in by_size.values())))
    goals = ", ".join(f"{ms:g} at {size}" for size, ms in GOALS["pass"].items())  # type: ignore[attr-defined]
    title = f"One pass to half the size, no model, ms (goal: {goals}, at most 2x json.loads)"
    console.print(_table(title, ("", *sizes), rows, peers["pass"], sizes))
    got = found["import"]
    rows = [(f"refold ({got['modules']} modules, {got['of_refold']} of refold)", f"{got['ms']:.0f}")]
    console.print(_table(f"import, ms (goal: under {GOALS['import']:g})", ("", "ms"), rows, peers["import"], ["ms"]))
    console.print(f"modules that should not come in: {', '.join(got['unwanted']) or 'none'}")
    console.print(peers["about"], style="dim")


KINDS = (
    ("refold.Meter, cold", "cold"),
    ("refold.Meter, one more exchange", "appended"),
    ("  slowest of ten", "slowest"),
    ("  after a garbage collection, with cold caches", "alone"),
    ("  nothing new", "unchanged"),
    ("  refold.count of one exchange alone", "counting"),
)


def _table(title: str, heads: tuple[str, ...], rows: list[Any], peers: list[dict[str, str]], keys: list[str]) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row, style="bold" if not row[0].startswith(" ") else "")
    table.add_section()
    for peer in peers:
        table.add_row(peer["name"], *(peer.get(key, "-") for key in keys), style="dim")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--sizes", default=",".join(SIZES), help="of 50k, 200k, 1M")
    parser.add_argument("--policies", default=",".join(policies.names()))
    parser.add_argument("--shapes", nargs="?", const=",".join(SHAPES), help="measure worst shapes: all, or these")
    parser.add_argument("--tokens", default="1M", help="of a shape, such as 200k, 1M or 10M")
    parser.add_argument("--peers", default="", help="names of peers to measure beside shapes, or none; all installed")
    parser.add_argument("--session", nargs="?", const="2M", help="measure a long session, of so many tokens")
    options = parser.parse_args()
    if options.session:
        main_of_session(options)
        return
    if options.shapes:
        main_of_shapes(options)
        return
    console = Console(stderr=options.json)
    sizes = {name: SIZES[name] for name in options.sizes.split(",")}
    names = options.policies.split(",")
    tiny = [{"role": "user", "content": "The first check loads vocabulary, format and policy."}]
    first = timed(lambda: refold.Meter(window=100_000).check(tiny))
    found: dict[str, Any] = {"import": measure_import(), "first": first, "check": {}, "pass": {}}
    with console.status("measuring") as status:
        for size, tokens in sizes.items():
            status.update(f"check at {size}")
            found["check"][size] = measure_check(tokens)
        for name in names:
            found["pass"][name] = {}
            for size, tokens in sizes.items():
                status.update(f"pass of {name} at {size}")
                found["pass"][name][size] = measure_pass(name, tokens, REPEATS[size])
    if options.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        show(found, console)


def main_of_session(options: argparse.Namespace) -> None:
    """Measure a long session, for the policy `refold` if no other is named."""
    console = Console(stderr=options.json)
    names, tokens = named_policies(options), tokens_of(options.session)
    found: dict[str, Any] = {"session": {}}
    for name in names:
        shape_pass(name, sized(5_000))
        with console.status(f"a session under {name}"):
            found["session"][name] = measure_session(name, tokens)
    if options.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        show_session(found, console)


def named_policies(options: argparse.Namespace) -> list[str]:
    """Return the policies that are named, else `refold`."""
    return ["refold"] if options.policies == ",".join(policies.names()) else options.policies.split(",")


def tokens_of(size: str) -> int:
    """Return the number that is written as 200k or 2M."""
    return int(float(size.rstrip("kM")) * {"k": 1_000, "M": 1_000_000}[size[-1]])


def main_of_shapes(options: argparse.Namespace) -> None:
    """Measure worst shapes, for the policy `refold` if no other is named."""
    console = Console(stderr=options.json)
    names, tokens = named_policies(options), tokens_of(options.tokens)
    found: dict[str, Any] = {"tokens": options.tokens, "shapes": {name: {} for name in names}, "peers": {}}
    for name in names:
        shape_pass(name, sized(5_000))  # the first pass of a process loads vocabulary, format and policy
    with console.status("measuring") as status:
        for shape in options.shapes.split(","):
            for name in names:
                status.update(f"{shape}, {name}")
                found["shapes"][name][shape] = measure_shape(name, shape, tokens)
            status.update(f"{shape}, peers")
            found["peers"][shape] = measure_peers(shape, tokens, options.peers)
    if options.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        show_shapes(found, console)


if __name__ == "__main__":
    main()
