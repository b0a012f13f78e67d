"""Says which old lines the newest request asks for, which the last steps are about, and which report an error.

Theory of operation. The salience model knows identifiers; a question asks in plain words, and its answer may hold no
identifier at all. So each segment of an output is also ranked as a search engine would, by the words it shows:

1. The words of the newest request that somebody typed, each two that stand beside each other as one more word (a name
   is rarer than the words in it), and the words that the assistant wrote in its last steps.
2. A word weighs the more the fewer segments of outputs hold it: 1 if only one does, 0 if a word is everywhere. Equal
   segments count once: an output that was seen five times makes no word common. The set of words of an output is found
   when it arrives; only outputs that hold a rare word are read.
3. A segment scores the words in it, and for a part (`AROUND`) those that stand in the same output: a row of a table has
   its name, the head of the table the names of its columns.
4. The best segments get worth by token beside that of their identifiers, as far as a share of the goal (`weigh`). What
   stands right behind a line that is asked for gets some, too: the value may be in the next line.
5. Of lines that say the same of what is asked for but for their values (`VALUE`), in two or three outputs, only that of
   the newest may come back: the older value was replaced. More such lines are a series, and all of them count.

What the assistant said is ranked in the same way, apart from outputs (`weigh_answers`): an old plan or answer of its
own about what is asked for now. Where the newest turn only says to go on, the words are those of the turn before it.

Errors need no question. A line that reports one has worth if few lines do: one fatal line in a week of logs, but not
one of a thousand warnings. Signs of errors are counted each for itself (`SIGNS`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from math import log
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from refold._condense.digest.agreement import goes_on
from refold._salience.lazy_table import LazyTable
from refold._salience.segments import segments_of
from refold._salience.words import SpokenText, occurrences, phrases_of, small, words_of, words_of_result
from refold.core._speakers import is_turn, words_of_user
from refold.core.messages import Text, ToolCall, ToolResult, memoized

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from refold._salience.cover import Unit
    from refold.core.messages import Message, MessageId, Path
    from refold.core.transcript import Transcript

__all__ = ["RankedUnit", "Scores", "prepare", "scores_of", "wanted_in", "weigh", "weigh_answers"]

# Chosen by hand; benchmarks/questions.py and benchmarks/recall.py measure what they give together.
REQUESTED, STEPPED, WRONG = 0.034, 0.002, 0.02  # worth by token: of what is asked for, of the topic at work, of errors
REQUEST_ROOM, WRONG_ROOM = 0.08, 0.015  # of the goal, for what is asked for and for errors
ANSWER_ROOM = 0.04  # of the goal, for what the assistant said of what is asked for
SPOKEN = 80  # characters of a text of the assistant that may say something of it
WHOLE = 0.5  # of the best score in a text, for the text as a whole
LEAST_ROOM, SMALL = 600, 0.25  # tokens of each, as far as they are no more than this share of the goal
NEAR_BEST = 0.4  # of the best score, from which a segment is asked for
CLEAR = 0.6  # the least score of the best: less is chance
BEHIND = 0.5  # of the score of a segment, for what stands right behind it
AROUND = 0.3  # of a word that stands elsewhere in the same output
RARE, FEWEST = 0.45, 60  # the least weight of a word that counts, and segments up to which any counts
WORDS = 64  # of a request or of the last steps, the rarest
REMEMBERED = 3 * WORDS  # of which a text remembers how often it holds them and where
POWER = 2  # of the weight of a word: one rare word tells more than several common ones
OFTEN = 4  # times as many places as segments that may hold a word, beyond which it is not located
SAME = 0.6  # of the best score, from which lines are compared with newer ones
NAMED = 2  # words of the request in a line that says what is asked for
FEW_VALUES = 3  # lines that say the same with other values; more are a series
NEVER = -1.0  # worth by token of what may not come back
VALUE = re.compile(  # what may differ between lines that say the same: times, numbers that stand alone, assigned words
    r"\d{4}-\d\d-\d\d[T ]?[\d:.,Z+]*|(?<![A-Za-z0-9_.-])\d[\d.,:]*(?![A-Za-z0-9_-])|(?<=[=:])\s*[^\s=:]+(?=\s*[,;]?$)"
)
STEPS = 14  # messages that are the last steps
FEW = 8  # lines with a sign of error up to which each has its full worth
# How a line reports an error, and how grave that is. In code and prose the same words are many, and then worth little.
GRAVE = (
    "FATAL",
    "CRITICAL",
    "PANIC",
    "EMERG",
    "SEVERE",
    "fatal",
    "panic",
    "Traceback (most recent",
    "致命",
    "critical",
)
SIGNS = {
    **dict.fromkeys(GRAVE, 1.0),
    **dict.fromkeys(
        ("ERROR", "Error: ", "error: ", "Exception: ", "FAILED", "Fehler: ", "Erreur", "错误", "エラー", "오류"), 0.5
    ),
}

Place = tuple["MessageId", "Path"]
Entry = TypeVar("Entry")


class Scores(Struct, frozen=True):
    """Scores of the segments of outputs by the place of the output, then by where the segment starts.

    `words` are those of the newest request that few segments hold.
    """

    requested: Mapping[Place, Mapping[int, float]]
    stepped: Mapping[Place, Mapping[int, float]]
    wrong: Mapping[Place, Mapping[int, float]]
    replaced: frozenset[tuple[Place, int]] = frozenset()
    answered: Mapping[Place, Mapping[int, float]] = {}
    words: frozenset[str] = frozenset()

    def known(self, place: Place) -> frozenset[int]:
        """Return where the segments of an output start that have a score."""
        return frozenset().union(*(by_place.get(place, ()) for by_place in (self.requested, self.stepped, self.wrong)))


class RankedUnit(Struct, frozen=True, gc=False):
    """A segment with a score: the unit with which it comes back, where it starts, and the place of its output.

    With `whole` the unit is the call with its whole output. `new` is the share that nothing better says.
    """

    unit: Unit
    start: int
    place: Place
    whole: bool = False
    new: float = 1.0

    def score(self, scores: Mapping[Place, Mapping[int, float]]) -> float:
        """Return its score for what is new in it."""
        return scores.get(self.place, {}).get(self.start, 0.0) * self.new


def prepare(message: Message) -> None:
    """Find the words and the signs of errors of a message's outputs; the outputs remember them."""
    for result in message.results:
        words_of_result(result)
        _signs(result)
    for text in _spoken(message).values():
        words_of_result(text)
        segments_of(text)


