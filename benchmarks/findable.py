"""Whether the recall tool finds what a compaction removed, by the words of the step that needs it.

    REFOLD_SHARED=… python -m benchmarks.findable                     recorded sessions in its folder data/
    python -m benchmarks.findable --goals 25%,10% --only PART
    python -m benchmarks.findable --by near                           the words around the identifier
    python -m benchmarks.findable --by pointer                        the line that stands in place of an output

Sessions are cut and compacted as in recall.py. For each identifier that the rest needs and the result does not contain, the
query is the text and the values of the arguments of the assistant's message that needs it, up to 2,000 characters on either
side of the identifier, without the identifier itself. *hit@k*: one of the first k texts that the recall tool ranks contains it
or has it in its name, wherever it stands; *shown*: so do the excerpts that the tool returns in 4,000 tokens. Behind hit@5 stand
its mean over sessions and the standard error of that. Beside it stand plain rivals: BM25 over whole texts and over their
lines, the newest text with the rarest word of the query, and the newest texts.

*all* is every identifier that a removed text contains. *names* are those that a search by words can be judged by. Of 32 misses
that were read, most were numbers, which stand in a removed text by chance (an offset, a colour, a line number that `sed`
prints). Of 33 others, 10 were names that many projects have (`dev/null`, `HEAD`, `Number.isFinite`), 4 had no other word of the
step in the text that was looked for (the step read a file, and the query was what is left of its path), 8 stood behind the
first 4,000 characters of a long step, which the query then was, and 11 were the ranking's. So *names* leaves out numbers, names
that a text of another source contains too, and identifiers of which no text contains three words of the query, of three
letters or more. Of each group up to twelve of a cut are asked for.

By step, one query can stand for a dozen identifiers of one long step, so `--by near` asks with the 300 characters on either
side, as an agent asks that misses one thing. By pointer the query is the whole first line that stands in place of an output,
and a hit is that output or one of the same text.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from itertools import chain
from math import log
from statistics import mean, stdev
from typing import TYPE_CHECKING

from msgspec import Struct

import refold
from benchmarks.pool import worked
from benchmarks.recall import FEWEST, Demand, _cuts, _tokens, files_of, sessions_of
from refold import formats
from refold._counting import counter_for
from refold._recall.search import Asking, RemovedMessages
from refold._salience.atoms import kind_of, names_of
from refold.core.edits import Rewrite
from refold.core.messages import Text, text_of, texts
from refold.replay import _judge as judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from refold.core.messages import Message
    from refold.core.plan import Plan

STEP = 2_000  # characters on either side of an identifier that are asked with
NEAR = 300  # by the words around it
EACH = 12  # identifiers of one cut, spread over the rest; pointers too
TOKENS = 4_000  # of an answer
RANKS = (1, 5, 10)
SHARED = 3  # words of a query that stand in a text that it can be judged by
WORD = re.compile(r"\w+")
LETTERS = re.compile(r"[^\W\d_]{3,}")
SATURATION, LENGTH = 1.5, 0.75  # of the rivals' BM25: k1 and b as libraries have them


class Findable(Struct, frozen=True):
    """An identifier that is asked for, or nothing where an output is, the query, and the numbers of the right texts."""

    wanted: str
    query: str
    right: set[int]


class Answer(Struct, frozen=True):
    """How one query of a group was answered: by whom, the place of the first right text, if any, and if it was shown."""

    group: str
    ranker: str
    session: str
    rank: int | None
    shown: bool = False


def queries(
    needed: dict[str, float], future: Sequence[Message], kept: Sequence[Message], around: int
) -> Iterator[tuple[str, str]]:
    """Yield identifiers that the future needs and the result lacks, each with the words of the step that needs it."""
    there = frozenset().union(*map(judge.atoms_in, kept))
    left = {name for name in needed if name not in there}
    for message in future:
        if message.role != "assistant":
            continue
        words = "\n".join((text_of(message), *(text for call in message.calls for text in judge.strings_in(call))))
        for name in sorted(left & judge.atoms_in(message)):
            left.discard(name)
            pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
            first = re.search(pattern, words)
            start, stop = (max(first.start() - around, 0), first.end() + around) if first else (0, 2 * around)
            query = re.sub(pattern, " ", words[start:stop])
            if len(query.split()) > 1:
                yield name, query


def pointers(history: Sequence[Message], plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the outputs that a plan shortened, each with the line that stands in its place."""
    messages = {message.id: message for message in history}
    for edit in plan.edits:
        if not isinstance(edit, Rewrite) or not isinstance(edit.to, Text) or edit.message not in messages:
            continue
        for result in messages[edit.message].results:
            line = edit.to.text.partition("\n")[0]
            if edit.at[: len(result.at)] == result.at and line.startswith("["):
                yield result.text, line


