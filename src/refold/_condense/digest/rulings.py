"""Gathers what users decided: sentences that set how things are to be, and proposals that a turn accepts.

Rulings are sentences in which a user sets how things are to be: those that pins find, and such as "use A, not B". Of
turns that stay in the view, too, so that they are read together. What a later turn replaced or took back is left out
or says so.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import WORD, goes_on, only_delivers, only_praises
from refold._condense.digest.announcements import HEADING, whole_sentences
from refold._condense.digest.answers import (
    OFFER,
    QUOTES,
    YES_NO,
    asks,
    asks_to_choose,
    closing_questions,
    last_question,
    option_chosen,
    option_described,
    question_before,
)
from refold._condense.digest.conclusions import BECAUSE, prose
from refold._condense.digest.endings import REVERTING, REVERTS, may_hold, worked_off
from refold._condense.digest.gist import names_something, sentences_of_answer, tells
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_ends, turn_numbers
from refold._condense.pasted import pasted_spans, without_pasted
from refold._condense.pins import pins_in, sentences_of
from refold._condense.replaced import replacements
from refold._salience.words import UNSPACED, words_of
from refold.core._speakers import is_turn
from refold.core.messages import Message, MessageId, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["accepted", "rulings", "waived"]

MOST = 150  # lines of one sort that are looked for
LOOKED_AT = 200  # characters at the beginning of a turn that say whether it takes something back
RULING = 220  # characters of a sentence that sets how things are to be; a longer one explains
WHOLE_SHARE = 0.02  # of the goal, for turns that are quoted whole; chosen by hand
WHOLE = 400  # characters of a turn that is quoted whole where one of its sentences does
LONG = 1_500  # characters of a turn that is a task of its own, or mostly pasted
FEW = 16  # words of a turn that may say nothing without the one before it
FEWEST = 4  # words of such a sentence, or signs of one without blanks
NEAR = 12  # messages before a turn in which the answer that ended the last one stands
EACH = 3  # such sentences of one turn
LEAST_DENYING = 3  # words of an answer that denies or chooses; a yes says more only with more
PROPOSED = 1_500  # characters at the end of an answer in which what it proposes stands
LONGEST_CHOICE = 20  # words of a sentence that chooses; a longer one is a task
OK = re.compile(r"ok(?:ay)?(?![^\W_])", re.I)  # agrees, which `accepted` tells, and then asks for something
SEVERAL = 2  # words of it that a longer sentence takes up which chooses
NEGATES = re.compile(r"(?:no|nope|nah|not|nein|non|não|нет|いいえ|不|否|아니)(?![^\W_])|(?:いいえ|不|否|아니)", re.I)
OR = re.compile(r"\b(?:or|oder|ou|o|или)\b|それとも|还是|아니면", re.I)
# A value.
ASSIGNS = re.compile(r"\b(?:be|is|are|to|at|as|sei|ist|auf|est|sont|à|es|son|é|são)[ =:]+[\"'`]?\d|[=→:] ?\d", re.I)
COMMON_WORDS = "that this with from should have will when where what your must need want like just then them they"
COMMON = frozenset(COMMON_WORDS.split())
# Words of what holds for what comes, too: an order without them is over with the work that it was given for.
LASTING = re.compile(
    r"\b(?:never|always|only|(?:do ?n['’]?t|do not)(?! (?:need|have) to)|must(?:n['’]t)?|avoid|prefer\w*|rather|keep|"
    r"leave|stick|every ?time|whenever|from now on|until|before you|no need|no longer|instead|without|"
    r"not? (?:relevant|needed|necessary|more)|use [^.,;\n]{1,60},? (?:no|not) |"
    r"nie|niemals|immer|kein\w*|nur|jamais|toujours|nunca|siempre|sempre|solo|somente|apenas|não|никогда|всегда|"
    r"только|нельзя)\b|[぀-ヿ一-鿿가-힯]",
    re.I,
)
QUOTED_FROM = 80  # messages before a turn that may be quoted in it
UPON = 140  # characters of a question that a ruling answers
SETS = re.compile(  # how a user sets a value or makes a choice, where no pin says so
    r"\b(?:use [^.,;\n]{1,60}(?:, no |, not |(?: and)? not )|(?:needs?|ought) to (?:be|use|have|support|go)\b|"
    r"let['’]?s (?:use|go with|start with|keep|drop|leave|skip|apply|adopt|switch to|stick (?:to|with)|call it)|"
    r"\bwe(?:['’]re| are) going (?:to (?:adopt|use|drop|keep|support|remove)|with)\b|"
    r"\bi(?:['’]d| would)? suggest (?:we|you|that|to)\b|\bwe want (?!to (?:know|see|understand|ask)\b)|"
    r"go with\b|(?:we|i)(?:['’]ll| will) (?:use|keep|go)\b|no need (?:for|to)\b|not needed\b|"
    r"make (?:it|that|them|this) [^.,;\n]{2,40}$|i(?:['’]d| would) (?:rather|prefer)|i (?:do ?n['’]?t|only) want\b|"
    r"i want (?!(?:you )?to\b)|(?:is|are)n['’]?t (?:relevant|needed|necessary)|not (?:relevant|necessary)|"
    r"instead of [^.,;\n]{1,80}\b(?:say|use|put|write|call|just)\b|"
    r"should(?:n['’]?t| not)? (?:always |only |also |never )?(?:be|use|have|go|stay|follow|stop)\b|"
    r"you (?:may|can|must) ?not\b|(?:não pode|no puedes|non puoi|tu ne peux pas|du darfst nicht)\b|"
    r"good enough|is fine\b|"
    r"nimm |verwende |wir (?:nehmen|lassen)|utilise[rz]? |gardez? |usa |usemos |deja |используй|оставь)|"
    r"にして|にしよう|で(?:い|行)こう|使って|不用|用.{1,20}不要|쓰지|사용해",
    re.I,
)
# A wish in the form of a question, and what a user supposes to be so: both steer.
STEERS = re.compile(
    r"\b(?:can|could) we (?:please |just |also |rather )?(?:make it so|keep|leave|avoid|get rid of|stick (?:to|with))"
    r"\b|\bhow about (?:you|we)\b|\bi(?:['’]d| would) (?:assume|expect)\b|"
    r"\bkönnen wir [^.?!\n]{1,60} (?:lassen|behalten|beibehalten)\b|\bwie wäre es, wenn\b|"
    r"\bon (?:peut|pourrait) (?:garder|laisser)\b|\bet si (?:tu|vous|on|nous)\b|"
    r"\bpodemos (?:dejar|mantener|evitar|manter|deixar)\b|\bqué tal si\b|\bque tal se\b|"
    r"\bможем (?:оставить|сохранить)\b|ままにでき|保留.{0,10}吗|그대로 두",
    re.I,
)
# One of these stands in what it finds in ASCII, in small letters.
STEERING = (
    "an we ",
    "ould we ",
    "ow about ",
    "assume",
    "expect",
    "nnen wir ",
    "wie w",
    "on peut",
    "on pourrait",
    "et si ",
    "podemos ",
    "tal s",
)
ERROR = re.compile(
    r"\b(?:errors?|exceptions?|warnings?|fatal|panic)\b ?:|^Traceback\b", re.M | re.I
)  # as a program says
SHOWS = re.compile(  # how a turn begins that asks to be shown something
    r"(?:(?:just|please|ok(?:ay)?|no|yes|well|first|can you|could you)\b[\s,.]*)*"
    r"(?:show|tell|give|explain|list|print|read|check|describe|let me (?:see|look|read))\b",
    re.I,
)
INSTEAD = re.compile(  # before what something takes the place of
    r"\b(?:instead of|rather than|statt|anstelle von|au lieu de|en (?:lugar|vez) de|em vez de|invece di|вместо) "
    r"(?:the |a |an |my |your |den |die |das |le |la |les |el )?([^\W\d_]{4,})",
    re.I,
)
WAITS = re.compile(  # how a turn begins that breaks off what was agreed to
    r"\W*(?:(?:or|oh|no|but|hm+|ok(?:ay)?|ah)\b[\s,.]*)*(?:wait\b|hold on|actually\b|on second thought|stop\b|"
    r"never ?mind|warte|halt\b|attends|espera|espere|aspetta|подожди|стоп)|"
    r"\W*(?:待って|等等|等一下|잠깐)",
    re.I,
)
COLOR = re.compile(
    r"(?<![\w#/])(?:#[0-9a-f]{6}|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{6})(?![\w-])", re.I
)  # that a user names
# Another way that is left to the assistant decides nothing.
OPTIONAL = re.compile(
    r"^\W*(?:alternatively|otherwise|maybe|perhaps|vielleicht|peut-être|quizás?|talvez|может)\b|"
    r"\bif (?:(?:you|that|it|this) (?:thinks?|prefers?|likes?|makes? (?:more )?sense|works?)|"
    r"it['’]?s (?:better|easier|possible))\b|"
    r"もしよければ|如果你觉得|괜찮다면",
    re.I,
)
MAPS = re.compile(r"\w[ \t]+(?:->|→)[ \t]+\w")  # what goes where
# One of these stands in what it finds in ASCII, in small letters: most turns have none, and need no search.
SETTING = (
    *("use", "need", "ought", "let", "go with", "'ll ", " will ", "make ", "i'd ", " would ", "want", "relevant"),
    *(" going ", "suggest", "necessary", "instead of", "good enough", "is fine", "nimm ", "verwende ", "wir "),
    *("utilise", "garde", "usa ", "deja ", "should", "you ", "puedes", "puoi", "peux", "darfst"),
)
ASKING = re.compile(  # or says what is seen or supposed
    r"^(?:(?:so|and|ok(?:ay)?|now|but|also|please|yeah|wait|alright|well)\b[\s,.]*)*"
    r"(?:(?:should|shall|can|could|would|will|may) (?:we|you|i|it|this|that|these|those|they|the|there|my|our|any)\b|"
    r"(?:is|are|do(?! not\b|n['’]t)|does|did|was|were|what|how|why|where|which|who|when)\b|"
    r"i (?:do ?n['’]?t )?(?:t\w?ink|guess|know|see|wonder|can ?not|can['’]?t|(?:\w+ly )?\w+ed)\b)",
    re.I,
)
VOICE = re.compile(
    r"\b(?:i|we|you|let['’]?s|my|our|me|us|ich|wir|du|uns|je|j['’]|nous|tu|vous|yo|nosotros|quiero|eu|nós|io|noi|я|мы|нам)\b|"
    r"我|私|俺|우리|저는|나는",
    re.I,
)
# A question within a sentence: what is to be found out, or answered, is not decided.
WONDERS = re.compile(
    r"\b(?:what|how|why|which|where|whether) (?:should|can|could|do|does|would|we|i|it|to)\b|\bquestion is\b|"
    r"\bfigure out\b",
    re.I,
)
POINTING = re.compile(r"\b(?:that|this|it|them|these|those)\b", re.I)
SHORTEST = 5  # words of a sentence that may say nothing without the one before it
ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)]) +")
DOTS = re.compile(r"\.{2,}(?=\s*[A-Z])")  # some write sentences so, without a blank
ABOUT = re.compile(r"^[^.?!\n]*\b(?:this|these|the following)\b[^.?!\n]*[?？]\s", re.I)  # asks about what follows
POINTS = re.compile(  # how a turn begins that points at something that was named before
    r"^\W*(?:no(?:pe)?|alternatively|instead|rather|needs?|should|must|has to|have to)\b|"
    r"^\W*(?:\w+ ){0,3}(?:it|that|this|them|these|those)\b",
    re.I,
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
INTENDS = re.compile(r"\b(?:want|should|shall|would|which|prefer|like|do you|soll|veux|quieres)\b", re.I)
GOING_ON = frozenset({"continue", "proceed", "start", "begin"})  # the answer that nothing is decided by
LONG_WORD = 4  # letters of a word of a question that an answer takes up
SUITS = re.compile(  # what was set out before it
    r"(?:does|do|is|are) (?:this|that|these|it|the)\b.*\b(?:work|match|fit|suit|look|good|right|sense|captures?)\b",
    re.I,
)
# What stands before a proposal that a yes is hardly about: it is an aside, or one item of a list. And the longest.
ASIDE, LEADING = re.compile(r"(?:^|\n)[ \t]*(?:[-*•]|\d+[.)]) [^\n]*\Z|\([^)\n]*\Z"), 400
SECTION = 260  # characters of a section of a plan that is accepted
WAIVES = re.compile(  # how a turn begins that lets a fault be
    r"^(?!(?:\w+[\s,.!…]+){0,3}(?:not|never(?! ?mind)|hardly|barely|nicht|pas|jamais|nunca|nie)\b)"
    r"(?:\w+[\s,.!…]+){0,3}(?:(?:that|this|it)(?:['’]?s| is) )?(?:good enough|never ?mind|nvm|"
    r"leave it(?! (?:to|out|in|on|at|running|open)\b)|"
    r"ignore (?:it|that|this)(?= *(?:$|[.,;!…—-]|for now|and\b|\w*(?:error|fail|warning|test)))|"
    r"no matter|egal|passt so|reicht so|peu importe|laisse tomber|da igual|déjalo|tanto faz|"
    r"deixa|неважно)\b|"
    r"^(?:このままでいい|没关系|算了|괜찮아)",
    re.I,
)
WAIVED = 80  # characters of such a turn
WHY = re.compile(r"^(?:why|reason)\b[^\w`]*", re.I)
REASONS = re.compile(r"\b(?:simplif\w+|(?:simpler|cleaner|safer|better|faster|easier) (?:than|since|and|for))\b", re.I)


class _Ruling(NamedTuple):
    """A sentence that sets something, with its turn and what stands behind it; `over` where it was an order for work.

    `later` is the turn that sets it again.
    """

    turn: int
    sentence: str
    ending: str
    over: bool
    later: int

    @property
    def line(self) -> str:
        again = f" (user turn {self.later} sets it again)" if self.later else ""
        return f"user turn {self.turn}: {one_line(self.sentence, WHOLE)}{self.ending}{again}"


def rulings(view: View, staying: Sequence[Message]) -> Iterator[str]:
    """Yield sentences of turns that stay which set how things are to be, newest first; not of the newest turn.

    Of short turns the whole is quoted while there is room: a sentence out of few misleads. Orders that were worked off
    are left out, but where they set again what another one did.
    """
    candidates = list(_all_rulings(view, staying))
    again = {each.later for each in candidates}
    yield from (each.line for each in candidates if not each.over or each.turn in again)


def _all_rulings(view: View, staying: Sequence[Message]) -> Iterator[_Ruling]:
    transcript, room = view.transcript, view.goal_tokens * WHOLE_SHARE
    numbers = turn_numbers(transcript)
    newest = max(numbers.values(), default=0)
    replaced = {(each.message, each.sentence): each.turn for each in replacements(transcript)}
    reverted, done = _reverted(transcript), worked_off(transcript)
    for stays in reversed(staying):
        if numbers.get(stays.id, newest) == newest:
            continue
        message = transcript.messages[transcript.index[stays.id]]  # the whole of it, where a plan has cut it
        before = _answer_before(transcript, message)
        deciding = _deciding(transcript, message, before)
        if not deciding:
            continue
        earlier = _answers_before(transcript, message)
        whole = own_text(message).strip()
        if only_delivers(whole):
            continue
        choice = _answering(whole, before) if before else ""  # also in the words of the option
        own = [
            each
            for each in deciding
            if (message.id, each) not in replaced
            and (each == choice or not _is_quoted(each, earlier))
            and not _is_over(each, whole)
        ]
        question = _answered_by(transcript, message, before)
        upon = f' (to: "{question}")' if question else _request_before(transcript, whole, numbers[message.id])
        taken_back = f" (taken back in user turn {reverted[message.id]})" if message.id in reverted else ""
        is_done = numbers[message.id] in done and not (taken_back or question)  # then what it ordered is over
        quoting = is_done or len(own) < len(deciding) or pasted_spans(whole)
        if own and len(whole) <= WHOLE and not quoting and (room := room - view.counter.text(whole)) >= 0:
            own = [whole]
        for number, sentence in reversed([*enumerate(own[:EACH])]):
            if words := _with_items(whole, _with_before(whole, sentence) if is_done else sentence):
                ending = taken_back if number else f"{upon}{taken_back}"
                over = is_done and not LASTING.search(sentence)
                later = _set_again(transcript, sentence, numbers[message.id])
                yield _Ruling(numbers[message.id], words, ending, over, later)


def _with_before(text: str, sentence: str) -> str:
    """Return a sentence with the one before it where it points at something or is a few words; nothing without one."""
    if len(sentence.split()) > SHORTEST and not POINTING.search(sentence):
        return sentence
    sentences = [each.strip() for each in sentences_of(text)]
    place = next((at for at, each in enumerate(sentences) if sentence in each), 0)
    before = sentences[place - 1] if place else ""
    return f"{before} {sentence}" if before and len(before) <= RULING else "" if place else sentence


def _with_items(text: str, sentence: str) -> str:
    """Return a sentence with the list that it introduces, as many whole items as have room; nothing without a list."""
    if not sentence.endswith((":", "：")):
        return sentence
    room, items = WHOLE - len(sentence), list[str]()
    for line in text[text.find(sentence) + len(sentence) :].split("\n"):
        if item := ITEM.match(line):
            items.append(line[item.end() :].strip(" ;,."))
        elif line.strip():
            break
    while items and sum(len(each) + 2 for each in items) > room:
        items = items[:-1]
    return f"{sentence} {'; '.join(items)}" if items else ""


def accepted(transcript: Transcript) -> tuple[str, ...]:
    """Return what the assistant proposed and a turn of the user accepts or chooses, newest first.

    A proposal that is accepted is told with the reason that the assistant gave.
    """
    numbers, over, lines = turn_numbers(transcript), {*_reverted(transcript), *_broken_off(transcript)}, list[str]()
    for message in reversed(transcript.messages):
        turn = numbers.get(message.id)
        if turn and message.id not in over and (line := _agreed(transcript, message, turn)):
            lines.append(line)
    return tuple(lines[:MOST])


@memoized
def waived(transcript: Transcript) -> dict[int, str]:
    """Return the turns behind which the user lets what is wrong be, with the words of the next turn that say so."""
    numbers = turn_numbers(transcript)
    return {
        numbers[message.id] - 1: f'user turn {numbers[message.id]}: "{one_line(text, WAIVED)}"'
        for message in transcript.messages
        if message.id in numbers and WAIVES.search(text := own_text(message).strip().translate(QUOTES)[:LOOKED_AT])
    }


def _agreed(transcript: Transcript, message: Message, turn: int) -> str:
    """Return what a turn agrees to: an option, one of two things that were asked about, or a proposal."""
    text = own_text(message).strip()
    question, asking = question_before(transcript, message)
    if asking is not None and question != (plain := last_question(asking)) and not goes_on(message):
        return f"{question} → chosen in turn {turn}" if plain else ""
    shared = words_of(text) & words_of(question) if " or " in question and INTENDS.search(question) else frozenset()
    if any(len(word) >= LONG_WORD for word in shared - GOING_ON) and not (
        only_delivers(text) or asks(text) or ASKING.match(text)
    ):
        return f'{question} → "{one_line(text)}" (user turn {turn})'
    before = _answer_before(transcript, message) if ACCEPTS.match(text) else None
    if before is None:
        return ""
    proposal = question or last_question(before)
    headings = [each.strip(" #*") for each in HEADING.findall(text_of(before))]
    if question and SUITS.match(proposal):
        section = text_of(before).rpartition(headings[-1])[2] if headings else ""
        proposed = whole_sentences(" ".join(filter(tells, sentences_of_answer(section))), SECTION) or proposal
        return f"{headings[-1]}: {proposed} → accepted in turn {turn}" if section and goes_on(message) else ""
    if ASIDE.search(text_of(before)[: text_of(before).find(proposal[:UPON]) + 1][-LEADING:]):
        return ""
    why = _reason_for(before, proposal)
    is_plain = why or goes_on(message)
    if not (is_plain and PROPOSES.search(proposal)):
        return ""
    if names_something(proposal) or (why and len(proposal.split()) >= QUOTING):
        return f"{proposal}{f' ({why})' if why else ''} → accepted in turn {turn}"
    return ""


def _reason_for(answer: Message, proposal: str) -> str:
    """Return the sentence before a proposal, or the one behind it, where that gives a reason."""
    sentences = [*sentences_of_answer(prose(answer))]
    place = next((at for at, each in enumerate(sentences) if _bare(each)[:UPON] == _bare(proposal)[:UPON]), -1)
    neighbors = (sentences[at] for at in (place - 1, place + 1) if place >= 0 and 0 <= at < len(sentences))
    reasons = (each for each in neighbors if tells(each) and (BECAUSE.search(each) or REASONS.search(each)))
    return next((one_line(WHY.sub("", each).rstrip("."), UPON) for each in reasons), "")


def _request_before(transcript: Transcript, text: str, turn: int) -> str:
    """Return the turn before one of a few words that name nothing: what they are about was said there."""
    if len(text.split()) > FEW or names_something(text) or not POINTS.search(text):
        return ""
    turns = turn_numbers(transcript)
    previous = next((own_text(each) for each in transcript.messages if turns.get(each.id) == turn - 1), "")
    return f' (after user turn {turn - 1}: "{one_line(previous.translate(QUOTES), UPON)}")' if previous else ""


@memoized
def _reverted(transcript: Transcript) -> dict[MessageId, int]:
    """Return the turns whose work the user's next turn takes back, with the number of that one."""
    numbers = turn_numbers(transcript)
    turns = [message for message in transcript.messages if message.id in numbers]
    return {
        message.id: numbers[after.id]
        for message, after in pairwise(turns)
        if may_hold(text := own_text(after)[:LOOKED_AT], REVERTING) and REVERTS.search(text)
    }


