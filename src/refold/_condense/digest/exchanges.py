"""Pairs what the user asked with how the work on it ended, and with what the user said to that.

An answer alone ("Done, it uses `green` now") says nothing, and one that the user's next turn rejects ("no, still the
same", "I meant the other one", "I undid your changes") is no result. So answers that end a turn are told with the
request that they answer. Those that were rejected are told among what was tried, with the words that rejected them,
and nothing that was concluded in their turn counts any more (`rejected_turns`). A "no" that answers a question of the
assistant rejects nothing.

Rulings are sentences in which a user sets how things are to be: those that pins find, and such as "use A, not B". Of
turns that stay in the view, too, so that they are read together.
"""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import WORD, goes_on, only_praises
from refold._condense.digest.announcements import HEADING, SENTENCE, announces
from refold._condense.digest.answers import YES_NO, asks, closing_questions, last_question, question_before
from refold._condense.digest.conclusions import prose
from refold._condense.digest.findings import no_work
from refold._condense.digest.identifier_kinds import kind_of
from refold._condense.digest.previous import own_text
from refold._condense.digest.targets import targets_of
from refold._condense.digest.turns import turn_ends, turn_numbers, turns_at, turns_in_work
from refold._condense.pasted import pasted_spans, without_pasted
from refold._condense.pins import pins_in, sentences_of
from refold._condense.replaced import replacements
from refold._salience.atoms import names_of
from refold._salience.words import UNSPACED
from refold.core.messages import Message, MessageId, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["outcome_lines", "rejected_turns", "rejections", "rejects", "rulings"]

