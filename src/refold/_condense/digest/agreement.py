"""Tells whether a short turn of a user only agrees, tells to continue, thanks, praises, or hands the work over."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.digest.previous import own_text
from refold.core.messages import Text, memoized

if TYPE_CHECKING:
    from refold.core.messages import Message

__all__ = ["SHORT", "WORD", "goes_on", "only_delivers", "only_praises"]

SHORT = 80  # characters of an answer that is not clear without its question
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
AGREEING = (
    "yes yeah yep yup sure ok okay go ahead continue proceed do sounds looks lgtm agreed absolutely right correct "
    "ja jep klar genau mach machen weiter gerne einverstanden oui vas d'accord continuez continuer allez sí si claro "
    "adelante hazlo sigue continúa procede vale sim pode faça prossiga continua certo procedi va bene vai "
    "да давай продолжай продолжайте хорошо конечно ок 開始 开始 시작"
)
FILLING = (
    "please thanks thank you that this it them the with now then all on and just good great perfect fine nice job work "
    "well so of course bitte das es danke alles so doch s'il vous plaît te y ça bien por favor eso todo gracias em "
    "frente isso tudo obrigado per favore pure tutto grazie пожалуйста это всё так спасибо"
)
PRAISING = (
    "thanks thank thx ty great perfect nice cool awesome excellent wow amazing super toll genial prima danke merci "
    "gracias obrigado obrigada grazie спасибо"
)
AROUND_PRAISE = "very much so a lot many looking looks works working everything all is love"  # words around praise
AGREES, FILLS = frozenset(AGREEING.split()), frozenset(FILLING.split())
PRAISES = frozenset(PRAISING.split())
# What hands over the work that is there, and words around it.
DELIVERING = "commit commits committed push pushed merge merged deploy pr prs committe pushe mergen"
AROUND_DELIVERY = (
    "a to into in up for we you i can could let let's lets want like get put open raise create make changes change "
    "work request pull branch main master origin remote upstream yet already also both everything nah new"
)
DELIVERS = frozenset(DELIVERING.split())
IDLE = AGREES | FILLS | PRAISES | frozenset(AROUND_PRAISE.split())
AGREES_UNSPACED = re.compile(
    r"(?:はい|ええ|うん|了解(?:です)?|お願いします|続けて(?:ください)?|進めて(?:ください)?|いいです(?:よ|ね)?|好的?|可以|继续|繼續|是的?|行|嗯|没问题|"
    r"[開开]始|"
    r"네|예|응|그래|좋아요?|좋습니다|계속(?: ?해(?:줘|주세요))?|진행(?: ?해(?:줘|주세요))?|[ 、。,，!！.~吧啊呀])+"
)

DELIVERS_UNSPACED = re.compile(
    r"(?:コミット|プッシュ|マージ|提交|推送|合并|合併|커밋|푸시|して|し|ください|하고|해줘?|吧|并|並|和|到|请|請|PR|pr|push|"
    r"commit|[ 、。,，!！.])+"
)


@memoized
def goes_on(message: Message) -> bool:
    """Tell whether a user's turn only agrees, tells to continue, thanks or praises."""
    text = own_text(message).strip().lower().replace("’", "'")
    if len(text) > SHORT or WORD.search(text) is None or any(not isinstance(part, Text) for part in message.parts):
        return False
    words = set(WORD.findall(text))
    return (
        (words <= AGREES | FILLS and not words.isdisjoint(AGREES))
        or _praises(words)
        or AGREES_UNSPACED.fullmatch(text) is not None
    )


def only_praises(text: str) -> bool:
    """Tell whether a text in small letters thanks or praises, and does no more: it agrees to nothing."""
    first = WORD.search(text)  # most texts begin with another word, and need not be read
    return first is not None and first[0] in IDLE and _praises(set(WORD.findall(text)))


def only_delivers(text: str) -> bool:
    """Tell whether a text tells to commit, push or merge what is there, and does no more: that says nothing of it."""
    words = set(WORD.findall(text.lower().replace("’", "'"))) if len(text) <= SHORT else set()
    if words and not words.isdisjoint(DELIVERS):
        return words <= IDLE | DELIVERS | frozenset(AROUND_DELIVERY.split())
    return DELIVERS_UNSPACED.fullmatch(text.strip()) is not None if words and not text.isascii() else False


def _praises(words: set[str]) -> bool:
    return words <= IDLE and not words.isdisjoint(PRAISES) and words.isdisjoint(AGREES)
