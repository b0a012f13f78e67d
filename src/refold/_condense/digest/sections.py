"""The sections of a digest in their order, and what earlier digests add to each.

A section is a heading with lines, the most valuable first. Where only an already compacted list was sent, earlier
digests are the only record of what left before, so their entries are carried on: first, each once. Sections that are
made from the whole transcript anyway (`CUMULATIVE`) hold those entries already.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.digest.conclusions import decisions, plain, tried, verdicts
from refold._condense.digest.endings import changed_in, outcome_lines, rejected_turns, rejections, tried_in
from refold._condense.digest.file_log import CHANGED, READ, FileRecord, by_folder, file_log
from refold._condense.digest.findings import other_calls, values
from refold._condense.digest.guides import GUIDES, guide_rules
from refold._condense.digest.model_account import ACCOUNT
from refold._condense.digest.named_document import NAMED_DOCUMENT, named_document
from refold._condense.digest.outcomes import (
    PASSED_LATER,
    CallOutcome,
    answered,
    failed,
    is_over,
    outcomes,
    passed_calls,
    repeated_failures,
    solved_checks,
)
from refold._condense.digest.previous import earlier_entries, quotations
from refold._condense.digest.question_tools import answers_by_tool
from refold._condense.digest.quotes import GOAL
from refold._condense.digest.reports import REPORTED, reports
from refold._condense.digest.rulings import accepted, rulings, waived
from refold._condense.digest.state import LISTED, STATE, TODO, state
from refold._condense.digest.steps import STEPS, earlier_steps, steps
from refold._condense.digest.targets import WRITE, Target, target_in, targets_of
from refold._condense.digest.task_lists import newest_task_list
from refold._condense.digest.turns import turn_numbers, turns_at, turns_in_work
from refold._condense.digest.worked_through import WORKED_THROUGH, worked_through
from refold._condense.file_views import is_scratch
from refold._condense.identifier_scores import likeliest_first
from refold._condense.pins import CONSTRAINTS
from refold._condense.placeholders import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold._condense.digest.quotes import Quotes
    from refold.core.messages import Message
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["Files", "Section", "first_among", "sections", "touched_files"]

REQUESTS = "Requests and answers of the user (word for word)"
ERRORS, TRIED = "Open errors", "Tried and failed"
RULED, ENDED = "What the user decided", "Earlier requests and how they ended"
REMAINING = "Remaining"  # the section of digests of earlier releases
CUMULATIVE = frozenset(
    {GOAL, CONSTRAINTS, CHANGED, READ, ACCOUNT, WORKED_THROUGH}
)  # they hold what earlier digests held already
SKILL = re.compile(r"(?:^|[/\\])\.[\w-]+[/\\](?:.*[/\\])?SKILL\.md$", re.I)  # instructions of an agent, not of the work
AT_END = re.compile(r"\bturn (\d+)\)?$")
DECIDED_IN = re.compile(r"(?:user )?turn (\d+)[:,] ")
UPON = '(to: "'  # before the question that a decision answers
OF_TURN = re.compile(r"turn (\d+): ")
NEWEST = 4  # requests that come before the first one
NEWEST_STEPS = 12  # that a digest has room for: what they found is told there
FEW = 2  # lines of the state of the work that need no more room than another section
COMMANDS, CALLS = 20, 12  # lines that tell least: more of them are not read
FILES_READ = 16  # that were not changed, the likeliest needed, with their whole path: others are told by folder
PHRASES = 32  # changed files, the newest, of which it is told what changed
ACCOUNT_POSITION = 3  # of a model's account among the sections: after what users said
END = " → "  # between a call and how it ended
# What a call made, with its id or address: such a line is long. Other lines would take as much room from messages: with
# it agents won 36 % of text games at a tenth, and 90 % at a quarter, for 44 % and 96 % (benchmarks/tasks.py).
ADDRESSED = re.compile(rf"{END}.*\b\w*(?:id|ur[li]|address): ", re.I)
# The end or the beginning of a command that is not whole, and of which nothing tells how it ended.
CUT = re.compile(r" …`?$|^\S+ `… (?!git |gh |mv |.*→)")
# A command that shows how things are: what it printed holds until something changes them.
SHOWS = re.compile(r" (?:--?)?(?:list|ls|status|show|info|get|ps|view|whoami|describe|version|checks)\b")
NUMBERED = re.compile(r"\bturn \d+\b")
KNOWN_AGAIN = 40  # characters of a statement that was cut from which it is known again
STEP = re.compile(r"(turn \d+: .+?): (?=changed |then |[`\"])")  # how a step begins that was announced
MARKS = (" (unresolved)", " (went well later)", " (passed later)")  # behind errors in digests of earlier releases

Files: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # read, changed


class Section(Struct, frozen=True):
    """A heading with its lines, the most valuable first.

    `share` of the digest is what the lines may use at first; with 0 they are all there, whatever they take. With
    `newest_first` the lines are written in the opposite order, with `by_turn` in that of the turns they begin with.
    `fuller` are the first lines with more words, where the share has room once all lines that it takes are there.
    """

    title: str
    lines: tuple[str, ...]
    share: float = 0.1
    newest_first: bool = False
    by_turn: bool = False
    fuller: tuple[str, ...] = ()

    def written(self, lines: Sequence[str]) -> Sequence[str]:
        """Return some of the lines in the order in which they are written."""
        ordered = [*reversed(lines)] if self.newest_first else lines
        return sorted(ordered, key=_turn_of) if self.by_turn else ordered


def sections(
    view: View,
    messages: Sequence[Message],
    staying: Sequence[Message],
    quotes: Quotes,
    account: str = "",
    *,
    in_full: bool = True,
) -> list[Section]:
    """Return the sections of a digest of messages that leave, in order, with the entries of earlier digests.

    `staying` is what stays in the view, so that nothing is said twice; `account` is what a model says of it.
    With `in_full` answers have more words where the section has room for them.
    """
    all_sections = [_with_earlier(section, view) for section in _own(view, messages, staying, quotes, in_full=in_full)]
    if account:
        all_sections.insert(ACCOUNT_POSITION, Section(ACCOUNT, (account,), share=0))
    return all_sections


def touched_files(view: View) -> Files:
    """Return the files read and those changed, in order: those of earlier digests, then those of the messages."""
    log = sorted(file_log(view.transcript), key=lambda record: record.first)
    return (
        tuple(record.path for record in log if not record.changed),
        tuple(record.path for record in log if record.changed),
    )


def _own(
    view: View, messages: Sequence[Message], staying: Sequence[Message], quotes: Quotes, *, in_full: bool
) -> Iterator[Section]:
    """Yield the sections without earlier entries. The shares were chosen by hand and are measured as a whole only."""
    yield Section(GOAL, quotes.goal, 0.2)
    yield Section(CONSTRAINTS, quotes.pinned, share=0)
    yield Section(GUIDES, guide_rules(view, staying) if messages else (), 0.035)
    yield Section(REQUESTS, quotes.requests, 0.3, newest_first=True)
    transcript = view.transcript
    turns, index = turns_at(transcript), transcript.index
    rejected = rejected_turns(transcript)
    sound = [message for message in messages if turns[index[message.id]] not in rejected]
    standing = [message for message, turn in zip(transcript.messages, turns, strict=True) if turn not in rejected]
    decided = decisions(transcript, standing)
    ruled = tuple(rulings(view, staying))
    answered_turns = {_turn_named(line) for line in ruled if UPON in line}
    agreed = (line for line in accepted(transcript) if _turn_named(line) not in answered_turns)
    chosen = sorted((*answers_by_tool(view), *ruled, *agreed), key=_turn_named, reverse=True)
    yield Section(RULED, tuple(chosen), 0.12, newest_first=True)
    yield Section("Decisions and reasons", decided, 0.04, newest_first=True)
    ended = outcome_lines(transcript, staying)
    fuller = first_among(outcome_lines(transcript, staying, full=True)) if in_full else ()
    yield Section(ENDED, first_among(ended), 0.15, newest_first=True, by_turn=True, fuller=fuller)
    went_well = [*passed_calls(view, staying), *passed_calls(view, messages)]
    below = [end for end in outcomes(view, staying, went_well) if end.failed]
    again = [end.target for end in below]  # that says what is wrong now
    ends = outcomes(view, messages, went_well)
    wrong = [
        end
        for end in ends
        if end.failed and (not end.target.looks or end.blocked) and not any(later.covers(end.target) for later in again)
    ]
    # an edit that found no place and is done by now teaches nothing, nor does what went well when it was run again,
    # nor what failed without a word, of its own or of the assistant behind it
    over = [
        end
        for end in wrong
        if not (end.open or end.passed_later) and (end.shell or end.target.task != WRITE) and ": " in end.ended
        if end.comment[1] or end.target.checks
    ]
    active = [message for message in standing if turns[index[message.id]] in tried_in(transcript)]
    broken = (
        *rejections(transcript),
        *repeated_failures(view, messages, went_well),
        *tried(transcript, active, partial(is_over, view, went_well)),
    )
    solved = (line for line in solved_checks(view) if not any(one.startswith(line.split(END)[0]) for one in broken))
    yield Section(TRIED, (*broken, *map(_line_with_words, _newest(over)), *solved), 0.08, newest_first=True)
    stated = state(view) if messages else ()
    done = steps(view, staying, "\n".join(stated)) if messages else ()
    # what an answer says of work that was done is told with its request
    in_work = turns_in_work(transcript)
    with_changes = changed_in(transcript) - in_work
    without = [message for message in sound if turns[index[message.id]] not in with_changes]
    judged = verdicts(transcript, without, (*decided, *broken))
    known = "\n".join((*ended, *fuller, *done[:NEWEST_STEPS]))
    unsaid = tuple(line for line in judged if plain(line).replace("**", "") not in known)
    yield Section("Findings of the assistant", unsaid, 0.06, newest_first=True)
    # the work went on in another way where a command failed in an earlier turn; a check that failed says what is wrong
    # also where the output stays, but for tries: a script that is run once, an edit that found no place
    lasting = (end for end in below if not (end.target.once or end.target.looks or end.target.task == WRITE))
    still = [end for end in (*lasting, *wrong) if end.open and (end.target.checks or end.turn in in_work)]
    let_be = waived(transcript)
    errors = (_line(end) + (f" (let be by {let_be[end.turn]})" if end.turn in let_be else "") for end in _newest(still))
    yield Section(ERRORS, tuple(errors), 0.06, newest_first=True)
    log = file_log(transcript)
    changed = _changed(log)
    full = tuple(record.full_line for record in changed[:PHRASES])
    yield Section(CHANGED, tuple(record.line for record in changed), 0.2, newest_first=True, fuller=full)
    read = likeliest_first(tuple(record.line for record in _read(log)), transcript)
    yield Section(READ, (*read[:FILES_READ], *by_folder(read[FILES_READ:])), 0.05)
    # commits are told in the state of the work
    passed = _newest(
        end
        for end in _unrefuted(ends, in_work)
        if end.shell
        and end.tells
        and not (end.failed or end.target.looks or end.target.task in ("mkdir", "git commit"))
    )
    folders = Tally(end.target.folder for end in ends if end.shell)
    usual = max(folders, key=lambda folder: (folders[folder], folder), default="")
    commands = tuple(
        f"{line} (in {folder})" if usual and folder[:1] in ("/", "~") and not folder.startswith(usual) else line
        for line, folder in ((_line(end), end.target.folder) for end in passed)
        if not CUT.search(line)
    )
    yield Section("Commands", commands[:COMMANDS], 0.02, newest_first=True)
    calls = other_calls(view, messages)[:CALLS]
    yield Section("Other calls", calls, 0.06 if any(map(ADDRESSED.search, calls)) else 0.03, newest_first=True)
    yield Section(WORKED_THROUGH, worked_through(view, messages, staying), 0.3, newest_first=True)
    yield Section("Values", values(transcript, sound), 0.02, newest_first=True)
    yield Section(STEPS, done, 0.1, newest_first=True)
    yield Section(STATE, stated, 0.1 if len(stated) < FEW else 0.2 if in_full else 0.12)
    yield Section(NAMED_DOCUMENT, named_document(view, staying) if messages else (), 0.1)
    reported = reports(view, staying) if messages else ()
    in_words = reports(view, staying, full=True) if reported and in_full else ()
    yield Section(REPORTED, reported, 0.06, newest_first=True, fuller=in_words)
    yield Section("Answers that stand below", quotes.answers, 0.05, newest_first=True)


def _turn_named(line: str) -> int:
    """Return the turn that a line on a decision begins or ends with."""
    match = DECIDED_IN.match(line) or AT_END.search(line)
    return int(match[1]) if match else 0


def _turn_of(line: str) -> int:
    match = OF_TURN.match(line)
    return int(match[1]) if match else 0


def first_among(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines, newest first, with the one of the first turn among the newest: what the work began with."""
    first = [line for line in lines[NEWEST:] if _turn_of(line) == 1]
    return (*lines[:NEWEST], *first, *(line for line in lines[NEWEST:] if line not in first))