def by_bm25(texts: Sequence[str], *, lines: bool = False) -> Callable[[str], list[int]]:
    """Return a ranking of texts by BM25, or by their best line."""
    documents = [
        (number, document) for number, text in enumerate(texts) for document in (text.split("\n") if lines else [text])
    ]
    holders: dict[str, list[tuple[int, float]]] = defaultdict(list)
    counts = [Counter(WORD.findall(document.lower())) for _, document in documents]
    usual = sum(map(Counter.total, counts)) / max(len(counts), 1) or 1
    for place, count in enumerate(counts):
        norm = SATURATION * (1 - LENGTH + LENGTH * count.total() / usual)
        for word, often in count.items():
            holders[word].append((place, often * (SATURATION + 1) / (often + norm)))

    def ranked(query: str) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for word in dict.fromkeys(WORD.findall(query.lower())):
            some = holders.get(word, ())
            rarity = log(1 + (len(documents) - len(some) + 0.5) / (len(some) + 0.5))
            for place, share in some:
                scores[place] += rarity * share
        best: dict[int, float] = defaultdict(float)
        for place, score in scores.items():
            best[documents[place][0]] = max(best[documents[place][0]], score)
        return sorted(best, key=lambda number: (-best[number], -number))

    return ranked


def by_rarest(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return a ranking of texts as `grep` on the rarest words of a query finds them, the newest first."""
    words = [frozenset(WORD.findall(text.lower())) for text in texts]
    holders = Counter(word for some in words for word in some)

    def ranked(query: str) -> list[int]:
        asked = sorted(set(WORD.findall(query.lower())) & holders.keys(), key=lambda word: (holders[word], word))
        found = (number for word in asked for number in range(len(texts) - 1, -1, -1) if word in words[number])
        return list(dict.fromkeys(found))

    return ranked


def main() -> None:
    """Ask for what is missing after each cut, and print how often it is found."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--policy", default="refold")
    asked.add_argument("--goals", default="25%,10%")
    asked.add_argument("--by", choices=("step", "near", "pointer"), default="step", help="what the query is made of")
    asked.add_argument("--only", default="", help="a part of the paths to run")
    asked.add_argument("--jobs", type=int, help="processes; one a core by default")
    options = asked.parse_args()
    files = files_of(options.only)
    sources: dict[str, set[str]] = defaultdict(set)
    for source, names in chain.from_iterable(worked("names", _names_of_source, files, jobs=options.jobs)):
        for name in names:
            sources[name].add(source)
    usual = frozenset(name for name, some in sources.items() if len(some) > 1)
    for goal in options.goals.split(","):
        label = f"files, {goal}"
        answers = list(
            chain.from_iterable(
                worked(label, answered, files, goal, options.policy, options.by, usual, jobs=options.jobs)
            )
        )
        for group, ranker in dict.fromkeys((answer.group, answer.ranker) for answer in answers):
            some = [answer for answer in answers if (answer.group, answer.ranker) == (group, ranker)]
            print(f"{goal}, by {options.by}, {group}: {ranker}, {_figures(some)}")


def _names_of_source(path: Path) -> list[tuple[str, frozenset[str]]]:
    """Return the names in the sessions of a file, with their source."""
    return [
        (
            name.partition("/")[0],
            frozenset().union(*(names_of(_unescaped(text)) for each in messages for text in texts(each))),
        )
        for _, name, _, messages, _ in sessions_of(path, None)
    ]


def _figures(answers: Sequence[Answer]) -> str:
    hits = [mean(answer.rank is not None and answer.rank < most for answer in answers) for most in RANKS]
    shares = ", ".join(f"hit@{most} {share:.2f}" for most, share in zip(RANKS, hits, strict=True))
    by_session: dict[str, list[bool]] = defaultdict(list)
    for answer in answers:
        by_session[answer.session].append(answer.rank is not None and answer.rank < RANKS[1])
    means = [mean(hits) for hits in by_session.values()]
    error = f" ±{stdev(means) / len(means) ** 0.5:.2f}" if len(means) > 1 else ""
    shown = f", shown {mean(answer.shown for answer in answers):.2f}" if any(answer.shown for answer in answers) else ""
    return f"{len(answers)} queries, {shares}, hit@5 by session {mean(means):.2f}{error}{shown}"


