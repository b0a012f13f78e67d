"""Whether the answer to the newest question is still there: ten shapes in five languages, no model judges anything.

    python benchmarks/questions.py                             refold and the rivals, 20 seeds a shape and language
    python benchmarks/questions.py --policies all --seeds 5
    python benchmarks/questions.py --shapes port,json --languages german,japanese
    python benchmarks/questions.py --stress                    the stress table: six cells at 50, 25 and 10 %
    python benchmarks/questions.py --json

A session of a dozen tool outputs ends with a question of the user; the answer stands in an old one. It is compacted to a
share of its exact size. The answer is *kept* if its value stands in a line with what the question names, at most 300
characters away, or right under it, and in no list of names. Where a value was replaced, the old one must have left, or be
marked as replaced in its line or in a neighbouring one.

Five shapes are here. The five of `benchmarks.questions_unseen` are for judging only: who works on a policy does not look at
them, nor at sessions made by them, and reads no more of them than their totals.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from random import Random
from statistics import mean
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from rich.table import Table

from refold import formats
from refold._counting import counter_for
from refold.core.messages import texts

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks import rivals
from benchmarks.pool import print_rows, worked
from benchmarks.question_sessions import (
    GERMAN,
    LANGUAGES,
    OUTPUTS,
    Language,
    Output,
    Question,
    Shape,
    filler,
    log,
    names_of_services,
    old,
    session,
    table,
)
from benchmarks.questions_unseen import LARGE, UNSEEN
from benchmarks.recall import lists_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.messages import Message

FORMAT = "openai-chat"
NEAR = 300  # characters between what is named and its value
SEEDS = 20
GOALS = ("25%", "10%")
MARK = re.compile(
    r"(?i)replac|supersed|outdated|obsolete|overr[iu]d|no longer|t(?:aken|ook) back|withdrawn|later|newer|stale"
)
FATAL_LINES = 8_600  # about 215,000 tokens


def port(language: Language, random: Random) -> Question:
    """A port of a service in an old log."""
    services = names_of_services(language, random)
    ports = random.sample(range(4_001, 4_999), len(services))
    outputs = [
        Output(
            "read_log",
            f"{number}.log",
            log(
                language, random, service, 45, {random.randrange(5, 40): language.sentences["port"].format(service, at)}
            ),
        )
        for number, (service, at) in enumerate(zip(services, ports, strict=True))
    ]
    which = random.randrange(len(services) // 2)
    question = language.sentences["port?"].format(services[which])
    return Question(session(language, random, outputs, question), (services[which],), str(ports[which]))


def figure_in_table(language: Language, random: Random) -> Question:
    """A figure in a table."""
    title, *columns = language.sentences["table"].split("|")
    text, cells = table(language, random, title, columns, random.randrange(3))
    row = random.choice(cells)
    outputs = old(language, random, Output("read_report", "branches.txt", text))
    for place in random.sample([at for at, output in enumerate(outputs) if output.what != "branches.txt"], 3):
        other, _ = table(language, random, f"report-{place}", [columns[0], *language.people[:4]], random.randrange(3))
        outputs[place] = Output("read_report", f"report-{place}.txt", other)
    return Question(session(language, random, outputs, language.sentences["table?"].format(row[0])), (row[0],), row[2])


def element_of_json(language: Language, random: Random) -> Question:
    """The critical element of forty in one line of JSON."""
    numbers = random.sample(range(10_000, 99_999), 40)
    which = random.randrange(40)
    tickets = [
        {
            "number": f"T-{number}",
            "title": random.choice(language.titles),
            "assignee": random.choice(language.people),
            "priority": language.sentences["json"] if place == which else random.choice(("P3", "P4", "P5")),
            "updated": f"2026-02-{random.randrange(10, 28)}T0{random.randrange(10)}:{random.randrange(10, 60)}:00Z",
        }
        for place, number in enumerate(numbers)
    ]
    output = Output("list_tickets", "open", json.dumps({"tickets": tickets}, ensure_ascii=False))
    messages = session(language, random, old(language, random, output), language.sentences["json?"])
    return Question(messages, (language.sentences["json"],), f"T-{numbers[which]}")


def newest_value(language: Language, random: Random) -> Question:
    """The newest of two contradicting values."""
    services = names_of_services(language, random)
    name = services[0]
    values = random.sample(range(1_100, 9_900), 2 * len(services))
    sentence = language.sentences["value"]

    def status(own: int, others: Sequence[int], day: int) -> str:
        """Return a log in which each service says its value."""
        each = [sentence.format(name, own), *map(sentence.format, services[1:], others)]
        places = random.sample(range(45), len(each))
        return log(language, random, "status", 45, dict(zip(places, each, strict=True)), day)

    first = Output("read_log", "status-1.log", status(values[0], values[2:], 7))
    second = Output("read_log", "status-2.log", status(values[1], values[2:], 9))
    outputs = [filler(language, random, number) for number in range(OUTPUTS - 2)]
    outputs.insert(random.randrange(1, 3), first)
    outputs.insert(random.randrange(4, 7), second)
    messages = session(language, random, outputs, language.sentences["value?"].format(name))
    return Question(messages, (name,), str(values[1]), str(values[0]))


def change_of_mind(language: Language, random: Random) -> Question:
    """A user who wants another value than before."""
    name = names_of_services(language, random)[0]
    old, new = random.sample(range(8_001, 9_999), 2)
    outputs = [filler(language, random, number) for number in range(OUTPUTS)]
    for place, key, value in ((2, "mind", old), (random.randrange(4, 7), "mind again", new)):
        outputs[place] = replace(outputs[place], before=language.sentences[key].format(name, value))
    messages = session(language, random, outputs, language.sentences["mind?"].format(name))
    return Question(messages, (name,), str(new), str(old))


SEEN: dict[str, Shape] = {
    "port": port,
    "table": figure_in_table,
    "json": element_of_json,
    "value": newest_value,
    "mind": change_of_mind,
}


def fatal(language: Language, random: Random) -> Question:
    """One fatal line in 215,000 tokens of logs; the newest turn asks for nothing in particular."""
    code = f"E{random.randrange(1_000, 9_999)}"
    where, line = random.randrange(OUTPUTS // 2), random.randrange(100, FATAL_LINES // OUTPUTS - 100)
    outputs = [
        Output(
            "read_log",
            f"node-{number}.log",
            log(
                language,
                random,
                f"node-{number}",
                FATAL_LINES // OUTPUTS,
                {line: f"FATAL [store] segment lost, code {code}"} if number == where else None,
            ),
        )
        for number in range(OUTPUTS)
    ]
    return Question(session(language, random, outputs, language.turns[0]), ("FATAL",), code)


STRESS: dict[str, tuple[Shape, Language, int]] = {
    "FATAL line": (fatal, LANGUAGES["english"], 4),
    "contradicting values": (newest_value, LANGUAGES["english"], SEEDS),
    "change of mind": (change_of_mind, LANGUAGES["english"], SEEDS),
    "one-line JSON": (element_of_json, LANGUAGES["english"], SEEDS),
    "question's port": (port, LANGUAGES["english"], SEEDS),
    "German table": (figure_in_table, GERMAN, SEEDS),
}


def answer_kept(question: Question, messages: Sequence[Message]) -> bool:
    """Tell whether the value of the answer is there, with what the question names, and nothing that was replaced."""
    kept = False
    for message in messages:
        for text in texts(message):
            lines = text.split("\n")
            lists = [()] * len(lines) if message.results else lists_in(lines)
            for place, line in enumerate(lines):
                here = "\n".join(lines[max(place - 1, 0) : place + 2])
                if (
                    question.replaced
                    and _has(line, question.replaced)
                    and not (MARK.search(here) or _has(line, question.value))
                ):
                    return False
                above = lines[place - 1] if place else ""
                kept = kept or (not lists[place] and _near(question, line, above))
    return kept


def _near(question: Question, line: str, above: str) -> bool:
    values = [match.start() for match in re.finditer(_whole(question.value), line)]
    if not values:
        return False
    names = [match.start() for name in question.named for match in re.finditer(re.escape(name), line)]
    return any(abs(one - two) <= NEAR for one in values for two in names) or any(
        name in above for name in question.named
    )


def _has(line: str, value: str) -> bool:
    return re.search(_whole(value), line) is not None


def _whole(value: str) -> str:
    return rf"(?<![\d.,]){re.escape(value)}(?!\d|[.,]\d)"


class Answer(Struct, frozen=True):
    """Whether one policy kept the answer of one session."""

    policy: str
    shape: str
    language: str
    seed: int
    goal: str
    kept: bool
    outcome: str = "fits"


def answers(case: tuple[str, Shape, str, int], policies: Sequence[str], goals: Sequence[str]) -> list[Answer]:
    """Return what every policy makes of one session with every goal; a case is shape, maker, language, and seed."""
    shape, make, language, seed = case
    question = make(LANGUAGES[language], Random(f"{shape} {language} {seed}"))
    whole = formats.read(formats.find(FORMAT), question.messages).messages
    counter = counter_for("gpt-4o")
    size = sum(map(counter.message, whole)) + counter.per_conversation
    assert answer_kept(replace(question, replaced=""), whole)
    found: list[Answer] = []
    for goal in goals:
        for policy in policies:
            result = rivals.compacted(policy, question.messages, FORMAT, int(size * float(goal[:-1]) / 100))
            case = (policy, shape, language, seed, goal)
            if isinstance(result, str):
                found.append(Answer(*case, kept=False, outcome=result))
            else:
                kept = answer_kept(question, result.messages)
                unmarked = not kept and answer_kept(replace(question, replaced=""), result.messages)
                found.append(Answer(*case, kept=kept, outcome="the old value is unmarked" if unmarked else "fits"))
    return found


def tables(found: Sequence[Answer]) -> Iterable[Table]:
    """Yield a table for each goal: a row a policy, a column a shape, in it the share of 20, and the worst language."""
    for goal in dict.fromkeys(each.goal for each in found):
        here = [each for each in found if each.goal == goal]
        shapes = list(dict.fromkeys(each.shape for each in here))
        shown = Table(
            title=f"answers kept of 20 at {goal}; in brackets the worst language", caption=f"{len(here)} sessions"
        )
        for column in ("policy", *shapes, "mean"):
            shown.add_column(column, justify="left" if column == "policy" else "right")
        for policy in dict.fromkeys(each.policy for each in here):
            mine = [each for each in here if each.policy == policy]
            total = mean(each.kept for each in mine)
            shown.add_row(
                policy,
                *(_cell([each for each in mine if each.shape == shape]) for shape in shapes),
                f"{20 * total:.1f}",
            )
        yield shown


def _cell(some: Sequence[Answer]) -> str:
    languages: dict[str, list[bool]] = {}
    for each in some:
        languages.setdefault(each.language, []).append(each.kept)
    shares = {language: mean(kept) for language, kept in languages.items()}
    worst = min(shares, key=lambda language: shares[language])
    other = (
        f" ({20 * shares[worst]:.0f} {worst[:2]})" if len(shares) > 1 and shares[worst] < mean(shares.values()) else ""
    )
    return f"{20 * mean(each.kept for each in some):.1f}{other}"


def main() -> None:
    """Make the sessions, ask all policies, and print tables or rows."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--policies", default=",".join(("refold", *rivals.RIVALS)), help="names between commas, or all")
    asked.add_argument("--goals", default=",".join(GOALS))
    asked.add_argument("--seeds", type=int, default=SEEDS)
    asked.add_argument("--shapes", default=",".join(SEEN), help="names between commas; unseen for those, all for both")
    asked.add_argument("--languages", default=",".join(LANGUAGES))
    asked.add_argument("--stress", action="store_true")
    asked.add_argument("--jobs", type=int, help="processes; one a core by default")
    asked.add_argument("--json", action="store_true")
    options = asked.parse_args()
    names = rivals.names() if options.policies == "all" else options.policies.split(",")
    goals = options.goals.split(",")
    if options.stress:
        goals = goals if options.goals != ",".join(GOALS) else ["50%", *GOALS]
        jobs = [
            (cell, make, language.name, seed)
            for cell, (make, language, most) in STRESS.items()
            for seed in range(min(options.seeds, most))
        ]
    else:
        shapes = SEEN | UNSEEN
        wanted = {"all": list(shapes), "unseen": list(UNSEEN)}.get(options.shapes, options.shapes.split(","))
        jobs = [
            (shape, shapes[shape], language, seed)
            for shape in wanted
            for language in options.languages.split(",")
            for seed in range(min(options.seeds, LARGE.get(shape, SEEDS)))
        ]
    found: list[Answer] = []
    for some in worked("sessions", answers, jobs, names, goals, jobs=options.jobs):
        found += some
    print_rows(found, tables(found), as_json=options.json, width=160)


if __name__ == "__main__":
    main()
