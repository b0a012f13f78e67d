"""What each policy keeps of what the rest of a recorded session needed, at equal true sizes; no model judges anything.

    REFOLD_SHARED=… python benchmarks/recall.py                     recorded sessions in its folder data/
    python benchmarks/recall.py --policies refold,tail --goals 50%,25%,15k
    python benchmarks/recall.py --policies all                      all policies and rivals (benchmarks/rivals.py)
    python benchmarks/recall.py --folds DIR                         weights of refold._salience that never saw the source
    python benchmarks/recall.py --json > ROWS.jsonl                 every run, as JSON lines
    python benchmarks/recall.py --rows ROWS.jsonl                   tables of runs that were written before
    python benchmarks/recall.py --compare BASE.jsonl                paired differences to the same policies' runs there
    python benchmarks/recall.py --rows ROWS.jsonl --against tail    paired differences between each policy and one of them

A session is cut at 40, 60 and 80 % of its text, what came before is compacted to a share of its size, and the result is
asked for what the rest used. *all*, *far*, *ctx*: identifiers in the calls of the rest that the prefix had; far are those
that its newest 15 % have not; ctx counts only what stands in a line kept word for word, so that a bare list earns
nothing. *frr*: identifiers that the assistant writes before anything shows them again (refold.replay._judge); *fic*, FRR
in context: the same, in a line of 20 characters or more that was kept word for word, outside any list of names; *lost*:
neither present nor pointed to; *ear*: lines that later edits quote; *kept*: sentences of users that set a limit; *ends*:
lines of answers that end a turn (the assistant's last text before a user's next turn); *junk*: names in lists that the
policy wrote that are line numbers, rests of colour codes and escapes, times, element refs, ids of chunks and calls,
argument names, or pairs like and/or; *new*: identifiers that the history does not have. A run above its goal by an exact count is tried again with
a smaller one. Shares are mean / median over cuts; the error is over sessions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from statistics import mean, median, stdev
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert, to_builtins
from rich.console import Console
from rich.table import Table

import refold
from refold import formats, policies
from refold._counting import counter_for
from refold._salience import model
from refold._salience.atoms import atoms_of, kind_of
from refold.core.messages import Message, texts
from refold.core.messages import Text as TextPart
from refold.replay import _judge as judge
from refold.replay._bounds import bounds
from refold.transcripts import RecordedConversation, read

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks import rivals
from benchmarks.pool import worked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("REFOLD_SHARED", ROOT.parent / "shared"))
LEAST, MOST = 25_000, 400_000  # tokens of a session
SHARES = (0.4, 0.6, 0.8)  # of its text, where it is cut
FEWEST = 5  # identifiers that a cut must ask for
AGENTS = ("claude-code", "codex", "opencode", "pi", "mini-swe-agent", "openhands", "langgraph", "gemini-cli")
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
LINE = 20  # characters of a line that counts as kept
BULLET = re.compile(r"\s*(?:[-*•] |\d+\. )?\s*")
LABEL = re.compile(r"[^,]{1,200}?: ")  # before a list of names: their file, or what they are
LISTED = 3  # names in a line, or lines of names alone, that make a list
JUNK = re.compile(
    r"L\d+(?:-L?\d+)?"  # line numbers
    r"|\[?(?:\d{1,3};)*\d{1,3}m"  # rests of colour codes
    r"|\d+(?:p|px|ms|s|Z)"  # lines that sed prints, sizes, times
    r"|(?:s\d+)?e\d+|ref[_-]?\w*\d+"  # element refs of a browser
    r"|[0-9a-f]{6}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # ids of chunks, of anything
    r"|(?:call|toolu|chatcmpl|msg|req|resp|fc|rs)_\w+"
)
HEX = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]+")
PAIR = re.compile(r"[a-z]+/[a-z]+")  # and/or
TAGGED = re.compile(r"(?s)<([A-Za-z][\w-]*)[^>]*>.*?</\1>")
WIDE = 190  # columns of the terminal that the tables need
COLUMNS = ("all", "far", "ctx", "frr", "fic", "lost", "ear", "kept", "ends", "junk", "new")
LESS = frozenset({"lost", "junk", "new"})  # of which less is better
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)


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


def files_of(only: str) -> list[Path]:
    """Return those of them whose path has a part; the longest first, so that no core waits for it at the end."""
    files = [path for path in sources() if only in str(path)]
    if not files:
        sys.exit(f"no recorded sessions in {SHARED / 'data'}; set REFOLD_SHARED")
    return sorted(files, key=lambda path: -path.stat().st_size)


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


class Demand(Struct, frozen=True):
    """What a cut asks of every result, worked out once."""

    history: Sequence[Message]
    names: dict[str, list[str]]
    needed: dict[str, float]
    anchors: tuple[str, ...]
    ends: frozenset[str]
    lines: frozenset[str]
    texts: frozenset[str]
    arguments: frozenset[str]
    called: Text

    @classmethod
    def of(cls, history: Sequence[Message], future: Sequence[Message]) -> Demand:
        """Return what the future asks of the history."""
        every = [text for message in history for text in texts(message)]
        calls = [call for message in history for call in message.calls]
        return cls(
            history,
            wanted(history, future),
            judge.needed_atoms(history, future),
            judge.edit_anchors(history, future),
            frozenset(line for answer in turn_ends(history) for line in _lines(answer)),
            frozenset(line for text in every for line in text.split("\n")),
            frozenset(every),
            frozenset(name for call in calls for name in _keys(call.arguments)),
            Text.of("\n".join(call.arguments for call in calls)),
        )


def turn_ends(history: Sequence[Message]) -> Iterator[str]:
    """Yield the assistant's last text before each next turn of a user; what a harness says in tags is no turn."""
    last = ""
    for message in history:
        words = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
        if message.role == "assistant":
            last = words.strip() or last
        elif message.role == "user" and TAGGED.sub("", words).strip():
            if last:
                yield last
            last = ""


