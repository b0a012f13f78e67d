"""Long conversations in `refold chat`, killed in the middle and resumed, against the strict scripted provider.

    python -m benchmarks.chat_runs [--conversations 10] [--turns 200] [--window 32000] [--policy NAME]

For each policy: how many requests the provider refused, whether every message and tool output is stored exactly once,
how many compactions there were, and by how much the sizes that the chat shows differ from what the provider then counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from refold import policies
from refold.core.messages import text_of, texts
from refold.formats import find, read
from refold.sessions import Session, open_store
from refold.testing._seeded_random import SeededRandom
from refold.testing.provider import ReceivedRequest, ScriptedProvider, ScriptedReply

FILES = 40
RECOUNT = 16  # output tokens of a call that only counts (V08)
WORDS = ("pallet", "carton", "invoice", "carrier", "weight", "batch", "label", "shelf", "scanner", "return", "credit")
TURN = re.compile(r"^Turn (\d+):", re.M)
REQUEST = re.compile(r"\bTurn (\d+): (.*)")
PATH = re.compile(r"report-\d+\.txt")
HEADING = re.compile(r"^(?:#+ .+|\d\. [^:]+|[A-Z]+:)", re.M)
DECISION = re.compile(r"^\[compactor\] .*effective=(\d+)")
DONE = re.compile(r"^Compaction complete: [\d,]+ → ([\d,]+) tokens")
SHOWN = re.compile(r"^\d+% of the context[^(]*\(([\d,]+) of")


class Run(NamedTuple):
    """What came of the conversations of one policy; differences are shares of what the provider counted."""

    policy: str
    conversations: int
    turns: int
    calls: int
    refused: int
    lost: int
    twice: int
    compactions: int
    highest: int
    after_worst: float
    shown_worst: float
    seconds: float


class Reader:
    """A model by rule: reads the report of the newest turn, then answers; `reached` is set at one turn's request."""

    def __init__(self, stop_at: int) -> None:
        self.stop_at, self.reached = stop_at, threading.Event()

    def __call__(self, received: ReceivedRequest) -> ScriptedReply | str:
        if not received.tools:  # a summary
            headings = dict.fromkeys(HEADING.findall("\n".join(map(text_of, received.messages))))
            line = "Reports are read one by one, and each code word was given in an answer."
            return "\n\n".join(f"{heading}\n{line}" for heading in headings) or line
        user = [text for message in received.messages if message.role == "user" for text in texts(message)]
        turns = {int(number): wish for text in user for number, wish in REQUEST.findall(text)}
        turn = max(turns)  # a request that a summary quotes counts too
        if turn >= self.stop_at:
            self.reached.set()
        if received.messages[-1].results or not (path := PATH.search(turns[turn])):
            return f"Turn {turn} is done."
        return ScriptedReply("I look.", [("read", {"path": path[0]})])


class Sizes(NamedTuple):
    """Sizes that a process showed, each with the number of the call that followed or came before."""

    after: list[tuple[int, int]]
    shown: list[tuple[int, int]]


def sizes(stderr: str) -> Sizes:
    """Return what a chat showed of its sizes: decisions come before each call, so they number the calls."""
    found, call = Sizes([], []), 0
    for line in stderr.splitlines():
        if DECISION.match(line.strip()):
            call += 1
        elif done := DONE.match(line.strip()):
            found.after.append((call - 1, int(done[1].replace(",", ""))))
        elif shown := SHOWN.match(line.strip()):
            found.shown.append((call - 1, int(shown[1].replace(",", ""))))
    return found


