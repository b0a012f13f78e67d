"""Where the work stands and what comes next: what the assistant said and called last, and what the calls show.

That are the last checks and how they ended, the last commit or branch and what was changed since, commands that still
run, what became of a plan, and the list of tasks.
It is told from the end of the whole transcript, whether that stays or leaves, because who reads on begins there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import arguments_of, is_shell, plain_name, writes
from refold._condense.call_outline import call_line, one_line
from refold._condense.digest.announcements import SENTENCE, announces, whole_sentences
from refold._condense.digest.background import ENDED, KILLS, STARTED, in_background
from refold._condense.digest.conclusions import PLAN_ENDS, SUPPOSED, prose
from refold._condense.digest.definitions import is_prose
from refold._condense.digest.file_log import AGENTS, file_log
from refold._condense.digest.git_state import git_state
from refold._condense.digest.ledger import ALL_DONE, ledger
from refold._condense.digest.narration import no_work
from refold._condense.digest.open_items import LISTED_OPEN, open_items
from refold._condense.digest.outcomes import (
    COMMITTED,
    EXPECTED,
    answered,
    answers_of,
    ended,
    failed,
    meant_to_fail,
    passed_calls,
    was_refused,
)
from refold._condense.digest.previous import own_text
from refold._condense.digest.reports import report_of
from refold._condense.digest.targets import Target, target_of, targets_of
from refold._condense.digest.task_lists import IN_PROGRESS, lists_tasks, newest_task_list
from refold._condense.digest.turns import goes_on_at_once, turn_ends, turn_numbers, turns_at, turns_in_work
from refold._condense.file_views import FileNames, command_of, is_scratch, took_effect
from refold._condense.shell_commands import GIT, without_heredocs
from refold._condense.text_calls import text_call
from refold.core._speakers import is_turn
from refold.core.messages import memoized, text_of, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.messages import Message, ToolCall, ToolResult
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["LISTED", "STATE", "TODO", "prepare", "state"]

STATE = "State and next step"  # the section of a digest
LIST_OF = " (list of turn "  # behind tasks of a list that is older than the current request
TODO, LISTED = "to do: ", "to-do list: "
PASSED = "done, too, it seems, though not marked: tasks behind it are done and its turn was answered"
DONE_LENGTH = 300  # characters of the tasks that are done, the newest at the end
HEADINGS = re.compile(r"^(#{2,4})[ \t]+(\S[^\n]*)$", re.M)  # of a plan, below its title
NUMBERED_PART = re.compile(r"\**(?:[^\W\d_]+ )?\d{1,2}[a-z]?(?:[.:)]|\b *[-–—])")
LISTED_PART = re.compile(r"^(\d{1,2}[.)] +\S[^\n]*)$", re.M)
FEWEST_PARTS, MOST_PARTS, PART_LENGTH = 3, 14, 60  # headings that are told, and characters of one
PLAN_LENGTH = 120  # characters of a plan's title, or of what the user said to it
SINCE_COMMIT, NOTHING_CHANGED = "changed since the last commit: ", "nothing seen"
ITEM_OF, OPEN = "item ", ("open finding: ", LISTED_OPEN)  # how lines of what a request or an answer lists begin
NOTHING_YET = "no work on the current request yet"
DONE = " (done)"  # behind an edit that has changed its file
WAITED_FOR = " (no result yet)"  # behind a call at the end that nothing has answered
WENT_WELL = ", which went well"  # behind a commit that the last words announced
PROSE = (".md", ".mdx", ".rst", ".txt")
BEFORE_EDITS = " (before the last edits)"
LABELLED = re.compile(r"([A-Za-z]{3,} \d{1,2})\b")  # how the title of a plan for one of several steps begins
OWN = "$!"  # the process that a line of commands has started itself
FILES = 6  # changed files that are named beside the last commit
INTENT_LENGTH = 400  # characters
CLOSING = frozenset({"git commit", "git push"})  # after which what was announced before is done
CALLS = 3  # last calls that are named where some have followed the last words
CHECKS, RUNNING = 3, 2  # last checks, each of another sort, and commands that still run
BACK = 60  # messages at the end that are searched for what the assistant meant to do
CALLS_BACK = 400  # and for what its calls show
INTENT = re.compile(
    r"\b(?:now (?:I|let|we)\b|next(?: step)?s?\b|let me\b|let's\b|I(?:'|’)ll\b|I will\b|I(?:'|’)m going to\b|"
    r"I am going to\b|going to\b|I need to\b|we need to\b|I should\b|remaining\b|still (?:need|have) to\b|then I\b|"
    r"I(?:'|’)m (?:now )?\w+ing\b)|"
    r"\b(?:jetzt|als nächstes|ich werde|maintenant|ensuite|je vais|ahora|voy a|a continuación)\b|"
    r"次に|接下来|下一步|现在",
    re.I,
)
BLOCKED = re.compile(
    r"\b(?:is|are|remains?|still|now) blocked\b|\bblocked (?:by|on|until)\b|\bblocker\b|"
    r"\b(?:can(?:no|['’])t|unable to) (?:proceed|continue|go on)\b|"
    r"\bis blockiert\b|\bblockiert (?:durch|von)\b|\bbloqu(?:é|ée|eado|eada) (?:par|por)\b",
    re.I,
)
NEAR = 40  # messages before it in which what failed is looked for
# A sentence that only names the word: what was blocked and is no more, what the user asks, or a thread that waits.
UNBLOCKED = re.compile(
    r"\b(?:no longer|not|isn['’]t|aren['’]t|never|nicht(?: mehr)?|plus|pas|ya no est[áa]) (?:being |really |actually )?"
    r"(?:block|bloqu)|\b(?:nothing|none|nichts|rien)(?: (?!since|because|as|while|until|works)\S+){0,4} "
    r"(?:block|bloqu)|\b(?:is|are|now|been|have|has) unblocked\b|\bno blockers?\b|"
    r"\bblockers?\b[^.!?\n]{0,20}\b(?:gone|solved|resolved|fixed|removed|cleared|done)\b",
    re.I,
)
NAMED_ONLY = re.compile(
    r"\?\s*$|^\W*(?:you (?:ask|say|said|want|wonder)|the user)\b|\b(?:threads?|loop|goroutines?|process(?:es)?|"
    r"addresse?s?|ips?|requests?|ports?|domains?|urls?|quer(?:y|ies)|transactions?|popups?|cookies?|senders?|accounts?|"
    r"[\d.]{7,}) (?:is|are|remains?|gets?|was|were) (?:still |now )?blocked\b|`[^`]*block[^`]*`",
    re.I,
)
# What rewrites commits, so that their ids are those of none any more, and how the newest is shown.
REWRITES = re.compile(rf"{GIT} (?:rebase|reset|filter-branch|filter-repo)\b(?! (?:-q )?(?:--abort|HEAD(?![\w~^@])))")
LOGS = re.compile(rf"{GIT} (?:log|rev-parse)\b(?!.*--(?:reverse|all)\b)")
LOGGED = re.compile(r"^(?:\* )?(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,40}\b.*", re.M)  # a number alone is no id
NO_COMMIT = re.compile(r"^(?:nothing (?:added )?to commit|no changes added to commit)\b", re.M)
COMMIT = re.compile(  # the part of a line of commands that commits
    rf"""{GIT} commit\b(?![-/])(?:'[^']*'|"(?:\\.|[^"\\])*"|[^'"|;&\n])*"""
)
REDIRECTION = re.compile(r"\s*\d?>+\s*$")  # behind it, of which the rest stands behind a sign that ends it


