"""Pairs what the user asked with how the work on it ended, and with what the user said to that.

An answer alone ("Done, it uses `green` now") says nothing, and one that the user's next turn rejects ("no, still the
same", "I meant the other one", "I undid your changes") is no result. So answers that end a turn are told with the
request that they answer. Those that were rejected are told among what was tried, with the words that rejected them,
and nothing that was concluded in their turn counts any more (`rejected_turns`). A "no" that answers a question of the
assistant rejects nothing.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import writes
from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import goes_on, only_praises
from refold._condense.digest.announcements import whole_sentences
from refold._condense.digest.answers import asks, question_before
from refold._condense.digest.conclusions import plan_of
from refold._condense.digest.gist import BRIEF, deed, names_something, reply
from refold._condense.digest.previous import own_text
from refold._condense.digest.targets import target_of, targets_of
from refold._condense.digest.turns import turn_ends, turn_numbers, turns_at, turns_in_work
from refold._condense.file_views import is_scratch
from refold._condense.replaced import replacements
from refold.core.messages import Message, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from refold.core.messages import MessageId
    from refold.core.transcript import Transcript

__all__ = [
    "REVERTING",
    "REVERTS",
    "changed_in",
    "may_hold",
    "outcome_lines",
    "rejected_turns",
    "rejections",
    "rejects",
    "tried_in",
    "worked_off",
]  # fmt: skip

BEHIND = 12  # messages behind a turn in the middle of work in which it is answered
MOST = 150  # lines of one sort that are looked for
REQUEST, EACH = 110, 80  # characters of a request, and of each of two that one answer ended
FULL = 3  # times as many where there is room
SHORTER = 130  # characters of how a turn ended, where that stands below, too
UPON = 80  # characters of the question that a turn answers, or of the request that it goes on with
QUOTED = 120  # characters of the words that reject something
LOOKED_AT = 200  # characters at the beginning of a turn that say whether it rejects
ORDERS = re.compile(  # a question in form only
    r"(?:(?:so|and|ok(?:ay)?|now|but|also|please|yeah|alright|well|hey|actually)\b[\s,.]*)*"
    r"(?:can|could|would|will) (?:you|we|u)\b(?! (?:please )?(?:also )?(?:clarify|explain|tell|investigate|check|see|"
    r"look|confirm|say|describe|think)\b)|let['’]?s\b|how about\b|why (?:don['’]?t|not)\b",
    re.I,
)
ASKS_FOR = re.compile(
    r"(?:(?:so|and|ok(?:ay)?|now|but|also|please|yeah|alright|well|hey|wait|actually|hmm*)\b[\s,.]*)*"
    r"(?:what|why|how|where|which|who|when|is|are|does|do|did|can you (?:clarify|explain|tell|investigate)|explain|"
    r"question)\b",
    re.I,
)
NO = re.compile(r"^\W*(?:no(?:pe)?|nah|nein|non|não|нет)\b\W*", re.I)
FIRST_SENTENCE = re.compile(r"[^.!?。！？\n]*[.!?。！？]?")
# How a turn begins that rejects what the assistant has done or said, behind words that begin any turn.
LEADS = r"^\W*(?:(?:hm+|ok(?:ay)?|yeah|well|sorry|but|ah|oh|wait|hey|and|aber|mais|pero|mas|ma|но)\b[\s,.!…-]*)*"
REVERTS = re.compile(  # the work of the turn before
    r"\b(?:i (?:undid|reverted|rolled back|threw away)|(?:undo|revert|roll back) (?:that|this|it|your|the last|all)\b|"
    r"scratch that|rückgängig|annule[rz]?\b|deshaz|desfaz|отмени)|元に戻|撤销|撤銷|되돌려",
    re.I,
)
# One of these stands in what it finds in ASCII, in small letters: most turns have none, and need no search.
REVERTING = (
    *("undid", "reverted", "rolled back", "threw away", "undo ", "revert ", "roll back", "scratch that"),
    *("annule", "deshaz", "desfaz"),
)
REJECTS = re.compile(
    LEADS + r"(?:no(?:pe)?\b(?![^.!\n]{0,40}\b"
    r"(?:need|problem|worries|rush|more|fine|good|ok(?:ay)?|leave|keep|right)\b)|nah\b|wrong\b|incorrect\b|"
    r"still\b(?! to\b)|"
    r"not (?:that|what|quite|really|like|it)\b|wtf\b|i (?:meant|did ?n['’]?t (?:mean|ask|want|say))\b|"
    r"(?:that|this|it)(?:['’]?s| is| was)? (?:\w+ )?(?:not|wrong|broken|worse|the same|horrible|terrible|awful)\b|"
    r"(?:that|this|it) (?:\w+ )?(?:(?:doesn|didn|won|isn|wasn)['’]?t|does not|did not|broke|"
    r"looks (?:wrong|the same|worse))\b|"
    r"(?:doesn|didn)['’]?t work|you (?:broke|forgot|missed|misunderst\w+|misread|messed)\b|"
    r"nein\b|falsch\b|(?:das|es) (?:ist|war|geht|funktioniert|klappt) (?:\w+ )?(?:falsch|nicht)|immer noch|ich meinte|"
    r"non\b|faux\b|toujours (?:pas|le même)|ça ne (?:marche|fonctionne)|je voulais dire|"
    r"sigue (?:sin|igual)|no funciona|quise decir|me refería|não\b|errado|ainda (?:não|está)|quis dizer|"
    r"sbagliato|non funziona|intendevo|нет\b|неправильно|не (?:то|работает)\b|вс[её] (?:ещё|еще)|я имел|"
    r"違|いいえ|まだ|そうじゃな|不对|不對|不是|错了|錯了|还是|還是|아니|틀렸|여전히|안 ?돼)",
    re.I,
)
REJECTS_LATER = re.compile(  # behind its beginning
    r"\bstill (?:looks?|shows?|fails?|broken|wrong|not|the same|get(?:ting)?|see(?:ing)?|doesn|isn|have the)\b|"
    rf"{REVERTS.pattern}",
    re.I,
)
STILL = re.compile(
    r"\bstill\b|immer noch|toujours|sigue|ainda|ancora|вс[её] (?:ещё|еще)|まだ|还是|還是|여전히|does ?n['’]?t work|"
    r"does not work|did ?n['’]?t (?:work|help)|funktioniert nicht|ne (?:marche|fonctionne) pas|no funciona|не работает",
    re.I,
)
COMMAND = re.compile(r"\s*/[\w-]*\s*")  # of the harness, typed alone: it asks the agent for nothing
# What goes on with what is wanted: then only a part of the work before is rejected.
IN_PART = re.compile(r"[\w.,](?: |\.\.+ ?)(?:but|aber|sondern|mais|pero|mas|però|но)\b|但|でも|ただ", re.I)
CUT_ITEM = re.compile(r"; [^;]{1,40}:? …$")  # the beginning of an item at the end of what was cut
PAIR = re.compile(  # a key with the value that it is set to: the last of several
    r"`([\w.-]{2,40})`(?: \([^)\n]*\))?(?:: (?:back to )?(?:\w+ )?| is (?:now |back to )?| = |"
    r" from `[^`\n]{1,40}`(?: \([^)\n]*\))? to )`([^`\n]{1,40})`(?: ?(?:→|->) ?`([^`\n]{1,40})`)?"
)


class Ending(Struct, frozen=True):
    """A turn of the user with the answer that ended it, and the next turn where that rejects the answer.

    `then` are turns that came before the answer and asked for more. `earlier` is the turn that one which only says to
    go on goes on with. Of a question in the middle of work `behind` are the messages behind it: the answer is one to
    the work as a whole.
    """

    turn: int
    request: Message
    answer: Message
    then: tuple[Message, ...] = ()
    earlier: Message | None = None
    behind: tuple[Message, ...] = ()
    rejection: Message | None = None
    rejected_in: int = 0


@memoized
def rejects(message: Message) -> bool:
    """Tell whether a turn of the user rejects what was done or said before it, by how it begins.

    One that ends with a question does so only if its first sentence says what is wrong: a "no" may answer a question.
    """
    text = own_text(message)
    if asks(text):
        text = next(FIRST_SENTENCE.finditer(NO.sub("", text, count=1)))[0]
    if asks(text):
        return False
    text = text[:LOOKED_AT]
    later = may_hold(text, ("still ", *REVERTING)) and REJECTS_LATER.search(text)
    return bool(REJECTS.match(text) or later)


def may_hold(text: str, words: tuple[str, ...]) -> bool:
    """Tell quickly whether a text may hold one of these words; of what is not ASCII nothing is known."""
    return not text.isascii() or any(map(text.lower().__contains__, words))


def _is_in_part(rejection: Message) -> bool:
    """Tell whether a turn rejects a part of the work before it: it says so, and goes on with what is wanted."""
    text = own_text(rejection)[:LOOKED_AT]
    return IN_PART.search(text) is not None and not (STILL.search(text) or REVERTS.search(text) or NO.match(text))


def _how_rejected(message: Message, rejected: str) -> str:
    """Return how a turn rejects the work before it: as what was `rejected`, or since what was wrong before still is."""
    return "it did not help, says" if STILL.search(own_text(message)[:LOOKED_AT]) else rejected


@memoized
def endings(transcript: Transcript) -> tuple[Ending, ...]:
    """Return the turns that an answer ended before the next one began, in order.

    A turn that an answer did not end before the next one began is ended by the answer to both; so is the work that a
    question came into, where it went on after the question.
    """
    numbers, ends = turn_numbers(transcript), turn_ends(transcript)
    turns: list[Ending] = []
    waiting: list[tuple[int, Message]] = []  # turns without an answer, with their places
    last: Message | None = None  # the request that a turn which only says to go on goes on with
    answer: Message | None = None
    for place, message in enumerate(transcript.messages):
        if message.id in ends:
            answer = message
        elif message.id in numbers:
            if answer is not None and waiting:
                again = rejects(message) and not question_before(transcript, message)[0]
                turns += _ended(transcript, waiting, last, answer, message if again else None)
                requests = [each for _, each in reversed(waiting) if not goes_on(each)]
                last = next((each for each in requests if not _is_question(each)), requests[0] if requests else last)
                waiting = []
            if only_praises(own_text(message).lower()):
                waiting, last = [], None  # what answers thanks is no result
            elif not (goes_on(message) and waiting) and not COMMAND.fullmatch(own_text(message)):
                waiting.append((place, message))
            answer = None
    if answer is not None and waiting:
        turns += _ended(transcript, waiting, last, answer, None)
    return tuple(turns)


def _ended(
    transcript: Transcript,
    waiting: Sequence[tuple[int, Message]],
    last: Message | None,
    answer: Message,
    rejection: Message | None,
) -> Iterator[Ending]:
    """Yield what an answer ends: the orders that waited for it as one, and each question that came into the work."""
    numbers, index = turn_numbers(transcript), transcript.index
    of_rejection = numbers[rejection.id] if rejection else 0
    questions = [(place, each) for place, each in waiting[1:] if _is_question(each)]
    orders = [each for place, each in waiting if (place, each) not in questions]
    ends_with_question = bool(questions) and questions[-1] == waiting[-1]  # then the answer may be to that alone
    if not ends_with_question or _worked_at(transcript, questions[-1][0], index[answer.id]):
        first = orders[0]
        earlier = last if goes_on(first) else None
        yield Ending(numbers[first.id], first, answer, tuple(orders[1:]), earlier, (), rejection, of_rejection)
        rejection, of_rejection = None, 0
    for place, each in questions:
        behind = transcript.messages[place + 1 : place + 1 + BEHIND]
        yield Ending(numbers[each.id], each, answer, (), None, behind, rejection, of_rejection)


@memoized
def rejected_turns(transcript: Transcript) -> frozenset[int]:
    """Return the numbers of turns whose outcome the user's next turn rejects."""
    turns, index = turns_at(transcript), transcript.index
    rejected = [each for each in endings(transcript) if each.rejection]
    rejected_messages = (request for each in rejected for request in (each.request, *each.then, each.answer))
    return frozenset(turns[index[message.id]] for message in rejected_messages)


