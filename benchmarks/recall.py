"""What each policy keeps of what the rest of a recorded session needed, at equal true sizes; no model judges anything.

    REFOLD_SHARED=… python benchmarks/recall.py                     recorded sessions in its folder data/
    python benchmarks/recall.py --policies refold,vibe --goals 50%,25%,15k
    python benchmarks/recall.py --folds DIR                         weights of refold._salience that never saw the source
    python benchmarks/recall.py --json                              every run, as JSON lines

A session is cut at 40, 60 and 80 % of its text, what came before is compacted to a share of its size, and the result is
asked for what the rest used. *all*, *far*, *ctx*: identifiers in the calls of the rest that the prefix had; far are those
that its newest 15 % have not; ctx counts only what stands in a line kept word for word, so that a bare list earns
nothing. *frr*: identifiers that the assistant writes before anything shows them again (refold.replay._judge); *ear*: lines
that later edits quote. A run above its goal by an exact count is tried again with a smaller one. Shares are mean / median
over cuts; the error is over sessions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from statistics import mean, median, stdev
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import refold
from refold import formats, policies
from refold._counting import counter_for
from refold._salience import model
from refold.core.messages import texts
from refold.replay import _judge as judge
from refold.replay._bounds import bounds
from refold.transcripts import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.messages import Message

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("REFOLD_SHARED", ROOT.parent / "shared"))
LEAST, MOST = 25_000, 400_000  # tokens of a session
SHARES = (0.4, 0.6, 0.8)  # of its text, where it is cut
FEWEST = 5  # identifiers that a cut must ask for
AGENTS = ("claude-code", "codex", "opencode", "pi", "mini-swe-agent", "openhands", "langgraph", "gemini-cli")
SUMMARY = "The work so far was looked into step by step, and the findings were compared with what was expected. " * 20
PATTERNS = [
    re.compile(pattern)
    for pattern in (
        r"(?:[\w.@-]+/)+[\w.@-]+",
        r"\b[\w-]+\.(?:py|ts|tsx|js|rs|go|java|c|h|cpp|md|toml|json|ya?ml|sql|sh|txt|cfg|html|css)\b",
        r"\b[A-Za-z]\w*(?:_\w+)+\b",
        r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b",
        r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b",
        r"\b\d{3,}\b",
    )
]
QUOTED = re.compile(r"""'([^'\n]{12,120})'|"([^"\n]{12,120})\"""")
WIDE = 170  # columns of the terminal that the tables need
COLUMNS = ("all", "far", "ctx", "frr", "lost", "ear", "kept")


class Run(Struct, frozen=True):
    """One policy at one cut of one session with one goal; shares, None where nothing was asked for."""

    policy: str
    agent: str
    session: str
    cut: int
    goal: str
    outcome: str
    used: float = 0.0
    seconds: float = 0.0
    scores: dict[str, float | None] = {}


class Text(Struct, frozen=True):
    """A text with its words, for looking identifiers up."""

    text: str
    words: frozenset[str]

    def has(self, name: str) -> bool:
        """Tell whether an identifier occurs, as a word or, where it is no single word, as it stands."""
        return name in self.words or (any(sign in name for sign in "/ .-") and name in self.text)

    @classmethod
    def of(cls, text: str) -> Text:
        """Return a text with its words."""
        return cls(text, frozenset(re.findall(r"\w+", text)))


def sources() -> list[Path]:
    """Return the files of recorded sessions of agents that are judged."""
    return [path for agent in AGENTS for path in sorted((SHARED / "data" / agent).rglob("*")) if path.is_file()]


def identifiers(text: str) -> set[str]:
    """Return the identifiers of a text, and its quoted strings."""
    found = {name for pattern in PATTERNS for name in pattern.findall(text)}
    found.update(one or other for one, other in QUOTED.findall(text))
    return {name for raw in found if 3 <= len(name := raw.strip("./-")) <= 160}


