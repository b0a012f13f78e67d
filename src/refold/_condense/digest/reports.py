"""What sub-agents were given to do, what they reported and what they were answered, one line each.

The report of a sub-agent is the output of the call that started it, or, of one that ran in the background, what a
harness tells later in a user's turn. Decisions, deviations and findings often stand nowhere else; so it is with what
the assistant rules where one of them asks.
"""

from __future__ import annotations

import re
from itertools import chain, dropwhile, takewhile
from typing import TYPE_CHECKING

from refold._condense.call_facts import arguments_of, plain_name
from refold._condense.call_outline import call_line, one_line
from refold._condense.digest.agreement import WORD
from refold._condense.digest.announcements import whole_sentences
from refold._condense.digest.conclusions import PLAN_ENDS
from refold._condense.digest.file_log import AGENTS
from refold._condense.digest.gist import sentences_of_answer, tells
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.turns import turns_at, turns_in_work
from refold.core._json import decoded
from refold.core._speakers import speech
from refold.core.messages import Message, memoized, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.messages import ToolCall
    from refold.core.view import View

__all__ = ["REPORTED", "report_of", "reports"]

REPORTED = "Sub-agents and what they reported"  # the section of a digest
REPORT, FULL, ITEM = 400, 900, 200  # characters of a report, of one where there is room for more, and of an item
WHOLE = 1.3  # times as long a report is told by its beginning
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
OUTPUT = re.compile(r'"output": ?("(?:[^"\\]|\\.){40,}")')  # of a sub-agent, in a list of several
ASSIGNS = re.compile(r'"(?:[^"\\ ]|\\.)+(?: (?:[^"\\ ]|\\.)+){3,}')  # words that give work, in the arguments of a call
# How a report begins that only says what it is.
OPENS = re.compile(
    r"\W*(?:(?:perfect|excellent|great|good|done)\W+)?(?:I|I['’]\w+|based on|here|below|this|the following|let|now|"
    r"following|agora|aqui|abaixo|hier|voici|aquí|以下)\b",
    re.I,
)
CONCLUSION = (
    r"(?:findings?|conclus\w+|summary|(?:root )?causes?|issues?|problems?|gaps?|risks?|blockers?|remaining|answer|"
    r"recommend\w*|deviations?|flags?|differences|results?|fazit|ergebnis\w*|résumé|achados|resumo|"
    r"hallazgos|resumen|s[ií]nte[sz]\w*|выводы|итоги?)\b|結論|まとめ|结论|总结|결론|요약"
)
STATED = re.compile(rf"^\*\*((?:[\w ]*\b)?(?:{CONCLUSION}): [^*\n]{{24,}})\*\*$", re.M | re.I)  # in bold type
CONCLUDING = re.compile(rf"^#{{1,6}} +((?:.*\b)?(?:{CONCLUSION}).*)$", re.M | re.I)  # the heading of what it comes to
PATH = re.compile(r"[A-Z][\w ]{2,24}: \S*[/\\]\S*")
MARKED = re.compile(r"[-+•#|>`]|\*(?!\*)|\d+[.)] ")
SHORT_TITLE = 5  # words of a heading with its number that says little alone
CLOSING, LAST = 2, 320  # paragraphs that a report ends with, and characters of them
OUTLINE = 3  # headings from which a report is told by them: numbered ones alone, others with the first item below
TAGS = re.compile(r"</?[a-z_]+>|^\w+_?id: .*$|<usage>(?s:.*?)</usage>", re.M | re.I)


def reports(view: View, staying: Sequence[Message], *, full: bool = False) -> tuple[str, ...]:
    """Return the sub-agents of a transcript with their reports, newest first, but for those that stand in the view.

    Those whose verdict asks for changes come first: there is something to do. Behind the reports stands how those at
    work were when that was looked at last, and what they were told. With `full` reports have more words.
    """
    messages, turns = view.transcript.messages, turns_at(view.transcript)
    in_work = turns_in_work(view.transcript)
    lines: dict[str, str] = {}
    asking: set[str] = set()
    names: set[str] = set()
    pairs = [(position, *pair) for position in range(len(messages) - 1, -1, -1) for pair in _pairs(view, position)]
    orders = [(position, words) for position in range(len(messages) - 1, -1, -1) for words in _orders(view, position)]
    there = "\n".join(text for message in staying for text in texts(message)) if pairs else ""
    planned = _last_plan(view) if pairs else 0
    states = ""
    for position, name, report in pairs:
        turn = turns[position]
        if len(seen := STATE.findall(report)) > 1:
            at_work = [" ".join(each) for each in seen[:MOST] if each[1] != "completed"]  # others are told by reports
            states = states or (f"as seen last (turn {turn}): {'; '.join(at_work)}" if at_work else "")
            continue
        if any(known in name for known in names):
            continue
        if report and report[:REPORT] not in there:
            if _asks_for_changes(report):
                asking.add(name)
            before = ", before the plan was approved" if turn == turns[planned] and position < planned else ""
            lines.setdefault(name, f"{name} (turn {turn}{before}) → {report_of(report, FULL if full else REPORT)}")
        elif not report and turn in in_work:
            lines.setdefault(name, f"{name} (turn {turn}, no report yet)")
        names.add(name)
    newest = list(lines)[:MOST]
    first, others = ([lines[name] for name in newest if (name in asking) == which] for which in (True, False))
    answers = (f'a sub-agent was told in turn {turns[position]}: "{words}"' for position, words in orders[:MOST_ORDERS])
    return (*first, *others, *filter(None, (states,)), *answers)