@memoized
def _spoken(message: Message) -> dict[Path, SpokenText]:
    """Return the texts of an assistant's message that are worth a search, by path."""
    if message.role != "assistant":
        return {}
    texts = (part for part in message.parts if isinstance(part, Text) and len(part.text) >= SPOKEN)
    return {part.at: SpokenText(part.text) for part in texts}


@memoized
def scores_of(transcript: Transcript) -> Scores:
    """Return how far each segment of an output is what the end of a transcript asks for, and which report errors."""
    messages = [message for message in transcript.messages if message.note is None]
    outputs = {(message.id, result.at): result for message in messages for result in message.results}
    turns = (message for message in reversed(messages) if is_turn(message) and words_of_user(message))
    request = next((message for message in turns if not goes_on(message)), None)
    typed = words_of_user(request) if request else ""
    requested = words_of(typed)
    steps = frozenset().union(*(_own_words(message) for message in messages[-STEPS:])) - requested
    phrases = phrases_of(typed)
    searched = _Searched(outputs)
    ranked, rare = _ranked(searched, requested, phrases)
    replaced = frozenset(_replaced(outputs, ranked, requested))
    spoken = {(message.id, at): text for message in messages for at, text in _spoken(message).items()}
    answered, _ = _ranked(_Searched(spoken), requested, phrases)
    stepped, _ = _ranked(searched, steps, {})
    return Scores(ranked, stepped, _wrong(outputs), replaced, answered, rare & requested)


def wanted_in(scores: Scores, place: Place) -> tuple[int, ...]:
    """Return where the segments of an output start that are asked for or report a rare error, the best first."""
    requested = scores.requested.get(place, {})
    best = max(requested.values(), default=0.0)
    topical = {start: score / best for start, score in requested.items() if score > NEAR_BEST * best and best >= CLEAR}
    wanted = {start: worth * WRONG / REQUESTED for start, worth in scores.wrong.get(place, {}).items()}
    for start, score in topical.items():
        wanted[start] = wanted.get(start, 0.0) + score
    return tuple(sorted(wanted, key=lambda start: (-wanted[start], start)))


def weigh(candidates: Iterable[RankedUnit], scores: Scores, goal: int) -> None:
    """Add worth to segments that may come back: what is asked for and errors within their room, then the topic."""
    staying: list[RankedUnit] = []
    for candidate in candidates:
        if (candidate.place, candidate.start) in scores.replaced:
            candidate.unit.extra = NEVER
        else:
            staying.append(candidate)
    least = min(LEAST_ROOM, goal * SMALL)
    requested = [(each.score(scores.requested), each.unit) for each in staying]
    wrong = [(each.score(scores.wrong), each.unit) for each in staying]
    best = max((score for score, _ in requested), default=0.0)
    if best >= CLEAR:
        _add(requested, NEAR_BEST * best, REQUESTED / best, max(goal * REQUEST_ROOM, least))
    _add(wrong, 0.0, WRONG, max(goal * WRONG_ROOM, least))
    stepped = [(each.score(scores.stepped), each.unit) for each in staying if not each.whole]
    best = max((score for score, _ in stepped), default=0.0)
    for score, unit in stepped:
        if score > best / 2:
            unit.extra += STEPPED * score / max(best, CLEAR)


