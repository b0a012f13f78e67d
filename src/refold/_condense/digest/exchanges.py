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
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_facts import writes
from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import WORD, goes_on, only_praises
from refold._condense.digest.announcements import HEADING, SENTENCE, announces
from refold._condense.digest.answers import YES_NO, asks, closing_questions, last_question, question_before
from refold._condense.digest.conclusions import BECAUSE, FENCED, prose
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
    from collections.abc import Iterable, Iterator, Sequence

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["accepted", "outcome_lines", "rejected_turns", "rejections", "rejects", "rulings"]

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
LINK = re.compile(r"\[([^\[\]\n]+)\]\([^)\s]+\)")
FRAGMENT = re.compile(r"^[ \t]*(?:[-*+•>|]|\(?\d{1,3}[.)])[ \t]+\S.*(?:\n[ \t]{2,}\S.*)*$|^\|.*$", re.M)
ITEMS = 4  # items of a list that are an answer, where it says nothing else
SUPPOSING = re.compile(r"(?:(?:and|but|so) )?(?:if|wenn|falls|si|se|если)\b|如果|もし", re.I)
NUMBERING = re.compile(r"\(?\d{1,3}[.)]?")
LOOKED_AT = 200  # characters at the beginning of a turn that say whether it rejects
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", ".`", '."', ".)")
LEFT_OPEN = re.compile(
    r"(?: (?:as follows|(?:with |and )?(?:links? |changes? )?(?:to|with|in|as|is|are|for|at|from)))?[:：]$"
)
INTRODUCED = re.compile(
    r":[ \t]*\n+ *```\w*\n((?:[^\n`]{1,120}\n){1,2}) *```[ \t]*$", re.M
)  # a line or two that are introduced
INTRODUCING = (":", "：", "?", "？")  # of what introduces or asks
READ = 100_000  # characters of an answer in which its result is looked for
TELLING = 60  # characters of a sentence that tells something even where it names nothing
LONGEST = 400  # characters of the first sentence of an outcome, where that is longer than an outcome
WITH_ITEMS = 3  # items of a list behind a sentence that tells what was done
TAGGED = re.compile(
    r"^[ \t]*(?:<([a-z][\w-]*)\b[^>\n]*>(?:(?s:.{0,4000}?)</\1>|.*)|::[\w-]+\{.*)", re.M
)  # for a harness
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


PAIR = re.compile(  # a key with the value that it is set to: the last of several
    r"`([\w.-]{2,40})`(?: \([^)\n]*\))?(?:: (?:back to )?(?:\w+ )?| is (?:now |back to )?| = |"
    r" from `[^`\n]{1,40}`(?: \([^)\n]*\))? to )`([^`\n]{1,40})`(?: ?(?:→|->) ?`([^`\n]{1,40})`)?"
)
QUOTING = 8  # words in a row that are quoted, and not said by chance
SYMPTOM = re.compile(
    r"\b(?:does ?n['’]?t|does not|is ?n['’]?t|is not|seems? to|pops up|crash\w*|there is a (?:bug|problem)|"
    r"(?:throws|raises|pops|gives|get|see)(?: \w+)? an error)\b",
    re.I,
)
STANDING = re.compile(
    r"\b(?:never|always|only|do ?n['’]?t (?!work|match|fit)|must|no need|not (?:relevant|needed|necessary)|instead|"
    r"rather|prefer|keep|use|needs? to|relevant|needed|necessary)\b|[^\x00-\x7f]",
    re.I,
)
ACCEPTS = re.compile(
    r"(?:yes|yeah|yep|yup|sure|ok(?:ay)?|go ahead|do it|please do|sounds good|agreed|"
    r"ja|oui|sí|sim|да|はい|好|네)(?![^\W_])",
    re.I,
)
PROPOSES = re.compile(
    r"\b(?:want|should|shall|would|I(?:['’]d|['’]ll)| can add|could|recommend|propose|suggest|soll|veux|quieres)\b",
    re.I,
)
WHY = re.compile(r"^(?:why|reason)\b[^\w`]*", re.I)
REASONS = re.compile(r"\b(?:simplif\w+|(?:simpler|cleaner|safer|better|faster|easier) (?:than|since|and|for))\b", re.I)


class Ending(Struct, frozen=True):
    """A turn of the user with the answer that ended it, and the next turn where that rejects the answer.

    Of a turn in the middle of work `behind` are the messages behind it: the answer is one to the work as a whole.
    """

    turn: int
    request: Message
    answer: Message
    behind: tuple[Message, ...] = ()
    rejection: Message | None = None
    rejected_in: int = 0


@memoized
def rejects(message: Message) -> bool:
    """Tell whether a turn of the user rejects what was done or said before it, by how it begins; not where it asks."""
    text = own_text(message)
    return not asks(text) and REJECTS.search(text[:LOOKED_AT]) is not None


def _how_rejected(message: Message, rejected: str) -> str:
    """Return how a turn rejects the work before it: as what was `rejected`, or since what was wrong before still is."""
    return "it did not help, says" if STILL.search(own_text(message)[:LOOKED_AT]) else rejected


@memoized
def endings(transcript: Transcript) -> tuple[Ending, ...]:
    """Return the turns that an answer ended before the next one began, in order."""
    numbers, ends = turn_numbers(transcript), turn_ends(transcript)
    turns: list[Ending] = []
    request: Message | None = None
    answer: Message | None = None
    behind: tuple[Message, ...] = ()
    for place, message in enumerate(transcript.messages):
        if message.id in ends:
            answer = message
        elif message.id in numbers:
            if request is not None and answer is not None:
                again = rejects(message) and not question_before(transcript, message)[0]
                rejection, of_rejection = (message, numbers[message.id]) if again else (None, 0)
                turns.append(Ending(numbers[request.id], request, answer, behind, rejection, of_rejection))
            if only_praises(own_text(message).lower()):
                request = None  # what answers thanks is no result
            elif not (goes_on(message) and request is not None):
                in_work = request is not None and answer is None
                behind = transcript.messages[place + 1 : place + 1 + NEAR] if in_work else ()
                request = message
            answer = None
    if request is not None and answer is not None:
        turns.append(Ending(numbers[request.id], request, answer, behind))
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
    values: dict[str, tuple[str, int]] = {}  # what keys are set to in later turns
    for each in reversed([each for each in endings(transcript) if each.turn not in in_work]):
        if len(lines) >= MOST:
            break
        stays = each.answer.id in whole and text_of(whole[each.answer.id]) == text_of(each.answer)
        request = f"turn {each.turn}: {_request_line(each.request)}"
        if each.rejection:
            how = _how_rejected(each.rejection, "its answer was rejected in")
            lines.append(f"{request} → {how} user turn {each.rejected_in}")
        elif outcome := _outcome(each):
            outcome = _with_replaced(outcome, each.turn, values)
            if not stays:
                lines.append(f"{request} → {outcome}")
            elif each.turn == 1 or not worked.isdisjoint(range(each.turn, turns[index[each.answer.id]] + 1)):
                lines.append(f"{request} → {one_line(outcome, SHORTER)}")
    return tuple(lines)


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
        f"turn {each.turn}: {_outcome(each)} ({_how_rejected(each.rejection, 'rejected in')} user turn "
        f"{each.rejected_in}: {one_line(own_text(each.rejection), QUOTED)})"
        for each in reversed(endings(transcript))
        if each.rejection and _outcome(each)
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
        own = [
            each
            for each in _rulings(message)
            if (message.id, each) not in replaced and not _is_quoted(each, earlier) and not _is_over(each)
        ]
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


def accepted(transcript: Transcript) -> tuple[str, ...]:
    """Return what the assistant proposed and a turn of the user accepts, with the reason it gave, newest first."""
    reverted, lines = _reverted(transcript), list[str]()
    for message in reversed(transcript.messages):
        turn = turn_numbers(transcript).get(message.id)
        before = _answer_before(transcript, message) if turn and ACCEPTS.match(own_text(message).strip()) else None
        if before is None or message.id in reverted:
            continue
        proposal = question_before(transcript, message)[0] or last_question(before)
        why = _reason_for(before, proposal)
        is_plain = why or goes_on(message)
        if is_plain and PROPOSES.search(proposal) and (_names(proposal) or (why and len(proposal.split()) >= QUOTING)):
            lines.append(f"{proposal}{f' ({why})' if why else ''} → accepted in turn {turn}")
    return tuple(lines[:MOST])


def _reason_for(answer: Message, proposal: str) -> str:
    """Return the last sentence of an answer that gives a reason, where it is not the proposal itself."""
    sentences = (each for each in reversed(_sentences(prose(answer))) if BECAUSE.search(each) or REASONS.search(each))
    return next(
        (one_line(WHY.sub("", each).rstrip("."), UPON) for each in sentences if _tells(each) and each not in proposal),
        "",
    )


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
    """Return what the assistant said before a turn, in words between blanks: a user who quotes it decides nothing."""
    place = transcript.index[message.id]
    before = transcript.messages[max(place - QUOTED_FROM, 0) : place]
    return f" {' '.join(_bare_text(each) for each in before if each.role == 'assistant')} "


def _is_quoted(sentence: str, earlier: str) -> bool:
    """Tell whether many words in a row of a user's sentence are what the assistant said before; few are a choice."""
    words = _bare(sentence).split()
    runs = range(len(words) - QUOTING + 1)
    return any(f" {' '.join(words[at : at + QUOTING])} " in earlier for at in runs)


def _is_over(sentence: str) -> bool:
    """Tell whether a sentence of an earlier turn reports a fault, and sets nothing that stands."""
    return SYMPTOM.search(sentence) is not None and STANDING.search(sentence) is None


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


def _outcome(ending: Ending) -> str:
    """Return how a turn ended: what was done in it, or what answers its question.

    A question in the middle of work is answered by what was said or changed next, not by what ends the work.
    """
    if not _is_question(ending.request):
        return _deed(ending.answer)
    if not ending.behind:
        return _reply(ending.answer)
    answer = next((each for each in ending.behind if each.role == "assistant" and text_of(each).strip()), None)
    changed = next((path for each in ending.behind for call in each.calls for path in writes(call)), "")
    reply = _reply(answer) if answer else ""
    if _names(reply) or len(reply.split()) > BRIEF:
        return reply
    return f"changed `{changed.rpartition('/')[2]}`" if changed else ""


@memoized
def _is_question(message: Message) -> bool:
    """Tell whether a turn of the user wants to know something, by its beginning and its end."""
    text = own_text(message).strip()
    return not ORDERS.match(text) and (asks(text) or ASKS_FOR.match(text) is not None)


@memoized
def _deed(message: Message) -> str:
    return _gist(message, is_question=False)


@memoized
def _reply(message: Message) -> str:
    return _gist(message, is_question=True)


def _gist(message: Message, *, is_question: bool) -> str:
    """Return the first sentence of an answer that tells a result, with items that name something, as one line.

    Nothing of what is no answer. What was asked is answered by the first sentence that says something; of what was to
    be done the sentences tell that say what was done. Items of lists are fragments: they tell a result only behind such
    a sentence, or where they are all that the answer says.
    """
    text = FENCED.sub("\n", INTRODUCED.sub(_quoted, text_of(message))) if "```" in text_of(message) else prose(message)
    text = LABEL.sub(r"\1: ", TAGGED.sub("\n", text[:READ]))
    if no_work(text):
        return ""
    sentences = _sentences(FRAGMENT.sub("\n", BOLD_LINE.sub("", HEADING.sub("", text))))
    telling = [*filter(_tells, sentences)]
    fragments = FRAGMENT.findall(text)
    items = [*filter(_tells, chain.from_iterable(map(_of_item, fragments)))]
    if not telling and not HEADING.search(text) and len(fragments) <= ITEMS:
        return _fitted(items, "; ")
    if is_question and sentences and CLOSED.match(sentences[0]):
        return _fitted((sentences[0], *(each for each in telling if each != sentences[0])))
    if not is_question and (did := [*filter(DID.search, telling)]):
        behind = [*filter(_tells, chain.from_iterable(map(_of_item, _listed_behind(text, did[0]))))]
        introduces = did[0].endswith(INTRODUCING)
        following = (each for each in telling[telling.index(did[0]) + 1 :] if each not in did)
        listed = behind if introduces else [*filter(_names, behind)]
        return _fitted((_fitted((did[0], *listed[:WITH_ITEMS]), "; "), *did[1:], *(() if listed else following)))
    at = _first(telling)
    named = [*filter(_names, items)]
    if at < 0 and named:
        return _fitted(named[:ITEMS], "; ")
    topics = _topics(text)
    if topics and telling and not any(map(_names, telling)):
        return _fitted((telling[max(at, 0)], *topics), "; ")
    return _fitted(telling[max(at, 0) :])


def _quoted(match: re.Match[str]) -> str:
    """Return what a sentence introduces in a fence as a quotation behind it."""
    return f': "{" ".join(match[1].split())}"\n'


def _topics(text: str) -> list[str]:
    """Return the headings of an answer, each with the first item below it."""
    entries = (
        (match[0].strip(" #*:\n"), _of_item(item[0]))
        for match in chain(HEADING.finditer(text), BOLD_LINE.finditer(text))
        if (item := FRAGMENT.search(text, match.end())) and not text[match.end() : item.start()].strip()
    )
    return [f"{heading}: {items[0]}" for heading, items in entries if items and _tells(items[0])][:WITH_ITEMS]


def _first(telling: Sequence[str]) -> int:
    """Return the place of the sentence that tells a result, -1 where all say little."""
    if telling and YES_NO.match(telling[0]):
        return 0
    return next((place for place, each in enumerate(telling) if _names(each) or len(each) > TELLING), -1)


def _of_item(item: str) -> list[str]:
    """Return the sentences of an item of a list; only its first line where that says what was done."""
    lines = [each.rstrip(".;,") for each in _sentences(LINK.sub(r"\1", item)) if " | " not in each]
    return [lines[0].rstrip(":")] if lines and DID.search(lines[0]) else lines


def _listed_behind(text: str, sentence: str) -> list[str]:
    """Return the items of the list that follows a sentence of an answer."""
    at = text.replace("**", "").find(sentence[:TELLING])
    entries: list[str] = FRAGMENT.findall(text, max(at, 0))
    return entries


def _fitted(parts: Iterable[str], between: str = " ") -> str:
    """Return parts of an answer as one line: the first, and what fits of the others behind it, each whole."""
    line = ""
    for part in parts:
        if line and len(line) + len(part) >= ANSWER:
            break
        if not line:
            line = part
        elif between == " ":
            line = f"{LEFT_OPEN.sub('', line)}{'' if line.endswith(SENTENCE_ENDS) else '.'} {part}"
        else:
            line = f"{line.rstrip('.')}{' ' if line.endswith(INTRODUCING[:2]) else between}{part}"
    return one_line(f"{LEFT_OPEN.sub('', line)}." if line.endswith(INTRODUCING[:2]) else line, LONGEST)


def _sentences(text: str) -> list[str]:
    """Return the sentences of an answer without marks of lists and bold type, and without what only labels links."""
    return [
        sentence
        for each in SENTENCE.split(text)
        if not LABELLED.fullmatch(bare := each.strip(" -*#>|").replace("**", ""))
        and (sentence := LINK.sub(r"\1", bare))
        and not NUMBERING.fullmatch(sentence)
    ]


def _tells(sentence: str) -> bool:
    """Tell whether a sentence may tell a result: it neither announces, introduces, asks nor supposes."""
    introduces = sentence.endswith(INTRODUCING) and not (sentence.endswith(INTRODUCING[:2]) and DID.search(sentence))
    on_the_way = _only_closes(sentence) or introduces or (announces(sentence) and not LANDED.match(sentence))
    praises = sentence.endswith("!") and not _names(sentence)
    broken_off = sentence.count("`") % 2 == 1
    wordless = WORD.search(sentence) is None
    return not (on_the_way or praises or broken_off or wordless) and SUPPOSING.match(sentence) is None


def _names(sentence: str) -> bool:
    """Tell whether a sentence names something: words in code quotes, or an identifier."""
    return "`" in sentence or any(kind_of(name) not in ("number", "words") for name in names_of(sentence))


def _only_closes(sentence: str) -> bool:
    """Tell whether a sentence says only that something is done, or praises."""
    return CLOSES.match(sentence) is not None and len(sentence.split()) <= BRIEF and "`" not in sentence
