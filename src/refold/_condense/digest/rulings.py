"""Gathers what users decided: sentences that set how things are to be, and proposals that a turn accepts.

Rulings are sentences in which a user sets how things are to be: those that pins find, and such as "use A, not B". Of
turns that stay in the view, too, so that they are read together. What a later turn replaced or took back is left out
or says so.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import WORD, goes_on
from refold._condense.digest.announcements import HEADING
from refold._condense.digest.answers import QUOTES, YES_NO, asks, closing_questions, last_question, question_before
from refold._condense.digest.conclusions import BECAUSE, prose
from refold._condense.digest.endings import REVERTING, REVERTS, carried_out, may_hold
from refold._condense.digest.gist import names_something, sentences_of_answer, tells
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_numbers
from refold._condense.pasted import pasted_spans, without_pasted
from refold._condense.pins import pins_in, sentences_of
from refold._condense.replaced import replacements
from refold._salience.words import UNSPACED, words_of
from refold.core.messages import Message, MessageId, memoized, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["accepted", "rulings"]

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
CARRIED_OUT = " (carried out in its turn)"  # behind an order that holds for nothing that comes
# Words of what holds for what comes, too.
LASTING = re.compile(
    r"\b(?:never|always|only|(?:do ?n['’]?t|do not)(?! (?:need|have) to)|must|"
    r"prefer\w*|rather|keep|leave|every\w*|each|any|all|whenever|"
    r"from now on|when|once|before|later|no need|not (?:relevant|needed|necessary)|no|not|without|support|"
    r"until|we (?:use|need)|"
    r"nie|niemals|immer|kein\w*|jede\w*|nur|jamais|toujours|chaque|nunca|siempre|cada|sempre|никогда|всегда)\b|"
    r"[^\x00-\x7f]",
    re.I,
)
QUOTED_FROM = 80  # messages before a turn that may be quoted in it
UPON = 140  # characters of a question that a ruling answers
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
MAPS = re.compile(r"\w[ \t]+(?:->|→)[ \t]+\w")  # what goes where
# One of these stands in what it finds in ASCII, in small letters: most turns have none, and need no search.
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
LONG_WORD = 4  # letters of a word of a question that an answer takes up
SUITS = re.compile(  # what was set out before it
    r"(?:does|do|is|are) (?:this|that|these|it|the)\b.*\b(?:work|match|fit|suit|look|good|right|sense|captures?)\b",
    re.I,
)
WHY = re.compile(r"^(?:why|reason)\b[^\w`]*", re.I)
REASONS = re.compile(r"\b(?:simplif\w+|(?:simpler|cleaner|safer|better|faster|easier) (?:than|since|and|for))\b", re.I)


def rulings(view: View, staying: Sequence[Message]) -> Iterator[str]:
    """Yield sentences of turns that stay which set how things are to be, newest first; not of the newest turn.

    Of short turns the whole is quoted while there is room: a sentence out of few misleads.
    """
    transcript, room = view.transcript, view.goal_tokens * WHOLE_SHARE
    numbers = turn_numbers(transcript)
    newest = max(numbers.values(), default=0)
    replaced = {(each.message, each.sentence): each.turn for each in replacements(transcript)}
    reverted, done = _reverted(transcript), carried_out(transcript)
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
        whole = own_text(message).strip()
        upon = f' (to: "{question}")' if question else _request_before(transcript, whole, numbers[message.id])
        quoting = len(own) < len(_rulings(message)) or pasted_spans(whole)
        if own and len(whole) <= WHOLE and not quoting and (room := room - view.counter.text(whole)) >= 0:
            own = [whole]
        taken_back = f" (taken back in user turn {reverted[message.id]})" if message.id in reverted else ""
        is_done = numbers[message.id] in done and not (taken_back or question)
        for number, sentence in reversed([*enumerate(own[:EACH])]):
            ending = taken_back if number else f"{upon}{taken_back}"
            if is_done and not LASTING.search(sentence):
                ending = CARRIED_OUT
            yield f"user turn {numbers[message.id]}: {one_line(sentence, WHOLE)}{ending}"


def accepted(transcript: Transcript) -> tuple[str, ...]:
    """Return what the assistant proposed and a turn of the user accepts or chooses, newest first.

    A proposal that is accepted is told with the reason that the assistant gave.
    """
    numbers, reverted, lines = turn_numbers(transcript), _reverted(transcript), list[str]()
    for message in reversed(transcript.messages):
        turn = numbers.get(message.id)
        if turn and message.id not in reverted and (line := _agreed(transcript, message, turn)):
            lines.append(line)
    return tuple(lines[:MOST])


def _agreed(transcript: Transcript, message: Message, turn: int) -> str:
    """Return what a turn agrees to: an option, one of two things that were asked about, or a proposal."""
    text = own_text(message).strip()
    question, asking = question_before(transcript, message)
    if asking is not None and question != (plain := last_question(asking)) and not goes_on(message):
        return f"{question} → chosen in turn {turn}" if plain else ""
    shared = words_of(text) & words_of(question) if " or " in question and INTENDS.search(question) else ()
    if any(len(word) >= LONG_WORD for word in shared):
        return f'{question} → "{one_line(text)}" (user turn {turn})'
    before = _answer_before(transcript, message) if ACCEPTS.match(text) else None
    if before is None:
        return ""
    proposal = question or last_question(before)
    if question and SUITS.match(proposal):
        headings = HEADING.findall(text_of(before)) if goes_on(message) else ()
        return f"{headings[-1].strip(' #')}: {proposal} → accepted in turn {turn}" if headings else ""
    why = _reason_for(before, proposal)
    is_plain = why or goes_on(message)
    if (
        is_plain
        and PROPOSES.search(proposal)
        and (names_something(proposal) or (why and len(proposal.split()) >= QUOTING))
    ):
        return f"{proposal}{f' ({why})' if why else ''} → accepted in turn {turn}"
    return ""


def _reason_for(answer: Message, proposal: str) -> str:
    """Return the last sentence of an answer that gives a reason, where it is not the proposal itself."""
    sentences = (
        each for each in reversed(sentences_of_answer(prose(answer))) if BECAUSE.search(each) or REASONS.search(each)
    )
    return next(
        (one_line(WHY.sub("", each).rstrip("."), UPON) for each in sentences if tells(each) and each not in proposal),
        "",
    )


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
        and (
            (("->" in sentence or "→" in sentence) and MAPS.search(sentence))
            or (
                (sentence in pinned or (may_hold(sentence, SETTING) and SETS.search(sentence)))
                and (not asking or VOICE.search(sentence))
            )
        )
        and not (sentence.endswith(("?", "？")) or ASKING.match(sentence))
        and (len(sentence) if UNSPACED.search(sentence) else len(sentence.split())) >= FEWEST
    )