def answered(path: Path, goal: str, policy: str, by: str, usual: frozenset[str]) -> list[Answer]:
    """Return how the recall tool and its rivals answer queries on the sessions of a file.

    `usual` are names that several sources have.
    """
    counter = counter_for("gpt-4o")
    found: list[Answer] = []
    for _, name, session, messages, sizes in sessions_of(path, None):
        for cut in _cuts(messages, sizes):
            demand = Demand.of(messages[:cut], messages[cut:])
            if len(demand.names["all"]) < FEWEST:
                continue
            try:
                made = refold.compact(
                    session.messages[:cut], format=session.format, policy=policy, force=True, counter=counter,
                    budget=_tokens(goal, sum(sizes[:cut])),
                )  # fmt: skip
            except refold.RefoldError:
                continue
            removed = RemovedMessages(messages[:cut], (made.plan,) if made.plan else (), counter)
            if by == "pointer":
                every = list(pointers(messages[:cut], made.plan)) if made.plan else []
                found += _answers(removed, "all", _spread(_right_outputs(removed, every)), name)
                continue
            kept = formats.read(formats.find(session.format), made.messages).messages
            every = list(queries(demand.needed, messages[cut:], kept, STEP if by == "step" else NEAR))
            findable = _right_texts(removed, every)
            found += _answers(removed, "all", _spread(findable), name)
            fair = [each for each in findable if each.wanted not in usual and _is_fair(each, removed)]
            found += _answers(removed, "names", _spread(fair), name)
    return found


def _spread(findable: Sequence[Findable]) -> Sequence[Findable]:
    return findable[:: max(len(findable) // EACH, 1)][:EACH]


def _right_outputs(removed: RemovedMessages, every: Sequence[tuple[str, str]]) -> list[Findable]:
    """Return the queries by the line of a pointer, each with the texts that are that output."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for number, piece in enumerate(removed.pieces):
        numbers[piece.text].add(number)
    return [Findable("", query, numbers[wanted]) for wanted, query in every if wanted in numbers]


def _right_texts(removed: RemovedMessages, every: Sequence[tuple[str, str]]) -> list[Findable]:
    """Return the queries that have an answer, each with the texts that contain the identifier."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for number, piece in enumerate(removed.pieces):
        for name in names_of(_unescaped(f"{piece.name}\n{piece.text}")):
            numbers[name].add(number)
    return [Findable(wanted, query, numbers[wanted]) for wanted, query in every if wanted in numbers]


def _is_fair(findable: Findable, removed: RemovedMessages) -> bool:
    """Tell whether the identifier is no number, and a text that contains it has words of the query."""
    words = _words(findable.query)
    return kind_of(findable.wanted) != "number" and any(
        len(words & _words(f"{removed.pieces[number].name}\n{removed.pieces[number].text}")) >= SHARED
        for number in findable.right
    )


def _answers(removed: RemovedMessages, group: str, chosen: Sequence[Findable], session: str) -> list[Answer]:
    named = [f"{piece.name}\n{piece.text}" for piece in removed.pieces] if chosen else []
    numbers = {id(piece): number for number, piece in enumerate(removed.pieces)}
    rankers: dict[str, Callable[[str], list[int]]] = {
        "refold": lambda query: [numbers[id(piece)] for piece in removed.ranked(query)],
        "BM25 of texts": by_bm25(named),
        "BM25 of lines": by_bm25(named, lines=True),
        "rarest word": by_rarest(named),
        "newest": lambda _: list(range(len(named) - 1, -1, -1)),
    }
    answers: list[Answer] = []
    for each in chosen:
        for name, ranked in rankers.items():
            rank = next((place for place, number in enumerate(ranked(each.query)) if number in each.right), None)
            shown = (
                name == "refold"
                and bool(each.wanted)
                and each.wanted in names_of(removed.answer(Asking(each.query), TOKENS))
            )
            answers.append(Answer(group, name, session, rank, shown))
    return answers


def _unescaped(text: str) -> str:
    """Return a text with escapes of JSON undone, as where the demand was found: else a line's first name has an n before it."""
    return re.sub(r"\\[\\nrt\"]", " ", text)


def _words(text: str) -> set[str]:
    return set(map(str.lower, LETTERS.findall(text)))


if __name__ == "__main__":
    main()