def weigh_answers(units: Iterable[tuple[Unit, Place, int]], scores: Scores, goal: int) -> None:
    """Add worth to what the assistant said of what is asked for: a segment by its start, a whole text by -1."""
    scored = [
        (max(by_start.values(), default=0.0) * WHOLE if start < 0 else by_start.get(start, 0.0), unit)
        for unit, place, start in units
        if (by_start := scores.answered.get(place, {}))
    ]
    best = max((score for score, _ in scored), default=0.0)
    if best >= CLEAR * WHOLE:
        least = min(LEAST_ROOM, goal * SMALL)
        _add(scored, NEAR_BEST * best, REQUESTED / best, max(goal * ANSWER_ROOM, least))


def _add(scored: Iterable[tuple[float, Unit]], least: float, worth: float, room: float) -> None:
    """Add worth to the best units for their score, until their room is spent; a call that has to come along counts."""
    for score, unit in sorted((pair for pair in scored if pair[0] > least), key=lambda pair: -pair[0]):
        room -= unit.cost
        if room < 0:
            break
        along = unit.after.cost / unit.cost if unit.after else 0.0
        unit.extra += worth * score * (1 + along)


class _Searched:
    """Texts by their place, with what a search asks of each again: its small form, and where its segments start."""

    def __init__(self, texts: Mapping[Place, ToolResult | SpokenText]) -> None:
        self.texts = texts
        self.lower = LazyTable(lambda place: small(texts[place].text))
        self.starts = LazyTable(lambda place: [segment.start for segment in segments_of(texts[place])])
        self.segments = sum(map(len, map(segments_of, texts.values())))

    def times(self, word: str, place: Place) -> int:
        """Return how often a text holds a word, also within others."""
        known = _times(self.texts[place])
        if (times := known.get(word)) is None:
            times = _add_word(known, word, self.lower[place].count(word))
        return times

    def located(self, word: str, place: Place) -> dict[int, int]:
        """Return which segments of a text hold a word: see `_segments_with`."""
        known = _located(self.texts[place])
        if (starts := known.get(word)) is None:
            starts = _add_word(known, word, _segments_with(word, place, self))
        return starts


@memoized
def _times(text: ToolResult | SpokenText) -> dict[str, int]:
    """Return how often a text holds the words that passes have searched it for lately: the next one asks again."""
    return {}


@memoized
def _located(text: ToolResult | SpokenText) -> dict[str, dict[int, int]]:
    """Return in which segments such words stand."""
    return {}


def _add_word(known: dict[str, Entry], word: str, entry: Entry) -> Entry:
    """Remember what was found of a word, beside that of a few others."""
    if len(known) >= REMEMBERED:
        known.clear()
    known[word] = entry
    return entry


def _ranked(
    searched: _Searched, words: frozenset[str], phrases: Mapping[str, frozenset[str]]
) -> tuple[dict[Place, dict[int, float]], frozenset[str]]:
    """Return the scores of segments by the rare words and phrases they hold, and these."""
    holding: dict[str, list[Place]] = {}
    for place, result in searched.texts.items():
        for word in _present(words_of_result(result), words, phrases):
            holding.setdefault(word, []).append(place)
    total = searched.segments
    most = max((1 + total) ** (1 - RARE), FEWEST)  # segments that may hold a word
    rarest = sorted(
        (word for word in holding if len(holding[word]) <= most), key=lambda word: (len(holding[word]), word)
    )
    places: dict[Place, dict[str, dict[int, int]]] = {}
    weights: dict[str, float] = {}
    for kind in (words, phrases):
        for word in [word for word in rarest if word in kind][:WORDS]:
            if sum(searched.times(word, place) for place in holding[word]) > OFTEN * most:
                continue
            located = {place: searched.located(word, place) for place in holding[word]}
            if 0 < sum(map(len, located.values())) <= most:
                number = len({text for at, starts in located.items() for text in _texts(searched.texts[at], starts)})
                weights[word] = (log((1 + total) / number) / log(1 + total)) ** POWER
                for place, starts in located.items():
                    if starts:
                        places.setdefault(place, {})[word] = starts
    scores: dict[Place, dict[int, float]] = {}
    for place, by_word in places.items():
        around = AROUND * sum(weights[word] for word in by_word)
        scored = scores[place] = {}
        for word, starts in by_word.items():
            for start in starts:
                scored[start] = scored.get(start, around) + (1 - AROUND) * weights[word]
        behind: dict[int, float] = {}
        for starts in by_word.values():
            for start, following in starts.items():
                if following >= 0 and start in scored:
                    behind[following] = max(BEHIND * scored[start], behind.get(following, 0.0))
        for start, score in behind.items():
            scored[start] = max(score, scored.get(start, 0.0))
    return scores, frozenset(weights)


