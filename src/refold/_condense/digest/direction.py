"""Finds what a session is for where its first request does not say it: a command, or a request to look around.

That is then said by the first request with content, the text of the command, the summary that an earlier compaction
left, and the plan that the work has written since.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from refold._condense.call_facts import reads
from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import goes_on, only_delivers
from refold._condense.digest.announcements import SENTENCE, whole_sentences
from refold._condense.digest.definitions import is_prose
from refold._condense.digest.file_log import file_log
from refold._condense.digest.open_items import base_name
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_numbers
from refold._condense.file_views import is_scratch, visible_lines
from refold._condense.pasted import without_pasted
from refold._condense.replaced import replacements
from refold.core._speakers import is_recap, is_turn, speech

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.transcript import Transcript

__all__ = ["direction"]

REQUEST_LENGTH, LENGTH = 320, 160  # characters of a request or a summary, and of what a command says
FIRST = 8  # turns in which the first request with content is looked for
FEW_WORDS = 3  # of a request that says nothing of a goal
LOOKING = 200  # characters of a request that only asks to look around
# A request to look at what is there, or to bring it up to date, before any is made.
LOOKS = re.compile(
    r"(?:(?:hi|hey|hello|please|can you|could you|first|ok(?:ay)?|let['’]?s|i want you to)\b[,!. ]*)*"
    r"(?:explore|familiari[sz]e|learn about|get (?:familiar|up to speed)|understand (?:this|the|our)|"
    r"study (?:this|the)|read (?:through |the |this |all )|take a look (?:at|around)|look (?:at|around|through)|"
    r"check ?out (?:main|master)|git pull|pull (?:the )?latest|what is this|what does this (?:project|repo|code)|"
    r"(?:schau|sieh|lies|erkunde|verschaff)\w*\b|(?:explore|regarde|lis|découvre)[rz]?\b|"
    r"(?:explora|mira|lee|revisa|analiza) (?:el|la|este|esta)\b)|"
    r"(?:先)?(?:了解|熟悉|看一下|阅读)|(?:まず)?.{0,20}(?:を読んで|を調べて|を理解して)",
    re.I,
)
MAKES = re.compile(  # what asks for more than a look
    r"\b(?:then|and) (?:add|build|change|create|fix|implement|improve|make|refactor|remove|write|tell (?:me|us)|"
    r"(?:find|report|list|summari[sz]e)(?! out)|say)\b|"
    r"\b(?:und dann|puis|luego)\b|然后|それから",
    re.I,
)
COMMAND = re.compile(r"\s*/?[\w:.-]+(?:\s+@?[\w./~-]+)?\s*")  # a command alone, also with a path behind it
INTENT = re.compile(  # the heading in a summary below which stands what was asked for
    r"^[ \t]*(?:#{1,6} |\d{1,2}[.)] )?\**(?:Primary Request(?: and Intent)?|(?:Overall )?Goals?|Objectives?|Task)\**:?"
    r"\**:?[ \t]*\n+",
    re.M | re.I,
)
WANTED = re.compile(  # how a sentence begins, or goes on, that says what the one who asks wants done
    r"\b(?:i (?:want|need|would like) (?:you|us) to|i['’]d like (?:you|us) to|(?:please )?help (?:me|us)|"
    r"(?:the|my|our) (?:\w+ )?goal|your (?:task|job))\b|"
    r"\bich (?:möchte|will|brauche)\b|\b(?:hilf mir|aide[z-]|je (?:veux|voudrais)|quiero que|ayúdame|quero que|"
    r"me ajude|voglio che|aiutami)\b|помоги|我想|我要|请帮|してほしい|手伝って",
    re.I,
)
# A file that a command names, and messages behind.
FILE, READ_WITHIN = re.compile(r"[\w./-]*\w\.(?:md|txt|xml|ya?ml)\b"), 8
PLANS = re.compile(
    r"(?<![a-z])(?:(?:implementation)?plans?|planning|specs?|specification|design|roadmap|refactor(?:ing)?|refocus|"
    r"proposals?|prd|rfc|architecture|todos?|phases?)(?![a-z])",
    re.I,
)


def direction(transcript: Transcript) -> Iterator[str]:
    """Yield what says what a session is for where its first request does not; nothing where that does."""
    turns = [message for message in transcript.messages if is_turn(message)][:FIRST]
    if not turns:
        return
    before = takewhile(lambda message: message is not turns[0], transcript.messages)
    if recap := next((_intent(message) for message in before if is_recap(message)), ""):
        yield f"from the summary of the earlier context: {recap}"
    if not _is_thin(turns[0]):
        return
    numbers = turn_numbers(transcript)
    if loaded := _loaded(transcript, turns[0]):
        yield f"user turn {numbers[turns[0].id]}, `{one_line(own_text(turns[0]), LENGTH)}`, whose text says: {loaded}"
    over = {each.message for each in replacements(transcript)}
    with_content = (turn for turn in turns[1:] if not (turn.id in over or goes_on(turn) or _says_nothing(turn)))
    if telling := next(with_content, None):
        words = _with_wish(_own_words(telling))
        yield f"user turn {numbers[telling.id]}, the first request with content: {words}"
    plan = next(
        (
            record
            for record in sorted(file_log(transcript), key=lambda record: record.first)
            if record.created
            and not record.deleted
            and is_prose(record.path)
            and not is_scratch(record.path)
            and PLANS.search(record.path)
            and record.phrase
        ),
        None,
    )
    if plan is not None:
        yield f"written for it, last in turn {plan.turn}: {plan.path} ({plan.phrase})"


def _with_wish(text: str) -> str:
    """Return the beginning of a request and, where it is cut before it, the sentence that says what is to be done."""
    words = whole_sentences(text, REQUEST_LENGTH)
    line = " ".join(text.split())
    if WANTED.search(words) or len(line) <= REQUEST_LENGTH:
        return words
    wish = next((each for each in SENTENCE.split(line[len(words) :].strip()) if WANTED.search(each)), "")
    return f"{words} … {whole_sentences(wish, LENGTH)}" if wish else words


def _own_words(turn: Message) -> str:
    """Return the words of a turn without what the user pasted from elsewhere."""
    return without_pasted(own_text(turn)).strip()


def _is_thin(turn: Message) -> bool:
    """Tell whether a request says nothing of a goal: a command alone, or a short request that only asks to look."""
    text = own_text(turn).strip()
    if _is_bare(text):
        return True
    return len(text) <= LOOKING and LOOKS.match(text) is not None and MAKES.search(text) is None


def _says_nothing(turn: Message) -> bool:
    """Tell whether a turn says nothing of a goal: a few words, or an order to hand over what is there."""
    text = _own_words(turn)
    return _is_bare(text) or only_delivers(text)


def _is_bare(text: str) -> bool:
    """Tell whether a request is a command alone, or a few words that ask nothing ("continue", "begin phase 1")."""
    few = text.isascii() and len(text.split()) <= FEW_WORDS and "?" not in text
    return few or COMMAND.fullmatch(text) is not None


def _loaded(transcript: Transcript, turn: Message) -> str:
    """Return what the text says first that a command of a turn stands for, in it or in what a harness adds behind.

    Where that only names a file, it is followed by what the file says first.
    """
    behind = transcript.messages[transcript.index[turn.id] + 1 :]
    added = takewhile(lambda message: message.role == "user" and not is_turn(message), behind)
    spans = ((span, one) for message in (turn, *added) for one in speech(message).harness for span in one.spans)
    bodies = (span.body(one.text.text) for span, one in spans if span.kind == "command")
    first = _first_line(line for body in bodies for line in body.split("\n"))
    if file := FILE.search(first):
        says = whole_sentences(_first_line(_lines_read(behind[:READ_WITHIN], file[0])), LENGTH)
        first = f"{first} {file[0]} begins: {says}" if says else first
    return first if file else whole_sentences(first, LENGTH)


def _first_line(lines: Iterable[str]) -> str:
    """Return the first of some lines that says something: no heading, border, or words that introduce others."""
    words = (line.strip(" *-") for line in lines if not line.startswith(("#", "---")))
    return next((line.replace("**", "") for line in words if line and not line.endswith((":", "："))), "")


def _lines_read(messages: Sequence[Message], file: str) -> Iterator[str]:
    """Yield the lines that messages show of a file, by the end of its path."""
    calls = {call.call_id: call for message in messages for call in message.calls}
    for message in messages:
        for result in message.results:
            call = calls.get(result.call_id)
            if call and (read := reads(call)) and base_name(read.path) == base_name(file):
                yield from filter(None, visible_lines(result).lines)


def _intent(recap: Message) -> str:
    """Return how the summary of an earlier context says what was asked for, or nothing."""
    bodies = (span.body(one.text.text) for one in speech(recap).harness for span in one.spans if span.kind == "recap")
    for body in bodies:
        if heading := INTENT.search(body):
            paragraph = body[heading.end() : heading.end() + 4 * REQUEST_LENGTH].strip().partition("\n\n")[0]
            sentences = [each for each in SENTENCE.split(paragraph.strip(" -*")) if not each.endswith((":", "："))]
            return whole_sentences(" ".join(sentences), REQUEST_LENGTH)
    return ""
