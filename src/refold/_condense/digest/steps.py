"""The steps of the work on the current request: what the assistant said it does, what it changed and ran.

The last words and the last calls say where the work is, not how much of it is done. A step is what stands between two
announcements of the assistant ("Item 5: the index", "Now the tests"). Steps that only looked at something are none.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import is_shell, writes
from refold._condense.call_outline import call_line, one_line
from refold._condense.digest.conclusions import prose
from refold._condense.digest.findings import no_work
from refold._condense.digest.outcomes import PASSED_LATER, answered, ended, failed, meant_to_fail
from refold._condense.digest.remedies import announced
from refold._condense.digest.targets import target_of, targets_of
from refold._condense.digest.turns import turns_at, turns_in_work
from refold._condense.file_views import is_scratch, took_effect
from refold._condense.placeholders import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold._condense.digest.targets import Target
    from refold.core.messages import ToolCall, ToolResult
    from refold.core.view import View

__all__ = ["STEPS", "earlier_steps", "steps"]

STEPS = "Steps of the work on the current request"  # the section of a digest
MOST = 24  # steps that are told, the newest
WORDS, ENDED = 150, 90  # characters of what the assistant said, and of how a command ended
SOLVED = f"{PASSED_LATER})"
FILES, RUNS = 4, 4  # files and commands that are named in a step


class _Step(Struct):
    """What was said at its beginning, the files that were changed, and how commands ended."""

    turn: int
    words: str = ""
    files: dict[str, int] = {}
    runs: dict[str, str] = {}

    @property
    def line(self) -> str:
        """The step as a line of a digest; nothing where it changed and ran nothing."""
        names = [f"{name} ({times} times)" if times > 1 else name for name, times in [*self.files.items()][:FILES]]
        more = f" and {len(self.files) - FILES} more" if len(self.files) > FILES else ""
        changed = f"changed {', '.join(names)}{more}" if names else ""
        ran = (f"{task} → {how}" if how else task for task, how in sorted(self.runs.items(), key=_telling)[:RUNS])
        done = "; ".join(filter(None, (changed, *ran)))
        return f"turn {self.turn}: {': '.join(filter(None, (self.words, done)))}" if done else ""


def _telling(run: tuple[str, str]) -> bool:
    """Return what comes first: of which it is known how it ended."""
    return not run[1]


def steps(view: View) -> tuple[str, ...]:
    """Return the steps of the turns that no answer has ended, newest first."""
    return tuple(islice(filter(None, (step.line for step in _steps(view))), MOST))


def earlier_steps(view: View, lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return those lines of earlier digests that are about the turns in work."""
    beginnings = tuple(f"turn {turn}: " for turn in turns_in_work(view.transcript))
    return tuple(line for line in lines if line.startswith(beginnings))


def _steps(view: View) -> Iterator[_Step]:
    """Yield the steps, newest first: a step begins with words of the assistant, or with a turn."""
    turns, in_work = turns_at(view.transcript), turns_in_work(view.transcript)
    messages = view.transcript.messages
    places = [position for position, turn in enumerate(turns) if turn in in_work]
    end = len(places)
    passed: list[Target] = []  # what went well in later calls
    for start in range(end - 1, -1, -1):
        position = places[start]
        words = "" if no_work(prose(messages[position]).strip()) else announced(messages[position], WORDS)
        if words or not start or turns[places[start - 1]] != turns[position]:
            step = _Step(turns[position], words)
            done = [
                (place, call, result)
                for place in places[start:end]
                for call, result in reversed([*answered(view, [messages[place]])])
            ]
            solved = _solved(done, passed)
            for number, (place, call, result) in enumerate(done):
                _note(step, view, place, call, result, solved=number in solved)
            yield step
            end = start


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


def _note(step: _Step, view: View, position: int, call: ToolCall, result: ToolResult, *, solved: bool) -> None:
    """Take a call into a step: what it changed, or what it ran and how that ended, also later where it failed."""
    wrong, target = failed(call, result), target_of(call)
    if not wrong and took_effect(call, result):
        for path in (path for path in writes(call) if not is_scratch(path)):
            name = path.replace("\\", "/").rsplit("/", 1)[-1]
            step.files[name] = step.files.get(name, 0) + 1
    if (
        target.looks
        or (writes(call) and not (wrong or is_shell(call)))
        or (wrong and meant_to_fail(view, position, call))
    ):
        return
    written = target.written or call_line(call)
    if LEFT_OUT.search(written):  # an earlier plan cut it
        return
    command = one_line(written.replace("`", "'"), ENDED)
    if wrong or (is_shell(call) and (target.checks or len(target.written) <= ENDED)):
        how = one_line(ended(view, call, result), ENDED) if wrong or target.checks else ""
        step.runs[f"`{command}`"] = f"{how}{SOLVED}" if solved else how