@memoized
def worked_off(transcript: Transcript) -> frozenset[int]:
    """Return the numbers of turns that work was done on and that an answer ended, well or not: they are over.

    A turn that came into the work on another is none: what became of each of the two is not known.
    """
    worked, turns, index = _worked_in(transcript), turns_at(transcript), transcript.index
    return frozenset(
        turns[index[request.id]]
        for each in endings(transcript)
        if not (each.behind or worked.isdisjoint(range(each.turn, turns[index[each.answer.id]] + 1)))
        for request in (each.request, *each.then)
    )


def outcome_lines(transcript: Transcript, staying: Sequence[Message], *, full: bool = False) -> tuple[str, ...]:
    """Return what was asked and how it ended for each turn that an answer ended, newest first: `full` in more words.

    Of an answer that stays whole in the view less is told, and nothing where no work was done in its turn, or where its
    request stays whole as well.
    """
    whole = {message.id: message for message in staying}
    worked, in_work = _worked_in(transcript), turns_in_work(transcript)
    turns, index = turns_at(transcript), transcript.index
    lines: list[str] = []
    values: dict[str, tuple[str, int]] = {}  # what keys are set to in later turns
    planned = 0  # the turn of the newest plan
    for each in reversed([each for each in endings(transcript) if each.turn not in in_work]):
        if len(lines) >= MOST:
            break
        stays = _stays(each.answer, whole)
        request = _request_line(transcript, each, FULL if full else 1)
        if each.rejection and _is_in_part(each.rejection):
            outcome = _outcome(each, full=full and not stays)
            words = one_line(own_text(each.rejection), QUOTED)
            lines.append(f"{request} → {outcome} (user turn {each.rejected_in} to that: {words})")
        elif each.rejection:
            how = _how_rejected(each.rejection, "its answer was rejected in")
            lines.append(f"{request} → {how} user turn {each.rejected_in}")
        elif outcome := _outcome(each, full=full and not stays):
            outcome = _with_replaced(outcome, each.turn, values)
            if plan_of(each.answer):
                outcome = f"{outcome} (replaced by the plan of turn {planned})" if planned else outcome
                planned = planned or each.turn
            if not stays:
                lines.append(f"{request} → {outcome}")
            elif not _stays(each.request, whole) and (
                each.turn == 1 or not worked.isdisjoint(range(each.turn, turns[index[each.answer.id]] + 1))
            ):
                lines.append(f"{request} → {CUT_ITEM.sub('', whole_sentences(outcome, SHORTER))}")
    return tuple(lines)