def state(view: View) -> tuple[str, ...]:
    """Return lines on the state of the work, the most telling first."""
    last = tuple(_last_words(view))
    results = tuple(_results_of_calls(view, last[-1] if last else ""))
    tasks, uncommitted = tuple(_to_do(view.transcript)), tuple(_uncommitted(view))
    account = () if tasks else (*ledger(view), *open_items(view))
    plans = (*_plan(view, in_parts=not tasks), *_written_plans(view))
    git = tuple(git_state(view))
    current = () if any(LIST_OF in line for line in tasks) else tasks
    earlier = () if current else tasks
    results = (*results, *uncommitted, *git, *_running(view))
    listed = (*last, *current, *plans, *results, *account, *earlier, *_blocked(view))
    ended = (
        last and last[-1].endswith(WENT_WELL) and not any(line.startswith((TODO, ITEM_OF, *OPEN)) for line in listed)
    )
    return (*listed, ALL_DONE) if ended and uncommitted == (f"{SINCE_COMMIT}{NOTHING_CHANGED}",) else listed


def _to_do(transcript: Transcript) -> Iterator[str]:
    """Yield the tasks that remain; of a list that is older than the current request with its turn."""
    tasks = newest_task_list(transcript)
    if tasks is None:
        return
    turns, place = turns_at(transcript), transcript.index[tasks.message]
    turn = turns[place]
    of_turn = f"{LIST_OF}{turn})" if turn not in turns_in_work(transcript) else ""
    ended = any(transcript.index[id] > place for id in turn_ends(transcript))
    whole = len(tasks.done) + len(tasks.remaining)
    # what was in progress when its turn ended was done or given up, and only the list does not say so
    over = [line for line in tasks.remaining if ended and of_turn and line.endswith(IN_PROGRESS)]
    done = f": {_ending('; '.join(tasks.done))}" if tasks.done else ""
    left = "".join(
        f"; {what}: {_ending('; '.join(line.removesuffix(IN_PROGRESS) for line in lines))}"
        for what, lines in (
            (PASSED, [line for line in over if line in tasks.passed]),
            ("not marked when its turn was answered", [line for line in over if line not in tasks.passed]),
        )
        if lines
    )
    if done or left:
        yield f"{LISTED}{len(tasks.done)} of {whole} done{of_turn}{done}{left}"
    open_still = (line for line in tasks.remaining if line not in over)
    yield from (f"{TODO}{line}{of_turn}" for line in open_still)