def _broken_off(transcript: Transcript) -> Iterator[MessageId]:
    """Yield the turns that no answer ended before the user thought better of it."""
    numbers, ends = turn_numbers(transcript), turn_ends(transcript)
    open_turn: Message | None = None
    for message in transcript.messages:
        if message.id in ends:
            open_turn = None
        elif message.id in numbers:
            if open_turn is not None and WAITS.match(own_text(message)):
                yield open_turn.id
            open_turn = message


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


def _is_over(sentence: str, whole: str) -> bool:
    """Tell whether a sentence of an earlier turn reports a fault, and sets nothing that stands.

    Where the turn holds what a program says of an error, a sentence without a person in it tells what is seen.
    """
    if STANDING.search(sentence):
        return False
    return SYMPTOM.search(sentence) is not None or (ERROR.search(whole) is not None and not VOICE.search(sentence))


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
    question = (
        question_before(transcript, message)[0]
        or option_chosen(before, text)
        or (_agreed_upon(before, text) if YES_NO.match(text) else "")
    )
    if not question and closing_questions(before) and not ASKING.match(text):
        question = option_described(before, next(iter(sentences_of(text)), ""))
    questions = (question,) if question else closing_questions(before) or tuple(filter(None, (asks_to_choose(before),)))
    if not (question or _answering(text, before) or _takes_up(text, questions)):
        return ""
    return " / ".join(one_line(each, UPON) for each in questions)