def scored(demand: Demand, kept: Sequence[Message]) -> dict[str, float | None]:
    """Return the figures of one result."""
    there = Text.of("\n".join(text for message in kept for text in texts(message)))
    lines = [line for message in kept for text in texts(message) for line in text.split("\n")]
    verbatim = Text.of("\n".join(line for line in lines if len(line.strip()) >= LINE and line in demand.lines))
    found = judge.recall(demand.needed, demand.history, kept)
    listed: list[str] = []
    context = atoms_of("\n".join(_context(demand, kept, listed)))
    needed = sum(demand.needed.values())
    stripped = {line.strip() for line in lines}
    return {
        "all": _share(demand.names["all"], there),
        "far": _share(demand.names["far"], there),
        "ctx": _share(demand.names["all"], verbatim),
        "frr": found.present if needed else None,
        "fic": sum(demand.needed[atom] for atom in demand.needed.keys() & context) / needed if needed else None,
        "lost": found.lost if needed else None,
        "ear": judge.lines_kept(demand.anchors, kept) if demand.anchors else None,
        "kept": judge.constraints_kept(demand.history, kept),
        "ends": sum(line in stripped for line in demand.ends) / len(demand.ends) if demand.ends else None,
        "junk": sum(_is_junk(name, demand) for name in listed) / len(listed) if listed else None,
        "new": 1 - judge.copy_precision(demand.history, kept),
    }


def _context(demand: Demand, kept: Sequence[Message], listed: list[str]) -> Iterator[str]:
    """Yield the lines kept word for word that stand in no list of names; the names in lists are added to `listed`."""
    for message in kept:
        for text in texts(message):
            lines = text.split("\n")
            names = [()] * len(lines) if text in demand.texts or message.results else lists_in(lines)
            for line, some in zip(lines, names, strict=True):
                listed += some
                if not some and len(line.strip()) >= LINE and line in demand.lines:
                    yield line


