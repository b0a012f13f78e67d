"""Pairs short answers of users with what the assistant had asked or proposed.

"Yes" and "2" say nothing without their question, which leaves the view with the work around it. Not every short
turn is an answer: it has to name an option, begin with yes or no, take up a word of the question, or be a few words
right behind it. A turn that only agrees or tells to continue (`goes_on`) stands with the sentence that proposes what
it agrees to; without one it says nothing. What is quoted of the assistant has no quotation marks of its own, so that
only what the user said can be read back as the user's words.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from refold._condense.call_outline import one_line
from refold._condense.digest.agreement import SHORT, goes_on, only_praises
from refold._condense.digest.announcements import SENTENCE
from refold._condense.digest.conclusions import prose
from refold._condense.digest.previous import own_text
from refold._salience.words import words_of
from refold.core._speakers import is_turn
from refold.core.messages import memoized, text_of

if TYPE_CHECKING:
    from refold.core.messages import Message
    from refold.core.transcript import Transcript

__all__ = [
    "OFFER",
    "QUOTES",
    "YES_NO",
    "asks",
    "asks_to_choose",
    "closing_questions",
    "last_question",
    "option_chosen",
    "option_described",
    "question_before",
    "with_lead",
]

QUESTION = 240  # characters of a question that are quoted
OPTION_LENGTH = 120  # characters of the option that a letter or number stands for
ITEM_LENGTH = 60  # characters of each of several questions, and of the option that is chosen
LOOKED_AT = 3_000  # characters at the end of an answer that are searched for a question
LISTED_AT, NEAR_END = 900, 400  # characters at the end in which a list of questions stands, and the last of them
BRIEF = 24  # characters of a question that says little alone; half of them without blanks
SEVERAL = 3  # questions of such a list
BACK = 12  # messages between a question and its answer
TAIL = 8  # sentences at the end of an answer that are searched for a proposal
FEW = 4  # words that answer a question right before them, whatever they are
BEHIND = 40  # characters behind such a question
LONG = 4  # letters of a word that an answer takes up
QUESTION_MARKED = re.compile(  # not in the middle of a sentence, as where one is quoted
    r"[^.!?。！？\n]*(?:\.(?=\S)[^.!?。！？\n]*)*[?？](?![\"'”’)`]*[ \t]+[a-z])"
)
ASKS = re.compile(
    r"(?:now |and |also |please |ok(?:ay)?,? )*(?:can|could|would|will) you\b|(?:what|how|why|where|which|who)\b", re.I
)
CHOICE = re.compile(
    r"(?:option |number |variante? |opción |opção |#)?\(?([a-z]|\d{1,2})[.)!]*(?: please| bitte)?", re.I
)
LEADING_CHOICE = re.compile(  # before more words: "3 is better, implement it"
    r"(?:(?:let['’]?s )?(?:do|go with|take|use|pick) |ich nehme |nimm |prenons |je prends |usa |tomemos )?"
    r"(?:option |number |variante? |opción |opção |#)?\(?(\d{1,2}|[a-hA-H](?=\)|,| is\b))[.)]?"
    r"(?:,| (?:is|looks|sounds|please|then|it is|ist|passt|est|es|é|bitte)\b)",
    re.I,
)
ORDINALS = (  # words for the place of an option
    "first former erste erstes ersten premier première primero primera primeiro primeira primo prima",
    "second latter zweite zweites zweiten deuxième second seconde segundo segunda secondo seconda",
    "third dritte dritter drittes dritten troisième tercero tercera terceiro terceira terzo terza",
)
ORDINAL = re.compile(
    r"(?:(?:i['’]?d )?(?:take |go with |use |let['’]?s (?:do|go with) )?)"
    r"(?:the |die |das |den |der |la |le |el |o |a |il )"
    r"(\w{4,10})(?: (?:one|option|variante?|opción|opção|opzione))?[.!]*(?: please| bitte)?",
    re.I,
)
ONE_CHOSEN = r"\d{1,2}[.):]?(?: ?[a-h](?![^\W\d_]))?"  # "2", "1a", "1) b"
SEVERAL_CHOSEN = re.compile(
    rf"\(?{ONE_CHOSEN}\)?(?:(?:\s*[,;/&+]\s*|\s+(?:and |und |et |y |e )?)\(?{ONE_CHOSEN}\)?)+[.! ]*(?:please|bitte)?",
    re.I,
)
CHOSEN = re.compile(ONE_CHOSEN, re.I)
OPTIONS = re.compile(r"^(?=#{2,6} )", re.M)  # before the headings of options
DESCRIBING = 4  # words of an option that describe it
INLINE = re.compile(r"\(([a-hA-H]|\d)\) ?([^()\n]+?)(?=,? (?:or|oder|ou|o|and|und|et|y|e) \(|[,;] \(|[?？.;]|$)", re.M)
YES_NO = re.compile(
    r"(?:yes|yeah|yep|yup|no|nope|nah|not|sure|ok(?:ay)?|ja|nein|klar|oui|non|sí|si|sim|não|sì|да|нет|はい|いいえ|好|可以|不|"
    r"是|否|네|예|아니)(?![^\W_])|(?:はい|いいえ|好|可以|不|是|否|네|예|아니)",
    re.I,
)
OFFER = re.compile(
    r"\b(?:want me to|(?:would|do) you (?:like|want)|should (?:i|we)|shall (?:i|we)|(?:can|may) i|let me know if|"
    r"soll(?:en)? (?:ich|wir)|möchte(?:st|n)|voulez-vous|veux-tu|dois-je|quieres|quiere que|debo|quer que|devo|vuoi|"
    r"хотите|хочешь|мне )\b|ましょうか|ますか|要不要|需要我|要我|할까요|까요",
    re.I,
)
PROPOSES = re.compile(
    r"\b(?:I(?:['’](?:d|ll)| (?:would|can|could|suggest|recommend|propose|will))|we (?:can|could|should)|next|"
    r"if you (?:want|like|prefer)|ready to|let me|ich (?:kann|könnte|würde|schlage|werde)|je (?:peux|propose|vais)|"
    r"puedo|propongo|sugiero|posso|proponho|suggerisco|могу|предлагаю)\b|"
    r"できます|しましょう|建议|我可以|我[会會]|제안|할 수",
    re.I,
)
# How an answer asks without a question mark for a choice: "Say which granularity, and I'll rebase."
TELL = (
    "say", "tell me", "let me know", "pick", "choose", "decide", "sag mir", "sag",
    "dis-moi", "dites-moi", "dime", "diga",
)  # fmt: skip
CHOOSE = re.compile(
    rf"\b(?:{'|'.join(TELL)})\b[^.!?\n]{{0,20}}"
    r"\b(?:which|what|whether|how|where|if|one|welche\w*|was|ob|quel\w*|lequel|si|cuál|qué|qual|que)\b",
    re.I,
)
LEADS_ON = re.compile(r"[:：]\W{0,9}$")  # to what was done next, and not proposed
QUOTES = str.maketrans({'"': "'", "“": "'", "”": "'", "„": "'"})


def asks(text: str) -> bool:
    """Tell whether a text ends with a question."""
    return text.rstrip(" \n\t*_\"'”’)").endswith(("?", "？"))


def question_before(transcript: Transcript, message: Message) -> tuple[str, Message | None]:
    """Return what a short message of a user answers or agrees to, as one line, and the message that says it."""
    answer = own_text(message).strip()
    if not answer or len(answer) > SHORT or asks(answer) or ASKS.match(answer):
        return "", None
    if only_praises(answer.lower()):
        return "", None
    position = transcript.index.get(message.id, 0)
    for before in reversed(transcript.messages[max(position - BACK, 0) : position]):
        if is_turn(before):
            break
        if before.role == "assistant" and text_of(before).strip():
            if goes_on(message):
                proposed = _proposal(before)
                return proposed, before if proposed else None
            question = last_question(before)
            choice = _with_option(question, before, answer)
            return (choice, before) if choice != question or _answers(answer, question, before) else ("", None)
    return "", None


def with_lead(question: str, asking: Message) -> str:
    """Return a question, one that says little ("Do you agree?") with the sentence before it."""
    if not question or len(question.split()) > FEW or len(question) > (BRIEF if question.isascii() else BRIEF // 2):
        return question
    text = text_of(asking)[-LOOKED_AT:]
    at = text.replace("**", "  ").translate(QUOTES).rfind(question)
    sentences = SENTENCE.split(text[: max(at, 0)].rstrip(" *_\n"))
    before = next((each for each in reversed(sentences) if each.strip(" *_")), "")
    between = " " if question.isascii() else ""
    return f"{_quotable(before)}{between}{question}" if _has_words(before) and not LEADS_ON.search(before) else question


@memoized
def last_question(message: Message) -> str:
    """Return the last question in the words of the assistant."""
    questions = _questions(text_of(message)[-LOOKED_AT:])
    worded = [each for each in reversed(questions) if _has_words(each)]
    return _quotable(next(filter(_begins, worded), worded[0] if worded else ""))


@memoized
def closing_questions(message: Message) -> tuple[str, ...]:
    """Return the last questions near the end of what the assistant says, in order; what follows may recommend one."""
    text = text_of(message)[-LISTED_AT:]
    if not _marked(text[-NEAR_END:]):
        return ()
    return tuple(_quotable(each) for each in _questions(text) if _has_words(each) and _begins(each))[-SEVERAL:]


def option_chosen(asking: Message, answer: str) -> str:
    """Return the option of a list that a turn begins with the number of, before more words; else nothing."""
    choice = LEADING_CHOICE.match(answer)
    option = _option(text_of(asking)[-LOOKED_AT:], choice[1]) if choice else ""
    return f"{choice[1]}. {_short_option(option, OPTION_LENGTH)}" if choice and option else ""


def option_described(asking: Message, answer: str) -> str:
    """Return the heading of the option that a turn describes in words of it, where it is clearly one of several."""
    sections = [each for each in OPTIONS.split(text_of(asking)[-LOOKED_AT:])[1:] if "\n" in each.strip()]
    words = {word for word in words_of(answer) if len(word) >= LONG}
    shared = sorted(((len(words & words_of(each)), each) for each in sections), key=itemgetter(0), reverse=True)
    clear = len(shared) > 1 and shared[0][0] >= DESCRIBING and shared[0][0] >= 2 * shared[1][0]
    return _short_option(shared[0][1].lstrip(" #*").partition("\n")[0], OPTION_LENGTH) if clear else ""


@memoized
def asks_to_choose(message: Message) -> str:
    """Return the last sentence near the end of an answer that asks the user to choose, without a question mark."""
    text = text_of(message)[-LISTED_AT:]
    if not (any(map(text.lower().__contains__, TELL)) and CHOOSE.search(text)):  # as most, which need not be divided
        return ""
    choosing = (each for each in reversed(SENTENCE.split(text)) if not asks(each) and CHOOSE.search(each))
    return next(map(_quotable, choosing), "")


@memoized
def _proposal(message: Message) -> str:
    """Return the last sentence of the assistant that asks, offers or says what comes next."""
    short = ""  # a question such as "Shall I?" asks for what stands before it
    for sentence in reversed(SENTENCE.split(prose(message))[-TAIL:]):
        if asks(sentence) and len(sentence.split()) < FEW and sentence.isascii():
            short = short or sentence
        elif _has_words(sentence) and (asks(sentence) or (PROPOSES.search(sentence) and not LEADS_ON.search(sentence))):
            return _quotable(sentence)
    return _quotable(short) if _has_words(short) else ""


def _questions(text: str) -> list[str]:
    """Return the sentences of a text that end with a question mark."""
    questions: list[str] = QUESTION_MARKED.findall(text) if _marked(text) else []  # looks for one from each sign on
    return questions


def _marked(text: str) -> bool:
    return "?" in text or "？" in text


def _has_words(text: str) -> bool:
    """Tell whether a text is more than one word; scripts without blanks show none."""
    return len(text.split()) > 1 or not text.isascii()


def _begins(question: str) -> bool:
    """Tell whether a question is whole: one that begins with a small letter is the rest of a sentence."""
    return not question.lstrip(" -*#>'\"(“`0123456789.)").translate(QUOTES)[:1].islower()


def _quotable(sentence: str) -> str:
    return one_line(sentence.replace("**", "").strip(" -*#>'\")”"), QUESTION).translate(QUOTES)


def _answers(answer: str, question: str, asking: Message) -> bool:
    """Tell whether words answer a question: with yes or no, with a word of it, or as a few words right behind it."""
    if YES_NO.match(answer):
        return bool(closing_questions(asking)) or len(text_of(asking)) <= LISTED_AT
    if OFFER.search(question) and " or " not in question:
        return False
    shared = words_of(answer) & words_of(question)
    if any(len(word) >= LONG or not word.isascii() for word in shared):
        return True
    ends = text_of(asking).rstrip()
    return len(answer.split()) <= FEW and max(map(ends.rfind, "?？")) >= len(ends) - BEHIND


def _with_option(question: str, asking: Message, answer: str) -> str:
    """Return a question with the options that numbers, letters or words such as "the second" stand for."""
    text = text_of(asking)[-LOOKED_AT:]
    choices = _choices(answer)
    if len(choices) == 1 and (option := _option(text, choices[0])):
        return f"{question} {choices[0]}. {_short_option(option, OPTION_LENGTH)}".lstrip()
    if len(choices) == 1 and (inline := [each for each in INLINE.findall(text) if each[0].lower() == choices[0]]):
        return f"{question} ({choices[0]}) {_short_option(inline[-1][1], OPTION_LENGTH)}".lstrip()
    chosen = [_of_several(text, each) for each in choices] if len(choices) > 1 else []
    return "; ".join(chosen) if chosen and all(chosen) else question


def _choices(answer: str) -> list[str]:
    """Return what an answer chooses by number, letter or ordinal: "2", "the second" or "1a 2b"; else nothing."""
    if choice := CHOICE.fullmatch(answer.partition("\n")[0].strip()):
        return [choice[1].lower()]
    if ordinal := ORDINAL.fullmatch(answer):
        word = ordinal[1].lower()
        return [str(number) for number, words in enumerate(ORDINALS, 1) if word in words.split()][:1]
    return (
        [re.sub(r"[^\da-h]", "", each.lower()) for each in CHOSEN.findall(answer)]
        if SEVERAL_CHOSEN.fullmatch(answer)
        else []
    )


def _of_several(text: str, choice: str) -> str:
    """Return the question or the option that a number stands for, with its option where a letter follows: "1a"."""
    number, letter = choice.rstrip("abcdefgh"), choice.lstrip("0123456789")
    item = _item(text, number)
    title = _short_option(item.partition("\n")[0], ITEM_LENGTH)
    option = _option(item.partition("\n")[2], letter) if letter else ""
    if letter and not option:
        return ""
    return (
        f"{number}. {title} {letter}) {_short_option(option, ITEM_LENGTH)}"
        if letter
        else title and f"{number}. {title}"
    )


def _item(text: str, number: str) -> str:
    """Return the last item of a numbered list with this number, with the lines below it."""
    items = re.findall(rf"^[ \t>*#-]*\(?{number}[.):*]+\s*(.+(?:\n(?![ \t>*#-]*\(?\d{{1,2}}[.):*]+\s).*)*)", text, re.M)
    return items[-1] if items else ""


def _option(text: str, choice: str) -> str:
    options = re.findall(rf"^[\s>*-]*[(\[]?{choice}[.):*\]]+\s*(.+)$", text, re.M | re.I) or re.findall(
        rf"^[\s>*#-]*\w+ \(?{choice}[.):*：]+\s*(.+)$", text, re.M | re.I
    )  # "Option A: …"
    return options[-1] if options else ""


def _short_option(text: str, length: int) -> str:
    return one_line(text.strip("* ").replace("**", ""), length).translate(QUOTES)