def _takes_up(text: str, questions: Sequence[str]) -> bool:
    """Tell whether a turn answers by how it begins, or takes up a word of the questions before it."""
    if YES_NO.match(text):
        return True
    first = next(iter(sentences_of(text)), "")
    words = {word for word in words_of(first) if _is_long(word)} - COMMON
    return any(words & words_of(each) for each in questions)


def _agreed_upon(before: Message, text: str) -> str:
    """Return what a yes or no answers: the last question, or of a yes the last sentence if the question is far."""
    if NEGATES.match(text) or closing_questions(before):
        return last_question(before)
    naming = (each for each in reversed(sentences_of_answer(prose(before))) if names_something(each))
    last = "" if OK.match(text) else next(naming, "")
    return last.translate(QUOTES) if len(last.split()) > FEWEST and last.count("`") % 2 == 0 else ""


def _deciding(transcript: Transcript, message: Message, before: Message | None) -> tuple[str, ...]:
    """Return the sentences of a turn that decide: the one it begins with where that answers, and what it sets."""
    ruled, index = _rulings(message), transcript.index
    answers = before is not None and not any(map(is_turn, transcript.messages[index[before.id] : index[message.id]]))
    answers = answers and not goes_on(message)
    first = _answering(own_text(message).strip(), before) if before is not None and answers else ""
    return ruled if not first or first in ruled else (first, *ruled)