def _changed(log: Sequence[FileRecord]) -> list[FileRecord]:
    """Return the records of files that were changed, newest first.

    Scratch files come last, and only those of the newest turn of which something says what they are for.

    Where most of the work is in folders for scratch files, its files are none.
    """
    changed = [record for record in reversed(log) if record.changed]
    scratch = [record for record in changed if is_scratch(record.path)]
    if 2 * sum(map(_changes, scratch)) > sum(map(_changes, changed)):
        return changed
    newest = max((record.turn for record in log), default=0)
    return [
        *(record for record in changed if not is_scratch(record.path)),
        *(record for record in scratch if record.turn == newest and record.full_line != record.line),
    ]


def _changes(record: FileRecord) -> int:
    return record.edits + record.created or 1


def _read(log: Sequence[FileRecord]) -> Iterator[FileRecord]:
    """Yield the records of files that were only read, newest first: no folders, scratch files, or texts of skills."""
    folders = {record.path.rpartition("/")[0] for record in log}
    folders |= {folder[:end] for folder in folders for end, sign in enumerate(folder) if sign == "/"}
    for record in reversed(log):
        passing = is_scratch(record.path) or SKILL.search(record.path) or record.path.rstrip("/") in folders
        if not (record.changed or passing):
            yield record


def _unrefuted(ends: Iterable[CallOutcome], in_work: frozenset[int]) -> Iterator[CallOutcome]:
    """Yield outcomes, newest first, without those that show how things were before the same program changed them.

    Nothing says that what a command showed in an earlier turn still holds.
    """
    changed: set[str] = set()
    for end in ends:
        program = end.target.task.partition(" ")[0]
        if SHOWS.search(end.target.written):
            if end.turn in in_work and program not in changed:
                yield end
            continue
        if not end.failed:
            changed.add(program)
        yield end


