"""Real agents behind the gateway: a long task at a small window, with a scripted provider that refuses what is invalid.

    python benchmarks/agents.py --home FOLDER --install            # installs the agents into FOLDER, with npm and uv
    python benchmarks/agents.py --home FOLDER                      # runs all that FOLDER has
    python benchmarks/agents.py --home FOLDER --agents claude-code,codex --calls 60 --window 48k
    python benchmarks/agents.py --home FOLDER --agents codex --native emulate --json

Each agent runs without a terminal, in a temporary folder with a home of its own and no key. Its model calls the agent's
shell tool again and again; every output is a report of one to six thousand tokens, so that the task fills the window
several times. The provider refuses every request that the real one would refuse, and every one above the window.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parent.parent))

from benchmarks.agent_programs import NODE, PROGRAMS, Program
from benchmarks.agent_upstreams import compacting_upstream
from refold.testing.provider import ReceivedRequest, ScriptedProvider, ScriptedReply
from tools.record_sessions import install
from tools.recording.agents import LOOP
from tools.recording.run import SUMMARY, TITLE, Run, free_port, prepared, without_tools

RULE = "Book on the account LEDGER-4471 alone"
TASK = (
    f"Read the reports 1 to {{calls}} with `python3 report.py NUMBER`, one after the other. {RULE}, and never delete a "
    "row of stock_moves. Then tell the total."
)
MORE = "Which account may be used? Look at report 3 once more."
TEXT_ALONE = "Respond with TEXT ONLY"  # how Claude Code asks for a summary, with all its tools
NO_LOOP = {"unproductive_state_analysis": "Each report is another one.", "unproductive_state_confidence": 0.0}
END = "The total of all reports is 81,400.250, booked on one account."
REPORT = '''"""Prints a report: words that differ from line to line, and a total."""
import random, sys
number = int(sys.argv[1])
dice = random.Random(number)
words = "pallet carton invoice carrier weight batch label shelf scanner return credit supplier lot count".split()
for line in range(240 if number % 8 == 0 else 60):
    print(f"{dice.randrange(10**6):06} {' '.join(dice.choices(words, k=5))} src/{dice.choice(words)}_{number}.py:{line}")
print(f"total of report {number}: {dice.randrange(10**6) / 1000:.3f}")
'''
CUTS = ("new-output", "repair", "drop-reasoning", "shadow")  # plans that shorten no history


TOTAL = re.compile(r"total of report (\d+)|Report (\d+), please")


class LongTask:
    """A model that calls a tool so many times, then ends; a further turn takes one more call."""

    def __init__(self, program: Program, calls: int) -> None:
        self._program = program
        self._steps = self._script(calls)
        self.main: list[ReceivedRequest] = []

    def __call__(self, received: ReceivedRequest) -> ScriptedReply | str:
        """Return the next step; a request outside the conversation gets a title or a summary."""
        call, words = self._program.call, json.dumps(received.body)
        if call is not None and (call("")[0] not in received.tools or TEXT_ALONE in words):
            if "unproductive_state_confidence" in words:  # Gemini CLI's check after 30 turns
                return json.dumps(NO_LOOP)
            if TEXT_ALONE not in words and without_tools(received) != SUMMARY:
                return TITLE
            return f"<summary>The user wants all reports read. {RULE if RULE in words else 'Rules: none'}.</summary>"
        self.main.append(received)
        return next(self._steps, ScriptedReply(END))

    def _script(self, calls: int) -> Iterator[ScriptedReply]:
        call, end, beside = self._program.call, self._program.end, self._program.text_beside_calls
        if call is None:
            for number in range(1, calls + 1):
                yield ScriptedReply(_words(number))
            return
        number = 0
        while number < calls:
            several = self._program.parallel and number % 7 == 3 and number + 2 <= calls
            numbers = [number + 1, number + 2] if several else [number + 1]
            number = numbers[-1]
            yield ScriptedReply(
                f"Report {number} is next." if beside else "", [call(f"python3 report.py {each}") for each in numbers],
                thinking=f"Report {number} has not been read yet.",
            )  # fmt: skip
        yield end(END)
        yield ScriptedReply(
            "Once more." if beside else "", [call("python3 report.py 3")], thinking="It was in the first message."
        )
        yield end(END)


def _words(number: int) -> str:
    dice = random.Random(number)
    return f"Report {number}:\n" + "\n".join(
        f"- {dice.randrange(10**6)} units of lot {dice.randrange(999)}" for _ in range(90)
    )


class Row(NamedTuple):
    """What came of one agent."""

    agent: str
    version: str
    window: int
    calls: int  # requests of the conversation
    reports: int  # that reached the model
    largest: int  # tokens of the largest request that the provider answered
    invalid: int  # requests that the provider would refuse, or above its window
    errors: dict[str, int]  # that reached the agent, by status or code
    exit_code: int
    finished: bool  # the agent said what its model said last
    compactions: int
    closest: int | None  # calls between two compactions, the fewest
    rule_known: bool  # the rule of the first message stands in the last request
    native: dict[str, int]  # requests for a provider's own compaction, by kind
    problems: list[str]


def main(arguments: Sequence[str]) -> int:
    """Run the chosen agents; return 1 where one did not come through."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, required=True, metavar="FOLDER", help="where the agents are installed")
    parser.add_argument("--install", action="store_true", help="install the agents into FOLDER and stop")
    parser.add_argument("--agents", default="", help="names with commas between; all that FOLDER has by default")
    parser.add_argument("--calls", type=int, default=40, help="reports that the task has")
    parser.add_argument("--window", type=_tokens, default=0, help="tokens; by default a small one for each agent")
    parser.add_argument("--native", default="", choices=("", "pass", "shadow", "emulate"))
    parser.add_argument("--more", action="store_true", help="a further turn in the same session at the end")
    parser.add_argument(
        "--move", action="store_true", help="a further turn at another provider, after one that compacts by itself"
    )
    parser.add_argument("--gateway", default="", metavar="OPTIONS", help="further options of refold serve")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep logs, requests and outputs in FOLDER")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    home = options.home.resolve()
    names = options.agents.split(",") if options.agents else list(PROGRAMS)
    if unknown := set(names) - set(PROGRAMS):
        parser.error(f"there is no agent {', '.join(sorted(unknown))}; use {', '.join(PROGRAMS)}")
    if options.install:
        _install(home, names)
        return 0
    if not options.agents:
        names = [name for name in names if (home / (PROGRAMS[name].folder or name)).is_dir()]
    rows = []
    for name in names:
        rows.append(_ran(name, home, options))
        print(json.dumps(rows[-1]._asdict()) if options.json else _line(rows[-1]), flush=True)
    return int(not all(_came_through(row) for row in rows))