def _stays(message: Message, whole: Mapping[MessageId, Message]) -> bool:
    """Tell whether the words of a message stay in the view as they are."""
    return message.id in whole and text_of(whole[message.id]) == text_of(message)


def _with_replaced(outcome: str, turn: int, values: dict[str, tuple[str, int]]) -> str:
    """Return an outcome with a mark behind each value that a later turn replaced; `values` takes up those it sets."""
    text, since = "", 0
    for match in PAIR.finditer(outcome):
        key, value = match[1], match[3] or match[2]
        later, replaced_in = values.get(key, (value, 0))
        if later != value and replaced_in != turn:
            text += f"{outcome[since : match.end()]} (replaced in turn {replaced_in})"
            since = match.end()
        values[key] = (value, turn)
    return text + outcome[since:]


@memoized
def tried_in(transcript: Transcript) -> frozenset[int]:
    """Return the turns in which a file was changed or a check was run: in others the assistant only judges."""
    pairs = zip(transcript.messages, turns_at(transcript), strict=True)
    checked = {turn for message, turn in pairs for call in message.calls if target_of(call).checks}
    return changed_in(transcript) | checked


@memoized
def _worked_in(transcript: Transcript) -> frozenset[int]:
    """Return the turns in which a call did more than to look."""
    pairs = zip(transcript.messages, turns_at(transcript), strict=True)
    return frozenset(turn for message, turn in pairs if _works(message))


