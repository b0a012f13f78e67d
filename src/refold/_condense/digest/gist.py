"""Tells in one line what an answer says: what was done, or what answers a question.

An answer is read by sentence. Those that announce, introduce, suppose, praise or only close tell nothing; of what was
to be done the sentence tells that says what was done, with items of the list behind it that name something.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING

from refold._condense.digest.agreement import WORD
from refold._condense.digest.announcements import HEADING, SENTENCE, announces, points_back, whole_sentences
from refold._condense.digest.answers import YES_NO
from refold._condense.digest.conclusions import FENCED, SUPPOSING, plan_of, prose
from refold._condense.digest.identifier_kinds import kind_of
from refold._condense.digest.narration import no_work
from refold._salience.atoms import names_of
from refold.core.messages import memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.messages import Message

__all__ = ["BRIEF", "DID", "deed", "names_something", "reply", "sentences_of_answer", "tells"]

ANSWER, FULL = 260, 700  # characters of how a turn ended, and of that where there is room for more
LINK = re.compile(r"\[([^\[\]\n]+)\]\([^)\s]+\)")
FRAGMENT = re.compile(r"^[ \t]*(?:[-*+•>|]|\(?\d{1,3}[.)])[ \t]+\S.*(?:\n[ \t]{2,}\S.*)*$|^\|.*$", re.M)
ITEMS = 4  # items of a list that are an answer, where it says nothing else
NUMBERING = re.compile(r"\(?\d{1,3}[.)]?")
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", ".`", '."', ".)", ".”")
LEFT_OPEN = re.compile(
    r"(?: (?:as follows|(?:with |and )?(?:links? |changes? )?(?:to|with|in|as|is|are|for|at|from)))?[:：]$"
)
INTRODUCED = re.compile(
    r":[ \t]*\n+ *```\w*\n((?:[^\n`]{1,120}\n){1,2}) *```[ \t]*$", re.M
)  # a line or two that are introduced
BLOCK_QUOTED = re.compile(r":[ \t]*\n+((?:> ?\S[^\n]{0,300}(?:\n|\Z)){1,3})(?!>)", re.M)  # a proposal, word for word
PROPOSED = re.compile(r": “[^”]{16,}”$")  # what a sentence proposes so, behind it
INTRODUCING = (":", "：", "?", "？")  # of what introduces or asks
READ = 100_000  # characters of an answer in which its result is looked for
TELLING = 60  # characters of a sentence that tells something even where it names nothing
LONGEST = 400  # characters of the first sentence of an outcome, where that is longer than an outcome
WITH_ITEMS, ALL_ITEMS = 3, 8  # items of a list behind a sentence that tells what was done
TAGGED = re.compile(
    r"^[ \t]*(?:<([a-z][\w-]*)\b[^>\n]*>(?:(?s:.{0,4000}?)</\1>|.*)|::[\w-]+\{.*)", re.M
)  # for a harness
RULER = re.compile(r"^.*([─━═—=~_*·•-])\1{4,}.*$|^[ \t]*</[a-z][\w-]*>[ \t]*$", re.M)  # a frame, or the end of a tag
LABEL = re.compile(r"^[ \t]*\*\*([^*\n.:]{2,40})\.\*\*[ \t]+", re.M)  # in bold type before a sentence
BOLD_LINE = re.compile(  # a heading in bold type
    r"^[ \t]*\*\*(?!(?:added|changed|fixed|updated|removed|created)\b)(?:\d+[.)] )?[^*\n:]+:?\*\*:?[ \t]*$", re.M | re.I
)
LABELLED = re.compile(
    r"(?:[^\[\]`.!?]{1,40}: *)?(?:\[[^\]\n]+\]\([^)\s]+\)(?:,| and|;|\.)?\s*)+"
)  # links, with a label
DID = re.compile(  # what was done
    r"^(?:(?:all )?(?:done|perfect|great|good|ok(?:ay)?|fixed)\b\W+)?(?:and |so |now |also )*"
    r"(?:(?:i(?:['’]ve| have)?|we(?:['’]ve| have)?) (?:also |now |just |then )*)?"
    r"(?:(?:re)?(?:added|adjusted|applied|built|captured|changed|cleaned|closed|committed|converted|copied|created|"
    r"deleted|dropped|extracted|fixed|implemented|installed|landed|made|merged|migrated|moved|opened|pinned|pulled|"
    r"pushed|ran|rebased|reduced|refactored|released|removed|renamed|replaced|restored|reverted|rewrote|set|simplified|"
    r"squashed|switched|tightened|updated|upgraded|verified|wired|wrote))\b|"
    r"\b(?:is|are) (?:now|done|fixed|built|committed|gone|merged|pushed|in place)\b|"
    r"^(?:the )?(?:fix|change|result)\b[^:]{,20}:|"
    r"\b(?:moved|folded|merged|squashed|pushed|committed|landed) (?:it|them|both|as|in|into|this|everything)\b|"
    r"\bnow (?:uses?|says?|is|are|works?|has|have|takes?|returns?|reads?|passes|goes|shows?|lives?)\b|"
    r"^`[0-9a-f]{7,40}`|^commit(?:s|ted)?\b.{0,40}\b[0-9a-f]{7,40}\b|"
    r"^(?:habe|ich habe|j['’]ai|he |ho |eu )\b|しました|已(?:经)?|했습니다",
    re.I,
)
LANDED = re.compile(r"commit(?:s|ted)?\b.{0,40}\b[0-9a-f]{7,40}\b", re.I)
CLOSED = re.compile(r"(?:all |it['’]s |everything(?:['’]s| is) )*(?:fixed|committed|pushed|clean|merged)\b", re.I)
BRIEF = 4  # words of a sentence that may say nothing but that something is done
CLOSES = re.compile(
    r"^(?:all )?(?:done|fixed|updated|changed|reverted|committed|perfect|great|good|got it|sure|"
    r"you(?:['’]re| are) (?:absolutely )?right|ok(?:ay)?|excellent|"
    r"fertig|erledigt|terminé|fait|listo|hecho|pronto|fatto|готово|完了|完成)\b",
    re.I,
)


def deed(message: Message, *, full: bool = False) -> str:
    """Return the gist of an answer to what was to be done: `full` with more sentences and items behind it."""
    return _full_deed(message) if full else _deed(message)


def reply(message: Message, *, full: bool = False) -> str:
    """Return the gist of an answer to a question: `full` with more sentences and items behind it."""
    return _full_reply(message) if full else _reply(message)


@memoized
def _deed(message: Message) -> str:
    return _gist(message, ANSWER, WITH_ITEMS, is_question=False)


@memoized
def _full_deed(message: Message) -> str:
    return _gist(message, FULL, ALL_ITEMS, is_question=False)


@memoized
def _reply(message: Message) -> str:
    return _gist(message, ANSWER, WITH_ITEMS, is_question=True)


@memoized
def _full_reply(message: Message) -> str:
    return _gist(message, FULL, ALL_ITEMS, is_question=True)


def _gist(message: Message, room: int, most: int, *, is_question: bool) -> str:
    """Return the first sentence of an answer that tells a result, with items that name something, as one line.

    Nothing of what is no answer. What was asked is answered by the first sentence that says something; of what was to
    be done the sentences tell that say what was done. Items of lists are fragments: they tell a result only behind such
    a sentence, or where they are all that the answer says.
    """
    if plan := plan_of(message):
        return _of_plan(plan[:READ], room)
    text = FENCED.sub("\n", INTRODUCED.sub(_quoted, text_of(message))) if "```" in text_of(message) else prose(message)
    text = BLOCK_QUOTED.sub(_proposed, text) if "> " in text else text
    text = LABEL.sub(r"\1: ", TAGGED.sub("\n", RULER.sub("", text[:READ])))
    if no_work(text):
        return ""
    sentences = sentences_of_answer(FRAGMENT.sub("\n", BOLD_LINE.sub("", HEADING.sub("", text))))
    telling = [*filter(tells, sentences)]
    fragments = FRAGMENT.findall(text)
    items = [*filter(tells, chain.from_iterable(map(_of_item, fragments)))]
    if not telling and not HEADING.search(text) and len(fragments) <= max(ITEMS, most):
        return _fitted(items, room, "; ")
    if is_question and sentences and CLOSED.match(sentences[0]):
        return _fitted((sentences[0], *(each for each in telling if each != sentences[0])), room)
    if not is_question and (did := [*filter(DID.search, telling)]):
        behind = [*filter(tells, chain.from_iterable(map(_of_item, _listed_behind(text, did[0]))))]
        introduces = did[0].endswith(INTRODUCING)
        following = (each for each in telling[telling.index(did[0]) + 1 :] if each not in did)
        listed = behind if introduces else [*filter(names_something, behind)]
        first = _fitted((did[0], *listed[:most]), room, "; ")
        return _fitted((first, *did[1:], *(() if listed else following)), room)
    at = _first(telling)
    named = [*filter(names_something, items)]
    if at < 0 and named and not any(map(points_back, telling[:1])):
        return _fitted(named[: max(ITEMS, most)], room, "; ")
    topics = _topics(text, most)
    if topics and telling and not any(map(names_something, telling)):
        concluded = telling[-1:] if len(telling) > max(at, 0) + 1 else []
        return _fitted((telling[max(at, 0)], *concluded, *topics), room, "; ")
    at = max(at, 0)
    return _fitted((*_antecedent(text, sentences, telling[at : at + 1]), *telling[at:]), room)


def _of_plan(plan: str, room: int) -> str:
    """Return the title of a plan that stands in tags, and what it says first."""
    title = next((line.strip(" #") for line in plan.split("\n") if line.strip()), "")
    sentences = sentences_of_answer(FRAGMENT.sub("\n", HEADING.sub("", plan)))
    return _fitted((f"a plan: {title.rstrip('.')}", *islice(filter(tells, sentences), 1)), room)


def _antecedent(text: str, sentences: Sequence[str], first: Sequence[str]) -> list[str]:
    """Return what stands before a sentence that points back: the sentence, with the items that it introduces."""
    if not first or not points_back(first[0]) or (at := sentences.index(first[0])) == 0:
        return []
    before = sentences[at - 1]
    if not before.endswith(INTRODUCING[:2]):
        return [before] if tells(before) else []
    items = [*chain.from_iterable(map(_of_item, _listed_behind(text, before)))]
    return [f"{before} {'; '.join(items[:ITEMS])}"] if items else []


def _quoted(match: re.Match[str]) -> str:
    """Return what a sentence introduces in a fence as a quotation behind it."""
    return f': "{" ".join(match[1].split())}"\n'


def _proposed(match: re.Match[str]) -> str:
    """Return what a sentence introduces as a quotation of several lines as one behind it."""
    words = " ".join(line.removeprefix(">").strip() for line in match[1].strip().split("\n"))
    return f": “{words}”\n"


def _topics(text: str, most: int) -> list[str]:
    """Return the headings of an answer, each with the first item below it."""
    entries = (
        (match[0].strip(" #*:\n"), _of_item(item[0]))
        for match in chain(HEADING.finditer(text), BOLD_LINE.finditer(text))
        if (item := FRAGMENT.search(text, match.end())) and not text[match.end() : item.start()].strip()
    )
    return [f"{heading}: {items[0]}" for heading, items in entries if items and tells(items[0])][:most]


def _first(telling: Sequence[str]) -> int:
    """Return the place of the sentence that tells a result, -1 where all say little."""
    if telling and YES_NO.match(telling[0]):
        return 0
    return next((place for place, each in enumerate(telling) if names_something(each) or len(each) > TELLING), -1)


def _of_item(item: str) -> list[str]:
    """Return the sentences of an item of a list; only its first line where that says what was done."""
    lines = [each.rstrip(".;,") for each in sentences_of_answer(LINK.sub(r"\1", item)) if " | " not in each]
    return [LEFT_OPEN.sub("", lines[0]).rstrip(":")] if lines and DID.search(lines[0]) else lines


def _listed_behind(text: str, sentence: str) -> list[str]:
    """Return the items of the list that follows a sentence of an answer."""
    at = text.replace("**", "").find(sentence[:TELLING])
    entries: list[str] = []
    end = len(text)
    for match in FRAGMENT.finditer(text, max(at, 0)):
        if entries and text[end : match.start()].strip():
            break
        entries.append(match[0])
        end = match.end()
    return entries


def _fitted(parts: Iterable[str], room: int, between: str = " ") -> str:
    """Return parts of an answer as one line: the first, and what fits of the others behind it, each whole."""
    line = ""
    for part in parts:
        if line and len(line) + len(part) >= room:
            break
        if not line:
            line = part
        elif between == " ":
            line = f"{LEFT_OPEN.sub('', line)}{'' if line.endswith(SENTENCE_ENDS) else '.'} {part}"
        else:
            line = f"{line.rstrip('.。')}{' ' if line.endswith(INTRODUCING[:2]) else between}{part}"
    whole = f"{LEFT_OPEN.sub('', line)}." if line.endswith(INTRODUCING[:2]) else line
    return whole_sentences(whole, max(LONGEST, room))


def sentences_of_answer(text: str) -> list[str]:
    """Return the sentences of an answer without marks of lists and bold type, and without what only labels links."""
    return [
        sentence
        for each in SENTENCE.split(text)
        if not LABELLED.fullmatch(bare := each.strip(" -*#>|").replace("**", ""))
        and (sentence := LINK.sub(r"\1", bare))
        and not NUMBERING.fullmatch(sentence)
    ]


def tells(sentence: str) -> bool:
    """Tell whether a sentence may tell a result: it neither announces, introduces, asks nor supposes."""
    introduces = sentence.endswith(INTRODUCING) and not (sentence.endswith(INTRODUCING[:2]) and DID.search(sentence))
    announced = announces(sentence) and not (LANDED.match(sentence) or PROPOSED.search(sentence))
    on_the_way = _only_closes(sentence) or introduces or announced
    praises = sentence.endswith("!") and not names_something(sentence)
    broken_off = sentence.count("`") % 2 == 1
    wordless = WORD.search(sentence) is None
    return not (on_the_way or praises or broken_off or wordless) and SUPPOSING.match(sentence) is None


def names_something(sentence: str) -> bool:
    """Tell whether a sentence names something: words in code quotes, or an identifier."""
    return "`" in sentence or any(kind_of(name) not in ("number", "words") for name in names_of(sentence))


def _only_closes(sentence: str) -> bool:
    """Tell whether a sentence says only that something is done, or praises."""
    return CLOSES.match(sentence) is not None and len(sentence.split()) <= BRIEF and "`" not in sentence
