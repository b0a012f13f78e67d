"""Train the weights of refold._salience on a folder of recorded sessions, and say how good they are on others.

    python tools/train_salience.py FOLDER [--out src/refold/_salience/weights.json] [--trees 40] [--folds DIR]

FOLDER holds AGENT/SOURCE/…; a source is a project whose sessions resemble each other. Each session is cut at several
places; an atom known before the cut is *needed* when the assistant writes it after the cut before anything else shows
it again. Every figure is for sources, or agents, that training did not see. `--trees` also trains small boosted trees,
as a challenger; `--folds` writes the weights of each fold, for benchmarks that must not test what was trained on.
Needs NumPy, which the package itself does not.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from refold import formats
from refold._salience.atoms import WEIGHTS, kind_of
from refold._salience.features import NAMES, features
from refold._salience.mentions import mentions_of
from refold.errors import RefoldError
from refold.transcripts import read

ROOT = Path(__file__).parent.parent
LEAST = 20  # messages of a session that is worth a cut
PER_FILE = 30  # conversations of one file
CUTS = 24
ODD = frozenset({"odd", "http-recordings", "anthropic-api", "mcp-messages", "entire-compact"})  # no sessions of agents
SAMPLE = 0.25  # of the atoms that are not needed: each then counts four times
RANDOM = np.random.default_rng(5)
RIDGE = 1e-3
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5)  # of a cut's atoms, for which predicted coverage is compared with the true one
Array = Any


class Cut(Struct):
    """The atoms of one cut: features, whether needed, and what a need weighs."""

    agent: str
    source: str
    rows: Array
    needed: Array
    weights: Array


def cuts_in(folder: Path) -> list[Cut]:
    """Return every cut of every session of a folder."""
    found: list[Cut] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        agent, source = (*path.relative_to(folder).parts[:2], "")[:2]
        if agent in ODD:
            continue
        try:
            sessions = read(path)
        except RefoldError:
            continue
        for session in sessions[:PER_FILE]:
            messages = formats.read(formats.find(session.format), session.messages).messages
            found += [cut for place in _places(len(messages)) if (cut := _cut(agent, source, messages, place))]
    return found


def _places(count: int) -> list[int]:
    step = max(8, min(60, count // 8))
    return list(range(max(10, step), count - 4, step))[:CUTS] if count >= LEAST else []


def _cut(agent: str, source: str, messages: Any, place: int) -> Cut | None:
    mentions = [mentions_of(message) for message in messages]
    always = frozenset().union(*(each.by_user for each in mentions[:place]))
    shown, needed = set(always), set()
    for each in mentions[place:]:
        needed |= each.own - shown
        shown |= each.every
    rows = {atom: row for atom, row in sorted(features(messages[:place]).items()) if atom not in always}
    if len(rows) < LEAST:
        return None
    return Cut(
        agent,
        source,
        np.array(list(rows.values()), dtype=np.float32),
        np.array([atom in needed for atom in rows]),
        np.array([WEIGHTS[kind_of(atom)] for atom in rows], dtype=np.float32),
    )


def stacked(cuts: list[Cut]) -> tuple[Array, Array, Array]:
    """Return rows, labels and sample weights; a cut with many atoms counts more, but not in proportion."""
    rows, labels, counts = [], [], []
    for cut in cuts:
        kept = cut.needed | (RANDOM.random(len(cut.needed)) < SAMPLE)
        rows.append(cut.rows[kept])
        labels.append(cut.needed[kept])
        once = np.where(cut.needed[kept], 1.0, 1 / SAMPLE)
        counts.append(once * cut.weights[kept] * 30 / np.sqrt(len(cut.needed)))
    return np.vstack(rows).astype(float), np.concatenate(labels).astype(float), np.concatenate(counts)


def logistic(rows: Array, labels: Array, counts: Array) -> Array:
    """Return bias and weights of a ridge-penalized logistic regression, by Newton steps."""
    mean, spread = rows.mean(0), rows.std(0) + 1e-9
    design = np.c_[np.ones(len(rows)), (rows - mean) / spread]
    found = np.zeros(design.shape[1])
    penalty = RIDGE * counts.sum() * np.r_[0, np.ones(len(found) - 1)]
    for _ in range(25):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        curve = (design * (counts * chance * (1 - chance) + 1e-9)[:, None]).T @ design + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curve, design.T @ (counts * (chance - labels)) + penalty * found)
        found -= step
        if abs(step).max() < 1e-6:
            break
    weights = found[1:] / spread
    return np.r_[found[0] - (weights * mean).sum(), weights]


def calibration(scores: Array, labels: Array, counts: Array) -> tuple[float, float]:
    """Return slope and shift that make held-out scores honest likelihoods (Platt)."""
    shift, slope = logistic(scores[:, None], labels, counts)
    return float(slope), float(shift)


def coverage(pooled: list[Array], slope: float, shift: float) -> list[list[float]]:
    """Return for some shares of atoms, the likeliest kept: the predicted coverage and the true one, means over cuts."""
    found: list[list[float]] = []
    for share in SHARES:
        pairs: list[tuple[float, float]] = []
        for scores, needed, weights in (cut.T for cut in pooled):
            if needed.any():
                chance = 1 / (1 + np.exp(-(slope * scores + shift)))
                kept = np.argsort(-chance, kind="stable")[: int(share * len(chance))]
                expected, true = chance * weights, needed * weights
                pairs.append((expected[kept].sum() / expected.sum(), true[kept].sum() / true.sum()))
        found.append([share, *(round(float(each), 3) for each in np.mean(pairs, axis=0))])
    return found


def area(scores: Array, labels: Array) -> float:
    """Return the area under the ROC curve, or NaN where all labels are equal."""
    positive = labels.sum()
    if not 0 < positive < len(labels):
        return float("nan")
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return float((ranks[labels].sum() - positive * (positive - 1) / 2) / (positive * (len(labels) - positive)))


class Tree(Struct):
    """A tree of full depth: for each level the feature and edge of each node, then the leaves."""

    levels: list[tuple[Array, Array]]
    leaves: Array

    def __call__(self, rows: Array) -> Array:
        """Return the leaf of each row."""
        node = np.zeros(len(rows), dtype=np.int64)
        for which, edge in self.levels:
            node = 2 * node + (rows[np.arange(len(rows)), which[node]] > edge[node])
        return self.leaves[node]


def boosted(rows: Array, labels: Array, counts: Array, trees: int, depth: int = 4, bins: int = 24) -> list[Tree]:
    """Return gradient-boosted trees over binned features: the challenger."""
    edges = [np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1])) for column in rows.T]
    binned = np.stack([np.searchsorted(edge, column) for edge, column in zip(edges, rows.T, strict=True)], 1)
    flat = binned + np.arange(rows.shape[1]) * bins
    score, made = np.zeros(len(rows)), []
    for _ in range(trees):
        chance = 1 / (1 + np.exp(-score))
        slope, curve = counts * (chance - labels), counts * chance * (1 - chance)
        node, levels = np.zeros(len(rows), dtype=np.int64), []
        for level in range(depth):
            splits = [_split(flat, edges, bins, slope, curve, node == part) for part in range(2**level)]
            which, edge = (np.array(each) for each in zip(*splits, strict=True))
            levels.append((which, edge))
            node = 2 * node + (rows[np.arange(len(rows)), which[node]] > edge[node])
        top, under = (np.bincount(node, each, 2**depth) for each in (slope, curve))
        made.append(Tree(levels, -0.15 * top / (under + 20)))
        score += made[-1].leaves[node]
    return made


def _split(flat: Array, edges: list[Array], bins: int, slope: Array, curve: Array, here: Array) -> tuple[int, float]:
    width = flat.shape[1]
    places = flat[here].ravel()
    top, under = (
        np.bincount(places, np.repeat(each[here], width), width * bins).reshape(width, bins).cumsum(1)
        for each in (slope, curve)
    )
    gain = top**2 / (under + 20) + (top[:, -1:] - top) ** 2 / (under[:, -1:] - under + 20)
    which, at = np.unravel_index(np.argmax(gain[:, :-1]), (width, bins - 1))
    return (int(which), float(edges[which][at])) if at < len(edges[which]) else (0, float("inf"))


def held_out(cuts: list[Cut], by: str, trees: int) -> tuple[dict[str, Any], dict[str, Array], list[Array]]:
    """Train without each group in turn; return figures by group, weights by group, and all held-out scores."""
    figures: dict[str, Any] = {}
    weights: dict[str, Array] = {}
    pooled: list[Array] = []
    for group in sorted({getattr(cut, by) for cut in cuts}):
        test = [cut for cut in cuts if getattr(cut, by) == group]
        sample = stacked([cut for cut in cuts if getattr(cut, by) != group])
        found = weights[group] = logistic(*sample)
        scores = [found[0] + cut.rows @ found[1:] for cut in test]
        figures[group] = {"cuts": len(test), "auc": _mean(area(s, c.needed) for s, c in zip(scores, test, strict=True))}
        if trees:
            model = boosted(*sample, trees)
            guessed = [sum(tree(cut.rows) for tree in model) for cut in test]
            figures[group]["auc_trees"] = _mean(area(s, c.needed) for s, c in zip(guessed, test, strict=True))
        pooled += [np.c_[s, c.needed, c.weights / np.sqrt(len(s))] for s, c in zip(scores, test, strict=True)]
    return figures, weights, pooled


def _mean(values: Any) -> float:
    return round(float(np.nanmean(list(values))), 3)


def model_of(weights: Array, slope: float, shift: float, card: dict[str, Any]) -> dict[str, Any]:
    """Return a model as JSON."""
    return {
        "features": list(NAMES),
        "weights": [round(float(weight), 5) for weight in weights[1:]],
        "bias": round(float(weights[0]), 5),
        "slope": round(slope, 4),
        "shift": round(shift, 4),
        "card": card,
    }


def main() -> None:
    """Read, train, judge, write."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--out", type=Path, default=ROOT / "src/refold/_salience/weights.json")
    asked.add_argument("--trees", type=int, default=0)
    asked.add_argument("--folds", type=Path)
    options = asked.parse_args()
    cuts = cuts_in(options.folder)
    by_source, folds, pooled = held_out(cuts, "source", options.trees)
    by_agent, _, _ = held_out(cuts, "agent", 0)
    scores, labels, counts = np.vstack(pooled).T
    slope, shift = calibration(scores, labels, counts)
    chance = 1 / (1 + np.exp(-(slope * scores + shift)))
    bands = np.digitize(chance, [0.01, 0.03, 0.1, 0.3])
    card = {
        "purpose": "likelihood that the assistant writes an identifier again before anything else shows it again",
        "data": "recorded sessions of coding, browser and dialogue agents from public repositories, not included",
        "date": datetime.date.today().isoformat(),
        "cuts": len(cuts),
        "atoms": int(sum(len(cut.needed) for cut in cuts)),
        "needed": round(float(labels.mean()), 4),
        "held out by source": by_source,
        "held out by agent": by_agent,
        "calibration, predicted and true share by band": [
            [
                round(float(np.average(each[bands == band], weights=counts[bands == band])), 3)
                for each in (chance, labels)
            ]
            for band in range(5)
            if (bands == band).any()
        ],
        "coverage by the share of atoms kept, predicted and true": coverage(pooled, slope, shift),
        "limits": "identifiers only, no reasons; trained mostly on English coding sessions; dialogue agents fare worse",
    }
    options.out.write_text(json.dumps(model_of(logistic(*stacked(cuts)), slope, shift, card), indent=1) + "\n")
    if options.folds:
        options.folds.mkdir(parents=True, exist_ok=True)
        for group, weights in folds.items():
            fold = json.dumps(model_of(weights, slope, shift, {"without": group}), indent=1)
            (options.folds / f"{group}.json").write_text(fold + "\n")
    print(json.dumps(card, indent=1))


if __name__ == "__main__":
    main()
