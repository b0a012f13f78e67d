"""Searches the texts of a conversation, by the words of a pointer or of the text itself.

A query that repeats the name of a text brings that text from its beginning; any other brings the lines of several
texts that answer it together (`ranking`, `extracts`). Whoever recalls asks a `Ranking`: sessions and stores, the
gateway, the MCP server and the commands find the same texts in the same order. `RemovedMessages` are the texts that
plans took out of the view: the gateway looks at what the client has sent in this very request, so that nothing comes
from another conversation.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._condense.call_outline import call_line, one_line
from refold._counting.token_cut import cut_to_tokens
from refold._recall.extracts import Extract, chosen_extracts
from refold._recall.ranking import PassageIndex, terms_of
from refold.core._json import decoded, strings_within
from refold.core.edits import fold
from refold.core.messages import File, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from refold.core.budget import Budget
    from refold.core.counting import Counter
    from refold.core.messages import Message
    from refold.core.plan import Plan

__all__ = [
    "FULL",
    "ROOM",
    "Asking",
    "Ranking",
    "RecordedText",
    "RecordedTexts",
    "RemovedMessages",
    "line_of",
    "room_for",
    "texts_in",
]  # fmt: skip

RECALLING = ("refold_recall", "refold_search", "refold_context", "refold_undo")  # tools whose output is no original
MARK = "[original:"
FORGED = re.compile(r"^(\s*)\[original:", re.M | re.I)
WORD = re.compile(r"[\w./:@+-]*\w")
# Before the name in a line that stands in place of an output, and in a list of names.
STATE = re.compile(r"\A\s*(?:- |\[?(?:parts of the output|output \w+(?::[^\]]*)?)\] )?", re.I)
NOISE = frozenset({"the", "of", "and", "in", "to", "a", "lines", "line", "characters", "output", "cleared", "parts"})
NAMING = 24  # words up to which a query may be the words of a pointer
# Of a score, for what is no output of a tool: a step is written like the steps before it, and needs what they brought.
OWN = 0.6
WEAK = 0.15  # of the best score: what fits less is not shown
SPOKEN = "words"  # with which the name of what was said begins; it tells no source
MOST_TEXTS = 8  # texts of which an answer shows parts, where none is asked for by its name
GAP = 160  # characters between two parts of a text that are shown with them
SAMPLE = 4_000  # characters of a text by which its tokens are estimated
OTHERS = 16  # of the room of an answer, what the names of other texts may take
STANDING_MOST = 4  # names of texts in the view
SHORT = 200  # characters up to which arguments of a call are not worth a piece of their own
LISTED = 12  # pieces that are named where nothing is found, or beside what is shown
NAME = 160  # characters of such a name
EXCERPT = 240  # characters of the line that shows why a text was found
LEAST = 60  # tokens under which a piece is only named
ROOM = 200  # tokens; less room is none
MARGIN = 0.02  # of the window that originals leave free
READ_ON = "[For more of a text ask with its name, and with from_line.]"
OTHERS_TITLE = "More that holds some of this, by name"
STANDING = "[in front of you, as it was: {}]"
FULL = "There is no room for this in the context window now. Go on with what is in front of you."


class Asking(Struct, frozen=True):
    """What a model wants back: words, or a message's id; and the line to begin at, counted from 1."""

    query: str
    from_line: int = 0


class RecordedText(Struct, frozen=True):
    """A text of a conversation: the message it stands in, and one line that names it.

    `searched` is the text to search in; of the arguments of a call these are the values, without escapes. `own` is what
    was said or called, and no output.
    """

    place: int
    id: str
    name: str
    text: str
    searched: str
    own: bool = False