@memoized
def changed_in(transcript: Transcript) -> frozenset[int]:
    """Return the turns in which files were changed, other than scratch files."""
    pairs = zip(transcript.messages, turns_at(transcript), strict=True)
    return frozenset(
        turn for message, turn in pairs if any(not is_scratch(path) for call in message.calls for path in writes(call))
    )


@memoized
def _works(message: Message) -> bool:
    """Tell whether a call of a message does more than to look."""
    return any(not target.looks for call in message.calls for target in targets_of(call))


def _worked_at(transcript: Transcript, start: int, stop: int) -> bool:
    """Tell whether work was done between two messages."""
    return any(map(_works, transcript.messages[start + 1 : stop]))


def rejections(transcript: Transcript) -> tuple[str, ...]:
    """Return what was done or said that the user's next turn rejects, newest first."""
    numbers = turn_numbers(transcript)
    lines = (
        f"turn {each.turn}{f' to {numbers[each.then[-1].id]}' if each.then else ''}: {_outcome(each)} "
        f"({_how_rejected(each.rejection, 'rejected in')} user turn {each.rejected_in}: "
        f"{one_line(own_text(each.rejection), QUOTED)})"
        for each in reversed(endings(transcript))
        if each.rejection and not _is_in_part(each.rejection) and _outcome(each)
    )
    return tuple(islice(lines, MOST))