def converse(policy: str, seed: int, turns: int, window: int, folder: Path) -> dict[str, Any]:
    """Hold one conversation, with a kill in its middle."""
    random = SeededRandom(seed)
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    home.mkdir()
    for number in range(FILES):
        rows = [" ".join(random.some(WORDS, 8)) for _ in range(20 + random.below(300))]
        text = "\n".join((f"Report {number}", *rows, f"code word {seed}-{number}"))
        (work / f"report-{number:02}.txt").write_text(text)
    lines = [
        f"Turn {turn}: " + ("go on" if random.below(4) == 0 else f"read report-{random.below(FILES):02}.txt")
        for turn in range(1, turns + 1)
    ]
    reader = Reader(turns // 2 + random.below(5))
    with ScriptedProvider(behave=reader, window=window) as provider:
        command = [
            sys.executable, "-m", "refold", "chat", "--model", "scripted", "--base-url", provider.openai_url,
            "--window", str(window), "--policy", policy, "--session", "run", "--decisions", "-C", str(work),
        ]  # fmt: skip
        env = os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
        first = _run(command, lines, env, kill=reader.reached)
        calls = [_calls(provider)]
        store = open_store(home / "data" / "refold" / "sessions.db")
        stored = _turns(_newest(store))
        store.close()
        second = _run(command, lines[stored[-1] :], env)
        calls.append(_calls(provider))
        refused = sum(received.status != 200 for received in provider.received)
    store = open_store(home / "data" / "refold" / "sessions.db")
    session = _newest(store)
    kept = _turns(session)
    messages = read(find("openai-chat"), session.messages).messages
    wanted = {call.call_id for message in messages for call in message.calls}
    answered = [result.call_id for message in messages for result in message.results]
    store.close()
    after, shown = [], []
    for base, text, counted in ((0, first, calls[0]), (len(calls[0]), second, calls[1])):
        seen = sizes(text)
        after += [(size, counted[base + call]) for call, size in seen.after if base + call < len(counted)]
        shown += [(size, counted[base + call]) for call, size in seen.shown if base + call < len(counted)]
    return {
        "calls": len(calls[1]), "refused": refused,
        "lost": len(set(range(1, turns + 1)) - set(kept)) + len(wanted - set(answered)),
        "twice": len(kept) - len(set(kept)) + len(answered) - len(set(answered)),
        "compactions": len(after), "highest": max(calls[1]),
        "after": max((abs(size - true) / true for size, true in after), default=0.0),
        "shown": max((abs(size - true) / true for size, true in shown), default=0.0),
    }  # fmt: skip


def _run(command: list[str], lines: list[str], env: dict[str, str], kill: threading.Event | None = None) -> str:
    """Run a chat over lines and return its standard error; with `kill` it is killed once that is set."""
    with subprocess.Popen(command, stdin=-1, stdout=-3, stderr=-1, env=env, text=True) as process:
        written: list[str] = []
        assert process.stderr is not None
        assert process.stdin is not None
        reading = threading.Thread(target=lambda: written.extend(process.stderr or ()))
        reading.start()
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.close()
        while kill is not None and process.poll() is None:
            if kill.wait(0.05):
                time.sleep(0.02)
                process.kill()
        process.wait()
        reading.join()
    text = "".join(written)
    if kill is None and process.returncode:
        raise SystemExit(text[-2_000:])
    return text


def _calls(provider: ScriptedProvider) -> list[int]:
    """Return the prompt tokens of each call of the agent, without summaries, recounts and refused requests."""
    answered = (received for received in provider.received if received.tools and received.status == 200)
    return [received.tokens for received in answered if received.max_output != RECOUNT]


def _newest(store: Any) -> Session:
    """Return the session that a policy which renews them has arrived at."""
    heads = {head.id: head for head in store.sessions()}
    head = heads["run"]
    while head.next:
        head = heads[head.next]
    return Session(store, head.id, format="openai-chat")


def _turns(session: Session) -> list[int]:
    messages = read(find("openai-chat"), session.messages).messages
    return [int(number) for each in messages if each.role == "user" for number in TURN.findall(text_of(each))]


def measure(policy: str, conversations: int, turns: int, window: int) -> Run:
    """Hold the conversations of one policy."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        runs = [converse(policy, seed, turns, window, Path(folder) / str(seed)) for seed in range(conversations)]
    sums = {name: sum(run[name] for run in runs) for name in ("calls", "refused", "lost", "twice", "compactions")}
    most = {name: max(run[name] for run in runs) for name in ("highest", "after", "shown")}
    return Run(
        policy, conversations, turns, sums["calls"], sums["refused"], sums["lost"], sums["twice"], sums["compactions"],
        most["highest"], round(most["after"], 4), round(most["shown"], 4), round(time.monotonic() - start, 1),
    )  # fmt: skip


def main() -> None:
    """Print a line of JSON for each policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--window", type=int, default=32_000)
    parser.add_argument("--policy", action="append", choices=policies.names())
    given = parser.parse_args()
    for policy in given.policy or policies.names():
        print(json.dumps(measure(policy, given.conversations, given.turns, given.window)._asdict()), flush=True)


if __name__ == "__main__":
    main()
