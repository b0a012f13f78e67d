"""The steps of the work on the current request: what the assistant said it does, what it changed and ran, and found.

The last words and the last calls say where the work is, not how much of it is done. A step is what stands between two
announcements of the assistant ("Item 5: the index", "Now the tests"). What it says before the next one ("Only the
index fails.") is what came of the step. Steps that only looked at something, and of which nothing is said, are none,
nor are those that only waited for a command. One that a later step ran again is told there.
"""

from __future__ import annotations

from collections import Counter as Tally
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import is_shell, subject, writes
from refold._condense.call_outline import call_line, one_line
from refold._condense.digest.background import only_waited
from refold._condense.digest.narration import narration
from refold._condense.digest.outcomes import (
    PASSED_LATER,
    answered,
    ended,
    failed,
    meant_to_fail,
    says_something,
    seen,
)
from refold._condense.digest.targets import target_of, targets_of
from refold._condense.digest.turns import turn_ends, turns_at, turns_in_work
from refold._condense.file_views import is_scratch, took_effect
from refold._condense.placeholders import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refold._condense.digest.targets import Target
    from refold.core.messages import Message, MessageId, ToolCall, ToolResult
    from refold.core.view import View

__all__ = ["STEPS", "earlier_steps", "steps"]

STEPS = "Steps of the work on the current request"  # the section of a digest
MOST = 24  # steps that are told, the newest
ENDED = 110  # characters of how a command ended
SOLVED = f"{PASSED_LATER})"
FILES, RUNS, LOOKED = 4, 4, 2  # files and commands that are named in a step


class _Step(Struct):
    """What was said at its beginning and behind it, the files that were changed, and how commands ended.

    `later` are commands of calls without words of their own: what was said at the beginning may not be about them.
    `looked` are those that only looked at something, with the line they showed: they count where nothing else does.
    """

    turn: int
    words: str = ""
    finding: str = ""
    files: dict[str, int] = {}
    runs: dict[str, str] = {}
    later: dict[str, str] = {}
    looked: dict[str, str] = {}

    @property
    def line(self) -> str:
        """The step as a line of a digest; nothing where it changed and ran nothing."""
        changed = _changed(self.files)
        later = _ran(self.later)
        then = f"then {later}" if later and (self.runs or self.words) else later
        behind = f'"{self.finding}"' if self.finding else ""
        done = "; ".join(filter(None, (changed, _ran(self.runs), then, behind)))
        done = done or _ran(dict([*self.looked.items()][-LOOKED:]))
        return f"turn {self.turn}: {': '.join(filter(None, (self.words, done)))}" if done else ""


def _changed(files: dict[str, int]) -> str:
    """Return the names of files that were changed, with their folder where two are the same, and how often."""
    bases = Tally(path.rsplit("/", 1)[-1] for path in files)
    changed: list[str] = []
    for path, times in [*files.items()][:FILES]:
        folders, _, base = path.rpartition("/")
        name = base if bases[base] == 1 else f"{folders.rpartition('/')[2]}/{base}".lstrip("/")
        changed.append(f"{name} ({times} times)" if times > 1 else name)
    more = f" and {len(files) - FILES} more" if len(files) > FILES else ""
    return f"changed {', '.join(changed)}{more}" if changed else ""


def _ran(runs: dict[str, str]) -> str:
    """Return commands and how they ended, in order: the last ones, and rather those of which that is known."""
    newest = sorted(runs.items(), key=lambda run: bool(run[1]))[-RUNS:]
    return "; ".join(f"{task} → {how}" if how else task for task, how in runs.items() if (task, how) in newest)


def steps(view: View, staying: Sequence[Message] = (), stated: str = "") -> tuple[str, ...]:
    """Return the steps of the turns that no answer has ended, newest first.

    What the assistant found is not told where it stands in what is `staying`, or in what is `stated` elsewhere.
    """
    known = turn_ends(view.transcript).union(message.id for message in staying)
    return tuple(islice(filter(None, (step.line for step in _steps(view, known, stated))), MOST))