def _blocked(view: View) -> Iterator[str]:
    """Yield what the assistant says last of what blocks the current request, unless what failed before went well since.

    Where no call failed before it, nothing shows that it blocks no more.
    """
    messages, turns = view.transcript.messages, turns_at(view.transcript)
    in_work = turns_in_work(view.transcript)
    start = next((at for at, turn in enumerate(turns) if turn in in_work), 0)
    for position in range(len(messages) - 1, max(len(messages) - CALLS_BACK, start) - 1, -1):
        if _unblocked(messages[position]):
            return
        if words := _blocking(messages[position]):
            passed = [target for _, target in passed_calls(view, messages[position:]) if target]
            before = reversed(messages[max(position - NEAR, start) : position])
            wrong = next((call for call, result in answered(view, before) if failed(call, result)), None)
            if wrong is None or not any(each.covers(target_of(wrong)) for each in passed):
                yield f"blocked, as the assistant wrote in turn {turns[position]}: {words}"
            return


def prepare(message: Message) -> None:
    """Find what a message says of what blocks the work, or blocks it no more; the message remembers it."""
    _unblocked(message)
    _blocking(message)


@memoized
def _blocking(message: Message) -> str:
    """Return the last sentence of an answer that says what blocks the work."""
    sentences = SENTENCE.split(prose(message)) if message.role == "assistant" else ()
    telling = (each for each in reversed(sentences) if BLOCKED.search(each))
    certain = (each for each in telling if not (SUPPOSED.search(each) or NAMED_ONLY.search(each)))
    return one_line(next(certain, "").strip(" -*#>|"), INTENT_LENGTH)


@memoized
def _unblocked(message: Message) -> bool:
    """Tell whether an answer says that something blocks no more, and nothing behind that which blocks still."""
    sentences = SENTENCE.split(prose(message)) if message.role == "assistant" else ()
    last = next((each for each in reversed(sentences) if UNBLOCKED.search(each) or BLOCKED.search(each)), "")
    return UNBLOCKED.search(last) is not None


