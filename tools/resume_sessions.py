"""Lets real agents resume sessions that were compacted in place, and looks at the first request that each sends.

    python tools/resume_sessions.py --agents FOLDER                  # those of the three that FOLDER has
    python tools/resume_sessions.py --agents FOLDER --install codex  # installs it into FOLDER first

The agent works on a small project against a scripted provider on the loopback interface, until its session holds a long
log. `refold compact --in-place` compacts the session; then the agent resumes it with a question. The first request must
be valid by the strict judge of `refold.testing`, and be the compacted conversation: every message of it in order,
and no other call or result. FOLDER is that of tools/record_sessions.py. Claude Code and pi
need a newer Node than Debian's: put it first in PATH.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from refold import formats, transcripts  # noqa: E402
from refold.core.messages import Message, Text, ToolCall, ToolResult  # noqa: E402
from refold.testing import judge  # noqa: E402
from refold.testing.provider import ReceivedRequest, ScriptedReply  # noqa: E402
from tools.record_sessions import install, version  # noqa: E402
from tools.recording.agents import AGENTS, write_codex_settings  # noqa: E402
from tools.recording.run import QUESTION, TASK, Run, Step, running  # noqa: E402

LOG = "build.log"
LINES = 400
TOOLS = ("--allowedTools", "Bash Read Edit")
PI = ("--provider", "anthropic", "--model", "claude-opus-4-5", "--thinking", "low")


@dataclass(frozen=True)
class Trial:
    """How an agent is given the task and, later, the question; the pattern of its session file; and the goal.

    The goal, in tokens, is such that the log has to be shortened and the rest may stay.
    """

    first: Callable[[Run], object]
    resumed: Callable[[Run], object]
    pattern: str
    goal: str


def _codex_first(run: Run) -> None:
    write_codex_settings(run)
    run.call("codex", "exec", "--skip-git-repo-check", TASK)


def _pi_first(run: Run) -> None:
    run.write(".pi/agent/models.json", {"providers": {"anthropic": {"baseUrl": run.provider.url}}})
    run.call("pi", *PI, "--print", TASK)


TRIALS = {
    "claude-code": Trial(
        lambda run: run.call("claude", "-p", TASK, *TOOLS),
        lambda run: run.call("claude", "--continue", "-p", QUESTION, *TOOLS),
        ".claude/projects/*/*.jsonl",
        "1500",
    ),
    "codex": Trial(
        _codex_first,
        lambda run: run.call("codex", "exec", "--skip-git-repo-check", "resume", "--last", QUESTION),
        ".codex/sessions/**/*.jsonl",
        "6000",
    ),
    "pi": Trial(
        _pi_first,
        lambda run: run.call("pi", *PI, "--continue", "--print", QUESTION),
        ".pi/agent/sessions/*/*.jsonl",
        "1500",
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Try the chosen agents and print a line for each; return 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="AGENT", help=", ".join(TRIALS))
    parser.add_argument("--agents", type=Path, required=True, metavar="FOLDER", help="where the agents are installed")
    parser.add_argument("--install", action="store_true", help="install the agents into FOLDER first")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the session files and the first request here")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(TRIALS):
        parser.error(f"there is no trial of {unknown.pop()}; there are {', '.join(TRIALS)}")
    failed = 0
    for name in options.names or [name for name in TRIALS if (options.agents / name).is_dir()]:
        folder = options.agents.resolve() / name
        if options.install:
            install(AGENTS[name].registry, AGENTS[name].packages, folder)
        try:
            print(f"{name} {_version(name, folder)}: {tried(name, folder, options.keep)}")
        except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
            failed = 1
            print(f"{name}: {error}", file=sys.stderr)
    return failed


def _version(name: str, folder: Path) -> str:
    try:
        return version(AGENTS[name], folder)
    except OSError:  # installed under another name of the package
        return "(version unknown)"


def tried(name: str, folder: Path, keep: Path | None) -> str:
    """Run an agent, compact its session, let it resume, and say what it sent.

    Raises:
        ValueError: the first request is invalid, or is not the compacted conversation.
    """
    agent, trial = AGENTS[name], TRIALS[name]
    with running(folder, agent.tools, _script, agent.environment) as run:
        log = "\n".join(f"{number:04} step {number * 7919 % 1000} of the build passed" for number in range(LINES))
        (run.project / LOG).write_text(log, encoding="utf-8")
        trial.first(run)
        (session,) = run.files(trial.pattern)
        before = len(run.provider.received)
        whole = max(received.tokens for received in run.provider.received)
        command = [
            sys.executable,
            "-m",
            "refold",
            "compact",
            "--in-place",
            "--force",
            "--window",
            "200k",
            "--goal",
            trial.goal,
        ]
        subprocess.run([*command, str(session)], check=True, cwd=ROOT, env={**run.environment, "PYTHONPATH": "src"})
        content, original = session.read_bytes(), Path(f"{session}.orig").read_bytes()
        trial.resumed(run)
        request = next(each for each in run.provider.received[before:] if each.body.get("tools"))
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{name}.jsonl").write_bytes(content)
            (keep / f"{name}.request.json").write_text(json.dumps(request.body, indent=1))
        return checked(request, _compacted(content), transcripts.read(original)[0], whole)


def _script(run: Run) -> list[Step]:
    first, *rest = run.steps()
    reading = ScriptedReply("The log first.", [run.tools.run(f"cat {LOG}")], thinking="The log may say what is wrong.")
    return [reading, first, *rest]


def _compacted(content: bytes) -> list[Message]:
    """Return what a file says that the conversation is now, as far as it is our own messages."""
    rows = [json.loads(line) for line in content.splitlines()]
    replaced = [row["payload"]["replacement_history"] for row in rows if row.get("type") == "compacted"]
    recorded = transcripts.continued(content)
    native = replaced[-1] if replaced else recorded.messages
    return list(formats.read(formats.find(recorded.format), native).messages)


def checked(
    request: ReceivedRequest, compacted: Sequence[Message], original: transcripts.RecordedConversation, whole: int
) -> str:
    """Return figures on a request that is valid and is the compacted conversation.

    Raises:
        ValueError: it is not.
    """
    problems = [*judge.problems(request.wire, request.body), *request.violations]
    if problems:
        raise ValueError(f"the first request is not valid: {problems[0]}")
    sent = list(_units(request.messages))
    wanted = list(_units(compacted))
    left = iter(sent)
    for unit in wanted:
        if not any(unit == other for other in left):
            raise ValueError(f"the first request lacks, or has at another place: {unit}")
    exchanged = {unit for unit in sent if unit[0] != "text"}
    if extra := exchanged - set(wanted):
        raise ValueError(f"the first request has what the compacted conversation has not: {extra.pop()}")
    before = set(_units(formats.read(formats.find(original.format), original.messages).messages))
    removed = {unit for unit in before - set(wanted) if unit[0] == "result"}  # texts may be the client's own context
    if not any(len(unit[2]) > 1_000 for unit in removed):
        raise ValueError("no long output was removed, so the trial shows nothing")
    if back := removed & set(sent):
        raise ValueError(f"the first request has what was removed: {str(back.pop())[:200]}")
    return (
        f"valid; {len(wanted)} parts of {len(before)}, all in the first request in order; {request.tokens:,} tokens "
        f"after {whole:,}"
    )


def _units(messages: Sequence[Message]) -> Iterator[tuple[str, ...]]:
    """Yield what a conversation is made of, however a client groups it, without reasoning."""
    for message in messages:
        for part in message.parts:
            match part:
                case Text() if part.text.strip():
                    yield ("text", message.role, part.text.strip())
                case ToolCall():
                    yield (
                        "call",
                        part.call_id,
                        part.name,
                        json.dumps(json.loads(part.arguments or "{}"), sort_keys=True),
                    )
                case ToolResult():
                    yield ("result", part.call_id, part.text.strip())
                case _:
                    pass


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
