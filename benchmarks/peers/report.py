"""What the runs come to: results.json, the tables of docs/peers.md and its picture."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import plot
from environments import TABLE

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.doc_tables import table
from benchmarks.doc_tables import write as write_tables

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
PAGE, PICTURE, RESULTS = DOCS / "peers.md", DOCS / "pictures" / "peers.svg", HERE / "results.json"
CONFORMANCE = HERE / "conformance.json"
OURS = "refold"
BOUNDS = ("(oracle)", "(newest text alone)")  # no rows of a peer: what could be, and a floor
GOALS = ("50%", "25%", "10%", "15k")
SHARES = ("50%", "25%", "10%")
GROUPS = {"Claude Code": ("claude-code",), "Codex, opencode, pi": ("codex", "opencode", "pi")}
FEWER = 2  # cuts that may be missing before a figure is told with its count

Rows = list[tuple[str, dict[str, Any]]]
Runs = list[dict[str, Any]]


def write(rows: Rows) -> None:
    """Write the results, the page and the picture."""
    if not rows:
        return
    RESULTS.write_text(json.dumps(summary(rows), indent=1) + "\n", "utf-8")
    budgeted = sorted(
        (row for row in rows if row[1]["budgeted"] and row[1]["runs"]),
        key=lambda row: -(_mean(row[1]["runs"], "25%", "frr") or 0.0),
    )
    peers = [row for row in budgeted if row[0] not in BOUNDS]
    made = {
        "needed": needed(budgeted, rows),
        "groups": grouped(peers),
        "properties": properties(peers),
        "unbounded": unbounded(rows),
        "versions": told_versions(rows),
    }
    insert(made)
    PICTURE.write_text(picture(peers), "utf-8")


def insert(made: dict[str, str]) -> None:
    """Put tables where the page has marks for them."""
    write_tables(PAGE, made)


def needed(rows: Rows, every: Rows) -> str:
    """Return the table of what is needed later, and the distance to refold on the same cuts."""
    ours = dict(every).get(OURS, {"runs": []})["runs"]
    head = ["", *(f"FRR at {goal}" for goal in GOALS), "against refold at 25%", "at 10%"]
    most = {goal: max(len(_scores(found["runs"], goal, "frr")) for _, found in rows) for goal in GOALS}
    body = []
    for name, found in rows:
        cells = [_cell(found["runs"], goal, "frr", most[goal]) for goal in GOALS]
        apart = [_apart(found["runs"], ours, goal) if name != OURS else "" for goal in ("25%", "10%")]
        body.append([_bold(name), *cells, *apart])
    return table(head, body)


def grouped(rows: Rows) -> str:
    """Return a table for each group of agents: recall, far recall and recall in verbatim lines."""
    made = []
    columns = [(goal, column) for goal in ("50%", "25%") for column in ("all", "far", "ctx")]
    for title, agents in GROUPS.items():
        head = ["", *(f"{column} {goal}" for goal, column in columns)]
        here = {name: [run for run in found["runs"] if run["agent"] in agents] for name, found in rows}
        most = {each: max(len(_scores(runs, *each)) for runs in here.values()) for each in columns}
        body = [[_bold(name), *(_cell(runs, *each, most[each]) for each in columns)] for name, runs in here.items()]
        sessions = {run["session"] for _, found in rows for run in found["runs"] if run["agent"] in agents}
        made.append(f"**{title}** ({len(sessions)} sessions)\n\n{table(head, body)}")
    return "\n\n".join(made)


def properties(rows: Rows) -> str:
    """Return the table of instructions, validity, goals and time."""
    head = [
        "",
        "instructions 50% / 25% / 10%",
        "valid",
        "at the goal",
        "above it at first",
        "goal used",
        "ms, 200k",
        "model",
    ]
    body = []
    for name, found in rows:
        runs = [run for run in found["runs"] if run["outcome"] in ("fits", "over")]
        fits = [run for run in runs if run["outcome"] == "fits"]
        kept = " / ".join(_kept(found["instructions"].get(goal, {})) for goal in SHARES)
        ms = found["instructions"].get("50%", {}).get("ms")
        body.append(
            [
                _bold(name),
                kept,
                _share(runs, lambda run: run["valid"]),
                f"{len(fits)}/{len(found['runs'])}",
                _share(runs, lambda run: run["over_first"]),
                f"{mean(run['used'] for run in fits):.0%}" if fits else "–",
                f"{ms:,.0f}" if ms is not None else "–",
                "yes" if found["models"] else "",
            ]
        )
    return table(head, body)


def unbounded(rows: Rows) -> str:
    """Return the table of peers that take no goal: what they leave, of the size before."""
    body = []
    for name, found in rows:
        runs = [run for run in found["runs"] if run["goal"] == "50%" and run["outcome"] in ("fits", "over")]
        if not found["budgeted"] and runs:
            left = [run["used"] / 2 for run in runs]
            body.append([name, f"{mean(left):.0%}", f"{min(left):.0%}", found["note"]])
    return table(["", "left of the size, mean", "least", "how"], body)


def told_versions(rows: Rows) -> str:
    """Return the versions, the rows that failed with their reasons, and what was left out."""
    families = {found["family"]: found["versions"] for _, found in rows if found["family"]}
    lines = [f"- {', '.join(f'{name} {version}' for name, version in each.items())}" for each in families.values()]
    lines += [f"- {name}: {found['trouble']}" for name, found in rows if found.get("trouble")]
    lines += [f"- not run: {name}: {why}" for name, why in TABLE["left_out"].items()]
    return "\n".join(lines)


def conformance() -> str:
    """Return the table of compaction-conformance-kit."""
    known = json.loads(CONFORMANCE.read_text("utf-8"))
    head = [
        "",
        *(f"survival at {share}" for share in ("20%", "30%", "50%")),
        "only the newest of changed values",
        "both of a similar pair",
    ]
    body = []
    for name, entries in sorted(known["rows"].items(), key=lambda row: -_survival(row[1][-1])):
        cells = [f"{_survival(entry):.0%}" for entry in entries]
        body.append(
            [
                _bold(name),
                *cells,
                *(f"{entries[-1]['semantic'][each]:.0%}" for each in ("resolved_rate", "distinct_pair_rate")),
            ]
        )
    return table(head, body)


def survivals(name: str, entries: list[dict[str, Any]]) -> str:
    """Return a row of the kit in one line."""
    return f"{name}: " + ", ".join(f"{entry['budget_fraction']:.0%}: {_survival(entry):.1%}" for entry in entries)


def _survival(entry: dict[str, Any]) -> float:
    share: float = entry["randomized"]["overall_final_survival"]
    return share


def picture(rows: Rows) -> str:
    """Return the plot."""
    lines = []
    for name, found in rows:
        recalled = {goal: share for goal in SHARES if (share := _mean(found["runs"], goal, "frr")) is not None}
        kept = found["instructions"]
        told = {goal: kept[goal]["kept"] for goal in SHARES if kept.get(goal, {}).get("outcome") == "fits"}
        lines.append(plot.Line(name, not found["family"], (recalled, told)))
    titles = ("needed later and still there", "standing instructions, word for word")
    said = "For each row, shares at 10, 25 and 50 % of the size before; the tables of the page say the same."
    return plot.drawn(lines, titles, "What compaction keeps at the same size", said)


def summary(rows: Rows) -> dict[str, Any]:
    """Return the figures of every row without the runs, which name recorded sessions."""
    found = {}
    for name, row in rows:
        about = {key: value for key, value in row.items() if key != "runs"}
        groups = {"all": sum(GROUPS.values(), ()), **GROUPS}
        found[name] = about | {
            title: {goal: _figures([run for run in row["runs"] if run["agent"] in agents], goal) for goal in GOALS}
            for title, agents in groups.items()
        }
    return {"about": "benchmarks/peers/run.py", "cpus": os.cpu_count(), "rows": found}


def _figures(runs: Runs, goal: str) -> dict[str, Any]:
    here = [run for run in runs if run["goal"] == goal]
    columns = ("all", "far", "ctx", "frr", "lost", "ear")
    figures = {column: value for column in columns if (value := _mean(here, goal, column)) is not None}
    return {
        "cuts": len(here),
        "fits": sum(run["outcome"] == "fits" for run in here),
        "valid": sum(run["valid"] for run in here),
        "over_first": sum(run["over_first"] for run in here),
        "ms": round(mean(run["seconds"] for run in here) * 1000, 1) if here else None,
    } | {column: round(value, 4) for column, value in figures.items()}


def _scores(runs: Runs, goal: str, column: str) -> dict[tuple[str, int], float]:
    return {
        (run["session"], run["cut"]): score
        for run in runs
        if run["goal"] == goal and (score := run["scores"].get(column)) is not None
    }


def _mean(runs: Runs, goal: str, column: str) -> float | None:
    scores = _scores(runs, goal, column)
    return mean(scores.values()) if scores else None


def _cell(runs: Runs, goal: str, column: str, most: int) -> str:
    """Return a mean, with the count of its cuts where it has clearly fewer than another row."""
    scores = _scores(runs, goal, column)
    if not scores:
        return "–"
    return f"{mean(scores.values()):.2f}" + (f" ({len(scores)})" if most - len(scores) > FEWER else "")


def _apart(runs: Runs, ours: Runs, goal: str) -> str:
    """Return the mean difference on the cuts that both have, with its standard error over sessions."""
    theirs, own = _scores(runs, goal, "frr"), _scores(ours, goal, "frr")
    by_session: dict[str, list[float]] = {}
    for place in theirs.keys() & own.keys():
        by_session.setdefault(place[0], []).append(theirs[place] - own[place])
    if len(by_session) < 2:
        return "–"
    means = [mean(each) for each in by_session.values()]
    return f"{mean(means):+.2f} ±{stdev(means) / len(means) ** 0.5:.2f}"


def _kept(found: dict[str, Any]) -> str:
    return f"{found['kept']:.0%}" if found.get("outcome") == "fits" else "–"


def _share(runs: Runs, holds: Callable[[dict[str, Any]], bool]) -> str:
    return f"{mean(map(holds, runs)):.0%}" if runs else "–"


def _bold(name: str) -> str:
    return f"**{name}**" if name == OURS else name
