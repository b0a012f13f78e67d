"""Whether the recall tool finds what a compaction removed, by the words of the step that needs it.

    REFOLD_SHARED=… python -m benchmarks.findable                     recorded sessions in its folder data/
    python -m benchmarks.findable --goals 25%,10% --only PART

Sessions are cut and compacted as in recall.py. For each identifier that the rest needs and the result does not contain, the
query is the text and the arguments of the assistant's message that needs it, without the identifier itself. *hit@k*: one of
the first k texts that the recall tool ranks contains it; *shown*: so do the excerpts that the tool returns in 4,000 tokens.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import refold
from benchmarks.recall import FEWEST, LEAST, Demand, _cuts, _tokens, sources
from refold import formats
from refold._counting import counter_for
from refold._recall.search import Asking, RemovedMessages
from refold._salience.atoms import names_of, spoken
from refold.core.messages import text_of
from refold.replay import _judge as judge
from refold.transcripts import read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message

QUERY = 4_000  # characters of a step's words that are asked with
EACH = 12  # identifiers of one cut, spread over the rest
TOKENS = 4_000  # of an answer
RANKS = (1, 5, 10)


def queries(needed: dict[str, float], future: Sequence[Message], kept: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Yield identifiers that the future needs and the result lacks, each with the words of the step that needs it."""
    there = frozenset().union(*map(judge.atoms_in, kept))
    left = {name for name in needed if name not in there}
    for message in future:
        if message.role != "assistant":
            continue
        words = "\n".join((text_of(message), *map(spoken, message.calls)))
        for name in sorted(left & judge.atoms_in(message)):
            left.discard(name)
            query = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", words)[:QUERY]
            if len(query.split()) > 1:
                yield name, query


def main() -> None:
    """Ask for what is missing after each cut, and print how often it is found."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--policy", default="refold")
    asked.add_argument("--goals", default="25%,10%")
    asked.add_argument("--only", default="", help="a part of the paths to run")
    options = asked.parse_args()
    for goal in options.goals.split(","):
        results: list[tuple[int | None, bool]] = []
        for path in [path for path in sources() if options.only in str(path)]:
            results += _of_file(path, goal, options.policy)
        if results:
            hits = [mean(rank is not None and rank < most for rank, _ in results) for most in RANKS]
            told = ", ".join(f"hit@{most} {share:.2f}" for most, share in zip(RANKS, hits, strict=True))
            print(f"{goal}: {len(results)} identifiers, {told}, shown {mean(there for _, there in results):.2f}")


def _of_file(path: Path, goal: str, policy: str) -> list[tuple[int | None, bool]]:
    """Return for each query on the sessions of a file the rank of the text that has its name, and whether it is shown."""
    try:
        sessions = read(path, lenient=True)
    except refold.RefoldError:
        return []
    counter = counter_for("gpt-4o")
    results: list[tuple[int | None, bool]] = []
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
            kept = formats.read(formats.find(session.format), made.messages).messages
            removed = RemovedMessages(messages[:cut], (made.plan,) if made.plan else (), counter)
            every = list(queries(demand.needed, messages[cut:], kept))
            for name, query in every[:: max(len(every) // EACH, 1)][:EACH]:
                texts = [piece.text for piece in removed.ranked(query)]
                rank = next((place for place, text in enumerate(texts) if name in names_of(text)), None)
                results.append((rank, name in names_of(removed.answer(Asking(query), TOKENS))))
    return results


if __name__ == "__main__":
    main()