def _newest(ends: Iterable[CallOutcome]) -> list[CallOutcome]:
    """Return the newest outcome of each target, in order; outcomes come newest first."""
    newest: list[CallOutcome] = []
    for end in ends:
        if not any(later.target.covers(end.target) for later in newest):
            newest.append(end)
    return newest


def _with_earlier(section: Section, view: View) -> Section:
    """Return a section with the entries of earlier digests: those first, as far as they hold, and each once."""
    before = earlier_entries(view.transcript)
    earlier = before.lines(section.title)
    if section.title == STATE and newest_task_list(view.transcript) is None:
        remaining = (
            *(line for line in earlier if line.startswith((TODO, LISTED))),
            *(TODO + line for line in before.lines(REMAINING)),
        )
        return replace(section, lines=(*section.lines, *remaining))
    if section.title == ERRORS:
        earlier = _still_open(earlier, view, section.lines)
    if section.title == TRIED:
        now = {line.partition(PASSED_LATER)[0] for line in section.lines}
        earlier = tuple(line for line in earlier if line.rpartition(" (turn ")[0] not in now)
    if section.title == STEPS:
        earlier, own = _longer_steps(earlier_steps(view, earlier), section.lines)
        section = replace(section, lines=own)
    if section.title == ENDED:
        uncertain = _before_missing_turns(view.transcript) if earlier else ()
        ended = {line.partition(":")[0] for line in section.lines if END in line}.difference(uncertain)
        earlier = tuple(line for line in earlier if line.partition(":")[0] not in ended)
        kept = {line.partition(":")[0] for line in earlier}.union(uncertain)
        lines, fuller = (
            tuple(line for line in some if line.partition(":")[0] not in kept)
            for some in (section.lines, section.fuller)
        )
        section = replace(section, lines=lines, fuller=fuller)
    if not earlier or section.title in CUMULATIVE or section.title == STATE:
        return section
    if section.title == REQUESTS:
        quoted = {turn for turn, _ in quotations(earlier)}
        new = (line for line in section.lines if quoted.isdisjoint(turn for turn, _ in quotations((line,))))
        section = replace(section, lines=tuple(new))
    else:
        section = replace(section, lines=_as_stated_before(section.lines, earlier))
    lines = (*section.lines, *reversed(earlier)) if section.newest_first else (*earlier, *section.lines)
    return replace(section, lines=tuple(dict.fromkeys(lines)))


