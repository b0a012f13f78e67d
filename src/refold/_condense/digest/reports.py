"""What sub-agents were given to do, what they reported and what they were answered, one line each.

The report of a sub-agent is the output of the call that started it, or, of one that ran in the background, what a
harness tells later in a user's turn. Decisions, deviations and findings often stand nowhere else; so it is with what
the assistant rules where one of them asks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import arguments_of, plain_name
from refold._condense.call_outline import call_line, one_line
from refold._condense.digest.announcements import whole_sentences
from refold._condense.digest.file_log import AGENTS
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.turns import turns_at, turns_in_work
from refold.core._speakers import speech
from refold.core.messages import Message, memoized, texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import ToolCall
    from refold.core.view import View

__all__ = ["REPORTED", "report_of", "reports"]

REPORTED = "Sub-agents and what they reported"  # the section of a digest
REPORT, ITEM = 400, 160  # characters of what a sub-agent reports, and of each item where it is a longer list
MOST = 12  # sub-agents that are told, the newest
BEGAN = 1_600  # characters of an output that only says that a sub-agent has begun
FEWEST_WORDS = 3  # of a heading with its number sign; shorter ones say nothing of what was found
RUNNING = re.compile(
    r"\b(?:launched|in the background|still running|(?:has|was) (?:been )?(?:started|spawned|queued|dispatched)|"
    r"(?:agent|task|thread)_?id\b)",
    re.I,
)
BODY = re.compile(r"<((?:task_)?result|response|report|output|final_message)>\s*(.*?)\s*</\1>", re.S)
NAME = re.compile(r"<(?:summary|description|title)>\s*(.*?)\s*</", re.S)
ENDED = re.compile(r"[A-Z][a-z ]+ task (\w+): \*\*([^*\n]+)\*\*")  # how pi's notification of a task begins
# Tools that speak to sub-agents at work, by name, and the arguments that hold whom and what.
SPEAKS = re.compile(r"(?:^|_|sub_?)agents?$|supervisor$|intercom$|^send_?(?:message|input)$", re.I)
TO, WORDS = ("to", "recipient", "replyTo", "reply_to", "target", "id", "agent_id"), ("message", "content")
ORDER_LENGTH, LEAST_WORDS, MOST_ORDERS = (
    240,
    5,
    4,
)  # characters of what one is told, words that tell something, and how many
STATE = re.compile(  # of a sub-agent, in a list of several
    r"^\W*(?:[\w -]+: )?([\w./-]+ \([^()\n]+\)):? (running|completed|failed|paused|blocked|queued)\b", re.M
)
QUOTED_NAME = re.compile(r"[\"“'](.{4,}?)[\"”']")
HEADED = re.compile(r"(#{1,6}) +(\S.*)$|\*\*([^*\[\]/]+)\*\*:?$")  # a heading, also one in bold type
NUMBERED = re.compile(r"^#{2,6} +(\d{1,2}[.)] +\S.*)$", re.M)  # one that is itself a finding
GENERIC = re.compile(  # a heading that says nothing of the items below it
    r"\W*(?:executive )?(?:summary|overview|findings|results?|report|details|notes|analysis|introduction|background|"
    r"zusammenfassung|ergebnisse|résumé|résultats|resumen|resultados|resumo|概要|まとめ|結果|摘要|总结|结果|요약|결과)\W*",
    re.I,
)
LISTED = re.compile(r"(?:[-*•]|\d{1,2}[.)]) +(\S.*)$")
INTRODUCES = re.compile(r"(?:^|(?<=[.!?]) )([^.!?]+):$")  # the sentence before a list
VERDICT = re.compile(  # how a report says what came out as a whole
    r"^(?:[^\w\n]|_){0,20}((?:(?:overall|final) )?"
    r"(?:verdict|assessment|recommendation|conclusion|rating|bottom line))\b[*_` ]{0,9}[:：—–-]"
    r"[\W_]{0,20}([^\W_].*)$",
    re.M | re.I,
)
APPROVES = re.compile(
    r"\W*(?:approved?|lgtm|pass(?:ed|es)?|no (?:\w+ )?(?:concerns|issues|findings|problems)|ok)\b", re.I
)
ASKS_FOR_CHANGES = re.compile(
    r"\b(?:request(?:s|ed)? changes|changes (?:requested|required|needed)|needs? (?:changes|work|revision)|"
    r"do(?:es)? not (?:merge|approve|ship)|not (?:approved|ready)|reject(?:ed|s)?|block(?:ed|ing|er)?|fail(?:ed|s)?)\b",
    re.I,
)
APPROVED = 200  # characters of a report whose verdict is that all is well
OUTLINE = 3  # headings from which a report is told by them: numbered ones alone, others with the first item below
TAGS = re.compile(r"</?[a-z_]+>|^\w+_?id: .*$|<usage>(?s:.*?)</usage>", re.M | re.I)


def reports(view: View, staying: Sequence[Message]) -> tuple[str, ...]:
    """Return the sub-agents of a transcript with their reports, newest first, but for those that stand in the view.

    How each was when that was looked at last comes first, then those whose verdict asks for changes: there is
    something to do; and then what sub-agents at work were told.
    """
    messages, turns = view.transcript.messages, turns_at(view.transcript)
    in_work = turns_in_work(view.transcript)
    lines: dict[str, str] = {}
    asking: set[str] = set()
    names: set[str] = set()
    pairs = [(position, *pair) for position in range(len(messages) - 1, -1, -1) for pair in _pairs(view, position)]
    orders = [(position, words) for position in range(len(messages) - 1, -1, -1) for words in _orders(view, position)]
    there = "\n".join(text for message in staying for text in texts(message)) if pairs else ""
    states = ""
    for position, name, report in pairs:
        turn = turns[position]
        if len(seen := STATE.findall(report)) > 1:
            states = states or f"as seen last (turn {turn}): {'; '.join(map(' '.join, seen[:MOST]))}"
            continue
        if any(known in name for known in names):
            continue
        if report and report[:REPORT] not in there:
            if _asks_for_changes(report):
                asking.add(name)
            lines.setdefault(name, f"{name} (turn {turn}) → {report_of(report)}")
        elif not report and turn in in_work:
            lines.setdefault(name, f"{name} (turn {turn}, no report yet)")
        names.add(name)
    newest = list(lines)[:MOST]
    first, others = ([lines[name] for name in newest if (name in asking) == which] for which in (True, False))
    answers = (f'a sub-agent was told in turn {turns[position]}: "{words}"' for position, words in orders[:MOST_ORDERS])
    return (*filter(None, (states,)), *first, *answers, *others)


def _orders(view: View, position: int) -> Iterator[str]:
    """Yield what calls of a message say to sub-agents at work."""
    for call, result in answered(view, [view.transcript.messages[position]]):
        words = _words_of(call)
        if len(words.split()) >= LEAST_WORDS and not failed(call, result):
            yield whole_sentences(words, ORDER_LENGTH)


def _words_of(call: ToolCall) -> str:
    """Return what a call says to a sub-agent at work; nothing for any other call, also one that starts a sub-agent."""
    arguments = arguments_of(call) if SPEAKS.search(plain_name(call.name)) else {}
    words = (value for key in WORDS if isinstance(value := arguments.get(key), str))
    return "" if arguments.keys().isdisjoint(TO) else next(words, "")


def _pairs(view: View, position: int) -> Iterator[tuple[str, str]]:
    """Yield the sub-agents of a message with their reports, nothing for one that only began."""
    message = view.transcript.messages[position]
    yield from _notified(message)
    for call, result in answered(view, [message]):
        starts = AGENTS.search(plain_name(call.name)) and not _words_of(call)
        if starts and not failed(call, result) and len(call_line(call).split()) > 1:
            body = BODY.search(result.text)
            only_began = body is None and len(result.text) <= BEGAN and RUNNING.search(result.text) is not None
            yield call_line(call), "" if only_began else body[2] if body else result.text


def _asks_for_changes(report: str) -> bool:
    """Tell whether the verdict of a report is that something has to be changed."""
    verdict = VERDICT.search(TAGS.sub(" ", report))
    return verdict is not None and not APPROVES.match(verdict[2]) and ASKS_FOR_CHANGES.search(verdict[2]) is not None


@memoized
def _notified(message: Message) -> tuple[tuple[str, str], ...]:
    """Return the sub-agents, by name, whose reports a harness brings in a user's turn."""
    if message.role != "user" or message.note is not None:
        return ()
    spans = [(span, one.text.text) for one in speech(message).harness for span in one.spans]
    bodies = [span.body(text) for span, text in spans]
    by_form = ((ended, span.body(text)) for span, text in spans if (ended := ENDED.match(span.opening)))
    return (
        *(
            (one_line(quoted[1] if (quoted := QUOTED_NAME.search(name[1])) else name[1]), report[2])
            for body in bodies
            if (name := NAME.search(body)) and (report := BODY.search(body)) and report[2]
        ),
        *((f"{ended[2]} {ended[1]}", body) for ended, body in by_form if body.strip()),
    )