def wanted(history: Sequence[Message], future: Sequence[Message]) -> dict[str, list[str]]:
    """Return the identifiers in calls of the future that the history has, all of them and those far back."""
    asked = {
        name
        for message in future
        for call in message.calls
        for text in judge.strings_in(call)
        for name in identifiers(text)
    }
    whole = "\n".join(text for message in history for text in texts(message))
    before = Text.of(whole)
    system = Text.of("\n".join(text for message in history if message.role == "system" for text in texts(message)))
    tail = Text.of(whole[int(len(whole) * 0.85) :])
    every = sorted(name for name in asked if before.has(name) and not system.has(name))
    return {"all": every, "far": [name for name in every if not tail.has(name)]}


def scored(
    names: dict[str, list[str]], history: Sequence[Message], future: Sequence[Message], kept: Sequence[Message]
) -> dict[str, float | None]:
    """Return the figures of one result."""
    there = Text.of("\n".join(text for message in kept for text in texts(message)))
    original = {line for message in history for text in texts(message) for line in text.split("\n")}
    lines = (line for message in kept for text in texts(message) for line in text.split("\n"))
    verbatim = Text.of("\n".join(line for line in lines if len(line.strip()) >= 20 and line in original))
    needed = judge.needed_atoms(history, future)
    found = judge.recall(needed, history, kept)
    anchors = judge.edit_anchors(history, future)
    return {
        "all": _share(names["all"], there),
        "far": _share(names["far"], there),
        "ctx": _share(names["all"], verbatim),
        "frr": found.present if needed else None,
        "lost": found.lost if needed else None,
        "ear": judge.lines_kept(anchors, kept) if anchors else None,
        "kept": judge.constraints_kept(history, kept),
    }


def _share(names: Sequence[str], where: Text) -> float | None:
    return sum(map(where.has, names)) / len(names) if names else None


def runs_of(path: Path, names: Sequence[str], goals: Sequence[str], folds: Path | None) -> list[Run]:
    """Return every run on the sessions of a file."""
    agent, source = path.relative_to(SHARED / "data").parts[:2]
    if folds and (fold := folds / f"{source}.json").exists():  # else training had nothing of this source
        held = model.loaded(fold.read_bytes())
        model.shipped = cache(lambda: held)  # weights that were trained without this source
    try:
        sessions = read(path, lenient=True)
    except refold.RefoldError:
        return []
    found: list[Run] = []
    for session in sessions:
        messages = formats.read(formats.find(session.format), session.messages).messages
        counter = counter_for("gpt-4o")
        sizes = [counter.message(message) for message in messages]
        if sum(sizes) < LEAST or not any(message.calls for message in messages):
            continue
        for cut in _cuts(messages, sizes):
            history, future = messages[:cut], messages[cut:]
            asked = wanted(history, future)
            if len(asked["all"]) < FEWEST:
                continue
            size = sum(sizes[:cut])
            for goal in goals:
                tokens = _tokens(goal, size)
                if tokens < size:
                    case = (agent, f"{source}/{path.stem}{session.name}", cut, goal)
                    known = session.messages[:cut]
                    found += [_run(name, case, session.format, known, tokens, asked, history, future) for name in names]
                    found.append(_bounds(case, tokens, history, future))
    return found


def _cuts(messages: Sequence[Message], sizes: Sequence[int]) -> list[int]:
    """Return the places before an assistant's message at these shares of the text, the newest tokens left out."""
    total, spent = min(sum(sizes), MOST), 0
    found: list[int] = []
    for place, message in enumerate(messages):
        if (
            len(found) < len(SHARES)
            and spent >= SHARES[len(found)] * total
            and message.role == "assistant"
            and place > 4
        ):
            found.append(place)
        spent += sizes[place]
    return found


def _tokens(goal: str, size: int) -> int:
    if goal.endswith("%"):
        return int(size * float(goal[:-1]) / 100)
    return int(float(goal.rstrip("k")) * (1_000 if goal.endswith("k") else 1))