def _request_line(transcript: Transcript, ending: Ending, times: int) -> str:
    """Return what was asked: of a short turn with the question or the request that it answers."""
    numbers = turn_numbers(transcript)
    length = times * (EACH if ending.then else REQUEST)
    words = f"turn {ending.turn}: {_request(transcript, ending.request, length)}"
    question = question_before(transcript, ending.request)[0]
    if question:
        words += f' (to: "{one_line(question, UPON)}")'
    elif ending.earlier:
        words += f" (goes on with turn {numbers[ending.earlier.id]}: {_request(transcript, ending.earlier, UPON)})"
    if ending.then:
        newest = ending.then[-1]
        more = f"{len(ending.then)} more, the last " if len(ending.then) > 1 else ""
        words += f"; before its answer, {more}turn {numbers[newest.id]}: {_request(transcript, newest, length)}"
    return words


def _request(transcript: Transcript, message: Message, length: int) -> str:
    """Return the beginning of a turn, and behind it that a later turn replaced a sentence of it."""
    text = own_text(message)
    later = [each.turn for each in replacements(transcript) if each.message == message.id and each.sentence in text]
    return f"{one_line(text, length)}{f' (replaced in user turn {max(later)})' if later else ''}"


def _outcome(ending: Ending, *, full: bool = False) -> str:
    """Return how a turn ended: what was done in it, or what answers its question.

    A question in the middle of work is answered by what was said or changed next, not by what ends the work.
    """
    if not _is_question(ending.request):
        return deed(ending.answer, full=full)
    if not ending.behind:
        return reply(ending.answer, full=full)
    answer = next((each for each in ending.behind if each.role == "assistant" and text_of(each).strip()), None)
    changed = next((path for each in ending.behind for call in each.calls for path in writes(call)), "")
    gist = reply(answer) if answer else ""
    if names_something(gist) or len(gist.split()) > BRIEF:
        return gist
    return f"changed `{changed.rpartition('/')[2]}`" if changed else ""


@memoized
def _is_question(message: Message) -> bool:
    """Tell whether a turn of the user wants to know something, by its beginning and its end."""
    text = own_text(message).strip()
    return not ORDERS.match(text) and (asks(text) or ASKS_FOR.match(text) is not None)