def _answering(text: str, before: Message) -> str:
    """Return the sentence of a turn that answers what the assistant asked, and says more than yes.

    A "no" answers, and so does a "yes" with more behind it: those begin the turn. Of other words the sentence answers
    that takes up most of a choice: not of an offer, behind which most turns ask for something else.
    """
    if OK.match(text) or SHOWS.match(text) or len(text) > LONG or (text[:1] == "/" and " " not in text):
        return ""
    sentences = [each.strip() for each in sentences_of(without_pasted(text))]
    first = next(filter(None, sentences), "")
    if not first or len(first) > RULING or first.endswith(("?", "？", ":", "：")) or only_praises(first.lower()):
        return ""
    if option_chosen(before, first):
        return first
    questions, choice = closing_questions(before), asks_to_choose(before)
    if not (questions or choice):
        return ""
    if YES_NO.match(first):
        denies = NEGATES.match(first) is not None
        enough = LEAST_DENYING if denies else FEWEST + 1
        return first if _words(first) >= enough else ""
    if not (choice or any(OR.search(each) or not OFFER.search(each) for each in questions)):
        return ""
    proposed = {word for word in words_of(text_of(before)[-PROPOSED:]) if _is_long(word)}
    choosing = [
        each
        for each in sentences[:EACH]
        if not (ASKING.match(each) or asks(each)) and LEAST_DENYING <= _words(each) <= LONGEST_CHOICE
    ]
    best = max(choosing, key=lambda each: len(words_of(each) & proposed), default="")  # of two the first
    few = _words(best) <= FEW // 2
    return best if len(words_of(best) & proposed) >= (1 if few else SEVERAL) else ""