class Ranking:
    """Ranks texts, oldest first, by how well they fit a query; those that may not be found count for what is rare."""

    def __init__(self, texts: Iterable[RecordedText]) -> None:
        self.texts = tuple(texts)

    @cached_property
    def _index(self) -> PassageIndex:
        weights = [OWN if text.own else 1.0 for text in self.texts]
        names = ["" if text.name.startswith(SPOKEN) else text.name for text in self.texts]
        return PassageIndex([(name, text.searched) for name, text in zip(names, self.texts, strict=True)], weights)

    def best(self, query: str, among: Callable[[RecordedText], bool] | None = None) -> list[tuple[RecordedText, int]]:
        """Return the texts that fit a query, the best first, each with the first line of its best passage.

        Those of a message's id, or else those that the query names, or else those with a passage like it; only such as
        are `among` those to be found.
        """
        if named := self.named(query, among):
            return [(text, 0) for text in named]
        passages = self._index.best(_telling(query), lambda number: among is None or among(self.texts[number]))
        least = max((each.score for each in passages), default=0.0) * WEAK
        return [(self.texts[each.text], each.line) for each in passages if each.score >= least]

    def named(self, query: str, among: Callable[[RecordedText], bool] | None = None) -> list[RecordedText]:
        """Return the texts of a message's id, or else those that a query names, the likeliest first."""
        exact = [text for text in self.texts if query.strip().strip("[]") == text.id]
        for named in (exact, _named_by(query, self.texts)):
            if texts := [text for text in named if among is None or among(text)]:
                return texts
        return []

    def worths(self, query: str) -> dict[str, float]:
        """Return what each word of a query is worth, the rare ones most."""
        return self._index.worths(_telling(query))