def earlier_steps(view: View, lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return those lines of earlier digests that are about the turns in work."""
    beginnings = tuple(f"turn {turn}: " for turn in turns_in_work(view.transcript))
    return tuple(line for line in lines if line.startswith(beginnings))


def _steps(view: View, known: frozenset[MessageId], stated: str) -> Iterator[_Step]:
    """Yield the steps, newest first: a step begins with words of the assistant, or with a turn.

    What messages say that are `known`, and what is `stated` elsewhere, is nothing that a step has found.
    """
    turns, in_work = turns_at(view.transcript), turns_in_work(view.transcript)
    messages = view.transcript.messages
    places = [position for position, turn in enumerate(turns) if turn in in_work]
    end = len(places)
    passed: list[Target] = []  # what went well in later calls
    finding = ""  # what the assistant says behind the step
    later: dict[str, set[str]] = {}  # how commands ended in later steps
    for start in range(end - 1, -1, -1):
        position = places[start]
        words, came = narration(messages[position])
        begins = not start or turns[places[start - 1]] != turns[position]
        if words or came or begins:
            step = _Step(turns[position], words)
            done = [
                (place, call, result)
                for place in places[start:end]
                for call, result in reversed([*answered(view, [messages[place]])])
            ]
            solved = _solved(done, passed)
            own = _first_calls(messages, places[start:end])
            waited = 0
            for number, (place, call, result) in enumerate(done):
                runs = step.runs if call.call_id in own else step.later
                if only_waited(call, result):
                    waited += 1
                elif not _ran_again(later, view, call, result):
                    _note(step, runs, view, place, call, result, solved=number in solved)
            for command, how in (*step.runs.items(), *step.later.items()):
                later.setdefault(command, set()).add(how)
            step.finding = finding if len(done) > waited else ""
            yield step
            is_known = begins or messages[position].id in known or came in stated
            end, finding = start, "" if is_known else came


def _ran_again(later: Mapping[str, set[str]], view: View, call: ToolCall, result: ToolResult) -> bool:
    """Tell whether a later step ran the same command, where it did not fail here, or failed in the same way there."""
    if not is_shell(call):
        return False
    command = _written(call)
    return command in later and (
        not failed(call, result) or one_line(ended(view, call, result), ENDED) in later[command]
    )


def _written(call: ToolCall) -> str:
    """Return the command of a call that tells most, as a step names it."""
    written = target_of(call).written or call_line(call)
    if target_of(call).task == "git commit":  # of a text that was cut off nothing is left
        written = written.removesuffix(" -m")
    return f"`{one_line(written.replace('`', chr(39)), ENDED)}`"


def _first_calls(messages: Sequence[Message], places: Sequence[int]) -> frozenset[str]:
    """Return the ids of the first calls, up to the first answer: some formats make a message of each."""
    before = takewhile(lambda place: not messages[place].results, places)
    return frozenset(call.call_id for place in before for call in messages[place].calls)


def _solved(done: Sequence[tuple[int, ToolCall, ToolResult]], passed: list[Target]) -> set[int]:
    """Return which calls failed that went well later, in these or in `passed`, to which those are added that passed."""
    solved: set[int] = set()
    for number, (_, call, result) in reversed([*enumerate(done)]):
        if not failed(call, result):
            passed += targets_of(call)
            continue
        target = target_of(call)
        same = (each for each in passed if not target.once or each.written == target.written)
        if any(each.covers(target) for each in same):
            solved.add(number)
    return solved


def _note(
    step: _Step, runs: dict[str, str], view: View, position: int, call: ToolCall, result: ToolResult, *, solved: bool
) -> None:
    """Take a call into a step: what it changed, or what it ran and how that ended, also later where it failed."""
    wrong, target = failed(call, result), target_of(call)
    if not wrong and took_effect(call, result):
        for path in (path.replace("\\", "/") for path in writes(call) if not is_scratch(path)):
            step.files[path] = step.files.get(path, 0) + 1
    if target.looks and not wrong and is_shell(call) and (brief := seen(view, call, result)):
        step.looked[f"`{one_line(subject(call)[0].replace('`', chr(39)), ENDED)}`"] = one_line(brief, ENDED)
    if (
        target.looks
        or (writes(call) and not (wrong or is_shell(call)))
        or (wrong and meant_to_fail(view, position, call))
    ):
        return
    command = _written(call)
    if LEFT_OUT.search(command):  # an earlier plan cut it
        return
    if wrong or (is_shell(call) and (target.checks or len(target.written) <= ENDED)):
        how = one_line(ended(view, call, result), ENDED)
        whole = is_shell(call) and subject(call)[0].strip() == target.written  # it does nothing else
        named = step.words and " " in command and (whole or runs is step.runs)
        if not (wrong or named or says_something(view, call, result)):
            return
        for before in (step.runs, step.later):
            before.pop(command, None)
        runs[command] = f"{how}{SOLVED}" if solved else how