def _ending(text: str) -> str:
    """Return the end of a text that is too long, from the beginning of a word."""
    if len(text) <= DONE_LENGTH:
        return text
    return f"… {text[text.find(' ', len(text) - DONE_LENGTH) + 1 :]}"


def _plan(view: View, *, in_parts: bool) -> Iterator[str]:
    """Yield what became of the last plan that a tool put before the user, and its title; of one in work its parts."""
    messages = view.transcript.messages
    plans = ((at, call) for at in range(len(messages) - 1, -1, -1) for call in messages[at].calls if _plans(call))
    position, call = next(plans, (0, None))
    if call is None:
        return
    later = answered(view, messages[position:])
    result = next((result for each, result in later if each.call_id == call.call_id), None)
    plan = next((value for value in arguments_of(call).values() if isinstance(value, str)), "")
    title = one_line(next((line for line in plan.split("\n") if line.strip()), "").strip("# "), PLAN_LENGTH)
    if result is None:
        became = "waits for the user's approval"
    elif result.is_error or was_refused(result):
        became = f"not approved: {one_line(result.text, PLAN_LENGTH)}"
    else:
        became = "approved by the user"
    turn = turns_at(view.transcript)[position]
    yield f"plan (turn {turn}), {became}" + (f": {title}" if title else "")
    parts = _parts(plan)
    if parts and in_parts and result is not None and turn in turns_in_work(view.transcript):
        more = f"; and {len(parts) - MOST_PARTS} more" if len(parts) > MOST_PARTS else ""
        yield f"parts of that plan, in order: {'; '.join(parts[:MOST_PARTS])}{more}"


def _parts(plan: str) -> list[str]:
    """Return the steps that a plan numbers, in headings or else in a list, or the headings below its title."""
    headings = HEADINGS.findall(plan)
    numbered = [title for _, title in headings if NUMBERED_PART.match(title)]
    listed = LISTED_PART.findall(plan)
    highest = [title for level, title in headings if level == "##"]
    parts = next((each for each in (numbered, listed, highest) if len(each) >= FEWEST_PARTS), [])
    return [one_line(part.strip("*: "), PART_LENGTH) for part in parts]


def _written_plans(view: View) -> Iterator[str]:
    """Yield the texts that the work has written whose title begins with what the current request names ("phase 1")."""
    turns = turn_numbers(view.transcript)
    in_work = turns_in_work(view.transcript)
    request = " ".join(own_text(each) for each in view.transcript.messages if turns.get(each.id) in in_work).lower()
    for record in file_log(view.transcript):
        label = LABELLED.match(record.phrase) if record.changed and record.turn not in in_work else None
        if label and is_prose(record.path) and re.search(rf"\b{label[1].lower()}\b", request):
            yield f"written for it in turn {record.turn}: {record.path} ({record.phrase})"


def _plans(call: ToolCall) -> bool:
    """Tell whether a call puts a plan before the user."""
    return plain_name(call.name).replace("_", "") in PLAN_ENDS


def _uncommitted(view: View) -> Iterator[str]:
    """Yield the files that were changed since the last commit, where there was one."""
    messages = view.transcript.messages
    names = FileNames()
    there = {names.of(record.path): record.path for record in file_log(view.transcript) if not record.deleted}
    changed: dict[str, None] = {}
    for position in range(len(messages) - 1, max(len(messages) - CALLS_BACK, 0) - 1, -1):
        for call, result in answered(view, [messages[position]]):
            if failed(call, result):
                continue
            if is_shell(call) and any(each.task == "git commit" for each in targets_of(call)):
                first = [*changed][:FILES]
                more = f" and {len(changed) - FILES} more" if len(changed) > FILES else ""
                yield f"{SINCE_COMMIT}{', '.join(first) + more if first else NOTHING_CHANGED}"
                return
            named = (there.get(names.of(path), "") for path in writes(call) if not is_scratch(path))
            changed |= dict.fromkeys(filter(None, named))