MOST = 150  # lines of one sort that are looked for
REQUEST, ANSWER, SHORTER = 110, 260, 130  # characters of a request and of how it ended; of what stands below, too
QUOTED = 120  # characters of the words that reject something
RULING = 220  # characters of a sentence that sets how things are to be; a longer one explains
WHOLE_SHARE = 0.02  # of the goal, for turns that are quoted whole; chosen by hand
WHOLE = 400  # characters of a turn that is quoted whole where one of its sentences does
LONG = 1_500  # characters of a turn that is a task of its own, or mostly pasted
FEWEST = 4  # words of such a sentence, or signs of one without blanks
NEAR = 12  # messages before a turn in which the answer that ended the last one stands
EACH = 3  # such sentences of one turn
QUOTED_FROM = 80  # messages before a turn that may be quoted in it
UPON = 140  # characters of a question that a ruling answers
LINK = re.compile(r"\[([^\]\n]+)\]\([^)\s]+\)")
FRAGMENT = re.compile(r"^[ \t]*(?:[-*+•>|]|\(?\d{1,3}[.)])[ \t]+\S.*(?:\n[ \t]{2,}\S.*)*$|^\|.*$", re.M)
ITEMS = 4  # items of a list that are an answer, where it says nothing else
SUPPOSING = re.compile(r"(?:(?:and|but|so) )?(?:if|wenn|falls|si|se|если)\b|如果|もし", re.I)
NUMBERING = re.compile(r"\(?\d{1,3}[.)]?")
LOOKED_AT = 200  # characters at the beginning of a turn that say whether it rejects
INTRODUCING = (":", "：", "?", "？")  # of what introduces or asks
TELLING = 60  # characters of a sentence that tells something even where it names nothing
BRIEF = 4  # words of a sentence that may say nothing but that something is done
# How a turn begins that rejects what the assistant has done or said, behind words that begin any turn.
LEADS = r"^\W*(?:(?:hm+|ok(?:ay)?|yeah|well|sorry|but|ah|oh|wait|hey|and|aber|mais|pero|mas|ma|но)\b[\s,.!…-]*)*"
REJECTS = re.compile(
    LEADS + r"(?:no(?:pe)?\b(?![^.!\n]{0,40}\b"
    r"(?:need|problem|worries|rush|more|fine|good|ok(?:ay)?|leave|keep|right)\b)|nah\b|wrong\b|incorrect\b|"
    r"still\b(?! to\b)|"
    r"not (?:that|what|quite|really|like|it)\b|wtf\b|i (?:meant|did ?n['’]?t (?:mean|ask|want|say))\b|"
    r"(?:that|this|it)(?:['’]?s| is| was)? (?:\w+ )?(?:not|wrong|broken|worse|the same)\b|"
    r"(?:that|this|it) (?:\w+ )?(?:(?:doesn|didn|won|isn|wasn)['’]?t|does not|did not|broke|"
    r"looks (?:wrong|the same|worse))\b|"
    r"(?:doesn|didn)['’]?t work|you (?:broke|forgot|missed|misunderst\w+|misread|messed)\b|"
    r"nein\b|falsch\b|(?:das|es) (?:ist|war|geht|funktioniert|klappt) (?:\w+ )?(?:falsch|nicht)|immer noch|ich meinte|"
    r"non\b|faux\b|toujours (?:pas|le même)|ça ne (?:marche|fonctionne)|je voulais dire|"
    r"sigue (?:sin|igual)|no funciona|quise decir|me refería|não\b|errado|ainda (?:não|está)|quis dizer|"
    r"sbagliato|non funziona|intendevo|нет\b|неправильно|не (?:то|работает)\b|вс[её] (?:ещё|еще)|я имел|"
    r"違|いいえ|まだ|そうじゃな|不对|不對|不是|错了|錯了|还是|還是|아니|틀렸|여전히|안 ?돼)|"
    r"\bstill (?:looks?|shows?|fails?|broken|wrong|not|the same|get(?:ting)?|see(?:ing)?|doesn|isn|have the)\b|"
    r"\b(?:i (?:undid|reverted|rolled back|threw away)|(?:undo|revert|roll back) (?:that|this|it|your|the last|all)\b|"
    r"try again|"
    r"rückgängig|annule[rz]?\b|deshaz|desfaz|отмени)|元に戻|撤销|撤銷|되돌려",
    re.I,
)
STILL = re.compile(
    r"\bstill\b|immer noch|toujours|sigue|ainda|ancora|вс[её] (?:ещё|еще)|まだ|还是|還是|여전히|does ?n['’]?t work|"
    r"does not work|did ?n['’]?t (?:work|help)|funktioniert nicht|ne (?:marche|fonctionne) pas|no funciona|не работает",
    re.I,
)
REVERTS = re.compile(  # the work of the turn before
    r"\b(?:i (?:undid|reverted|rolled back|threw away)|(?:undo|revert|roll back) (?:that|this|it|your|the last|all)\b|"
    r"scratch that|rückgängig|annule[rz]?\b|deshaz|desfaz|отмени)|元に戻|撤销|撤銷|되돌려",
    re.I,
)
SETS = re.compile(  # how a user sets a value or makes a choice, where no pin says so
    r"\b(?:use [^.,;\n]{1,60}(?:, no |, not |(?: and)? not )|(?:needs?|ought) to (?:be|use|have|support|go)\b|"
    r"let['’]?s (?:use|go with|keep|drop|leave|skip|apply)|"
    r"go with\b|(?:we|i)(?:['’]ll| will) (?:use|keep|go)\b|no need (?:for|to)\b|not needed\b|"
    r"make (?:it|that|them|this) [^.,;\n]{2,40}$|i(?:['’]d| would) (?:rather|prefer)|i (?:do ?n['’]?t|only) want\b|"
    r"i want (?!(?:you )?to\b)|(?:is|are)n['’]?t (?:relevant|needed|necessary)|not (?:relevant|necessary)|"
    r"instead of [^.,;\n]{1,80}\b(?:say|use|put|write|call|just)\b|"
    r"good enough|is fine\b|"
    r"nimm |verwende |wir (?:nehmen|lassen)|utilise[rz]? |gardez? |usa |usemos |deja |используй|оставь)|"
    r"にして|使って|不用|用.{1,20}不要|쓰지|사용해",
    re.I,
)
# One of these stands in what they find in ASCII, in small letters: most turns have none, and need no search.
REVERTING = (
    *("undid", "reverted", "rolled back", "threw away", "undo ", "revert ", "roll back", "scratch that"),
    *("annule", "deshaz", "desfaz"),
)
SETTING = (
    *("use", "need", "ought", "let", "go with", "'ll ", " will ", "make ", "i'd ", " would ", "want", "relevant"),
    *("necessary", "instead of", "good enough", "is fine", "nimm ", "verwende ", "wir ", "utilise", "garde", "usa "),
    "deja ",
)
ASKING = re.compile(  # or says what is seen or supposed
    r"^(?:(?:so|and|ok(?:ay)?|now|but|also|please|yeah|wait|alright|well)\b[\s,.]*)*"
    r"(?:(?:should|shall|can|could|would|will|may) (?:we|you|i|it|this|that|these|those|they|the|there|my|our|any)\b|"
    r"(?:is|are|do|does|did|was|were|what|how|why|where|which|who|when)\b|"
    r"i (?:do ?n['’]?t )?(?:t\w?ink|guess|know|see|wonder|can ?not|can['’]?t|(?:\w+ly )?\w+ed)\b)",
    re.I,
)
VOICE = re.compile(
    r"\b(?:i|we|you|let['’]?s|my|our|me|us|ich|wir|du|uns|je|j['’]|nous|tu|vous|yo|nosotros|quiero|eu|nós|io|noi|я|мы|нам)\b|"
    r"我|私|俺|우리|저는|나는",
    re.I,
)
ABOUT = re.compile(r"^[^.?!\n]*\b(?:this|these|the following)\b[^.?!\n]*[?？]\s", re.I)  # asks about what follows
CLOSES = re.compile(
    r"^(?:all )?(?:done|fixed|updated|changed|reverted|committed|perfect|great|good|got it|sure|"
    r"you(?:['’]re| are) (?:absolutely )?right|ok(?:ay)?|excellent|"
    r"fertig|erledigt|terminé|fait|listo|hecho|pronto|fatto|готово|完了|完成)\b",
    re.I,
)