def _steers(sentence: str) -> bool:
    """Tell whether a sentence says what is wanted in the form of a question, or what is expected."""
    return may_hold(sentence, STEERING) and STEERS.search(sentence) is not None


def _sets(sentence: str) -> bool:
    """Tell whether a sentence sets a value or makes a choice."""
    return may_hold(sentence, SETTING) and SETS.search(sentence) is not None


def _words(text: str) -> int:
    """Return how many words a text has; of a script without blanks how many signs."""
    return len(text) if UNSPACED.search(text) else len(text.split())


def _is_long(word: str) -> bool:
    return len(word) >= LONG_WORD or not word.isascii()


def _set_again(transcript: Transcript, sentence: str, turn: int) -> int:
    """Return the newest later turn that sets a value for what a sentence names, or something in its place, or 0.

    What it names are two words side by side, or the word that the later turn names behind "instead of".
    """
    pairs, words = _pairs(sentence), words_of(sentence)
    taken_from = (later for later, word in _taken_from(transcript) if later > turn and word in words)
    return next(taken_from, 0) or next(
        (later for later, others in _valued_pairs(transcript) if later > turn and pairs & others), 0
    )


@memoized
def _taken_from(transcript: Transcript) -> tuple[tuple[int, str], ...]:
    """Return the words in whose place short turns of users put something, with their turns, newest first."""
    numbers = turn_numbers(transcript)
    return tuple(
        (numbers[message.id], word.lower())
        for message in reversed(transcript.messages)
        if message.id in numbers and len(text := own_text(message)) <= WHOLE
        for word in INSTEAD.findall(text)
        if word.lower() not in COMMON
    )