def _last_words(view: View) -> Iterator[str]:
    """Yield what the assistant said last: what it meant to do, or how it ended the turn, and the calls since."""
    transcript = view.transcript
    calls: list[str] = []
    ends: dict[str, str] = {}
    for position in range(len(transcript.messages) - 1, max(len(transcript.messages) - BACK, 0) - 1, -1):
        message = transcript.messages[position]
        if is_turn(message):
            if not calls:  # nothing was done on the newest request: what was before it is no state of it
                yield NOTHING_YET
            break
        for call, result in answered(view, [message]) if len(calls) < CALLS else ():
            if not calls and is_shell(call) and target_of(call).task in CLOSING and not failed(call, result):
                ends[""] = WENT_WELL
            ends[result.call_id] = _end(view, position, call, result)
        command = text_call(message)
        own = (command,) if command and command.call_id in ends else message.calls
        own = tuple(call for call in own if not lists_tasks(call))
        unknown = "" if ends else WAITED_FOR
        calls += [
            call_line(call) + _of_command(view, position, call) + ends.get(call.call_id, unknown)
            for call in reversed(own)
        ]
        if message.role == "assistant" and (words := _stated(message)):
            if ends.get("") and announces(SENTENCE.split(words)[-1]):
                break  # what was announced is done
            turn = turns_at(transcript)[position]
            acts = any(each.calls for each in transcript.messages)  # some act by words alone
            ended_turn = not calls and acts and not goes_on_at_once(message)
            before = "the last call" if len(calls) == 1 else f"the last {len(calls)} calls"
            since = ", which they end" if ended_turn else f", before {before}" if calls else ""
            waits = "answered; waiting for the user: " if ended_turn else ""
            yield f"{waits}the assistant's last words (turn {turn}{since}): {words}"
            break
    if calls:
        yield f"last call{'s' * (len(calls) > 1)}: {'; '.join(reversed(calls[:CALLS]))}{ends.get('', '')}"


def _of_command(view: View, position: int, call: ToolCall) -> str:
    """Return the running command that a call is about where it names that by an id only."""
    if " " in call_line(call) or not call.arguments:
        return ""
    for message in reversed(view.transcript.messages[max(position - CALLS_BACK, 0) : position]):
        for begun, result in answers_of(view, message):
            started = STARTED.search(result.text[:400])
            if (
                started
                and is_shell(begun)
                and re.search(rf"(?<![\w-]){re.escape(started[1])}(?![\w-])", call.arguments)
            ):
                return f" (to {call_line(begun)})"
    return ""


def _end(view: View, position: int, call: ToolCall, result: ToolResult) -> str:
    """Return how a call ended, to stand behind it: of a check, and where something failed."""
    checks = is_shell(call) and target_of(call).checks
    wrong = failed(call, result)
    if AGENTS.search(plain_name(call.name)) and not wrong:
        return f" → {report_of(result.text)}"
    if not wrong and not is_shell(call) and took_effect(call, result):
        return DONE if writes(call) else ""
    committed = is_shell(call) and target_of(call).task == "git commit"
    how = ended(view, call, result) if checks or committed or (wrong and not target_of(call).looks) else ""
    expected = EXPECTED if wrong and meant_to_fail(view, position, call) else ""
    return f" → {how}{expected}" if how else ""


@memoized
def _stated(message: Message) -> str:
    """Return the sentences of an answer that say what comes next, else how it ends."""
    text = prose(message).strip()
    if len(text) < 2 or no_work(text):
        return ""
    sentences = [sentence for each in SENTENCE.split(text) if len(sentence := each.strip(" -*#>\n")) > 1]
    meant = [sentence for sentence in sentences if INTENT.search(sentence)]
    last = text.rsplit("\n\n", 1)[-1]
    if not meant or (len(last) <= INTENT_LENGTH and meant[-1] in last):
        return whole_sentences(last if len(last) <= INTENT_LENGTH else " ".join(sentences[-2:]), INTENT_LENGTH)
    return whole_sentences(" ".join(meant[-2:]), INTENT_LENGTH)