def lists_in(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each line the names in it where it is, or is part of, a list of names and nothing else."""
    found = [_only_names(line) for line in lines]
    place = 0
    while place < len(found):
        stop = place
        while stop < len(found) and found[stop]:
            stop += 1
        if stop - place < LISTED:
            found[place:stop] = [some if len(some) >= LISTED else () for some in found[place:stop]]
        place = stop + 1
    return found


def _only_names(line: str) -> tuple[str, ...]:
    rest = line[match.end() :] if (match := BULLET.match(line)) else line
    words = re.split(r"[,;\s]+", rest.strip())
    label = LABEL.match(rest)
    for some in (re.split(r"[,;\s]+", rest[label.end() :].strip()) if label else [], words):
        names = [name for word in some if (name := word.strip("`'\"()[]"))]
        if names and sum(_is_name(name) for name in names) >= 0.9 * len(names):
            return tuple(names)
    return ()


def _is_name(word: str) -> bool:
    return len(word) > 1 and (bool(kind_of(word)) or any(sign in word for sign in "-@+:"))


def _is_junk(name: str, demand: Demand) -> bool:
    if not name or JUNK.fullmatch(name):
        return not name.isalpha() or name in demand.arguments  # "decade" is a word
    if len(name) >= 16 and len(name) not in (40, 64) and HEX.fullmatch(name):
        return True
    if name[0] in "nrt" and f"\\{name}" in demand.called.text:  # the rest of an escape
        return True
    return name in demand.arguments or (bool(PAIR.fullmatch(name)) and not demand.called.has(name))


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.split("\n") if len(line.strip()) >= LINE)


def _keys(arguments: str) -> Iterator[str]:
    """Yield the names of arguments, at any depth."""
    try:
        waiting = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return
    while waiting:
        match waiting.pop():
            case dict() as value:
                yield from value
                waiting += value.values()
            case list() as value:
                waiting += value


def _share(names: Sequence[str], where: Text) -> float | None:
    return sum(map(where.has, names)) / len(names) if names else None


SHIPPED = model.shipped


def sessions_of(
    path: Path, folds: Path | None, least: int = LEAST
) -> Iterator[tuple[str, str, RecordedConversation, Sequence[Message], list[int]]]:
    """Yield the sessions of a file that call tools and have so many tokens, read with weights that saw none of it.

    With agent and name, and the messages with their sizes.
    """
    agent, source = path.relative_to(SHARED / "data").parts[:2]
    use_weights(folds, source)
    try:
        sessions = read(path, lenient=True)
    except refold.RefoldError:
        return
    counter = counter_for("gpt-4o")
    for session in sessions:
        messages = formats.read(formats.find(session.format), session.messages).messages
        sizes = [counter.message(message) for message in messages]
        if sum(sizes) >= least and any(message.calls for message in messages):
            yield agent, f"{source}/{path.stem}{session.name}", session, messages, sizes


def runs_of(path: Path, names: Sequence[str], goals: Sequence[str], folds: Path | None) -> list[Run]:
    """Return every run on the sessions of a file."""
    found: list[Run] = []
    for agent, name, session, messages, sizes in sessions_of(path, folds):
        for cut in _cuts(messages, sizes):
            history, future = messages[:cut], messages[cut:]
            demand = Demand.of(history, future)
            if len(demand.names["all"]) < FEWEST:
                continue
            size = sum(sizes[:cut])
            for goal in goals:
                tokens = _tokens(goal, size)
                if tokens < size:
                    case = (agent, name, cut, goal)
                    known = session.messages[:cut]
                    found += [_run(policy, case, session.format, known, tokens, demand) for policy in names]
                    found.append(_bounds(case, tokens, demand))
    return found


def use_weights(folds: Path | None, source: str) -> None:
    """Predict with weights that were trained without a source; where it has no fold, training had nothing of it."""
    model.shipped = SHIPPED
    if folds and (fold := folds / f"{source}.json").exists():
        weights = model.loaded(fold.read_bytes())
        model.shipped = cache(lambda: weights)


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


def _run(policy: str, case: tuple[str, str, int, str], format: str, known: list[Any], goal: int, demand: Demand) -> Run:
    start = perf_counter()
    result = rivals.compacted(policy, known, format, goal)
    seconds = perf_counter() - start
    if isinstance(result, str):
        return Run(policy, *case, outcome=result)
    return Run(policy, *case, "fits", result.tokens / goal, seconds, scored(demand, result.messages))


def _bounds(case: tuple[str, str, int, str], goal: int, demand: Demand) -> Run:
    """Return what an oracle would keep of the need, as a run of its own."""
    found = bounds(demand.needed, demand.history, goal)
    return Run("(oracle)", *case, "bound", scores={"frr": found.oracle})


GROUPS = (("claude-code",), ("codex",), ("opencode", "pi"), AGENTS[:4], AGENTS[4:])


def groups_of(runs: Iterable[Run], goals: Sequence[str]) -> Iterator[tuple[str, list[Run]]]:
    """Yield the runs of each group of agents with each goal, under a title."""
    some = list(runs)
    for group in GROUPS:
        for goal in goals:
            here = [run for run in some if run.agent in group and run.goal == goal]
            if here:
                cuts = len({(run.session, run.cut) for run in here})
                yield f"{', '.join(group)} · {goal} · {cuts} cuts", here


def tables(runs: Iterable[Run], goals: Sequence[str]) -> Iterable[Table]:
    """Yield a table for each agent and goal: one row a policy."""
    for title, here in groups_of(runs, goals):
        table = _table(title, ("policy", *COLUMNS, "used", "runs"))
        for policy in dict.fromkeys(run.policy for run in here):
            mine = [run for run in here if run.policy == policy]
            fits = [run for run in mine if run.scores]
            used = f"{mean(run.used for run in fits):.0%}" if any(run.used for run in fits) else "–"
            table.add_row(policy, *(_cell(fits, column) for column in COLUMNS), used, f"{len(fits)}/{len(mine)}")
        yield table


def differences(runs: Iterable[Run], base: Mapping[tuple[str, ...], Run], goals: Sequence[str]) -> Iterable[Table]:
    """Yield a table for each agent and goal: mean paired differences, with 95 % intervals over sessions.

    `base` has the run to subtract by `pair_key`; where a policy is not in its keys, the key of any policy is looked up.
    """
    for title, here in groups_of((run for run in runs if run.policy != "(oracle)"), goals):
        table = _table(title, ("policy", *COLUMNS, "pairs"))
        for policy in dict.fromkeys(run.policy for run in here):
            pairs = [
                (run, other)
                for run in here
                if run.policy == policy and (other := base.get(pair_key(run)) or base.get(pair_key(run, "*")))
            ]
            both = [(run, other) for run, other in pairs if run.scores and other.scores and run is not other]
            if both:
                table.add_row(policy, *(_difference(both, column) for column in COLUMNS), f"{len(both)}/{len(pairs)}")
        if table.row_count:
            yield table


def pair_key(run: Run, policy: str = "") -> tuple[str, ...]:
    """Return what two runs must share to be compared."""
    return (policy or run.policy, run.agent, run.session, str(run.cut), run.goal)


def _difference(pairs: Sequence[tuple[Run, Run]], column: str) -> str:
    by_session: dict[str, list[float]] = {}
    for run, other in pairs:
        one, two = run.scores.get(column), other.scores.get(column)
        if one is not None and two is not None:
            by_session.setdefault(run.session, []).append(one - two)
    every = [gain for gains in by_session.values() for gain in gains]
    if not every:
        return "–"
    means = [mean(gains) for gains in by_session.values()]
    if len(means) < 2:
        return f"{mean(every):+.3f}"
    half = T95[min(len(means) - 2, len(T95) - 1)] * stdev(means) / len(means) ** 0.5
    sure = abs(mean(means)) > half
    colour = "green" if (mean(means) > 0) != (column in LESS) else "red"
    text = f"{mean(every):+.3f} ±{half:.3f}"
    return f"[{colour}]{text}[/]" if sure else text


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="left" if column == "policy" else "right")
    return table


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


def rows_of(path: Path) -> list[Run]:
    """Return the runs of a file of JSON lines."""
    return [convert(json.loads(line), Run) for line in path.read_text("utf-8").splitlines() if line]


def measured(options: argparse.Namespace) -> list[Run]:
    """Return every run of every policy on every cut, on all cores."""
    files = files_of(options.only)
    names = rivals.names() if options.policies == "all" else options.policies.split(",")
    found: list[Run] = []
    goals = options.goals.split(",")
    for some in worked("files", runs_of, files, names, goals, options.folds, jobs=options.jobs):
        found += some
        if options.json:  # as they come: a run that is stopped has not been for nothing
            for run in some:
                print(json.dumps(to_builtins(run)), flush=True)
    return sorted(found, key=lambda run: (run.agent, run.session))


def main() -> None:
    """Run every policy on every cut, and print tables, differences or rows."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--policies", default=",".join(policies.names()), help="names between commas, or all")
    asked.add_argument("--goals", default="50%,25%,10%")
    asked.add_argument("--only", default="", help="a part of the paths to run")
    asked.add_argument("--folds", type=Path)
    asked.add_argument("--jobs", type=int, help="processes; one a core by default")
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--rows", type=Path, help="runs that --json has written, instead of new ones")
    asked.add_argument("--compare", type=Path, help="runs that --json has written, to subtract")
    asked.add_argument("--against", default="", help="a policy of the same runs, to subtract")
    options = asked.parse_args()
    found = rows_of(options.rows) if options.rows else measured(options)
    if options.json:
        return
    goals = list(dict.fromkeys(run.goal for run in found))
    console = Console(width=max(Console().width, WIDE))
    if options.against:
        base = {pair_key(run, "*"): run for run in found if run.policy == options.against}
    else:
        base = {pair_key(run): run for run in rows_of(options.compare)} if options.compare else {}
    for table in differences(found, base, goals) if base else tables(found, goals):
        console.print(table)


if __name__ == "__main__":
    main()
