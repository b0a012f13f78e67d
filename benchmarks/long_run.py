"""A conversation of a thousand turns against a small window, with a summarizer that fails as summarizers do.

    python -m benchmarks.long_run [--turns 1000] [--window 32000] [--policy NAME]

For each policy: was every turn answered, what did the provider refuse, are task and constraints still in view at the
end, can every original be read back, and how does the store grow.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from refold import policies
from refold.agent import Agent, AgentProfile, tool
from refold.agent.cards import DoneCard, FailedCard
from refold.core.budget import Budget
from refold.core.messages import MessageId, texts
from refold.formats import find
from refold.sessions import Session, open_store
from refold.summaries.summarizers import guarded
from refold.testing._seeded_random import SeededRandom
from refold.testing.client import ScriptedClient
from refold.testing.provider import ScriptedReply

TASK = "Move every report of the warehouse to the new ledger, one after the other, and keep a list of what is done."
PINS = (
    "Never delete a row of the table stock_moves.",
    "Amounts must always be written with three decimals.",
    "Only the account LEDGER-77 may be used for bookings.",
)
FAULTS = ("good", "fails", "good", "nonsense", "good", "too long", "good", "empty")
ASKED = re.compile(r"report (\d+) please")
WORDS = [
    "pallet",
    "carton",
    "invoice",
    "carrier",
    "weight",
    "batch",
    "label",
    "shelf",
    "scanner",
    "return",
    "credit",
    "supplier",
    "lot",
    "count",
]


class LongRun(NamedTuple):
    """What came of one run; sizes of the store in bytes after the half and after all turns.

    `early` and `late` are CPU milliseconds a turn in the second and in the last tenth of the turns.
    """

    policy: str
    turns: int
    answered: int
    errors: tuple[str, ...]
    calls: int
    refusals: int
    compactions: int
    failed: int
    summaries: int
    highest: int
    missing: tuple[str, ...]
    said: int
    lost: int
    half: int
    whole: int
    seconds: float
    early: float
    late: float

    @property
    def growth(self) -> float:
        """The store after all turns as a multiple of the store after half of them; 2 where it grows linearly."""
        return self.whole / self.half


class Clerk:
    """A model by rule: reads the report that was asked for last, then says a sentence about it."""

    def __call__(self, received):
        said = [text for message in received.messages if message.role == "user" for text in texts(message)]
        number = ASKED.findall("\n".join(said))[-1]
        for message in reversed(received.messages):
            if any(f'"{number}"' in call.arguments for call in message.calls):
                return ScriptedReply(f"Report {number} is booked.")
        return ScriptedReply("I look at it.", [("read_report", {"number": number})])


class Flaky:
    """A summarizer: every second answer is good, the others are none, nonsense, or far too long."""

    def __init__(self):
        self.turns, self.asked = cycle(FAULTS), 0

    def __call__(self, need):
        self.asked += 1
        match next(self.turns):
            case "fails":
                raise TimeoutError("the summarizer did not answer")
            case "nonsense":
                return "Sure! What would you like to do next?"
            case "too long":
                return "And then there was another report. " * 20_000
            case "empty":
                return ""
        headings = [line for line in need.instructions.splitlines() if line.startswith(("#", "1.", "2.", "3."))]
        line = "Bookings go on, report by report; each report was read and its first line was named in the answer."
        rest = "\n".join(f"{heading}\n{line}" for heading in headings or ["Progress"] * 4)
        return f"TASK: {TASK}\nPROGRESS: reports are booked one by one.\nREMAINING: the rest.\nDATA: none\nDECISIONS: none\n{rest}"


def report(number: str) -> str:
    dice = SeededRandom(7).fork(f"report {number}")
    lines = [
        f"{dice.pick(WORDS)} {dice.pick(WORDS)} {dice.between(1, 999)} {dice.between(100, 99_999) / 1000:.3f}"
        for _ in range(dice.between(20, 160))
    ]
    return f"report {number}\n" + "\n".join(lines)


@tool
def read_report(number: str) -> str:
    """Read one report."""
    return report(number)


def said_by_the_user(turn: int, turns: int) -> str:
    places = {turns * share // 10: pin for share, pin in zip((0, 3, 6), PINS, strict=True)}
    text = f"Now book report {turn} please."
    if turn == 0:
        text = f"{TASK} Begin with report 0 please."
    return f"{places[turn]} {text}" if turn in places else text


def long_run(
    policy: str, turns: int, window: int = 32_000, folder: Path | None = None, format="openai-chat"
) -> LongRun:
    """Talk for so many turns and look at what is left."""
    with tempfile.TemporaryDirectory() as made:
        path = (folder or Path(made)) / f"{policy}.db"
        store = open_store(path)
        try:
            return _run(policy, turns, window, store, path, format)
        finally:
            store.close()


def _run(policy, turns, window, store, path, format):
    client = ScriptedClient(behave=Clerk(), window=window, format=format)
    flaky, events, errors, half = Flaky(), [], [], 0
    session = Session(store, "long", format=format)
    agent = Agent(
        client, policy=policy, tools=[read_report], session=session, budget=Budget(window, window // 10),
        summarize=guarded(flaky), observers=[events.append], waits=(), profile=AgentProfile(),
    )  # fmt: skip
    start = time.perf_counter()
    answered, tenth, spent = 0, max(turns // 10, 1), [time.process_time()]
    for turn in range(turns):
        try:
            answered += bool(agent.run(said_by_the_user(turn, turns)))
        except Exception as error:
            errors.append(f"turn {turn}: {type(error).__name__}: {error}"[:200])
        if turn == turns // 2 - 1:
            half = path.stat().st_size
        if (turn + 1) % tenth == 0:
            spent.append(time.process_time())
    seconds = time.perf_counter() - start
    shape = find(format)
    view = "\n".join(text for native in agent.messages for text in texts(shape.read(native, MessageId("x"))))
    again = Session(store, session.id, must_exist=True)
    lost = sum(json.dumps(old) != json.dumps(new) for old, new in zip(agent.originals, again.messages, strict=True))
    lost += sum(not again.recall(id) for id in again.ids[:: max(1, len(again.ids) // 50)])
    return LongRun(
        policy, turns, answered, tuple(errors), len(client.received),
        sum(received.status != 200 for received in client.received),
        sum(isinstance(event, DoneCard) for event in events), sum(isinstance(event, FailedCard) for event in events),
        flaky.asked, max(received.tokens for received in client.received if received.status == 200),
        tuple(wanted for wanted in (TASK, *PINS) if wanted not in view),
        len(agent.originals), lost, half, path.stat().st_size, seconds,
        (spent[2] - spent[1]) / tenth * 1_000, (spent[-1] - spent[-2]) / tenth * 1_000,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="A long conversation under each policy.")
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--window", type=int, default=32_000)
    parser.add_argument("--policy", action="append")
    options = parser.parse_args()
    heads = ("policy", "answered", "refused", "compactions", "failed", "summaries", "highest", "not in view", "lost",
             "store MB", "growth", "s", "early ms", "late ms")  # fmt: skip
    print(("{:>12} " * len(heads)).format(*heads))
    for policy in options.policy or policies.names():
        run = long_run(policy, options.turns, options.window)
        row = (run.policy, run.answered, run.refusals, run.compactions, run.failed, run.summaries, run.highest,
               len(run.missing), run.lost, f"{run.whole / 1e6:.1f}", f"{run.growth:.2f}", f"{run.seconds:.1f}",
               f"{run.early:.0f}", f"{run.late:.0f}")  # fmt: skip
        print(("{:>12} " * len(row)).format(*row), *run.missing, *run.errors[:2])


if __name__ == "__main__":
    main()