def _results_of_calls(view: View, listed: str) -> Iterator[str]:
    """Yield the last checks, each of another sort, and the last commit.

    A check that is among the calls that are `listed` is not named again, nor is one that a later one contains, one that
    was to fail, or one of an earlier turn that passed.
    """
    transcript = view.transcript
    turns = turns_at(transcript)
    checks: list[Target] = []
    lines: list[str] = []
    commit = newest = ""
    edited = rewritten = False
    for position in range(len(transcript.messages) - 1, max(len(transcript.messages) - CALLS_BACK, 0) - 1, -1):
        message, turn = transcript.messages[position], f"(turn {turns[position]})"
        if (
            message.role == "assistant"
            and not (newest or rewritten)
            and (lines_of_log := LOGGED.findall(text_of(message)))
        ):
            newest = f"last commit {turn}: {one_line(lines_of_log[0], 140)}"
        for call, result in answered(view, [message]):
            edited = edited or (any(map(_is_checked, writes(call))) and not failed(call, result))
            if not is_shell(call):
                continue
            target = target_of(call)
            if target.checks and len(checks) < CHECKS and not any(later.covers(target) for later in checks):
                line = f"{call_line(call)}{_end(view, position, call, result)}"
                if not line.endswith(EXPECTED):
                    checks.append(target)
                    if line not in listed and (not lines or turn in lines[0] or failed(call, result)):
                        lines.append(f"last check {turn}: {line}{BEFORE_EDITS if edited else ''}")
            if not (newest or rewritten) and LOGS.search(command_of(call)) and (log := LOGGED.match(result.text)):
                newest = f"last commit {turn}: {one_line(log[0], 140)}"
            if not commit and "git " in command_of(call):
                rewritten = rewritten or (REWRITES.search(command_of(call)) is not None and not failed(call, result))
                if any(each.task == "git commit" for each in targets_of(call)) and not failed(call, result):
                    committed = [line[0] for line in COMMITTED.finditer(result.text)] or _commits(call, result)
                    commit = f"last commit {turn}: {one_line(committed[-1], 140)}" if committed else ""
                    commit = (newest or f"{commit} (rewritten later)") if commit and rewritten else commit
    yield from filter(None, (*lines, commit))


def _is_checked(path: str) -> bool:
    """Tell whether a check may tell of a file: of no scratch file, and of no text for readers."""
    return not (is_scratch(path) or path.lower().endswith(PROSE))


def _commits(call: ToolCall, result: ToolResult) -> list[str]:
    """Return the commands of a line that commit, without the others, where nothing says that there was nothing to."""
    return (
        []
        if NO_COMMIT.search(result.text)
        else [f"`{REDIRECTION.sub('', each).strip()}`" for each in COMMIT.findall(without_heredocs(command_of(call)))]
    )


def _running(view: View) -> Iterator[str]:
    """Yield the commands that were started in the background, and of which nothing says that they have ended."""
    transcript = view.transcript
    turns, in_work = turns_at(transcript), turns_in_work(transcript)
    running: dict[str, str] = {}
    start = max(len(transcript.messages) - CALLS_BACK, 0)
    for position, message in enumerate(transcript.messages[start:], start):
        if running and message.role == "user":
            words = "\n".join(texts(message))
            running = {key: line for key, line in running.items() if not (key in words and ENDED.search(words))}
        for call, result in answered(view, [message]):
            command = command_of(call) if is_shell(call) or STARTED.search(result.text[:400]) else ""
            if running and KILLS.search(command or call.name) and OWN not in command:
                running = {key: line for key, line in running.items() if command == "" and key not in call.arguments}
            elif running and not command and ENDED.search(result.text[:400]):
                running = {key: line for key, line in running.items() if key not in call.arguments}
            over = target_of(call).checks and turns[position] not in in_work  # a check does not run for turns
            if command and not (over or failed(call, result)):
                key, line = in_background(command, call, result)
                running |= {key: f"(turn {turns[position]}): {line}"} if key else {}
    for line in [*running.values()][-RUNNING:]:
        yield f"started in the background, no end shown {line}"