@memoized
def _valued_pairs(transcript: Transcript) -> tuple[tuple[int, frozenset[tuple[str, str]]], ...]:
    """Return the pairs of words in short sentences of users that give a value, with their turns, newest first."""
    numbers = turn_numbers(transcript)
    return tuple(
        (numbers[message.id], pairs)
        for message in reversed(transcript.messages)
        if message.id in numbers and len(text := own_text(message)) <= WHOLE and not ERROR.search(text)
        for each in sentences_of(text)
        if (COLOR.search(each) or ASSIGNS.search(each))
        and not each.strip().endswith(("?", "？"))
        and (pairs := _pairs(each))
    )


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    """Return the words of a text that stand side by side, two and two: those of four letters and more, no numbers."""
    words = [
        word if len(word) >= LONG_WORD and word.isalpha() and word not in COMMON else ""
        for word in WORD.findall(text.lower())
    ]
    return frozenset(pair for pair in pairwise(words) if all(pair))


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
    own, pinned = without_pasted(text), frozenset(pins_in(message))
    colored, steering, setting = COLOR.search(own) is not None, _steers(own), may_hold(own, SETTING)
    if not (pinned or colored or steering or setting or "->" in own):  # as most, which need not be divided
        return ()
    asking = asks(text)  # then what has no voice of the user in it may be what is asked about
    return tuple(
        sentence
        for each in sentences_of(own)
        for piece in DOTS.split(each)
        if len(sentence := piece.strip()) <= RULING
        and (
            (steers := steering and _steers(sentence))
            or (colored and COLOR.search(sentence))
            or (("->" in sentence or "→" in sentence) and MAPS.search(sentence))
            or (
                ((each.strip() in pinned and LASTING.search(sentence)) or (setting and _sets(sentence)))
                and (not asking or VOICE.search(sentence))
            )
        )
        and (steers or not (sentence.endswith(("?", "？")) or ASKING.match(sentence)))
        and not (OPTIONAL.search(sentence) or WONDERS.search(sentence))
        and (len(sentence) if UNSPACED.search(sentence) else len(sentence.split())) >= FEWEST
    )