def _tokens(text: str) -> int:
    return int(float(text.removesuffix("k")) * 1000) if text.endswith("k") else int(text)


def _install(home: Path, names: Sequence[str]) -> None:
    install("npm", (NODE,), home / "node")
    os.environ["PATH"] = _path(home)
    for name in names:
        program = PROGRAMS[name]
        if program.folder:
            continue
        overrides = home / f"{name}.overrides.txt"
        overrides.write_text(program.override)
        os.environ["UV_OVERRIDE"] = str(overrides)
        install("pypi" if program.python else "npm", program.packages, home / name, program.python)


def _path(home: Path) -> str:
    return os.pathsep.join([str(home / "node" / "node_modules" / ".bin"), os.environ["PATH"]])


def _ran(name: str, home: Path, options: argparse.Namespace) -> Row:
    program = PROGRAMS[name]
    window = options.window or program.window
    task = LongTask(program, options.calls)
    first = TASK.format(calls=options.calls)
    later = list(program.more(MORE)) if program.more is not None and (options.more or options.move) else []
    turns = [program.command(first), *later]
    said, code, port, entries = "", 0, free_port(), []
    with (
        tempfile.TemporaryDirectory(prefix="agents-") as place,
        ScriptedProvider(behave=task, window=window, native_compaction=options.native in ("pass", "shadow")) as provider,
        compacting_upstream(provider.url) as other,
        prepared(
            home / (program.folder or name), LOOP, provider, f"http://127.0.0.1:{port}", {"report.py": REPORT},
            {"PATH": _path(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True", **program.environment},
        ) as run,
    ):  # fmt: skip
        program.set_up(run)
        typed = (
            "" if program.call else "\n".join([first, *(f"Report {n}, please." for n in range(2, options.calls + 1))])
        )
        compacting = options.native in ("pass", "shadow")  # the provider itself is asked to
        phases = [(other if compacting else provider.url, options.native, turns)]
        if options.move:
            phases = [(other, "shadow", turns[:1]), (provider.url, "", turns[1:])]
        for number, (upstream, native, words) in enumerate(phases):
            log = Path(place) / f"gateway-{number}.jsonl"
            with _gateway(upstream, port, window, log, native, options.gateway):
                for each in words:
                    output, ended = _played(run, each, typed)
                    said, code = said + output, code or ended
            entries += [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
            if options.keep:
                _keep(options.keep, f"{name}-{number}", said, log.read_text(), provider)
        return _row(name, program, window, task, provider, entries, said, code)


def _played(run: Run, words: Sequence[str], typed: str) -> tuple[str, int]:
    """Return what an agent printed, and its exit code; 124 where it did not end."""
    try:
        done = run.finished(*words, typed=typed, seconds=900)
    except subprocess.TimeoutExpired as error:
        return str(error.stdout) + str(error.stderr), 124
    return done.stdout + done.stderr, done.returncode


@contextmanager
def _gateway(upstream: str, port: int, window: int, log: Path, native: str, further: str) -> Iterator[None]:
    """Run `refold serve` in front of an upstream, with a log of every request."""
    command = [
        sys.executable, "-m", "refold", "serve", "--port", str(port), "--window", str(window),
        "--store", str(log.parent / "store.db"), "--log-level", "info", "--log-format", "json",
        "--openai", f"{upstream}/v1", "--anthropic", upstream, "--gemini", upstream,
        *(["--native-compaction", native] if native else []), *further.split(),
    ]  # fmt: skip
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file, cwd=log.parent) as process:
        try:
            for _ in range(300):
                if "serving on" in log.read_text() or process.poll() is not None:
                    break
                time.sleep(0.1)
            if process.poll() is not None:
                raise RuntimeError(f"the gateway does not start: {log.read_text()[-800:]}")
            yield
        finally:
            process.terminate()
            process.wait(90)


def _row(
    name: str, program: Program, window: int, task: LongTask, provider: ScriptedProvider,
    entries: Sequence[Mapping[str, Any]], said: str, code: int,
) -> Row:  # fmt: skip
    compactions, closest = _compactions(entries)
    errors = Counter(
        str(entry.get("code") or entry["status"])
        for entry in entries
        if entry["event"] == "refused" or (entry["event"] == "request" and entry["status"] >= 400)
    )
    invalid = [each for each in provider.received if each.problems or each.violations or each.status in (400, 413)]
    answered = [each for each in task.main if each.status == 200]
    reports = {name for each in answered for name in TOTAL.findall(json.dumps(each.body))}
    last = json.dumps(answered[-1].body) if answered else ""
    return Row(
        name, program.version, window, len(task.main), len(reports), max((each.tokens for each in answered), default=0),
        len(invalid), dict(errors), code, END.split(",")[0] in said or program.call is None,
        compactions, closest, RULE in last,
        dict(Counter(entry["native"] for entry in entries if "native" in entry)),
        [str((each.problems or each.violations or [f"status {each.status}"])[0])[:300] for each in invalid][:3],
    )  # fmt: skip


def _compactions(entries: Sequence[Mapping[str, Any]]) -> tuple[int, int | None]:
    """Return the compactions in a gateway's log, and the fewest calls between two of the same conversation."""
    count, since, due = 0, 0, False
    gaps = []
    for entry in entries:
        due |= entry["event"] == "compaction" and entry["cause"] not in CUTS
        if entry["event"] != "request" or entry["operation"] not in ("chat", "generate_content"):
            continue
        if due:
            count += 1
            if entry.get("plans", 0) > 1:  # else the first of a conversation
                gaps.append(since)
            since, due = 0, False
        since += 1
    return count, min(gaps, default=None)


def _keep(folder: Path, name: str, said: str, log: str, provider: ScriptedProvider) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.out").write_text(said)
    (folder / f"{name}.log").write_text(log)
    with (folder / f"{name}.jsonl").open("w") as file:
        for each in provider.received:
            kept = {"number": each.number, "status": each.status, "tokens": each.tokens, "headers": each.headers}
            kept |= {"problems": [str(one) for one in each.problems], "body": each.body}
            file.write(json.dumps(kept) + "\n")


def _came_through(row: Row) -> bool:
    return (
        row.finished and row.reports and row.rule_known and not (row.exit_code or row.errors or row.invalid)
        and (row.closest is None or row.closest >= 5)
    )  # fmt: skip


def _line(row: Row) -> str:
    return " | ".join(f"{name} {value}" for name, value in row._asdict().items())


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