class Ending(Struct, frozen=True):
    """A turn of the user with the answer that ended it, and the next turn where that rejects the answer."""

    turn: int
    request: Message
    answer: Message
    rejection: Message | None = None
    rejected_in: int = 0


@memoized
def rejects(message: Message) -> bool:
    """Tell whether a turn of the user rejects what was done or said before it, by how it begins; not where it asks."""
    text = own_text(message)
    return not asks(text) and REJECTS.search(text[:LOOKED_AT]) is not None


def _how_rejected(message: Message) -> str:
    """Return how a turn rejects the work before it: that it is wrong, or that what was wrong before is so still."""
    return "it did not help, says" if STILL.search(own_text(message)[:LOOKED_AT]) else "rejected in"


@memoized
def endings(transcript: Transcript) -> tuple[Ending, ...]:
    """Return the turns that an answer ended before the next one began, in order."""
    numbers, ends = turn_numbers(transcript), turn_ends(transcript)
    turns: list[Ending] = []
    request: Message | None = None
    answer: Message | None = None
    for message in transcript.messages:
        if message.id in ends:
            answer = message
        elif message.id in numbers:
            if request is not None and answer is not None:
                again = rejects(message) and not question_before(transcript, message)[0]
                rejection, place = (message, numbers[message.id]) if again else (None, 0)
                turns.append(Ending(numbers[request.id], request, answer, rejection, place))
            if only_praises(own_text(message).lower()):
                request = None  # what answers thanks is no result
            elif not (goes_on(message) and request is not None):
                request = message
            answer = None
    if request is not None and answer is not None:
        turns.append(Ending(numbers[request.id], request, answer))
    return tuple(turns)


@memoized
def rejected_turns(transcript: Transcript) -> frozenset[int]:
    """Return the numbers of turns whose outcome the user's next turn rejects."""
    turns, index = turns_at(transcript), transcript.index
    rejected = [each for each in endings(transcript) if each.rejection]
    return frozenset(each.turn for each in rejected).union(turns[index[each.answer.id]] for each in rejected)


