"""Finds the lines of a long text that say what is to be done: rules, requirements, open work.

Three sorts of texts are cut and must not lose these lines first: what a user asked, instructions of a harness, and the
summary of an earlier context, which a harness puts where the work began. A line has a rank, the first being the best:

1. of a summary: what stands under headings for open work ("Pending tasks", "Current work", "Next step"); of
   instructions: lines that forbid, oblige or limit; of a request: how it begins and ends, such lines, what stands right
   below "Do not:" and the like, numbered items, and headings;
2. of a summary: what users asked, goals and constraints; of instructions: items under headings such as "Rules" or
   "Guidelines"; of a request: all other items of lists;
3. of a summary: lines that forbid, oblige or limit; of a request: the other words that are the user's own;
4. of a request: words that were pasted into it;
5. of a request: code that was.

All other lines have none. Headings are read in ten languages, in the shapes that models write them: with number signs,
in bold, with a colon, as tags.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.pasted import pasted_spans
from refold._condense.pins import BORDER, LONGEST, pins_of, places_of_pins
from refold._salience.segments import Segment, excerpt, segments
from refold._text.places import places_of
from refold._text.text_cache import text_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["TextKind", "ranks_of", "shortened"]

TextKind: TypeAlias = Literal["request", "instructions", "recap"]
Span: TypeAlias = tuple[int, int]
LINE = 400  # characters of a line that is kept as a whole; of a longer one its sentences are
OPENING, ENDING = 3, 2  # lines of a request, at its ends, that say what it is
SHORT = 40  # characters that are not worth a marker
FENCES = ("```", "~~~")
PASTED, CODE = 4, 5  # the ranks of words and of code that were pasted into a request
NONE = 9  # the rank of a line that has none
GUESSES = 8  # of how many lines fit, before the number is halved: three to five are needed as a rule
NOTHING: frozenset[str] = frozenset()
HEADING = re.compile(
    r"(?=\S)(?:(#{1,6})\s+(.{2,80}?)\s*#*|(?:\d{1,2}[.)]\s+)?\*\*([^*]{2,60})\*\*:?|(?:\d{1,2}[.)]\s+)?([^:：]{2,60})[:：]|"
    r"<([a-z][a-z_ -]{2,40})>)"
)
HEADING_ENDS = frozenset(":：*>")  # a line with another end, and without a number sign, is none
FRAME = re.compile(r"([-=*_~#])\1{3,}")
ITEM = re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+\S")
NUMBERED = re.compile(r"\s*\(?\d{1,3}[.)]\s+\S")
LABEL, TAG = 7, 0  # levels of headings without number signs: all under one with them, tags above all
OPEN_WORK = re.compile(
    r"\b(?:pending|remaining|what remains|open (?:tasks?|work|issues|items)|to-?dos?|in[- ]progress|unfinished|blocked|"
    r"current[ _](?:work|task|state|status|plan|step|focus)|next[ _](?:steps?|actions?)|"
    r"offene?r?|ausstehend\w*|nächste\w* schritte?|aktuelle\w* (?:arbeit|aufgabe|stand)|in arbeit|"
    r"en (?:attente|cours)|prochaines? étapes?|reste à faire|tâches restantes|"
    r"pendientes?|en curso|(?:próximos?|siguientes?) pasos?|trabajo actual|"
    r"em andamento|próximos? passos?|trabalho atual|"
    r"in (?:sospeso|corso)|prossim[oi] pass[oi]|lavoro attuale|da fare)\b|"
    r"следующ|текущ|осталось|незаверш|次のステップ|次の手順|残り|未完了|現在の作業|進行中|"
    r"下一步|待办|待辦|待处理|待處理|剩余|当前(?:工作|任务|状态)|进行中|다음 단계|남은|미완료|현재 작업|진행 중",
    re.I,
)
REQUESTED = re.compile(
    r"\b(?:user(?:['’]s)? (?:messages?|requests?|instructions|preferences)|(?:overall[ _])?goals?|objectives?|"
    r"primary request|request and intent|instructions|constraints?|preferences|requirements|"
    r"ziele?|anweisungen|vorgaben|nachrichten des nutzers|"
    r"objectifs?|messages de l['’]utilisateur|consignes|contraintes|préférences|"
    r"objetivos?|mensajes del usuario|mensagens do usuário|instruc\w+|instruções|restric\w+|restrições|preferenc\w+|"
    r"obiettiv[oi]|messaggi dell['’]utente|istruzioni|vincoli)\b|"
    r"цел[ьи]|сообщения пользователя|инструкции|ограничения|目的|目標|ユーザーの?(?:メッセージ|要求|指示)|制約|指示|"
    r"目标|用户(?:消息|请求|要求)|约束|要求|목표|사용자 (?:메시지|요청)|제약|지침",
    re.I,
)
LEARNED = re.compile(  # what went wrong, and how it was mended
    r"\b(?:errors? (?:and|&) (?:fixes|solutions)|errors? encountered|failed (?:attempts|approaches)|"
    r"what (?:failed|did(?: not|n['’]t) work)|lessons(?: learned)?|pitfalls|gotchas|caveats|"
    r"fehler und \w+|erreurs et \w+|errores y \w+|erros e \w+|errori e \w+)\b|"
    r"ошибки и |エラーと|错误(?:和|与)|錯誤(?:和|與)|오류 및",
    re.I,
)
RULES = re.compile(
    r"\b(?:rules?|guidelines?|guardrails?|conventions?|constraints?|requirements?|must(?:s| not)?|never|always|"
    r"do(?:n['’]ts?| not)|routing|workflows?|gates?|procedures?|checklists?|"
    r"important|polic(?:y|ies)|principles?|boundaries|forbidden|prohibited|restrictions?|"
    r"regeln?|richtlinien?|vorgaben|anforderungen|verbote\w*|règles?|consignes|contraintes|exigences|"
    r"reglas?|normas|restricciones|requisitos|regras?|diretrizes|restrições|regole|linee guida|vincoli|requisiti)\b|"
    r"правила|требования|ограничения|запре|ルール|規則|規約|ガイドライン|制約|要件|禁止|规则|規則|准则|规范|约定|要求|"
    r"규칙|지침|금지",
    re.I,
)


FIRM = re.compile(r"\b(?:before|stop|skip|wait|gates?|(?:is|are) not|erst|vorher|avant|antes|prima)\b|之前|前に", re.I)


class _RankedLine(Struct, frozen=True, gc=False):
    """A line of a text, or a sentence of a long line: where it starts and ends, and its rank."""

    start: int
    stop: int
    rank: int


def ranks_of(text: str, pieces: Sequence[Segment], kind: TextKind) -> dict[int, int]:
    """Return the best rank of a line in each segment that holds one with a rank, by where the segment starts."""
    starts = [segment.start for segment in pieces]
    ranks: dict[int, int] = {}
    for piece in _pieces(text, kind) if starts else ():
        if piece.rank < NONE:
            start = starts[max(bisect_right(starts, piece.start) - 1, 0)]
            ranks[start] = min(piece.rank, ranks.get(start, piece.rank))
    return ranks


def shortened(text: str, limit: int, count: Callable[[str], int], kind: TextKind, keep: Sequence[str] = ()) -> str:
    """Return a text of at most `limit` tokens if that can be: the lines of the best ranks, and markers.

    Sentences in `keep` stay; with them the result may be above the limit.
    """
    whole = count(text)
    if whole <= limit:
        return text
    spans, chars, pins, first = _by_rank(text, kind, tuple(keep))

    def showing(number: int) -> str:
        chosen = (*spans[:number], *pins)
        return excerpt(text, _joined(sorted(chosen), len(text))).rstrip()

    low, high, fitting = 0, len(spans), ""
    # To write and count a long text is dear, and its tokens grow nearly evenly with its characters: so the number of
    # lines that fit is guessed from the last two that were tried.
    last, middle = (chars[-1], whole), first
    for more in range(high.bit_length() + GUESSES):
        if low == high:
            break
        excerpted = showing(middle)
        size = count(excerpted)
        if size <= limit:
            low, fitting = middle, excerpted
        else:
            high = max(middle - 1, 0)
        if more < GUESSES and size != last[1]:
            aim = chars[middle] + (limit - size) * (last[0] - chars[middle]) / (last[1] - size)
            last, middle = (chars[middle], size), min(max(bisect_right(chars, aim) - 1, low + 1), high)
        else:
            middle = (low + high + 1) // 2
    return fitting or showing(low)


class _Order(NamedTuple):
    """The lines of a text as spans, those with pins first, then the best; what stays with each pin is in `pins`.

    `chars` are the characters of so many lines, and `first` is how many hold pins.
    """

    spans: tuple[Span, ...]
    chars: tuple[int, ...]
    pins: tuple[Span, ...]
    first: int


@text_cache  # the same turn is cut again and again while a goal is approached
def _by_rank(text: str, kind: TextKind, keep: tuple[str, ...]) -> _Order:
    """Return the order in which the lines of a text stay, with sentences in `keep` always."""
    pieces = _pieces(text, kind)
    starts = [piece.start for piece in pieces]
    places = [(place, place + len(pin)) for pin, place in places_of(keep, text) if place >= 0]
    pinned = {bisect_right(starts, start) - 1 for start, _ in places}
    ordered = sorted(range(len(pieces)), key=lambda number: (number not in pinned, pieces[number].rank, number))
    spans = tuple([(pieces[one].start, pieces[one].stop) for one in ordered])
    chars = tuple(accumulate((stop - start for start, stop in spans), initial=0))
    return _Order(spans, chars, tuple([_with_ends(text, span) for span in places]), len(pinned))


def _with_ends(text: str, span: Span) -> Span:
    """Return the place of a sentence with what little stands beside it in its line."""
    first, end = text.rfind("\n", 0, span[0]) + 1, text.find("\n", span[1])
    last = end + 1 if end >= 0 else len(text)
    return (first if span[0] - first <= SHORT else span[0]), (last if last - span[1] <= SHORT else span[1])


def _joined(spans: Sequence[Span], size: int) -> list[Segment]:
    """Return spans in order as segments; what lies between two of them stays where a marker would be as long."""
    joined: list[Span] = []
    for start, stop in spans:
        if joined and start - joined[-1][1] <= SHORT:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start if start > SHORT else 0, stop))
    if joined and size - joined[-1][1] <= SHORT:
        joined[-1] = joined[-1][0], size
    return [Segment(start, stop, NOTHING) for start, stop in joined]


@text_cache
def _pieces(text: str, kind: TextKind) -> tuple[_RankedLine, ...]:
    """Return the lines of a text, long ones by sentence, with their ranks; blank lines belong to those before them."""
    pasted, pinned = pasted_spans(text), places_of_pins(text, frozenset(pins_of(text)))
    lines = text.split("\n")
    last = sum(not line.isspace() and bool(line) for line in lines) - ENDING
    pieces: list[_RankedLine] = []
    sections: list[tuple[int, str]] = []  # the headings that a line stands under, by level
    spoken = at = passed = 0
    fenced = False
    ruled, below = False, 0  # whether a line stands under "Do not:" or the like, and how many lines below that
    for number, line in enumerate(lines):
        start, at = at, min(at + len(line) + 1, len(text))
        if not line.strip() and pieces:
            pieces[-1] = replace(pieces[-1], stop=at)
            ruled = ruled and not below  # a blank line ends it, but for one right below
            continue
        spoken += 1
        while passed < len(pasted) and pasted[passed][1] <= start:
            passed += 1
        quoted = passed < len(pasted) and pasted[passed][0] <= start
        fence = quoted and line.lstrip().startswith(FENCES)
        fenced = quoted and fenced != fence
        heading = None if quoted else _heading(line) or _framed(lines, number)
        if heading is not None:
            level, title = heading
            while sections and sections[-1][0] >= level:
                sections.pop()
            sections.append((level, title))
            ruled, below = RULES.search(title) is not None, 0
            titled = level != LABEL
        else:
            below += 1
            titled = False
        if kind == "recap" and spoken == 1:
            rank = 1  # it says what the text is
        elif kind == "request" and (spoken <= OPENING or (not quoted and (spoken > last or ruled or titled))):
            rank = 1
        elif kind == "request" and quoted:
            rank = CODE if fence or fenced else PASTED
        else:
            limits = bisect_left(pinned, at) > bisect_left(pinned, start)
            if pinned and at - start > LONGEST:  # its sentences may have been split
                limits = bool(pins_of(text[start:at]))
            rank = _rank(line, kind, tuple(title for _, title in sections), limits=limits and not quoted)
        ends = [start + end for end in _ends(line)] if len(line) > LINE else []
        pieces += [_RankedLine(*span, rank) for span in pairwise(sorted({start, *ends, at})) if span[0] < span[1]]
    return tuple(pieces)


def _ends(line: str) -> Iterator[int]:
    """Yield where the sentences of a long line end, and the parts of a sentence that is itself too long."""
    start = 0
    for end in (*(border.end() for border in BORDER.finditer(line)), len(line)):
        if end - start > LINE:
            yield from (start + part.stop for part in segments(line[start:end]))
        yield end
        start = end


def _heading(line: str) -> tuple[int, str] | None:
    """Return level and title of a heading."""
    line = line.rstrip()
    if line[:1] != "#" and line[-1:] not in HEADING_ENDS:
        return None
    match = HEADING.fullmatch(line)
    if match is None:
        return None
    signs, title, bold, label, tag = match.groups()
    if signs:
        return len(signs), title
    return (TAG, tag.replace("_", " ")) if tag else (LABEL, bold or label)


def _framed(lines: Sequence[str], number: int) -> tuple[int, str] | None:
    """Return level and title of a heading between two lines of the same sign."""
    framed = 0 < number < len(lines) - 1 and FRAME.fullmatch(lines[number + 1].strip())
    return (1, lines[number].strip()) if framed and lines[number - 1].strip() == lines[number + 1].strip() else None


def _rank(line: str, kind: TextKind, titles: tuple[str, ...], *, limits: bool) -> int:
    listed = ITEM.match(line) is not None
    if kind == "recap":
        if _under(OPEN_WORK, titles):
            return 1
        return 2 if _under(REQUESTED, titles) or _under(LEARNED, titles) else 3 if limits else NONE
    if kind == "instructions":
        return 1 if limits or FIRM.search(line) else 2 if listed and _under(RULES, titles) else NONE
    return 1 if limits or NUMBERED.match(line) else 2 if listed else 3


@lru_cache(maxsize=64)  # each line of a section asks for the same
def _under(what: re.Pattern[str], titles: tuple[str, ...]) -> bool:
    return any(map(what.search, titles))