def _run(
    policy: str,
    case: tuple[str, str, int, str],
    format: str,
    known: list[Any],
    goal: int,
    asked: dict[str, list[str]],
    history: Sequence[Message],
    future: Sequence[Message],
) -> Run:
    counter = counter_for("gpt-4o")
    start = perf_counter()
    aim = goal
    for _ in range(3):
        try:
            made = refold.compact(
                known,
                format=format,
                policy=policy,
                budget=aim,
                counter=counter,
                force=True,
                summarize=lambda _: SUMMARY,
            )
        except refold.RefoldError as error:
            return Run(policy, *case, outcome=type(error).__name__)
        kept = formats.read(formats.find(format), made.messages).messages
        size = sum(map(counter.message, kept)) + counter.per_conversation
        if size <= goal:
            scores = scored(asked, history, future, kept)
            return Run(policy, *case, "fits", size / goal, perf_counter() - start, scores)
        aim = int(aim * goal / size * 0.99)
    return Run(policy, *case, outcome="over")


def _bounds(case: tuple[str, str, int, str], goal: int, history: Sequence[Message], future: Sequence[Message]) -> Run:
    """Return what an oracle would keep of the need, as a run of its own."""
    found = bounds(judge.needed_atoms(history, future), history, goal)
    return Run("(oracle)", *case, "bound", scores={"frr": found.oracle})


def tables(runs: Iterable[Run], goals: Sequence[str]) -> Iterable[Table]:
    """Yield a table for each agent and goal: one row a policy."""
    some = list(runs)
    groups = (("claude-code",), ("codex",), ("opencode", "pi"), AGENTS[:4], AGENTS[4:])
    for group in groups:
        for goal in goals:
            here = [run for run in some if run.agent in group and run.goal == goal]
            if not here:
                continue
            cuts = len({(run.session, run.cut) for run in here})
            table = Table(title=f"{', '.join(group)} · {goal} · {cuts} cuts")
            for column in ("policy", *COLUMNS, "used", "runs"):
                table.add_column(column, justify="left" if column == "policy" else "right")
            for policy in dict.fromkeys(run.policy for run in here):
                mine = [run for run in here if run.policy == policy]
                fits = [run for run in mine if run.scores]
                used = f"{mean(run.used for run in fits):.0%}" if any(run.used for run in fits) else "–"
                table.add_row(policy, *(_cell(fits, column) for column in COLUMNS), used, f"{len(fits)}/{len(mine)}")
            yield table


def _cell(runs: Sequence[Run], column: str) -> str:
    """Return the mean and the median over cuts, and the standard error of the mean by session."""
    by_session: dict[str, list[float]] = {}
    for run in runs:
        score = run.scores.get(column)
        if score is not None:
            by_session.setdefault(run.session, []).append(score)
    if not by_session:
        return "–"
    means = [mean(scores) for scores in by_session.values()]
    error = f" ±{stdev(means) / len(means) ** 0.5:.2f}" if len(means) > 1 else ""
    every = [score for scores in by_session.values() for score in scores]
    return f"{mean(every):.3f}/{median(every):.3f}{error}"


def main() -> None:
    """Run every policy on every cut, on all cores, and print the tables."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--policies", default=",".join(policies.names()))
    asked.add_argument("--goals", default="50%,25%,10%")
    asked.add_argument("--only", default="", help="a part of the paths to run")
    asked.add_argument("--folds", type=Path)
    asked.add_argument("--json", action="store_true")
    options = asked.parse_args()
    files = [path for path in sources() if options.only in str(path)]
    if not files:
        sys.exit(f"no recorded sessions in {SHARED / 'data'}; set REFOLD_SHARED")
    names, goals = options.policies.split(","), options.goals.split(",")
    found: list[Run] = []
    with ProcessPoolExecutor() as pool, Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("files", total=len(files))
        for some in pool.map(runs_of, files, *([each] * len(files) for each in (names, goals, options.folds))):
            found += some
            progress.advance(task)
    if options.json:
        for run in found:
            print(json.dumps(to_builtins(run)))
        return
    console = Console(width=max(Console().width, WIDE))
    for table in tables(found, goals):
        console.print(table)


if __name__ == "__main__":
    main()