def outcome_lines(transcript: Transcript, staying: Sequence[Message]) -> tuple[str, ...]:
    """Return what was asked and how it ended for each turn that an answer ended, newest first.

    Of an answer that stays whole in the view less is told, and nothing where no work was done in its turn.
    """
    whole = {message.id: message for message in staying}
    worked, in_work = _worked_in(transcript), turns_in_work(transcript)
    turns, index = turns_at(transcript), transcript.index
    lines: list[str] = []
    for each in reversed([each for each in endings(transcript) if each.turn not in in_work]):
        if len(lines) >= MOST:
            break
        stays = each.answer.id in whole and text_of(whole[each.answer.id]) == text_of(each.answer)
        request = f"turn {each.turn}: {_request_line(each.request)}"
        if each.rejection:
            lines.append(f"{request} → {_how_rejected(each.rejection)} user turn {each.rejected_in}")
        elif outcome := gist(each.answer):
            if not stays:
                lines.append(f"{request} → {outcome}")
            elif each.turn == 1 or not worked.isdisjoint(range(each.turn, turns[index[each.answer.id]] + 1)):
                lines.append(f"{request} → {one_line(outcome, SHORTER)}")
    return tuple(lines)


@memoized
def _worked_in(transcript: Transcript) -> frozenset[int]:
    """Return the turns in which a call did more than to look."""
    return frozenset(
        turn
        for message, turn in zip(transcript.messages, turns_at(transcript), strict=True)
        if any(not target.looks for call in message.calls for target in targets_of(call))
    )


def rejections(transcript: Transcript) -> tuple[str, ...]:
    """Return what was done or said that the user's next turn rejects, newest first."""
    lines = (
        f"turn {each.turn}: {gist(each.answer)} ({_how_rejected(each.rejection)} user turn {each.rejected_in}: "
        f"{one_line(own_text(each.rejection), QUOTED)})"
        for each in reversed(endings(transcript))
        if each.rejection and gist(each.answer)
    )
    return tuple(islice(lines, MOST))


def rulings(view: View, staying: Sequence[Message]) -> Iterator[str]:
    """Yield sentences of turns that stay which set how things are to be, newest first; not of the newest turn.

    Of short turns the whole is quoted while there is room: a sentence out of few misleads.
    """
    transcript, room = view.transcript, view.goal_tokens * WHOLE_SHARE
    numbers = turn_numbers(transcript)
    newest = max(numbers.values(), default=0)
    replaced = {(each.message, each.sentence): each.turn for each in replacements(transcript)}
    reverted = _reverted(transcript)
    for stays in reversed(staying):
        if numbers.get(stays.id, newest) == newest:
            continue
        message = transcript.messages[transcript.index[stays.id]]  # the whole of it, where a plan has cut it
        if not _rulings(message):
            continue
        before = _answer_before(transcript, message)
        earlier = _answers_before(transcript, message)
        own = [each for each in _rulings(message) if (message.id, each) not in replaced and _bare(each) not in earlier]
        question = _answered_by(transcript, message, before)
        upon = f' (to: "{question}")' if question else ""
        whole = own_text(message).strip()
        quoting = len(own) < len(_rulings(message)) or pasted_spans(whole)
        if own and len(whole) <= WHOLE and not quoting and (room := room - view.counter.text(whole)) >= 0:
            own = [whole]
        taken_back = f" (taken back in user turn {reverted[message.id]})" if message.id in reverted else ""
        for number, sentence in reversed([*enumerate(own[:EACH])]):
            ending = taken_back if number else f"{upon}{taken_back}"
            yield f"user turn {numbers[message.id]}: {one_line(sentence, WHOLE)}{ending}"


@memoized
def _reverted(transcript: Transcript) -> dict[MessageId, int]:
    """Return the turns whose work the user's next turn takes back, with the number of that one."""
    numbers = turn_numbers(transcript)
    turns = [message for message in transcript.messages if message.id in numbers]
    return {
        message.id: numbers[after.id]
        for message, after in pairwise(turns)
        if _may_hold(text := own_text(after)[:LOOKED_AT], REVERTING) and REVERTS.search(text)
    }


def _answers_before(transcript: Transcript, message: Message) -> str:
    """Return what the assistant said before a turn, in words alone: a user who quotes it decides nothing."""
    place = transcript.index[message.id]
    before = transcript.messages[max(place - QUOTED_FROM, 0) : place]
    return "\n".join(_bare_text(each) for each in before if each.role == "assistant")


@memoized
def _bare_text(message: Message) -> str:
    return _bare(text_of(message))


def _bare(text: str) -> str:
    """Return the words of a text without what stands between them."""
    return " ".join(WORD.findall(text.lower()))