class RecordedTexts:
    """Texts of one conversation, to be searched; `find` returns the ranking of all its texts when it is first needed.

    `length` is the number of messages of the conversation, `among` chooses the texts that are meant.
    """

    def __init__(
        self,
        find: Callable[[], Ranking],
        length: int,
        counter: Counter,
        among: Callable[[RecordedText], bool] = lambda _: True,
    ) -> None:
        self._find = find
        self._length = length
        self._counter = counter
        self._among = among

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking of all texts of the conversation."""
        return self._find()

    @cached_property
    def pieces(self) -> tuple[RecordedText, ...]:
        """All texts that are meant, in order."""
        return tuple(filter(self._among, self.ranking.texts))

    def answers(self, queries: Sequence[Asking], tokens: int, end: str = "") -> list[str]:
        """Return what answers each of several calls, in no more than so many tokens together."""
        room = tokens // len(queries)
        return [(self.answer(each, room) if room >= ROOM else FULL) + end for each in queries]

    def answer(self, asking: Asking, tokens: int) -> str:
        """Return the originals that hold what is asked for, the best first, in no more than so many tokens."""
        if not asking.query.strip():
            return "query is empty: give the words of a line that says what was left out, or words of the text itself."
        matches = self.ranked(asking.query)
        if matches and asking.from_line <= 0 and not self.ranking.named(asking.query, self._among):
            return self._extracts(matches, asking.query, tokens)
        return self._beginnings(matches, asking, tokens) if matches else self._nothing(tokens)

    def whole(self, asking: Asking, tokens: int) -> str:
        """Return all texts, the first from its line on, in no more than so many tokens."""
        return self._beginnings(self.pieces, asking, tokens)

    def _beginnings(self, pieces: Sequence[RecordedText], asking: Asking, tokens: int) -> str:
        """Return texts from their beginnings, the first from the line that is asked for."""
        excerpts: list[str] = []
        left = tokens
        for number, piece in enumerate(pieces):
            wanted = max(asking.from_line, 0) if number == 0 else 0  # the line is of the text that was shown first
            text = self._excerpt(piece, max(wanted - 1, 0), left) if left >= LEAST else ""
            if not text:
                excerpts.append(self._more(pieces[number:], left))
                break
            excerpts.append(text)
            left -= self._counter.text(text) + 1
        return "\n\n".join(filter(None, excerpts))

    def _extracts(self, matches: Sequence[RecordedText], query: str, tokens: int) -> str:
        """Return the lines of the best texts that answer a query together, and the names of the next ones."""
        included, count = matches[:MOST_TEXTS], self._counter.text
        more = self._more(matches[MOST_TEXTS:], tokens // OTHERS)
        room = tokens - count(f"{more}{READ_ON}") - sum(count(self._heading(piece)) for piece in included)
        texts = [piece.searched for piece in included]
        named = [(piece.name, piece.searched) for piece in included]
        extracts = chosen_extracts(named, self.ranking.worths(query), [self._size_of(text) for text in texts], room)
        while True:
            spans = [_spans(text, [each for each in extracts if each.text == at]) for at, text in enumerate(texts)]
            parts = [self._parts(piece, some) for piece, some in zip(included, spans, strict=True) if some]
            cut = any(some not in ([], [(0, len(text))]) for some, text in zip(spans, texts, strict=True))
            answer = "\n\n".join(filter(None, (*parts, READ_ON if cut else "", more)))
            if (size := count(answer)) <= tokens or not extracts:
                return answer
            extracts = extracts[: len(extracts) * tokens // size]  # sizes were estimates: what adds least goes

    def _size_of(self, text: str) -> Callable[[int], int]:
        """Return about how many tokens so many characters of a text have."""
        ratio = self._counter.text(text[:SAMPLE]) / max(len(text[:SAMPLE]), 1)
        return lambda chars: int(chars * ratio) + 1

    def _heading(self, piece: RecordedText) -> str:
        return f"{MARK} {piece.name}, message {piece.place + 1} of {self._length:,}]"

    def _parts(self, piece: RecordedText, spans: Sequence[tuple[int, int]]) -> str:
        """Return parts of a text in their order behind its heading, with the numbers of the lines between them."""
        text, included, last, line = piece.searched, list[str](), 0, 1
        for start, stop in (*spans, (len(text), len(text))):
            if start > last:
                included.append(_left_out(text, last, start, line))
            included.append(FORGED.sub(r"\1(original:", text[start:stop].removesuffix("\n")))
            line += text.count("\n", last, stop)
            last = stop
        return "\n".join([self._heading(piece), *included[:-1]])

    def _more(self, pieces: Sequence[RecordedText], tokens: int) -> str:
        """Return the names of texts that are not shown, in no more than so many tokens."""
        lines = _listed(pieces[:LISTED])
        while lines and self._counter.text(more := "\n".join([f"{OTHERS_TITLE}:", *lines])) > tokens:
            lines.pop()
        return more if lines else ""

    def ranked(self, query: str) -> list[RecordedText]:
        """Return the texts that fit a query, the best first: those that it names, then those with a passage like it."""
        return [piece for piece, _ in self.ranking.best(query, self._among)]

    def names(self, tokens: int) -> str:
        """Return the names of the newest texts, the newest first, in no more than so many tokens."""
        lines = "\n".join(_listed(self.pieces[::-1][:LISTED]))
        return cut_to_tokens(lines, tokens, self._counter)[0]

    def _excerpt(self, piece: RecordedText, first: int, tokens: int) -> str:
        lines = piece.searched.split("\n")  # in which the passage was found; of a call the values, without escapes
        start = min(first, len(lines) - 1)
        opening = self._heading(piece).removesuffix("]")
        below = FORGED.sub(r"\1(original:", "\n".join(lines[start:]))
        room = tokens - self._counter.text(opening) - 40
        text, cut = cut_to_tokens(below, max(room, 0), self._counter)
        if cut and "\n" in text:  # whole lines; a longer line than all the room is cut
            text = text[: text.rfind("\n")]
        if not text.strip() and piece.searched.strip():
            return ""
        stop = start + text.count("\n") + 1
        if start == 0 and not cut:
            return f"{opening}]\n{text}"
        rest = f"the rest: ask again with from_line {stop + 1}" if stop < len(lines) else "cut here: a long line"
        more = f"\n[{rest}]" if cut else ""
        return f"{opening}, lines {start + 1:,} to {stop:,} of {len(lines):,}]\n{text}{more}"

    def _nothing(self, tokens: int) -> str:
        newest = self.pieces[::-1][:LISTED]
        if not newest:
            return "Nothing was left out: all of this conversation is in front of you."
        text = _named("Nothing that was left out holds this. What was left out, the newest first", newest)
        return cut_to_tokens(text, tokens, self._counter)[0]


class RemovedMessages(RecordedTexts):
    """The originals of one request, as they were when it was made ready: the texts that plans took out of the view.

    What a query names that stands in the view is named in the answer, since what else fits is something else.
    """

    def __init__(self, messages: tuple[Message, ...], plans: tuple[Plan, ...], counter: Counter) -> None:
        super().__init__(lambda: Ranking(texts_in(messages)), len(messages), counter, self.has_removed)
        self._messages, self._plans = messages, plans

    def answer(self, asking: Asking, tokens: int) -> str:
        """Return the originals that hold what is asked for, behind the names of those that are in the view."""
        if _named_by(asking.query, self.pieces):
            return super().answer(asking, tokens)
        standing = _listed(
            [text for text in _named_by(asking.query, self.ranking.texts) if not self.has_removed(text)]
        )[:STANDING_MOST]
        heading = "".join(f"{STANDING.format(name.removeprefix('- '))}\n" for name in standing)
        room = tokens - self._counter.text(heading)
        return heading + super().answer(asking, room) if room >= LEAST else super().answer(asking, tokens)

    @cached_property
    def _removed(self) -> frozenset[str]:
        """The ids of messages that are not in the view as they were said."""
        plans = self._plans
        view = fold(self._messages, [plan.edits for plan in plans], [plan.base.tip for plan in plans])
        whole = {message.id: message.parts for message in view}
        return frozenset(  # what joined a message takes nothing out
            each.id for each in self._messages if whole.get(each.id, ())[: len(each.parts)] != each.parts
        )

    def has_removed(self, text: RecordedText) -> bool:
        """Tell whether a text is of a message that plans changed or took out."""
        return text.id in self._removed


def _spans(text: str, extracts: Sequence[Extract]) -> list[tuple[int, int]]:
    """Return where the extracts of a text start and stop, in order, those with a short gap between them as one."""
    spans: list[tuple[int, int]] = []
    for extract in sorted(extracts):
        last = spans[-1][1] if spans else 0
        if extract.start - last <= GAP:
            start = spans.pop()[0] if spans else 0
            spans.append((start, extract.stop))
        else:
            spans.append((extract.start, extract.stop))
    if spans and len(text) - spans[-1][1] <= GAP:
        spans[-1] = spans[-1][0], len(text)
    return spans


def _left_out(text: str, start: int, stop: int, line: int) -> str:
    """Return what stands for a part of a text from a line on: with the numbers of its lines, if they are whole."""
    if (start and text[start - 1] != "\n") or (stop < len(text) and text[stop - 1] != "\n"):
        return "[…]"
    last = line - 1 + text.count("\n", start, stop) + (text[stop - 1] != "\n")
    return f"[lines {line:,} to {last:,} left out]"


def _telling(query: str) -> str:
    """Return the words of a query that tell something, or all of it."""
    return " ".join([word for word in WORD.findall(query) if word.lower() not in NOISE] or [query])


def room_for(budget: Budget, size: int, most: int) -> int:
    """Return the tokens that originals may take beside a request of a size: half of what is free, since more may come.

    `most` is what they never exceed.
    """
    free = budget.input - size - int(budget.window * MARGIN)
    return max(min(most, free // 2), 0)


def texts_in(messages: Sequence[Message]) -> Iterator[RecordedText]:
    """Yield all texts of messages in order: outputs of tools, long arguments, what was said, and files; no reasoning.

    What a tool brought back from the record is left out.
    """
    calls: dict[str, ToolCall] = {}
    for place, message in enumerate(messages):
        calls.update((part.call_id or part.name, part) for part in message.parts if isinstance(part, ToolCall))
        yield from _pieces(place, message, calls)


def line_of(text: str, first: int, query: str) -> str:
    """Return of a passage the line that holds most of the words of a query, cut around the first of them."""
    words = set(terms_of(query))
    best = max(text.split("\n")[first:] or [text], key=lambda line: len(words & set(terms_of(line[:2_000]))))
    small = best.lower()
    start = max(min((at for word in words if (at := small.find(word)) >= 0), default=0) - EXCERPT // 4, 0)
    cut = " ".join(best[start : start + EXCERPT].split())
    return f"{'…' if start else ''}{cut}{'…' if len(best) > start + EXCERPT else ''}"


def _pieces(place: int, message: Message, calls: dict[str, ToolCall]) -> Iterator[RecordedText]:
    for part in message.parts:
        match part:
            case ToolResult() if part.text:
                call = calls.get(part.call_id or part.name)
                if call is None or not call.name.endswith(RECALLING):
                    yield RecordedText(place, message.id, call_line(call, part), part.text, part.text)
            case ToolCall() if len(part.arguments) > SHORT:
                values = "\n".join(strings_within(decoded(part.arguments))) or part.arguments
                yield RecordedText(
                    place, message.id, f"arguments of {call_line(part)}", part.arguments, values, own=True
                )
            case Text() if part.text.strip() and not part.ours:
                who = {"assistant": f"{SPOKEN} of the assistant", "user": f"{SPOKEN} of the user"}.get(
                    message.role, SPOKEN
                )
                yield RecordedText(place, message.id, who, part.text, part.text, own=True)
            case File() if part.text:
                yield RecordedText(place, message.id, f"file {one_line(part.name, 60)}", part.text, part.text)
            case _:
                pass


def _named_by(query: str, texts: Iterable[RecordedText]) -> list[RecordedText]:
    """Return the texts whose name a query repeats, the likeliest first.

    A pointer has the name of one text between its state and what the text held. Other queries are words of a name.
    """
    every = list(texts)
    line = STATE.sub("", query, count=1)
    pointed = [piece for piece in every if _begins_with(line, piece.name)]
    query_words = [word.lower() for word in WORD.findall(query)]
    words = {word for word in query_words if word not in NOISE and not _number(word)}
    if pointed:
        words, every = set(), pointed
    elif not words or len(query_words) > NAMING or (len(words) == 1 and query.strip().isalpha()):
        return []
    scores: list[tuple[int, int, RecordedText]] = []
    for piece in every:
        name = f"{piece.name}, {piece.text.count(chr(10)) + 1:,} lines".lower()
        if all(word in name for word in words):
            same = sum(word in name for word in query_words if _number(word))  # "1,260 lines" tells reads apart
            scores.append((same, piece.place, piece))
    return [piece for _, _, piece in sorted(scores, key=lambda each: each[:2], reverse=True)]


def _begins_with(line: str, name: str) -> bool:
    """Tell whether a line is a name, or goes on behind it as a pointer does."""
    return " " in name and line.startswith(name) and line[len(name) :][:1] in ("", ",", ";", ":", "\n")


def _number(word: str) -> bool:
    return word.replace(",", "").replace(".", "").isdigit()


def _named(title: str, pieces: Sequence[RecordedText]) -> str:
    return "\n".join([f"{title}:", *_listed(pieces)])


def _listed(pieces: Sequence[RecordedText]) -> list[str]:
    lines = (f"- {one_line(piece.name, NAME)}, {piece.searched.count(chr(10)) + 1:,} lines" for piece in pieces)
    return list(dict.fromkeys(lines))
