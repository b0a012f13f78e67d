"""Whether the recall tool finds what a compaction removed, by the words of the step that needs it.

    REFOLD_SHARED=… python -m benchmarks.findable                     recorded sessions in its folder data/
    python -m benchmarks.findable --goals 25%,10% --only PART
    python -m benchmarks.findable --by near                           the words around the identifier
    python -m benchmarks.findable --by pointer                        the line that stands in place of an output

Sessions are cut and compacted as in recall.py. For each identifier that the rest needs and the result does not contain, the
query is the text and the arguments of the assistant's message that needs it, without the identifier itself. *hit@k*: one of
the first k texts that the recall tool ranks contains it, wherever it stands in the text; *shown*: so do the excerpts that the
tool returns in 4,000 tokens. Beside it stand plain rivals: BM25 over whole texts and over their lines, the newest text with the
rarest word of the query, and the newest texts.

What is asked is partly unfair, and both figures are printed. *all* has every identifier. *names* leaves out numbers, of
which most occur in a removed text by chance (an offset, a colour, a count of another thing), and what occurs in no removed
text. By step, one query can stand for a dozen identifiers: a step that writes a report of 4,000 characters asks with the same
words for each of them, and where an identifier stands behind the first 4,000 characters, without the words around it. So
`--by near` asks with the 300 characters on either side, as an agent asks that misses one thing. By pointer the query is the
whole first line that stands in place of an output, and a hit is that output or one of the same text.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from math import log
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from msgspec import Struct

import refold
from benchmarks.recall import FEWEST, LEAST, Demand, _cuts, _tokens, sources
from refold import formats
from refold._counting import counter_for
from refold._recall.search import Asking, RemovedMessages
from refold._salience.atoms import kind_of, names_of, spoken
from refold.core.edits import Rewrite
from refold.core.messages import Text, text_of
from refold.replay import _judge as judge
from refold.transcripts import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.plan import Plan

QUERY = 4_000  # characters of a step's words that are asked with
NEAR = 300  # characters on either side of an identifier that are
EACH = 12  # identifiers of one cut, spread over the rest; pointers too
TOKENS = 4_000  # of an answer
RANKS = (1, 5, 10)
WORD = re.compile(r"\w+")
SATURATION, LENGTH = 1.5, 0.75  # of the rivals' BM25: k1 and b as libraries have them


class Answer(Struct, frozen=True):
    """How one query was answered: by whom, the place of the first right text if there is one, and if it was shown."""

    ranker: str
    fair: bool
    rank: int | None
    shown: bool = False


def queries(
    needed: dict[str, float], future: Sequence[Message], kept: Sequence[Message], *, near: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield identifiers that the future needs and the result lacks, each with the words of the step that needs it."""
    there = frozenset().union(*map(judge.atoms_in, kept))
    left = {name for name in needed if name not in there}
    for message in future:
        if message.role != "assistant":
            continue
        words = "\n".join((text_of(message), *map(spoken, message.calls)))
        for name in sorted(left & judge.atoms_in(message)):
            left.discard(name)
            pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
            first = re.search(pattern, words)
            start = max(first.start() - NEAR, 0) if near and first else 0
            stop = first.end() + NEAR if near and first else None
            query = re.sub(pattern, " ", words[start:stop])[:QUERY]
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
    options = asked.parse_args()
    for goal in options.goals.split(","):
        answers: list[Answer] = []
        for path in [path for path in sources() if options.only in str(path)]:
            answers += _of_file(path, goal, options.policy, options.by)
        groups = {"all": answers, "names": [answer for answer in answers if answer.fair]}
        for group, some in groups.items() if options.by != "pointer" else [("all", answers)]:
            for ranker in dict.fromkeys(answer.ranker for answer in some):
                print(f"{goal}, by {options.by}, {group}: {_told(ranker, some)}")


def _told(ranker: str, answers: Sequence[Answer]) -> str:
    mine = [answer for answer in answers if answer.ranker == ranker]
    hits = [mean(answer.rank is not None and answer.rank < most for answer in mine) for most in RANKS]
    told = ", ".join(f"hit@{most} {share:.2f}" for most, share in zip(RANKS, hits, strict=True))
    shown = f", shown {mean(answer.shown for answer in mine):.2f}" if any(answer.shown for answer in mine) else ""
    return f"{ranker}, {len(mine)} queries, {told}{shown}"


def _of_file(path: Path, goal: str, policy: str, by: str) -> Iterator[Answer]:
    """Yield for each query on the sessions of a file how the recall tool and its rivals answer it."""
    try:
        sessions = read(path, lenient=True)
    except refold.RefoldError:
        return
    counter = counter_for("gpt-4o")
    for session in sessions:
        messages = formats.read(formats.find(session.format), session.messages).messages
        sizes = [counter.message(message) for message in messages]
        if sum(sizes) < LEAST:
            continue
        for cut in _cuts(messages, sizes):
            demand = Demand.of(messages[:cut], messages[cut:])
            if len(demand.names["all"]) < FEWEST:
                continue
            budget = _tokens(goal, sum(sizes[:cut]))
            known = session.messages[:cut]
            try:
                made = refold.compact(
                    known, format=session.format, policy=policy, budget=budget, counter=counter, force=True
                )
            except refold.RefoldError:
                continue
            removed = RemovedMessages(messages[:cut], (made.plan,) if made.plan else (), counter)
            if by == "pointer":
                every = list(pointers(messages[:cut], made.plan)) if made.plan else []
            else:
                kept = formats.read(formats.find(session.format), made.messages).messages
                every = list(queries(demand.needed, messages[cut:], kept, near=by == "near"))
            yield from _answers(removed, every[:: max(len(every) // EACH, 1)][:EACH], pointed=by == "pointer")


def _answers(removed: RemovedMessages, every: Sequence[tuple[str, str]], *, pointed: bool) -> Iterator[Answer]:
    texts = [piece.text for piece in removed.pieces]
    numbers = {id(piece): number for number, piece in enumerate(removed.pieces)}
    named = [f"{piece.name}\n{piece.text}" for piece in removed.pieces]
    names = [frozenset() if pointed else names_of(text) for text in texts]
    rankers: dict[str, Callable[[str], list[int]]] = {
        "refold": lambda query: [numbers[id(piece)] for piece in removed.ranked(query)],
        "BM25 of texts": by_bm25(named),
        "BM25 of lines": by_bm25(named, lines=True),
        "rarest word": by_rarest(named),
        "newest": lambda _: list(range(len(texts) - 1, -1, -1)),
    }
    for wanted, query in every:
        right = {
            number for number, text in enumerate(texts) if (text == wanted if pointed else wanted in names[number])
        }
        fair = pointed or (kind_of(wanted) != "number" and bool(right))
        for name, ranked in rankers.items():
            rank = next((place for place, number in enumerate(ranked(query)) if number in right), None)
            shown = name == "refold" and not pointed and wanted in names_of(removed.answer(Asking(query), TOKENS))
            yield Answer(name, fair, rank, shown)


if __name__ == "__main__":
    main()
