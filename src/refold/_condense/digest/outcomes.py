"""What came of calls: which failed, which passed later, and which were tries that led nowhere.

An error is open until the same thing has gone well: the same file changed, or the same command in another spelling,
with other flags, from another folder, or on more than before (a folder instead of one of its files). A run of tests
that failed is closed by runs of those that failed. Searches and listings that fail are no errors: they ask whether
something is there, and it was not. A run that was to fail is none either. A command of its own, such as a script or a
copy, is not open any more once the work went on without it. Nor is an edit that found no place in its file, once the
work went on or the turn ended: the file was as it should be already, or another edit did the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import (
    SUBJECT,
    arguments_of,
    is_shell,
    reads,
    reports_error,
    subject,
    workdir,
    writes,
)
from refold._condense.call_outline import ERROR_LENGTH, call_line, exit_code, first_error, one_line, without_report
from refold._condense.digest.background import is_running, with_ends
from refold._condense.digest.failures import counted, failing, failing_places, failure_line, passing_end, warnings
from refold._condense.digest.narration import narration
from refold._condense.digest.remedies import preparation, remedy
from refold._condense.digest.targets import WRITE, Target, target_in, target_of, targets_of
from refold._condense.digest.turns import turn_ends, turns_at, turns_in_work
from refold._condense.echoes import cause
from refold._condense.file_views import is_scratch, took_effect
from refold._condense.scripted_calls import COMMANDS as SCRIPTED
from refold._condense.shell_commands import without_heredocs
from refold._condense.text_calls import text_result
from refold._text.secrets import holds_secret
from refold.core._json import decoded, encoded, mapping
from refold.core.messages import Text, ToolCall, ToolResult, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold._condense.digest.background import Pairs
    from refold.core.messages import Message, MessageId
    from refold.core.view import View

__all__ = [
    "COMMITTED",
    "PASSED_LATER",
    "CallOutcome",
    "answered",
    "answers_of",
    "code_of",
    "ended",
    "failed",
    "is_over",
    "meant_to_fail",
    "outcomes",
    "passed_calls",
    "passed_since",
    "prepare",
    "repeated_failures",
    "says_something",
    "seen",
    "solved_checks",
    "verdict_of",
    "was_refused",
]

MOST = 150  # outcomes that are looked for
UNREPORTED = "no failure shown"  # of a check whose output says nothing
STILL_RUNNING = "still running when it was last seen"
EXPECTED = " (this was expected)"  # behind the outcome of a run that was to fail
PASSED_LATER = " (went well later"  # behind what failed, before how that came
IN_ANOTHER_WAY = " (the file was changed in another way later: by {})"  # behind edits that were refused to the end
AT_END = 2_000  # characters at the end of a run's output, where it says whether it passed
WENT_ON = 8  # commands that went well, after which a failed one of its own is not open
SHORT_OUTPUT, PRINTED = 400, 140  # characters of an output, and of what of it is told
BEGINNING = 6_000  # characters of an output that are looked at for it
REASON = 140  # characters of an answer that says why
LAST_PRINTED = "printed last: "  # of one whose output does not say it either, but ends with a short line
LAST_LINE = 90  # characters of one that ends an output which says nothing of how it ended
LOOKED_AT = 600  # messages that are searched for such
SOLVED = 4  # checks that failed and went well later that are listed
SEVERAL = 3  # failures of the same call that are an approach which did not work
BEHIND = 8  # messages behind a failure in which the assistant says something of it
AROUND = 4  # messages before and behind an output in which its call and what the assistant said of it stand
FAILED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?\b(?! handl))|^(?:FAIL|--- FAIL|FAILED)\b|npm ERR!|ERR_PNPM|"
    r"^error(?:\[E\d+\])?:|error TS\d+|BUILD FAILED|BUILD FAILURE|FAILED \(|^panic:|^Traceback \(most|"
    r"\b(?:errors|failures)[:=] ?[1-9]\d*\b|"
    r"(?<!0 )(?<!no )(?<!No )(?<!when )(?<!if )(?<!where )(?<!which )\b(?:checks?|tests?) failed\b|"
    r"^make(?:\[\d+\])?: \*\*\*|Test Suites?: \d+ failed|test result: FAILED|"
    r"^(?:[\w. -]+: )?(?:Missing|missing|Unknown|unknown|Unrecognized|unrecognized) (?:required )?"
    r"(?:argument|option|command|flag)s?\b",
    re.M,
)
# One of these stands in what it finds.
MAY_FAIL = ("fail", "FAIL", "error", "ERR", "panic:", "Traceback", "***", "issing ", "nknown ", "nrecognized ")
# How the output of a check begins that a filter behind it cut, or that did not run: its exit code is the filter's.
BEGINS_BADLY = re.compile(
    r"^\W*Failed Tests? [1-9]|^ ?FAIL +\S+\.\w|^FAILED \S|: No module named \S+$|: command not found$|"
    r"^(?:\S+ )*cd: .*: No such file or directory$",
    re.M,
)
MAY_BEGIN_BADLY = ("Failed Test", "FAIL", "No module named", "command not found", "cd: ")  # one of these stands in it
PASSED = re.compile(
    r"\b[1-9]\d* (?:passed|passing)|^(?:ok|PASS|OK)\b|test result: ok|BUILD SUCCESS|0 errors|no issues found|"
    r"All checks passed|Success:|Tests?:\s+\d+ passed|Compiled successfully|^Build complete!|"
    r"^\s+Finished (?=[`\w])",
    re.M,
)
# One of these stands in what it finds, or one of the next at the beginning of a line.
MAY_PASS = (
    " pass",
    "SUCCESS",
    "0 errors",
    "no issues",
    "Success:",
    "Compiled",
    "Build complete",
    "Finished ",
    "test result",
)
MAY_PASS_LINES = ("ok", "PASS", "OK")
# A tool that was refused or not there says nothing about the work.
NO_ERROR = re.compile(
    r"temporarily unavailable|doesn't want to (?:proceed|take this action)|user (?:rejected|declined|denied|cancel)|"
    r"\[Request interrupted|tool use was rejected|interrupted by (?:the )?user|(?:operation|command) (?:was )?aborted|"
    r"Cancelled:|Operation Cancelled|Tool execution aborted|Sibling tool call errored",
    re.I,
)
# One of these stands in what it finds, in small letters.
MAY_BE_REFUSED = (
    *("unavailable", "doesn't want", "user ", "interrupted", "rejected", "aborted", "cancelled", "sibling tool"),
)


HOW_IT_ENDED = re.compile(r"exit(?:ed)?\b|^Output:|^Wall time|^Chunk ID|token count|^\W*$|^</?[\w-]+>$", re.I)
# Answers of servers that are busy or out of reach: the next call may go well.
TRANSIENT = re.compile(
    r"\b429\b|rate.?limit|too many requests|\b50[234] |overloaded|ETIMEDOUT|ECONNRESET|EAI_AGAIN|socket hang up|"
    r"temporary failure|connection (?:reset|timed out|closed)|(?:request|connect\w*|read|command|call) timed? ?out|"
    r"(?:service|temporarily) unavailable|network error",
    re.I,
)
# What the assistant says, or writes into a command, where it wants to see something fail.
TO_FAIL = re.compile(
    r"\bshould (?:now |still )?fail\b|\bexpect(?:s|ed|ing)? (?:\w+ ){0,3}to fail\b|"
    r"\bexpect(?:s|ed|ing)? (?:an? |the )?(?:failure|error|non-?zero)\b|\bnegative[ -](?:test|check|case|control)s?\b|"
    r"\b(?:confirm|verify|prove|see|ensure)(?:ing)? (?:that )?(?:\w+ ){1,3}(?:now |really |actually )?fails?\b",
    re.I,
)
HAS_FAILED_WELL = re.compile(
    r"\b(?:fail|reject|refus|error|block)\w*[^.\n]{0,40} (?:as (?:expected|intended|designed|it should)|correctly)\b|"
    r"\bexpected (?:failure|error)\b|\bcorrectly (?:fail|reject|refus|error|block)\w*|"
    r"\bfail\w* (?:before|without) (?:the|my|this) (?:fix|change)\b",
    re.I,
)
COMMANDS = re.compile(r"`([^`\n]+)`")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\[\d{1,3}(?:;\d{1,3})*m")  # for colors, also without their first sign
REPORT = re.compile(r"^\s*\{(?s:.*?)\"(?:output|exit_code|metadata)\": ?", re.M)  # an answer that is an object
HEAD = 300  # characters of an answer in which it begins
NESTED = re.compile(r"Command: .*?^Output: (.*?)^(?:Error|Stderr|Exit Code): ", re.S | re.M)  # as Gemini CLI reports
AT_LAST = re.compile(r"^Shell cwd was reset to .*\s*\Z", re.M)  # what a harness adds to an output
EMPTY = re.compile(r"\([^()\n]*\)|\W*")  # in place of an output: "(no output)"
LABELLED = re.compile(r"^\s*((?:active|state|status|conclusion|result) ?: \S.*)$", re.M | re.I)  # how something is
JOINED = re.compile(r"[;\n]|&&|\|\|")  # behind a command in its line: others, which print, too
BETWEEN = " / "  # lines
TELLING_WORD = re.compile(r"(?!(?:error|exit|code|with|this|that|from|failed)\b)\w{4,}|[1-9]\d{2}")
STEM = 5  # signs at its beginning by which a word is known again: "upload", "uploads"
WORDS, ALIKE = re.compile(r"\w+"), 0.6  # of two commands, and the share of them that both have where they are alike
WORD, MARKS = re.compile(r"\w"), " \t-*•✓"  # what a line holds that says something, and marks around it
TASK = re.compile(r"\w+(?:[:.-]\w+)+")  # the name of a task that a file defines
READABLE = (".md", ".mdx", ".rst", ".txt")  # texts for readers define nothing
GIT = re.compile(r"(?:^|/)\.git/")
# What Git says of a commit: "[main 1a2b3c4] subject", "[main (root-commit) 1a2b3c4] subject".
COMMITTED = re.compile(r"^\[(?P<branch>[^\s\]]{1,250})[^\]\n]{0,40} (?P<id>[0-9a-f]{7,40})\] (?P<subject>.+)$", re.M)
# Behind a command in its line what gives another exit code than its own: a filter, or a command that runs in any case.
ANOTHER = re.compile(r"[|;]|\n\s*[^\s#]|(?<![&>])&(?![&\d>])")
NEGATED = re.compile(r"(?:^|[;&|\n(]|\b(?:if|then|do)\b)\s*! ")  # a command whose failure is success


PassedCall: TypeAlias = "tuple[int, Target | None]"


class CallOutcome(Struct, frozen=True):
    """What came of a call: the call as one line, how it ended, whether it failed, and whether that is still so.

    `passed_later` tells that a later call went well with the same; a failed call may be open no more without that.
    `tells` is whether it says something that it went well, `comment` what the assistant says of a failure right behind
    it, as `narration` gives it. `blocked` tells of a command that its harness did not run.
    """

    call: str
    ended: str
    failed: bool
    shell: bool
    target: Target
    open: bool = False
    passed_later: bool = False
    turn: int = 0
    tells: bool = True
    comment: tuple[str, str] = ("", "")
    blocked: bool = False


def prepare(message: Message) -> None:
    """Find how the calls ended that a message answers; its outputs remember it."""
    for result in message.results:
        code_of(result)
        verdict_of(result)
        was_refused(result)
        _last_line(result)


def outcomes(
    view: View, messages: Sequence[Message], passed: Sequence[PassedCall] | None = None
) -> tuple[CallOutcome, ...]:
    """Return the outcome of each shell command and each failed call, newest first, the same call only once.

    `passed` are the calls that show whether a failed one went well later, by default those of these messages.
    """
    index, turns = view.transcript.index, turns_at(view.transcript)
    passed = passed_calls(view, messages) if passed is None else passed
    commands = [position for position, target in passed if target is None]
    written = {position for position, target in passed if target and target.task == WRITE}
    answers, in_work = [index[id] for id in turn_ends(view.transcript)], turns_in_work(view.transcript)
    results: dict[str, CallOutcome] = {}
    later_passing: set[str] = set()  # tests of later runs that failed and passed after that
    later_written: set[str] = set()  # commands of later calls
    for message in reversed(messages):
        if len(results) >= MOST:
            break
        position = index.get(message.id, -1)
        for call, result in answered(view, [message]):
            shell = is_shell(call)
            line = call_line(call)
            bad, target = failed(call, result), target_of(call)
            if not (shell or bad) or line in results or was_refused(result):
                continue
            expected = bad and meant_to_fail(view, position, call)
            how = ended(view, call, result) + (EXPECTED if expected else "")
            turn = turns[position] if position >= 0 else 0
            tells = bad or bool(how) or says_something(view, call, result)
            outcome = CallOutcome(line, how, bad and not expected, shell, target, turn=turn, tells=tells)
            if outcome.failed:
                later = [(at, each) for at, each in passed if at > position and each]
                since = [each for _, each in later]
                names = frozenset(failing(result)) if target.checks else frozenset()
                well = passed_since(call, result, since) or (bool(names) and names <= later_passing)
                # what was put before a command failed, and it was run without that
                well = well or (shell and any(target.written.endswith(f" {each}") for each in later_written))
                well = well or (target.once and _was_mistyped(view, position, call))
                later_passing |= names if well else frozenset()
                went_on = target.once and sum(at > position for at in commands) >= WENT_ON
                if target.task == WRITE and not shell:
                    done = sum(at > position for at in (*commands, *written)) >= WENT_ON
                    went_on = done or any(at > position for at in answers)
                elif target.checks:
                    went_on = turn not in in_work and _redefined(view, position, [target.written])
                elif not shell:  # the aim of a call of another tool is not known: it was reached, or given up
                    went_on = sum(at > position for at in (*commands, *written)) >= WENT_ON
                after = view.transcript.messages[position + 1 : position + BEHIND] if position >= 0 else ()
                comment = next((words for each in after if any(words := narration(each))), ("", ""))
                if not _speaks_of(comment[1], how):
                    comment = (comment[0], "")
                blocked = shell and result.is_error and code_of(result) is None
                outcome = replace(
                    outcome, open=not (well or went_on), passed_later=well, comment=comment, blocked=blocked
                )
            results[line] = outcome
            later_written.update(each.written for each in targets_of(call) if shell and " " in each.written)
    return tuple(results.values())


def _speaks_of(comment: str, how: str) -> bool:
    """Tell whether what the assistant says behind a failure has a telling word of how it ended."""
    words, others = ({word[:STEM] for word in TELLING_WORD.findall(each.lower())} for each in (how, comment))
    return not words.isdisjoint(others)


def repeated_failures(
    view: View, messages: Sequence[Message], passed: Sequence[PassedCall] | None = None
) -> tuple[str, ...]:
    """Return the calls that failed several times on the same, newest first: how often, how mostly, and if it went well.

    `passed` is what `outcomes` takes.
    """
    index, turns = view.transcript.index, turns_at(view.transcript)
    passed = passed_calls(view, messages) if passed is None else passed
    ways: dict[str, Counter[str]] = {}
    ends: dict[str, str] = {}
    written = _last_written(view)
    for message in reversed(messages[-LOOKED_AT:]):
        at = index.get(message.id, -1)
        for call, result in answered(view, [message]):
            refused = bool(writes(call)) and not (is_shell(call) or took_effect(call, result))
            if (refused or failed(call, result)) and not (target_of(call).looks or was_refused(result)):
                line = call_line(call)
                ways.setdefault(line, Counter())[ended(view, call, result) or one_line(result.text, REASON)] += 1
                if line not in ends:
                    # a shell command that wrote the file does not show that the tool which failed works now
                    since = [(place, each) for place, each in passed if place > at and each and not each.looks]
                    later = next((by for path in writes(call) if (by := written.get(path)) and by[0] > at), None)
                    well = _solved(view, at, call, result, since) or (IN_ANOTHER_WAY.format(later[1]) if later else "")
                    ends[line] = f"{well}{f' (turn {turns[at]})' if at >= 0 and turns[at] else ''}"
    return tuple(
        f"{line} failed {some.total()} times{_mostly(some)}{ends[line]}"
        for line, some in ways.items()
        if some.total() >= SEVERAL
    )


def _mostly(ways: Counter[str]) -> str:
    """Return how a call failed that did so several times, newest first: how mostly, and the last time if otherwise."""
    (how, times), last = ways.most_common(1)[0], next(iter(ways))
    if not how or len(ways) == 1:
        return f": {how}" if how else ""
    others = f"; the last time: {last}" if last != how and last else ""
    return f", in {len(ways)} ways: {how}{f' ({times} times)' if times > 1 else ''}{others}"


def _last_written(view: View) -> dict[str, tuple[int, str]]:
    """Return the newest call that wrote each file of the last messages, with its place, whether it stays or leaves."""
    messages = view.transcript.messages
    start = max(len(messages) - LOOKED_AT, 0)
    return {
        path: (at, call_line(call))
        for at, message in enumerate(messages[start:], start)
        for call, result in answered(view, [message])
        if not failed(call, result)
        for path in writes(call)
        if is_shell(call) or took_effect(call, result)
    }


def is_over(view: View, passed: Sequence[PassedCall], message: Message, sentence: str) -> bool:
    """Tell whether what a sentence says of commands in code quotes holds no more: such a one went well since.

    Or it does another thing since then: a file that names it was changed.
    """
    commands = [words for words in COMMANDS.findall(sentence) if " " in words.strip()]
    if not commands:
        return False
    at = view.transcript.index[message.id]
    since = [target for place, target in passed if place > at and target]
    if any(each.covers(target_in(f"shell `{words}`")) for words in commands for each in since):
        return True
    return _redefined(view, at, commands)


def _redefined(view: View, position: int, commands: Iterable[str]) -> bool:
    """Tell whether a file was changed after a position that names the task which one of the commands runs."""
    names = [name for words in commands if TASK.fullmatch(name := words.split()[-1])]
    return bool(names) and any(
        name in call.arguments
        for later in view.transcript.messages[position + 1 :]
        for call, result in answered(view, [later])
        if any(map(_is_program, writes(call))) and not is_shell(call) and took_effect(call, result)
        for name in names
    )


def _is_program(path: str) -> bool:
    return not path.lower().endswith(READABLE)


def solved_checks(view: View) -> tuple[str, ...]:
    """Return the checks that failed and went well later, newest first, each once.

    Those of the turns in work and of the one before: what was solved long ago teaches nothing for the next step.
    """
    messages, turns = view.transcript.messages, turns_at(view.transcript)
    since = min(turns_in_work(view.transcript), default=0) - 1
    passed = passed_calls(view, messages[-LOOKED_AT:])
    newest: list[Target] = []
    lines: list[str] = []
    for at in range(len(messages) - 1, max(len(messages) - LOOKED_AT, 0) - 1, -1):
        for call, result in answered(view, [messages[at]]):
            target = target_of(call)
            if not (is_shell(call) and target.checks and failed(call, result)) or was_refused(result):
                continue
            if any(each.covers(target) for each in newest) or meant_to_fail(view, at, call):
                continue
            newest.append(target)
            if turns[at] < since:
                continue
            later = [(place, each) for place, each in passed if place > at and each]
            if well := _solved(view, at, call, result, later):
                turn = f" (turn {turns[at]})" if turns[at] else ""
                lines.append(f"{call_line(call)} → {ended(view, call, result)}{turn}{well}")
        if len(lines) >= SOLVED:
            break
    return tuple(lines)


def passed_calls(view: View, messages: Sequence[Message]) -> list[PassedCall]:
    """Return what calls that went well were about, with their positions; None stands for a command as such."""
    index = view.transcript.index
    passed: list[PassedCall] = []
    for message in messages:
        for call, result in answered(view, [message]):
            if not failed(call, result):
                at = index.get(message.id, -1)
                passed += [(at, target) for target in targets_of(call)]
                passed += [(at, None)] if is_shell(call) else []
    return passed


def _was_mistyped(view: View, position: int, call: ToolCall) -> bool:
    """Tell whether the next command is nearly the same, and went well: what failed was how it was written."""
    following = view.transcript.messages[position + 1 : position + AROUND] if position >= 0 else ()
    after = ((other, result) for message in following for other, result in reversed([*answered(view, [message])]))
    other, result = next((pair for pair in after if is_shell(pair[0])), (None, None))
    if other is None or result is None or failed(other, result):
        return False
    words, others = (set(WORDS.findall(subject(each)[0])) for each in (call, other))
    return len(words & others) >= ALIKE * len(words | others)


def passed_since(call: ToolCall, result: ToolResult, since: Sequence[Target]) -> bool:
    """Tell whether one of the calls since then shows that what failed goes well now, or several do so together."""
    target = target_of(call)
    if any(each.covers(target) for each in since):
        return True
    if not target.checks:
        return TRANSIENT.search(result.text[-AT_END:]) is not None and any(each.task == target.task for each in since)
    names, places = failing(result), failing_places(result)
    if places:
        parts = [replace(target, objects=(place,), names=target.names) for place in places]
        return all(any(each.covers(part) for each in since) for part in parts)
    return bool(names) and any(each.covers(replace(target, names=names)) for each in since)


def _solved(view: View, at: int, call: ToolCall, result: ToolResult, since: Sequence[tuple[int, Target]]) -> str:
    """Return that a call at a place went well later and how that came, else nothing; `since` are those that did."""
    targets = [target for _, target in since]
    if not passed_since(call, result, targets):
        return ""
    first = bisect_left(range(len(since)), True, key=lambda last: passed_since(call, result, targets[: last + 1]))
    place, passing = since[first]
    if target_of(call).task == WRITE:
        return f"{PASSED_LATER})"
    messages = view.transcript.messages
    changed = [
        (position, path)
        for position in range(at + 1, place + 1)
        for other, answer in answered(view, [messages[position]])
        if took_effect(other, answer)
        for path in writes(other)
        if not (is_scratch(path) or GIT.search(path))
    ]
    passed = next((other for other, _ in answered(view, [messages[place]]) if passing in targets_of(other)), None)
    line, prepared = (call_line(passed), preparation(call, passed)) if passed else ("", "")
    return f"{PASSED_LATER}{remedy(messages, changed, call_line(call), line, prepared)})"


def meant_to_fail(view: View, position: int, call: ToolCall) -> bool:
    """Tell whether a call was to fail, by what it says itself and what the assistant says before and behind it."""
    if is_shell(call) and (NEGATED.search(subject(call)[0]) or TO_FAIL.search(call.arguments)):
        return True
    messages = view.transcript.messages
    if position < 0:
        return False
    before = next(
        (each for each in reversed(messages[max(position - AROUND, 0) : position]) if call in each.calls), None
    )
    behind = next((each for each in messages[position + 1 : position + AROUND] if each.role == "assistant"), None)
    return (before is not None and TO_FAIL.search(text_of(before)) is not None) or (
        behind is not None and HAS_FAILED_WELL.search(text_of(behind)) is not None
    )


def answered(view: View, messages: Iterable[Message]) -> Iterator[tuple[ToolCall, ToolResult]]:
    """Yield the calls that messages answer, with the results, the last of a message first.

    A command in the words of an agent that calls no tools is one, too. One that went on in the background is answered
    where it ended. Of messages that were cleared or shortened these are the answers that they had.
    """
    known = _answered_in(view)
    for message in messages:
        pairs = known.get(message.id)
        yield from answers_of(view, message) if pairs is None else pairs


@memoized
def _answered_in(view: View) -> dict[MessageId, Pairs]:
    """Return what each message of the transcript answers: ten sections ask for it."""
    messages = view.transcript.messages
    pairs = with_ends(messages, {message.id: tuple(answers_of(view, message)) for message in messages})
    return {key: tuple(_plain(each)) for key, each in pairs.items()}


def _plain(pairs: Pairs) -> Iterator[tuple[ToolCall, ToolResult]]:
    """Yield calls with their results, what commands printed in plain words where a harness reports it as JSON.

    Of a script with several commands that reports on each, these are calls of their own.
    """
    for call, result in pairs:
        report = REPORT.search(result.text[:HEAD]) if is_shell(call) else None
        answers = _reports(result.text[result.text.index("{", report.start()) :]) if report else []
        commands = arguments_of(call).get(SCRIPTED, ()) if len(answers) > 1 else (call,)
        if not answers or len(answers) != len(commands):
            yield call, result
            continue
        for command, (code, printed) in reversed([*zip(commands, answers, strict=True)]):
            head = "" if code is None else f"Exit code: {code}\nOutput:\n"
            own = {"cmd": command, "workdir": workdir(call)}
            each = call if command is call else replace(call, arguments=encoded(own).decode())
            yield each, replace(result, content=(Text(f"{head}{printed}"),))


def _reports(text: str) -> list[tuple[int | None, str]]:
    """Return the exit codes and outputs of objects that a harness reports: one, or one a line."""
    whole = mapping(decoded(text.strip()))
    objects = [whole] if whole else [mapping(decoded(line)) for line in text.split("\n") if line.startswith("{")]
    codes = [each.get("exit_code", mapping(each.get("metadata")).get("exit_code")) for each in objects]
    return [
        (code if isinstance(code, int) else None, printed)
        for each, code in zip(objects, codes, strict=True)
        if isinstance(printed := each.get("output"), str)
    ]


def answers_of(view: View, message: Message) -> Iterator[tuple[ToolCall, ToolResult]]:
    """Yield the calls that a message answers, with the results as they stand in it, the last first."""
    index = view.transcript.index
    if message.role == "user" and message.id in index and (pair := text_result(view.transcript, index[message.id])):
        yield pair
    for result in reversed(message.results):
        call = view.call_of(message, result)
        if call is not None:
            yield call, result


def failed(call: ToolCall, result: ToolResult) -> bool:
    """Tell whether a call failed: by its flag, by its exit code, or, of a check, by what it printed at its end.

    The exit code of a check counts where it is its own. What a tool answers that flags no error may report one.
    """
    if result.is_error or not is_shell(call):
        return result.is_error or (reads(call) is None and reports_error(result))
    code = code_of(result)
    if code or not target_of(call).checks or is_running(result):
        return bool(code)
    return not (code == 0 and _gives_its_code(call)) and verdict_of(result) == "failed"


def _gives_its_code(call: ToolCall) -> bool:
    """Tell whether the exit code of a line of commands is that of its check: no other takes its output or comes after.

    What comes after only if it passed (`&&`) changes nothing.
    """
    command, written = subject(call)[0], target_of(call).written
    before, _, after = command.rpartition(written)
    return bool(written) and len(command) < SUBJECT and not (ANOTHER.search(after) or NEGATED.search(before + written))


def ended(view: View, call: ToolCall, result: ToolResult) -> str:
    """Return how a call ended: passed or failed where that is known, else its exit code, and its first error."""
    code, bad = code_of(result), failed(call, result)
    code = None if bad and not code else code  # that of another command of the line
    how = f"exit code {code}" if code is not None else "error" if result.is_error or not is_shell(call) else ""
    if not bad and not is_shell(call):
        return ""
    checks = is_shell(call) and target_of(call).checks
    if checks and not bad and is_running(result):
        return STILL_RUNNING
    if checks and (not how.startswith("exit code") or (code == 0 and verdict_of(result) == "passed")):
        how = verdict_of(result) or how or UNREPORTED
    if checks and not bad:
        if how == UNREPORTED and not warnings(result) and (line := _last_words(view, result)):
            how = f"{LAST_PRINTED}{line}"
        passed = ", ".join(filter(None, (how, warnings(result))))
        return ": ".join(filter(None, (passed, counted(result))))
    if not bad:
        return "" if is_running(result) else _printed(view, call, result)
    if not is_shell(call):
        line = one_line(cause(call, result), ERROR_LENGTH) or one_line(result.text, 120)
    elif wrong := failure_line(result) if checks else first_error(result.text):
        return f"{how}: {wrong}" if how else wrong
    else:
        line = _last_line(result)
        line = "" if line in _usual_lines(view) else line
    return f"{how}: {line}" if line else how


def _last_words(view: View, result: ToolResult) -> str:
    """Return the last line of an output where it is a whole one, and none that many outputs end with."""
    line = _last_line_without_codes(result)
    return line if len(line) <= LAST_LINE and WORD.search(line) and line not in _usual_lines(view) else ""


def says_something(view: View, call: ToolCall, result: ToolResult) -> bool:
    """Tell whether it says something that a command went well: it printed what can be told, or nothing and did it."""
    if target_of(call).checks or is_running(result):
        return True
    return bool(_printed(view, call, result)) or (" " in target_of(call).written and not _own_words(call, result))


def seen(view: View, call: ToolCall, result: ToolResult) -> str:
    """Return the one line that a command printed which only looks at something, or nothing."""
    text = _own_words(call, result)
    return _printed(view, call, result) if "\n" not in text and len(text) <= PRINTED else ""


def _printed(view: View, call: ToolCall, result: ToolResult) -> str:
    """Return the first lines of what a command printed that went well, where that is short and of no other command."""
    about = subject(call)[0]
    written = target_of(call).written
    if target_of(call).task == "git commit" and (commits := [*COMMITTED.finditer(result.text)]):
        line, subject_line = commits[-1][0], commits[-1]["subject"]
        return one_line(line.removesuffix(subject_line) if subject_line in written else line, PRINTED)
    if not written or len(about) >= SUBJECT or JOINED.search(without_heredocs(about).rpartition(written)[2]):
        return ""
    text = _own_words(call, result)
    before = about.rpartition(written)[0].rstrip()
    if " " not in written and before.endswith("|"):  # it only filters what is not known
        return ""
    strange = (
        "</" in text or text.startswith("<") or "^[" in text or (text.startswith("{") and code_of(result) is not None)
    )
    labelled = LABELLED.findall(text) if len(text) > SHORT_OUTPUT and not strange else []
    if strange or (len(text) > SHORT_OUTPUT and len(labelled) != 1) or holds_secret(text):
        return ""
    if labelled:
        return one_line(labelled[0], PRINTED)
    lines = [line for each in text.split("\n") if WORD.search(line := each.strip(MARKS))]
    lines = lines if len(lines) < 2 else [line for line in lines if line not in _usual_lines(view)]
    first = [
        line
        for line, length in zip(lines, accumulate(len(line) + 3 for line in lines), strict=True)
        if length <= PRINTED
    ]
    return one_line(BETWEEN.join(first or lines[:1]), PRINTED) + f"{BETWEEN}…" * (0 < len(first) < len(lines))


def _own_words(call: ToolCall, result: ToolResult) -> str:
    """Return what a command printed, without codes for colors, what a harness reports, and its echo in a terminal."""
    text = AT_LAST.sub("", CODES.sub("", without_report(result.text[:BEGINNING]))).strip()
    if nested := NESTED.match(text):
        text = nested[1].strip()
    if EMPTY.fullmatch(text):
        return ""
    echoed = "".join(subject(call)[0].split())
    if echoed and not text.startswith("{") and text[:1] == echoed[:1]:
        matched = 0
        for place, sign in enumerate(text):
            if not sign.isspace() and (matched == len(echoed) or sign != echoed[matched]):
                return text[place:] if matched == len(echoed) else text
            matched += not sign.isspace()
        return "" if matched == len(echoed) else text
    return text


@memoized
def _usual_lines(view: View) -> frozenset[str]:
    """Return the last lines of outputs of commands that went well, several times: they say nothing of one that failed.

    Such are the greetings of a server.
    """
    last = (
        _last_line(result)
        for message in view.transcript.messages
        for call, result in answered(view, [message])
        if is_shell(call) and not failed(call, result)
    )
    return frozenset(line for line, times in Counter(last).items() if times >= SEVERAL)


@memoized
def _last_line(result: ToolResult) -> str:
    """Return the last line of an output that is not about how it ended."""
    return _last_line_in(result.text)


@memoized
def _last_line_without_codes(result: ToolResult) -> str:
    """Return that line without codes for colors and without what a harness reports at the end."""
    return _last_line_in(CODES.sub("", AT_LAST.sub("", result.text)))


def _last_line_in(text: str) -> str:
    lines = text[-AT_END:].rstrip().rsplit("\n", 3)[1 if len(text) > AT_END else 0 :]
    return next((one_line(line, 140) for line in reversed(lines) if line.strip() and not HOW_IT_ENDED.search(line)), "")


@memoized
def was_refused(result: ToolResult) -> bool:
    """Tell whether an output says that the call was refused or stopped."""
    text = result.text
    return any(
        NO_ERROR.search(piece)
        for piece in (text[:400], text[400:][-200:])
        if not piece.isascii() or any(map(piece.lower().__contains__, MAY_BE_REFUSED))
    )


@memoized
def code_of(result: ToolResult) -> int | None:
    """Return the exit code that an output names."""
    return exit_code(result.text)


@memoized
def verdict_of(result: ToolResult) -> str:
    """Return what an output of a check says at its end, else at its beginning: that it failed or passed, or nothing."""
    end = result.text[-AT_END:]
    # what stands before a count of tests of which none has failed was printed by those that passed
    passed = passing_end(end)
    if any(map(end.__contains__, MAY_FAIL)) and FAILED.search(end, passed):
        return "failed"
    if passed:
        return "passed"
    may_pass = any(map(end.__contains__, MAY_PASS)) or end.startswith(MAY_PASS_LINES)
    may_pass = may_pass or any(f"\n{sign}" in end for sign in MAY_PASS_LINES)
    if may_pass and PASSED.search(end):
        return "passed"
    beginning = result.text[:SHORT_OUTPUT]
    begins_badly = any(map(beginning.__contains__, MAY_BEGIN_BADLY)) and BEGINS_BADLY.search(beginning)
    return "failed" if begins_badly else ""