def report_of(text: str) -> str:
    """Return what a sub-agent reports: as it begins, or, of a longer list, its verdict and how each item begins.

    Items stand behind what they are items of, their heading or the words that introduce them: "Missing tests: …".
    """
    text = TAGS.sub(" ", text)
    numbered = NUMBERED.findall(text)
    groups = (
        [(each.replace("**", "").rstrip(" #"), []) for each in numbered] if len(numbered) >= OUTLINE else _groups(text)
    )
    if len(text) <= REPORT or sum(max(len(items), 1) for _, items in groups) <= 1:
        return whole_sentences(text, REPORT)
    verdict = VERDICT.search(text)
    line = whole_sentences(f"{verdict[1]}: {verdict[2]}".replace("**", ""), ITEM).rstrip(".") if verdict else ""
    most = APPROVED if verdict and APPROVES.match(verdict[2]) else REPORT
    outlined = sum(bool(heading and items) for heading, items in groups) >= OUTLINE
    for heading, items in groups:
        for number, item in enumerate(items[:1] if outlined else items or ("",)):
            label = heading if number == 0 else ""
            part = whole_sentences(": ".join(filter(None, (label, item))), ITEM)
            longer = "; ".join(filter(None, (line, part)))
            if len(longer) > most:
                return line or part
            line = longer
    return line


def _groups(text: str) -> list[tuple[str, list[str]]]:
    """Return the lists of a report, each with its heading and what introduces it; and headings that tell something."""
    groups: list[tuple[str, list[str]]] = []
    heading = introduced = ""
    labelled = True  # whether the heading stands before an item
    for line in map(str.rstrip, text.split("\n")):
        if headed := HEADED.fullmatch(line):
            if not labelled and len(heading.split()) >= FEWEST_WORDS:
                groups.append((heading, []))
            # the title of the whole says less than the name of the sub-agent
            heading = (headed[2] or headed[3]).replace("**", "").rstrip(" #").strip(" :")
            labelled = headed[1] == "#" or GENERIC.fullmatch(heading) is not None
            introduced = ""
        elif listed := LISTED.match(line):
            if introduced or not labelled or not groups:
                label = ", ".join(filter(None, ("" if labelled else heading, introduced)))
                groups.append((label, []))
                labelled, introduced = True, ""
            groups[-1][1].append(listed[1].replace("**", ""))
        elif line and not line[0].isspace():
            words = INTRODUCES.search(line.replace("**", ""))
            introduced = words[1].strip() if words else ""
    return groups