def _answered_by(transcript: Transcript, message: Message, before: Message | None) -> str:
    """Return the questions or the proposal that a turn answers, near the end of the answer before it."""
    if before is None:
        return ""
    text = own_text(message).strip()
    question = question_before(transcript, message)[0] or (last_question(before) if YES_NO.match(text) else "")
    questions = (question,) if question else closing_questions(before)
    return " / ".join(one_line(each, UPON) for each in questions)


def _answer_before(transcript: Transcript, message: Message) -> Message | None:
    """Return the answer that ended the turn before a user's."""
    place = transcript.index[message.id]
    before = transcript.messages[max(place - NEAR, 0) : place]
    return next((each for each in reversed(before) if each.role == "assistant" and text_of(each)), None)


@memoized
def _rulings(message: Message) -> tuple[str, ...]:
    """Return the short sentences of a turn that limit, oblige, or set a value."""
    text = own_text(message).strip()
    if len(text) > LONG or ABOUT.match(text):
        return ()
    asking = asks(text)  # then what has no voice of the user in it may be what is asked about
    pinned = frozenset(pins_in(message))
    return tuple(
        sentence
        for each in sentences_of(without_pasted(text))
        if len(sentence := each.strip()) <= RULING
        and (sentence in pinned or (_may_hold(sentence, SETTING) and SETS.search(sentence)))
        and not (sentence.endswith(("?", "？")) or ASKING.match(sentence) or (asking and not VOICE.search(sentence)))
        and (len(sentence) if UNSPACED.search(sentence) else len(sentence.split())) >= FEWEST
    )


def _may_hold(text: str, words: tuple[str, ...]) -> bool:
    """Tell quickly whether a text may hold one of these words; of what is not ASCII nothing is known."""
    return not text.isascii() or any(map(text.lower().__contains__, words))


def _request_line(message: Message) -> str:
    return one_line(own_text(message), REQUEST)


@memoized
def gist(message: Message) -> str:
    """Return the first sentences of an answer that tell a result, as one line; nothing of what is no answer.

    Items of lists are fragments: they tell a result only where a few of them are all that the answer says.
    """
    text = prose(message)
    if no_work(text):
        return ""
    sentences = _sentences(FRAGMENT.sub("\n", HEADING.sub("", text)))
    if not any(map(_tells, sentences)) and not HEADING.search(text) and len(FRAGMENT.findall(text)) <= ITEMS:
        items = [item.rstrip(".;,") for item in _sentences(text) if _tells(item)]
        return one_line("; ".join(items), ANSWER)
    line = ""
    telling = [*filter(_tells, sentences)]
    items = [*filter(_names, map(str.strip, _sentences("\n".join(FRAGMENT.findall(text)))))]
    if items and not any(_names(each) or len(each) > TELLING for each in telling):
        return one_line("; ".join(item.rstrip(".;,") for item in items[:ITEMS]), ANSWER)
    says_much = (place for place, each in enumerate(telling) if _names(each) or len(each) > TELLING)
    first = 0 if telling and YES_NO.match(telling[0]) else next(says_much, 0)
    for sentence in telling[first:]:
        if line and len(line) + len(sentence) >= ANSWER:
            break
        line = f"{line} {sentence}".lstrip()
    return one_line(line, ANSWER)


def _sentences(text: str) -> list[str]:
    """Return the sentences of an answer without marks of lists and bold type."""
    return [
        sentence
        for each in SENTENCE.split(text)
        if (sentence := LINK.sub(r"\1", each.strip(" -*#>|").replace("**", ""))) and not NUMBERING.fullmatch(sentence)
    ]


def _tells(sentence: str) -> bool:
    """Tell whether a sentence may tell a result: it neither announces, introduces, asks nor supposes."""
    on_the_way = _only_closes(sentence) or announces(sentence) or sentence.endswith(INTRODUCING)
    return not on_the_way and SUPPOSING.match(sentence) is None


def _names(sentence: str) -> bool:
    """Tell whether a sentence names something: words in code quotes, or an identifier."""
    return "`" in sentence or any(kind_of(name) not in ("number", "words") for name in names_of(sentence))


def _only_closes(sentence: str) -> bool:
    """Tell whether a sentence says only that something is done, or praises."""
    return CLOSES.match(sentence) is not None and len(sentence.split()) <= BRIEF and "`" not in sentence