def _present(known: frozenset[str], words: frozenset[str], phrases: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the words, and the phrases whose words are all, among those known."""
    if known.isdisjoint(words):  # as most outputs: no phrase is without a word
        return set()
    present = set(known & words)
    present.update(phrase for phrase, parts in phrases.items() if parts <= present)
    return present


def _replaced(
    outputs: Mapping[Place, ToolResult], scores: Mapping[Place, Mapping[int, float]], words: frozenset[str]
) -> Iterator[tuple[Place, int]]:
    """Yield the segments with a line that a newer output says again with another value, of what is asked for."""
    best = max((score for scored in scores.values() for score in scored.values()), default=0.0)
    lines: dict[str, list[tuple[Place, int, str]]] = {}
    for place, result in outputs.items() if best >= CLEAR else ():
        scored = scores.get(place, {})
        for segment in segments_of(result) if scored else ():
            if scored.get(segment.start, 0.0) >= SAME * best:
                for line in result.text[segment.start : segment.stop].split("\n"):
                    if len(words & words_of(line)) >= NAMED:
                        lines.setdefault(VALUE.sub("#", line), []).append((place, segment.start, line))
    for same in lines.values():
        newest = same[-1][0]
        if 2 <= len(same) <= FEW_VALUES and len({place for place, _, _ in same}) == len(same):
            yield from ((place, start) for place, start, line in same if place != newest)


def _segments_with(word: str, place: Place, searched: _Searched) -> dict[int, int]:
    """Return which segments hold a word, by their start, each with the start of the next if it ends there."""
    result, starts = searched.texts[place], searched.starts[place]
    text, pieces = result.text, segments_of(result)
    holding: dict[int, int] = {}
    for at in occurrences(word, text, searched.lower[place]):
        number = bisect_right(starts, at) - 1
        last = number + 1 < len(starts) and "\n" not in text[at : pieces[number].stop - 1]
        holding[starts[number]] = max(starts[number + 1] if last else -1, holding.get(starts[number], -1))
    return holding


def _texts(result: ToolResult | SpokenText, starts: Container[int]) -> Iterator[str]:
    """Yield the segments of a text that start there."""
    pieces = (segment for segment in segments_of(result) if segment.start in starts)
    return (result.text[segment.start : segment.stop] for segment in pieces)


def _own_words(message: Message) -> frozenset[str]:
    """Return the words that the assistant wrote, in words and in calls."""
    if message.role != "assistant":
        return frozenset()
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return words_of("\n".join([*texts, *(part.arguments for part in message.parts if isinstance(part, ToolCall))]))


def _wrong(outputs: Mapping[Place, ToolResult]) -> dict[Place, dict[int, float]]:
    """Return the worth of segments that report an error: the graver, and the rarer its sign is, the more."""
    signs = [(place, _signs(result)) for place, result in outputs.items()]
    count = Counter(sign for _, by_sign in signs for sign, starts in by_sign.items() for _ in starts)
    worth = {sign: SIGNS[sign] * min(1.0, FEW / number) for sign, number in count.items()}
    scores: dict[Place, dict[int, float]] = {}
    for place, by_sign in signs:
        for sign, starts in by_sign.items():
            scored = scores.setdefault(place, {})
            scored.update({start: max(worth[sign], scored.get(start, 0.0)) for start in starts})
    return scores


@memoized
def _signs(result: ToolResult) -> dict[str, tuple[int, ...]]:
    """Return where the segments start that hold a sign of an error."""
    text = result.text
    present = [sign for sign in SIGNS if sign in text]
    if not present:
        return {}
    starts = [segment.start for segment in segments_of(result)]
    by_sign: dict[str, tuple[int, ...]] = {}
    for sign in present:
        holding: dict[int, None] = {}
        at = text.find(sign)
        while at >= 0:
            if not at or not text[at - 1].isalnum() or not sign[0].isupper() or sign[1].islower():
                holding[starts[bisect_right(starts, at) - 1]] = None
            at = text.find(sign, at + len(sign))
        by_sign[sign] = tuple(holding)
    return by_sign