def _as_stated_before(lines: Sequence[str], earlier: Sequence[str]) -> tuple[str, ...]:
    """Return lines, those that earlier digests tell as they tell them.

    They knew more: by now the turn of what was said may have left, so that it seems to be of the one before, and of its
    words a part.
    """
    known = {NUMBERED.sub("turn", line): line for line in earlier}

    def earlier_form(line: str) -> str:
        pieces = [piece.strip() for piece in LEFT_OUT.split(NUMBERED.sub("turn", line))]
        if sum(map(len, pieces)) < KNOWN_AGAIN or len(pieces) == 1:
            return known.get(NUMBERED.sub("turn", line), line)
        return next((each for key, each in known.items() if all(map(key.__contains__, pieces))), line)

    return tuple(map(earlier_form, lines))


def _before_missing_turns(transcript: Transcript) -> frozenset[str]:
    """Return the turns behind which others have left: an answer behind them may be that of one of those."""
    numbers = sorted(turn_numbers(transcript).values())
    return frozenset(f"turn {turn}" for turn, after in pairwise(numbers) if turn + 1 < after)


def _longer_steps(earlier: Sequence[str], lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return earlier and new lines without those of which the other holds more: calls of a step may have left."""
    announced = [
        {NUMBERED.sub("turn", match[1]): line for line in some if (match := STEP.match(line))}
        for some in (earlier, lines)
    ]
    before, now = announced
    shorter = {before[step] if len(before[step]) <= len(now[step]) else now[step] for step in before.keys() & now}
    return tuple(each for each in earlier if each not in shorter), tuple(each for each in lines if each not in shorter)


def _still_open(errors: Sequence[str], view: View, now: Sequence[str]) -> tuple[str, ...]:
    """Return which errors of earlier digests no call since then has closed."""
    passed: list[Target] = [
        target
        for call, result in answered(view, view.transcript.messages)
        if not failed(call, result)
        for target in targets_of(call)
    ]
    repeated = {line.split(END)[0] for line in now}
    still: list[str] = []
    for line in errors:
        text = next((line.removesuffix(mark) for mark in MARKS if line.endswith(mark)), line)
        call = line.split(END)[0]
        target = target_in(call)
        if not (line.endswith(MARKS[1:]) or any(each.covers(target) for each in passed) or call in repeated):
            still.append(text)
    return tuple(still)


def _line_with_words(end: CallOutcome) -> str:
    """Return the line of a failure with what the assistant says behind it."""
    return f'{_line(end)}: "{end.comment[1]}"' if end.comment[1] else _line(end)


def _line(end: CallOutcome) -> str:
    turn = f" (turn {end.turn})" if end.failed and end.turn else ""
    return f"{end.call}{END}{end.ended}{turn}" if end.ended else f"{end.call}{turn}"