def _last_plan(view: View) -> int:
    """Return the place of the message that put the last plan before the user which was approved, or 0.

    What a sub-agent proposed before it holds only as far as the plan has it.
    """
    messages = view.transcript.messages
    approved = (
        at
        for at in range(len(messages) - 1, 0, -1)
        for call, result in answered(view, messages[at : at + 1])
        if plain_name(call.name).replace("_", "") in PLAN_ENDS and not failed(call, result)
    )
    return next(approved, 0)


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
            if ASSIGNS.search(call.arguments) or len(STATE.findall(result.text)) > 1:
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


def report_of(text: str, room: int = REPORT) -> str:
    """Return what a sub-agent reports: a short report as it is, of a longer one its conclusions, then its outline.

    Conclusions are its verdict, what it says first and last, what it says in bold type behind a label, and the items
    of the last section that is headed as such. Items stand behind what they are items of, their heading or the words
    that introduce them: "Missing tests: …".
    """
    outputs = (decoded(each) for each in OUTPUT.findall(text))
    text = TAGS.sub(" ", "\n".join(filter(None, outputs)) or text).strip()
    groups = _groups(text)
    if len(text) <= WHOLE * room:
        return whole_sentences(text, room)
    verdict = VERDICT.search(text)
    line = whole_sentences(f"{verdict[1]}: {verdict[2]}".replace("**", ""), ITEM).rstrip(".") if verdict else ""
    most = min(APPROVED, room) if verdict and APPROVES.match(verdict[2]) else room
    asks = _asks_for_changes(text)  # then the headings are what is to be changed
    parts: Iterable[str] = _outline(text, groups)
    if not asks:
        parts = chain(_conclusions(text, groups), parts) if groups else chain(parts, _conclusions(text, groups))
    for part in parts:
        longer = "; ".join(filter(None, (line.rstrip("."), part)))
        if (part.partition(": ")[2] or part).rstrip(".") in line:
            continue
        if len(longer) > most:
            break
        line = longer
    return line or whole_sentences(text, room)


def _conclusions(text: str, groups: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield the conclusions of a report, the most telling first."""
    blocks = [*filter(_says_something, map(str.strip, text.split("\n\n")))]
    sentences = sentences_of_answer(" ".join(takewhile(_is_prose, blocks)))
    opening = [each for each in sentences if tells(each)]
    if opening and not (OPENS.match(opening[0]) or text.startswith("#")):
        yield whole_sentences(" ".join(each for each in opening if not OPENS.match(each)), ITEM)
    yield from (whole_sentences(each, ITEM) for each in STATED.findall(text))
    headings = [*CONCLUDING.finditer(text)]
    title = headings[-1][1].strip(" *#:") if headings else ""
    concluding = [items for heading, items in groups if title and items and heading.startswith(title)]
    below = text[headings[-1].end() :].lstrip("\n").partition("\n\n")[0] if headings else ""
    if concluding:
        yield from (whole_sentences(item, ITEM) for item in concluding[-1] if not item.endswith(":"))
    elif _is_prose(below):
        yield whole_sentences(" ".join(sentences_of_answer(below)), LAST)
    ending = dropwhile(lambda block: block.startswith(("|", "#")), reversed(blocks))
    if last := [*takewhile(_is_prose, ending)][:CLOSING]:
        yield whole_sentences(" ".join(sentences_of_answer(" ".join(reversed(last)))), LAST)


def _outline(text: str, groups: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield the numbered headings of a report, short ones with what stands first below them, or its items.

    Of a report without lists its beginning.
    """
    numbered = [*NUMBERED.finditer(text)]
    if len(numbered) >= OUTLINE:
        for heading, following in zip(numbered, [*numbered[1:], None], strict=True):
            title = _bare(heading[1])
            if len(title.split()) > SHORT_TITLE:
                yield whole_sentences(title, ITEM)
                continue
            below = text[heading.end() : following.start() if following else None]
            first = next((each for each in map(_bare, below.split("\n")) if len(each.split()) >= FEWEST_WORDS), "")
            yield whole_sentences(": ".join(filter(None, (title, first))), ITEM)
        return
    if not groups:
        yield whole_sentences(text, 2 * ITEM)
    outlined = sum(bool(label and items) for label, items in groups) >= OUTLINE
    for label, items in groups:
        for number, item in enumerate(items[:1] if outlined else items or ("",)):
            yield whole_sentences(": ".join(filter(None, ("" if number else label, item))), ITEM)


def _bare(line: str) -> str:
    """Return a line of a report without marks, nothing for one that only begins or ends something else."""
    bare = line.replace("**", "").strip(" #*-")
    return "" if bare.startswith(("```", "|")) or bare.endswith((":", "：")) else bare


def _says_something(block: str) -> bool:
    """Tell whether a paragraph says anything: a rule, or a path behind a label, does not."""
    return WORD.search(block) is not None and PATH.fullmatch(block) is None


def _is_prose(block: str) -> bool:
    """Tell whether a paragraph is prose: no list, table, heading, code, or beginning of what follows."""
    return MARKED.match(block) is None and block[-1:] in ".!。！" and len(block.split()) >= FEWEST_WORDS


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
