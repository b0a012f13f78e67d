"""Writes the tables that benchmarks measured into the pages of `docs/`, between their marks.

    python -m benchmarks.pages recall ROWS.jsonl ...       docs/quality.md, its picture, and docs/quality-by-agent.md
    python -m benchmarks.pages questions ROWS.jsonl ...    docs/quality.md; stress and games as well
    python -m benchmarks.pages bills ROWS.jsonl ...        docs/policies/refold.md
    python -m benchmarks.pages shapes FOUND.json ...       docs/salience.md

ROWS are what the benchmark of that name writes with `--json`; FOUND is what `benchmarks/speed.py --shapes … --json` writes.
Of several files the later ones replace rows of the earlier ones, so that one policy can be measured again alone. Intervals
are of 95 %: of recall over sessions, of shares of games and questions by Wilson's formula.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from msgspec import convert

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks import bills, questions, recall, tasks
from benchmarks.doc_tables import table, write
from benchmarks.peers import plot
from tools.sample_sessions.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.recall import Run

DOCS = Path(__file__).parent.parent / "docs"
OURS = "refold"
ORACLE = "(oracle)"
NONE = "–"
GOALS = ("50%", "25%", "10%", "15k", "40k")
CODING = recall.AGENTS[:4]
AGENTS = {"Claude Code": ("claude-code",), "Codex": ("codex",), "opencode and pi": ("opencode", "pi")}
COLUMNS = {  # of recall, and how a table names them
    "frr": "FRR",
    "fic": "FRR in context",
    "ctx": "ctx",
    "all": "all",
    "far": "far",
    "ear": "edit anchors",
    "kept": "instructions",
    "ends": "turn ends",
    "lost": "lost",
    "new": "invented",
}
PICTURED = {"fic": "needed names, in context", "ear": "lines that edits quote", "ends": "lines of answers"}
SESSIONS = 4  # the fewest that an interval is told of: of two or three it is wider than all shares
SHAPE = 20  # answers that a cell of the questions is told of


def of_files(paths: Sequence[Path], key: Callable[[dict[str, Any]], tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the rows of files of JSON lines, of rows with the same key the last one; end at what is no row."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in paths:
        try:
            lines = path.read_text("utf-8").splitlines()
        except OSError as error:
            sys.exit(f"{path}: {error.strerror}")
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                rows[key(row)] = row
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                sys.exit(f"{path}:{number}: no row that the benchmark writes with --json ({error})")
        if not lines:
            sys.exit(f"{path}: no rows")
    return list(rows.values())


def ordered(names: Iterable[str]) -> list[str]:
    """Return names of policies: refold, the other policies, plain rivals, peers."""
    known = [OURS, *(name for name in recall.policies.names() if name != OURS), *recall.rivals.RIVALS]
    rest = dict.fromkeys(names)
    return [*(name for name in known if name in rest), *(name for name in rest if name not in known)]


def told(name: str) -> str:
    """Return the name of a policy as tables show it."""
    name = name.removeprefix(recall.rivals.PEER)
    return f"**{name}**" if name == OURS else name


def interval(run_scores: Sequence[tuple[str, float]], digits: int = 2) -> str:
    """Return the mean of scores with their sessions, and half the interval of the mean over sessions."""
    by_session: dict[str, list[float]] = {}
    for session, score in run_scores:
        by_session.setdefault(session, []).append(score)
    if not by_session:
        return NONE
    means = [mean(scores) for scores in by_session.values()]
    here = f"{mean(score for _, score in run_scores):.{digits}f}".replace("-", "−")
    if len(means) < SESSIONS:
        return here
    half = recall.T95[min(len(means) - 2, len(recall.T95) - 1)] * stdev(means) / len(means) ** 0.5
    return f"{here} ±{half:.{digits}f}" if half > 0.5 * 10**-digits else here.removesuffix(f".{'0' * digits}")


def recall_table(runs: Sequence[Run], agents: Sequence[str]) -> str:
    """Return the table of recall for some agents: for each goal a row a policy."""
    body: list[list[str]] = []
    for goal in GOALS:
        here = [run for run in runs if run.agent in agents and run.goal == goal and run.policy != ORACLE]
        ours = {recall.pair_key(run, "*"): run for run in here if run.policy == OURS and run.scores}
        for policy in ordered(run.policy for run in here):
            mine = [run for run in here if run.policy == policy]
            fits = [run for run in mine if run.scores]
            cells = [interval(_scores(fits, column), 3 if column == "new" else 2) for column in COLUMNS]
            pairs = [
                (run.session, one - other)
                for run in fits
                if (same := ours.get(recall.pair_key(run, "*")))
                and (one := run.scores.get("fic")) is not None
                and (other := same.scores.get("fic")) is not None
            ]
            apart = "" if policy == OURS else interval(pairs)
            count = f"{len(fits)} of {len(mine)}"
            body.append([goal.replace("%", " %"), told(policy), count, *cells[:2], apart, *cells[2:]])
    names = list(COLUMNS.values())
    return table(["goal", "policy", "cuts", *names[:2], "less refold's", *names[2:]], body, left=2)


def _scores(runs: Sequence[Run], column: str) -> list[tuple[str, float]]:
    return [(run.session, score) for run in runs if (score := run.scores.get(column)) is not None]


def recall_picture(runs: Sequence[Run]) -> str:
    """Return the plot of what stays of three sorts of content at 10, 25 and 50 %."""
    lines = []
    for policy in ordered(run.policy for run in runs if run.policy != ORACLE):
        mine = [run for run in runs if run.policy == policy and run.agent in CODING]
        panels = []
        for column in PICTURED:
            scores = {goal: _scores([run for run in mine if run.goal == goal], column) for goal in plot.RADII}
            panels.append({goal: mean(score for _, score in some) for goal, some in scores.items() if some})
        name = policy.removeprefix(recall.rivals.PEER)
        lines.append(plot.Line(name, policy == OURS, panels))
    said = (
        "For each policy and rival, means at 10, 25 and 50 % of the size before; the tables of the page say the same."
    )
    return plot.drawn(lines, list(PICTURED.values()), "What compaction keeps at the same size", said)


def recall_pages(paths: Sequence[Path]) -> None:
    """Write the tables and the picture of recall."""
    rows = of_files(paths, lambda row: tuple(row[key] for key in ("policy", "agent", "session", "cut", "goal")))
    runs = [convert(row, recall.Run) for row in rows]
    write(DOCS / "quality.md", {"recall": recall_table(runs, CODING)})
    (DOCS / "pictures" / "quality.svg").write_text(recall_picture(runs), "utf-8")
    by_agent = {agent.replace(" ", "-").lower(): recall_table(runs, names) for agent, names in AGENTS.items()}
    write(DOCS / "quality-by-agent.md", by_agent)


def questions_table(found: Sequence[questions.Answer]) -> str:
    """Return the table of answers kept: for each goal a row a policy, a column a shape."""
    shapes = list(dict.fromkeys(each.shape for each in found))
    body = []
    for goal in dict.fromkeys(each.goal for each in found):
        here = [each for each in found if each.goal == goal]
        for policy in ordered(each.policy for each in here):
            mine = [each for each in here if each.policy == policy]
            kept = {shape: [each.kept for each in mine if each.shape == shape] for shape in shapes}
            cells = [f"{SHAPE * mean(some):.1f}" if some else NONE for some in kept.values()]
            every = [each.kept for each in mine]
            low, high = (SHAPE * share for share in tasks.wilson(every))
            total = f"{SHAPE * mean(every):.1f} ({low:.1f}–{high:.1f})"
            body.append([goal.replace("%", " %"), told(policy), *cells, total])
    return table(["goal", "policy", *shapes, "mean"], body, left=2)


def stress_table(found: Sequence[questions.Answer]) -> str:
    """Return the table of hard cases: a row a policy, in each cell the shares kept by goal."""
    goals, cases = (list(dict.fromkeys(getattr(each, name) for each in found)) for name in ("goal", "shape"))
    body = []
    for policy in ordered(each.policy for each in found):
        cells = []
        for case in cases:
            mine = {
                goal: [each.kept for each in found if (each.policy, each.shape, each.goal) == (policy, case, goal)]
                for goal in goals
            }
            cells.append(
                " / ".join(f"{mean(some):.2f}".removesuffix(".00") if some else NONE for some in mine.values())
            )
        body.append([told(policy), *cells])
    return table(["", *cases], body)


def questions_pages(paths: Sequence[Path], name: str) -> None:
    """Write the table of questions or that of hard cases."""
    rows = of_files(paths, lambda row: tuple(row[key] for key in ("policy", "shape", "language", "seed", "goal")))
    found = [convert(row, questions.Answer) for row in rows]
    write(DOCS / "quality.md", {name: stress_table(found) if name == "stress" else questions_table(found)})


def games_pages(paths: Sequence[Path]) -> None:
    """Write the table of games won: a row a policy, a column a goal."""
    rows = of_files(paths, lambda row: tuple(row[key] for key in ("policy", "seed", "goal")))
    found = [convert(row, tasks.Attempt) for row in rows]
    goals = [goal for goal in GOALS if any(each.goal == goal for each in found)]
    full = {
        goal: [each.within(tasks.SLACK) for each in found if (each.policy, each.goal) == (tasks.FULL, goal)]
        for goal in goals
    }
    body = []
    for policy in [tasks.FULL, *ordered(each.policy for each in found if each.policy != tasks.FULL)]:
        won = {
            goal: [each.within(tasks.SLACK) for each in found if (each.policy, each.goal) == (policy, goal)]
            for goal in goals
        }
        cells = []
        for some in won.values():
            low, high = tasks.wilson(some)
            cells.append(f"{mean(some):.0%} ({low:.0%}–{high:.0%})")
        share = f"{mean(won['25%']) / mean(full['25%']):.1%}" if "25%" in won else NONE
        body.append([told(policy), *cells, share])
    head = ["", *(f"won at {goal.replace('%', ' %')}" for goal in goals), "at 25 %, of the full text"]
    write(DOCS / "quality.md", {"games": table(head, body)})


def bills_pages(paths: Sequence[Path]) -> None:
    """Write the tables of bills: that of refold, and means and worst of all policies."""
    rows = of_files(paths, lambda row: tuple(row[key] for key in ("session", "policy", "window", "read")))
    cases = sorted({(row["window"], -row["read"]) for row in rows})
    names = [OURS, bills.AT_ONCE, *(name for name in recall.policies.names() if name != OURS)]
    body = []
    for window, read in cases:
        here = [row for row in rows if (row["window"], -row["read"]) == (window, read)]
        fit = {row["session"] for row in here if row["fits"]}
        inside = {row["session"] for row in here if not row["over"]}
        cells = [
            f"{window:,}",
            f"{-read:.3f}".removesuffix("0"),
            f"{len(fit)} of {len({row['session'] for row in here})}",
        ]
        for name in names:
            mine = {row["session"]: row["change"] for row in here if row["policy"] == name}
            worst = [mine[session] for session in fit if session in mine]
            cells.append(
                f"{_percent(mean(mine.values()))} ({_percent(max(worst)) if worst else NONE})" if mine else NONE
            )
            if name == OURS:
                forced = [mine[session] for session in inside if session in mine]
                cells.append(_percent(max(forced)) if forced else NONE)
        body.append(cells)
    head = ["window", "cached token", "sessions that fit", told(OURS), "worst in the window", "at once", *names[2:]]
    write(DOCS / "policies" / "refold.md", {"bills": table(head, body, left=2)})


def _percent(share: float) -> str:
    return f"{share * 100:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def shapes_pages(paths: Sequence[Path]) -> None:
    """Write the tables of worst shapes, one for each size, and for each size that of the peers that were measured."""
    made: dict[str, str] = {}
    by_size: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        found = json.loads(path.read_text("utf-8"))
        by_size.setdefault(found["tokens"], []).append(found)
    for size, some in by_size.items():
        known = {shape: got for found in some for shape, got in found["shapes"].get(OURS, {}).items()}
        shapes = {shape: known[shape] for shape in SHAPES if shape in known}
        body = [
            [
                *(shape, f"{got['tokens']:,}", f"{got['seconds']:.2f}", f"{got['rate']:,}"),
                *(f"{got['searches']:.0f}", f"{got['growth']:.1f}"),
            ]
            for shape, got in shapes.items()
        ]
        made[f"shapes-{size}"] = table(["shape", "tokens", "seconds", "tokens/s", "searches", "growth"], body)
        peers: dict[str, dict[str, float | str]] = {}
        for found in some:
            for shape, rates in found["peers"].items():
                if rates:
                    peers.setdefault(shape, {OURS: found["shapes"][OURS][shape]["rate"]}).update(rates)
        if peers:
            names = dict.fromkeys(name for rates in peers.values() for name in rates)
            rows = [[told(name), *(_rate(peers[shape].get(name)) for shape in peers)] for name in names]
            made[f"shapes-{size}-peers"] = table(["", *peers], rows)
    write(DOCS / "salience.md", made)


def _rate(rate: float | str | None) -> str:
    """Return millions of tokens a second, or why there are none."""
    if rate is None:
        return NONE
    if isinstance(rate, str):
        return rate.partition(":")[0]
    millions = rate / 1_000_000
    return f"{millions:,.0f}" if millions >= 10 else f"{millions:.2f}"


KINDS: dict[str, Callable[[Sequence[Path]], None]] = {
    "recall": recall_pages,
    "questions": lambda paths: questions_pages(paths, "questions"),
    "stress": lambda paths: questions_pages(paths, "stress"),
    "games": games_pages,
    "bills": bills_pages,
    "shapes": shapes_pages,
}


def main() -> None:
    """Write the tables of one kind."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("kind", choices=KINDS)
    asked.add_argument("rows", nargs="+", type=Path)
    options = asked.parse_args()
    KINDS[options.kind](options.rows)


if __name__ == "__main__":
    main()
