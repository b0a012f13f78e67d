"""Selects old content to restore by predicted use per token: tool-call groups, calls, and lines of output."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate, chain
from math import inf, pow
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from refold._condense.call_facts import plain_name, reads
from refold._condense.call_outline import PARTS, call_line
from refold._condense.digest.answers import question_before
from refold._condense.digest.definitions import is_prose
from refold._condense.digest.targets import target_of
from refold._condense.digest.turns import turn_ends
from refold._condense.directives import TextKind, ranks_of
from refold._condense.echoes import cause
from refold._condense.file_views import OURS
from refold._condense.headings import with_headings
from refold._condense.identifier_scores import need_in, uptake, worth_of
from refold._condense.last_changes import files_displayed_by, stale_mark
from refold._condense.passages import passages, says_something
from refold._condense.pasted import without_pasted
from refold._condense.placeholders import is_pointer, text_replaced
from refold._condense.reduction_order import ROOMY, reduce_parts, stays_whole
from refold._condense.reductions import (
    Reduction,
    cap_of,
    clear_harness,
    clear_results,
    cut_texts,
    hide_segments,
    merged,
    original_result,
    pinned_in,
    results_in,
    strip_seen_images,
)
from refold._condense.reminders import without_reminders
from refold._condense.settled import settled
from refold._condense.steering import RankedUnit, scores_of, weigh, weigh_answers
from refold._salience.atoms import names_of, spoken, words_between
from refold._salience.cover import Cover, Unit
from refold._salience.mentions import mentioned_in
from refold._salience.segments import Segment, excerpt, extent, segments, segments_of, without_short_gaps
from refold._salience.statements import statements_in, statements_of, statements_of_segments
from refold._salience.words import words_of
from refold._text.places import places_of
from refold._text.text_cache import text_cache
from refold.core._speakers import is_recap, is_turn, speech
from refold.core.messages import Patch, Reasoning, Text, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from refold._condense.fit_draft import Draft
    from refold._condense.reduction_order import ReductionLog
    from refold._condense.regions import Regions
    from refold._condense.steering import Place, Scores
    from refold.core.messages import Message, MessageId, ToolResult
    from refold.core.transcript import Transcript

__all__ = ["Selection", "select"]

MARKER = "\n[… 100 lines left out …]"  # what a segment is charged beside its text: more than the marker takes, so that
# lines that hang together come back before single ones
# How an output begins that was cut before, with how many lines it had at first.
CUT_BEFORE = re.compile(re.escape(PARTS) + r"[^\n]*, (?:[\d,]+ of )?([\d,]+) lines\b")
# The numbers below were chosen by hand; benchmarks/recall.py measures what they give together (docs/salience.md). More
# worth for EDITED buys lines that are edited later at the price of identifiers, with figures there.
ROUNDS = 4  # of choosing, until the room is filled
STEPS = 16  # in which the room grows while a floor of predicted coverage is looked for
SLACK = 0.01  # of the room that may stay empty
SHORT = 2_000  # characters of an error that is short
WRONG = 0.02  # worth by token of a short error: it comes back before most other output
EDITED = 0.003  # worth by token of a file's lines, times its path's: an edit quotes lines that hold no identifier
# Worth by token of output that no answer has followed yet, where it is too large to stay whole: of the lines that the
# request asks for, else its first ones, within a share of the goal, and of the others. Agents read it again.
UNSEEN, UNSEEN_ROOM = (0.03, 0.002), 0.1
LARGE, LARGEST = 0.15, 0.5  # of the room: what a newest output may have whole, and one that no answer has followed yet
# Of the room: what the summary of an earlier context may have whole, and what users typed, all of it together. On
# recorded sessions that is 7 % of a quarter of the text in the median, 18 % at most.
RECAP, TURNS = 0.1, 0.3
BRIEF = 160  # tokens that any turn may have
CHARS = 3.5  # characters a token, where a guess will do
READ, FADING = 0.042, 0.9  # worth by token of the newest answer that ends a turn, and of each older one of that
ANSWERED = 0.2  # that of one right before the newest request, which often refers to it: it outlives any output
REPLY, SHORT_REPLY = 0.017, 80  # the least worth of one of so few tokens: without it a request has no answer
ANSWER = 0.05  # of the room: what such an answer has whole or not at all; longer ones come back by lines
QUESTION, QUESTION_ROOM = 0.05, 0.03  # worth by token of a question that stays answered, and its share of the goal
POINTED = 0.02  # worth by token of the line that stands for a notification, which is hidden where room is short
# Worth by token of lines that say what is to be done, by rank, and the share of the goal for such lines of a text.
REQUEST, REQUEST_ROOM = (0.03, 0.015, 0.006, 0.004, 0.003), 0.12  # of the first request and the newest
ONLY_ROOM = 0.35  # of a request that is the first and the newest
RECAP_ROOM = 0.07  # of the newest summary of an earlier context
RULES, RULES_ROOM = (0.03, 0.012), 0.06  # of instructions, where they are given last
OLDER, OLDER_ROOM = (0.008, 0.004), 0.03  # of the turns between the first and the newest, for all of them together
STALE, LOOKED_UP = 1.25, 2.0  # times the price of lines of a file that was changed since, and of what was looked up
# for a turn that has ended: who goes on has the conclusion, and the lines of the file as they are now
LOOKS_UP = re.compile(r"search|fetch|browse|^docs?|docs?$")  # in names of tools
# Times the worth of identifiers, by what holds them: the model knows the history of a name, not who holds it. At equal
# predicted worth those in calls are needed twice to five times as often as those in lines of output, in newer messages
# more often than in older ones. Of an output they are needed the more, the more of the names that it was the first to
# show the assistant wrote later. Fitted on recorded sessions, rounded; docs/salience.md has what it gains and costs.
IN_CALL, IN_TEXT = 2.8, 1.2
CALLS_GOAL = 4_000  # tokens of a goal from which the factor of calls is that much: they alone would fill a smaller one
AGE, AGING = 60, 0.16  # messages before the end, and the power by which the factor falls with more of them
IN_OUTPUT, TAKEN_UP = 1.7, 0.17  # of an output whose new names were all written later, and the power of their share
UNTRIED = 1.0  # of one without new names
NEW, NEWER = 3e-6, 2e-5  # worth by token of text that nothing says yet, and of the newest above the oldest: it
# settles what need does not


class Lines(Struct, frozen=True, gc=False):
    """Lines of an output or of a user's turn, or part of a line, that a move has taken away."""

    position: int
    reduction: Reduction
    segment: Segment


Choice: TypeAlias = range | Reduction | Lines
Pieces: TypeAlias = tuple[Reduction, list[Unit]]  # what a move took away, and the units in which it can come back


class Selection:
    """What can come back to a draft, and what has; `fill` brings back more."""

    def __init__(
        self, draft: Draft, areas: Regions, log: ReductionLog, elsewhere: Callable[[Iterable[Message]], Iterable[str]]
    ) -> None:
        self.draft, self.log = draft, log
        log.moves[:] = merged(log.moves)
        worth = worth_of(draft.view.transcript)
        covered = frozenset(elsewhere(draft.remaining())).union(*map(mentioned_in, draft.remaining()))
        batches, pieces = _units(draft, log, worth, areas)
        scores = scores_of(draft.view.transcript)
        stated = frozenset().union(*map(statements_in, draft.remaining()))
        weigh(_steered(draft, batches, pieces, scores, stated), scores, draft.view.goal_tokens)
        _raise_prices(draft, pieces, scores)
        answering = list(_answering(draft, batches, pieces))
        weigh_answers(answering, scores, draft.view.goal_tokens)
        _weigh_questions(answering, draft.view.transcript, draft.view.goal_tokens)
        _weigh_directives(draft, pieces, areas)
        _weigh_unseen(draft, pieces, scores, areas)
        self.cover = Cover(chain(batches, *(some for _, some in pieces)), worth.of, covered, stated)
        self.chosen: list[Choice] = []
        self.lines: dict[int, list[Segment]] = {}  # chosen lines of what each move took away, by its identity
        self.enough = False

    def predicted(self) -> float:
        """Return the share of what will be needed that is predicted to be there, 0 to 1; the digest not counted."""
        transcript = self.draft.view.transcript
        whole = need_in(transcript)
        missing = need_in(transcript, self.cover.missing())
        return 1 - missing / whole if whole else 1.0

    def fill_until(self, floor: float, room: int) -> None:
        """Bring back what is likeliest needed until this share of the need is predicted to be there, or room ends."""
        start = self.draft.total
        for step in range(1, STEPS + 1):
            self.enough = self.predicted() >= floor
            if self.enough:
                break
            self.fill(start + (room - start) * step // STEPS)

    def fill(self, room: int) -> None:
        """Bring back what is likeliest needed, each for its size, until the room is filled."""
        draft, chosen, before = self.draft, self.chosen, len(self.chosen)
        for _ in range(ROUNDS):  # neighbors merge, so that what was chosen is smaller than its parts
            if draft.total >= room - int(room * SLACK):
                break
            units = self.cover.choose(room - draft.total)
            if not units:
                break
            choices: list[Choice] = [unit.of for unit in units]
            chosen += choices
            _show(draft, choices, self.lines)
            while draft.total > room and units:
                over = draft.total - room
                dropped: list[Choice] = []
                while units and over > 0:
                    over -= int(units.pop().cost)
                    dropped.append(chosen.pop())
                _take_back(draft, dropped, self.lines)
        _settle(draft, self.log, chosen[before:])


def select(
    draft: Draft,
    areas: Regions,
    room: int,
    log: ReductionLog,
    fill_until: float | None = None,
    elsewhere: Callable[[Iterable[Message]], Iterable[str]] = lambda _: (),
) -> Selection | None:
    """Empty the old part, then bring back what is likeliest needed, each for its size; return the selection.

    Batches come back whole or without the bulk of their output, long arguments whole, output as whole lines in their
    order with markers between. Long turns of users keep their beginning and every pinned sentence. What of the newest
    part is too large for the room comes back by lines, too.
    With `fill_until` the rest of the room stays empty where that share of the need is predicted to be there.
    `elsewhere` says which names will stand in the digest, beside what of the messages stays.
    Where even the emptied old part leaves too much, nothing comes back: the order of loss has to go on.
    """
    old = range(areas.tail)
    strip_seen_images(draft, areas.fresh)
    if draft.total <= room:
        return None
    reduce_parts(draft, old, 0, log, areas)
    log.moves += _opened(draft, areas, room)
    log.segments += hide_segments(draft, areas, old, 0)
    log.segments += hide_segments(draft, areas, old, 0, inner=True)
    if draft.total > room:
        return None
    selection = Selection(draft, areas, log, elsewhere)
    if fill_until is None:
        selection.fill(room)
    else:
        selection.fill_until(fill_until, room)
    return selection


def _opened(draft: Draft, areas: Regions, room: int) -> list[Reduction]:
    """Cut what is large for the room, so that it comes back by lines.

    That are turns of users, the newest where it is long, answers that end a turn, and outputs of the newest part.
    """
    newest = areas.users[-1:]
    whole = newest if areas.whole or stays_whole(draft, newest) else ()
    done: list[Reduction] = []
    for position, most in _rooms_of_turns(draft, areas.users, room).items():
        if position not in whole:
            done += cut_texts(draft, [position], 0, most)
    answers = [position for position in areas.answers if position < areas.tail]
    done += cut_texts(draft, answers, 0, max(ROOMY, int(room * ANSWER)))
    seen = [position for position in range(areas.tail, len(draft.base)) if position not in areas.fresh]
    for positions, part in ((seen, LARGE), (sorted(areas.fresh), LARGEST)):
        worth = min(int(max(room * part, ROOMY) * CHARS), _least_cut(draft, positions, max(room * LARGEST, ROOMY)))
        for errors in (False, True):
            done += clear_results(draft, positions, 0, errors=errors, worth=worth)
        done += clear_harness(draft, positions, 0, areas.standing, worth=int(max(room * part, ROOMY) * CHARS))
    return done


def _rooms_of_turns(draft: Draft, turns: Sequence[int], room: int) -> dict[int, int]:
    """Return to how many tokens the turns of users may be cut: what they typed is whole where all of it has room.

    Else the longest are cut to one size. Of what was pasted into a turn some lines stay.
    """
    count, most = draft.view.counter.text, int(room * TURNS)
    pasted = min(ROOMY, most // max(len(turns), 1))
    typed = {position: count(without_pasted(speech(draft.base[position]).typed)) for position in turns}
    level = max(cap_of(list(typed.values()), sum(typed.values()) - most), BRIEF)
    return {
        position: int(room * RECAP) if is_recap(draft.base[position]) else max(min(size, level) + pasted, BRIEF)
        for position, size in typed.items()
    }


def _least_cut(draft: Draft, positions: Sequence[int], most: float) -> int:
    """Return from how many characters on outputs are cut, so that the others together take at most these tokens."""
    lengths = sorted(len(result.text) for _, result in results_in(draft, positions))
    above = (length for length, total in zip(lengths, accumulate(lengths), strict=True) if total > most * CHARS)
    return next(above, int(most * CHARS))


def _units(
    draft: Draft, log: ReductionLog, worth: Mapping[str, float], areas: Regions
) -> tuple[list[Unit], list[Pieces]]:
    """Return what can come back, newest first: the hidden batches, and the pieces of what messages lost."""
    moves: dict[int, list[Reduction]] = {}
    for reduction in log.moves:
        moves.setdefault(reduction.position, []).append(reduction)
    newer = NEWER / max(len(draft.base), 1)
    answers = {position: READ * FADING**age for age, position in enumerate(reversed(areas.answers))}
    previous = next((position for position in reversed(areas.answers) if position < max(areas.users, default=0)), -1)
    batch_of: dict[int, Unit] = {}
    batches: list[Unit] = []
    for batch in reversed(log.segments):
        atoms = frozenset().union(*(mentioned_in(draft.messages[position]) for position in batch))
        pointed = POINTED if len(batch) == 1 and draft.base[batch.start].role == "user" else 0.0
        spoken = _is_spoken(draft, batch)
        read = max((answers.get(position, 0.0) for position in batch), default=0.0) if spoken else 0.0
        read = ANSWERED if read and previous in batch else read
        read = max(read, REPLY) if read and draft.size(batch) <= SHORT_REPLY else read
        statements = frozenset().union(*(_statements(draft.messages[position]) for position in batch))
        news = NEW + newer * batch.start if statements else 0.0
        unit = Unit(batch, max(draft.size(batch), 1), atoms, None, pointed + read, news, statements)
        unit.times = (IN_TEXT if spoken else _times_in_calls(draft)) * _aged(draft, batch.start)
        if _is_settled(draft, batch):
            unit.times = unit.news = 0.0
        batch_of.update(dict.fromkeys(batch, unit))
        batches.append(unit)
    pieces: list[Pieces] = []
    for position in sorted(moves, reverse=True):
        for reduction in moves[position]:
            extra, once = _extra(draft, reduction), _edited(draft, reduction, worth)
            if reduction.words and not reduction.harness:
                extra += answers.get(position, 0.0)
            some = _pieces(draft, reduction, batch_of.get(position), (extra, once, NEW + newer * position))
            some = _without_echo(draft, reduction, some)
            times = _times_needed(draft, reduction, some)
            if reduction.result and (draft.base[position].id, reduction.result.at) in settled(draft.view):
                times = 0.0
                for unit in some:
                    unit.extra = unit.news = 0.0
            for unit in some:
                unit.times = times
            pieces.append((reduction, some))
    return batches, pieces


def _times_needed(draft: Draft, reduction: Reduction, pieces: Iterable[Unit]) -> float:
    """Return how many times what is predicted the identifiers in what a message lost are needed."""
    if reduction.result is None:
        return (1.0 if reduction.words else _times_in_calls(draft)) * _aged(draft, reduction.position)
    share = uptake(draft.view.transcript, draft.base[reduction.position], (unit.atoms for unit in pieces))
    return UNTRIED if share is None else IN_OUTPUT * pow(share, TAKEN_UP)


def _times_in_calls(draft: Draft) -> float:
    """Return how many times what is predicted the identifiers in calls are needed."""
    return 1 + (IN_CALL - 1) * min(draft.view.goal_tokens / CALLS_GOAL, 1.0)


def _aged(draft: Draft, position: int) -> float:
    """Return how many times what is predicted the identifiers in a message are needed for its age."""
    return pow(max(len(draft.base) - position, AGE) / AGE, -AGING)


def _is_settled(draft: Draft, batch: range) -> bool:
    """Tell whether a batch is calls whose outputs later ones settle."""
    places = [(draft.base[position].id, result.at) for position in batch for result in draft.base[position].results]
    return bool(places) and settled(draft.view).issuperset(places)


def _is_spoken(draft: Draft, batch: range) -> bool:
    """Tell whether a batch is words of the assistant alone: with some formats its reasoning is a message of its own."""
    messages = [draft.base[position] for position in batch]
    return all(each.role == "assistant" and not (each.calls or each.results) for each in messages)


def _raise_prices(draft: Draft, pieces: Iterable[Pieces], scores: Scores) -> None:
    """Let lines of what was settled since cost more, but for those that the newest request asks for."""
    index = draft.view.transcript.index
    ended = max((index[id] for id in turn_ends(draft.view.transcript)), default=-1)
    for reduction, units in pieces:
        if reduction.result is None or (price := _price(draft, reduction, ended)) == 1:
            continue
        requested = scores.requested.get((draft.base[reduction.position].id, reduction.result.at), {})
        for unit in units:
            if not isinstance(unit.of, Lines) or unit.of.segment.start not in requested:
                unit.cost = max(unit.cost * price, 1)


def _weigh_directives(draft: Draft, pieces: Iterable[Pieces], areas: Regions) -> None:
    """Add worth to lines that say what is to be done, the best of each text first, within a room for each."""
    ends = {*areas.users[:1], *areas.users[-1:]}
    recap = next((position for position in reversed(areas.users) if is_recap(draft.base[position])), -1)
    worth: tuple[float, ...]
    goal = draft.view.goal_tokens
    left = goal * OLDER_ROOM
    for reduction, units in sorted(pieces, key=lambda pair: -pair[0].position):
        position = reduction.position
        some = [(unit.of.segment.start, unit) for unit in units if reduction.words and isinstance(unit.of, Lines)]
        if not some:
            continue
        if reduction.harness:
            ranks, worth = reduction.harness.rules if position in areas.standing else {}, RULES
            room = goal * RULES_ROOM
        elif position == recap:
            ranks, worth, room = _ranks(draft, reduction, "recap"), REQUEST, goal * RECAP_ROOM
        elif position in ends and is_turn(draft.base[position]):
            ranks, worth = _ranks(draft, reduction, "request"), REQUEST
            room = goal * (REQUEST_ROOM if len(ends) > 1 else ONLY_ROOM)
        elif is_turn(draft.base[position]):
            ranks, worth, room = _ranks(draft, reduction, "request"), OLDER, left
        else:
            continue
        for start, unit in sorted(some, key=lambda pair: (ranks.get(pair[0], 0), pair[0])):
            if ranks.get(start, len(worth) + 1) <= len(worth) and (room := room - unit.cost) >= 0:
                unit.extra += worth[ranks[start] - 1]
        left = room if worth is OLDER else left


def _weigh_unseen(draft: Draft, pieces: Iterable[Pieces], scores: Scores, areas: Regions) -> None:
    """Add worth to lines of outputs that no answer has followed yet, more within a room to those asked for first."""
    room = draft.view.goal_tokens * UNSEEN_ROOM
    unseen: list[tuple[float, int, int, Unit]] = []
    for reduction, units in pieces:
        if reduction.result and reduction.position in areas.fresh:
            place = draft.base[reduction.position].id, reduction.result.at
            requested = scores.requested.get(place, {})
            lines = ((unit.of.segment.start, unit) for unit in units if isinstance(unit.of, Lines))
            unseen += ((-requested.get(start, 0.0), -reduction.position, start, unit) for start, unit in lines)
    for *_, unit in sorted(unseen, key=lambda line: line[:-1]):
        room -= unit.cost
        unit.extra += UNSEEN[room < 0]


def _ranks(draft: Draft, reduction: Reduction, kind: TextKind) -> dict[int, int]:
    return ranks_of(reduction.words, _segments(draft, reduction, reduction.words), kind)


def _statements(message: Message) -> frozenset[str]:
    """Return what a message says; a pointer says nothing."""
    if not any(is_pointer(message, result) for result in message.results):
        return statements_in(message)
    words = (part.text for part in message.parts if isinstance(part, Text))
    return frozenset().union(
        *map(statements_of, words),
        *(statements_of(result.text) for result in message.results if not is_pointer(message, result)),
    )


def _steered(
    draft: Draft, batches: Iterable[Unit], pieces: Iterable[Pieces], scores: Scores, stated: frozenset[str]
) -> Iterator[RankedUnit]:
    """Yield the units that are or hold segments with a score.

    What stays, or newer ones as good, mostly say word for word counts only if it says more of what is asked for, and
    then for the share that does.
    """
    standing = "\n".join(result.text for message in draft.remaining() for result in message.results)
    seen = dict.fromkeys(stated, inf)  # statements, with the best score of a segment that says it
    for candidate in _candidates(draft, batches, pieces, scores, standing):
        unit, place, start = candidate.unit, candidate.place, candidate.start
        score = scores.requested.get(place, {}).get(start, 0.0)
        if not score and place in settled(draft.view):
            continue
        fresh = [statement for statement in unit.statements if seen.get(statement, -1.0) < score]
        new = sum(map(len, fresh)) / sum(map(len, unit.statements)) if unit.statements else 1.0
        words = words_of("\n".join(fresh)) & scores.words if new < 1 else ()
        more = new > 0.5 or (fresh and (start in scores.wrong.get(place, ()) or words))
        if more or (place, start) in scores.replaced:
            seen.update((statement, max(score, seen.get(statement, 0.0))) for statement in unit.statements)
            if new < 1 and (whole := words_of("\n".join(unit.statements)) & scores.words):
                new = 1.0 if len(words) == len(whole) else new * len(words) / len(whole)
            yield replace(candidate, new=new)


def _candidates(
    draft: Draft, batches: Iterable[Unit], pieces: Iterable[Pieces], scores: Scores, standing: str
) -> list[RankedUnit]:
    """Return the units that are or hold segments with a score, newest first.

    Of an output that comes back whole with its call that is its best one, but for outputs that stand elsewhere.
    """
    candidates: list[tuple[int, RankedUnit]] = []
    for reduction, units in pieces:
        if reduction.result:
            place = draft.base[reduction.position].id, reduction.result.at
            if known := scores.known(place):
                lines = [(unit, unit.of.segment.start) for unit in units if isinstance(unit.of, Lines)]
                candidates += ((-reduction.position, RankedUnit(*line, place)) for line in lines if line[1] in known)
    for batch in batches:
        outputs = [output for position in batch.of for output in _whole_outputs(draft, position)]
        for place, result in outputs:
            requested = scores.requested.get(place, {})
            ranked = requested.keys() | scores.wrong.get(place, {}).keys()
            if ranked and result.text.strip() not in standing:
                start = max(ranked, key=lambda start: (requested.get(start, 0.0), -start))
                if len(outputs) == 1 or (place, start) not in scores.replaced:
                    candidates.append((-batch.of.start, RankedUnit(batch, start, place, whole=True)))
    return [candidate for _, candidate in sorted(candidates, key=lambda each: each[0])]


def _whole_outputs(draft: Draft, position: int) -> Iterator[tuple[Place, ToolResult]]:
    """Yield the outputs of a message that are as they were received, no pointers, by place."""
    base, now = draft.base[position], draft.messages[position]
    before = {result.at: result for result in base.results}
    for result in now.results:
        if result == before.get(result.at) and not is_pointer(now, result):
            yield (base.id, result.at), result


def _answering(draft: Draft, batches: Iterable[Unit], pieces: Iterable[Pieces]) -> Iterator[tuple[Unit, Place, int]]:
    """Yield the units that are words of the assistant: a message with -1, lines with where they start in a text."""
    for unit in batches:
        for position in unit.of if _is_spoken(draft, unit.of) else ():
            texts = (part for part in draft.messages[position].parts if isinstance(part, Text))
            yield from ((unit, (draft.base[position].id, part.at), -1) for part in texts)
    for reduction, units in pieces:
        if reduction.words and draft.base[reduction.position].role == "assistant":
            place = draft.base[reduction.position].id, reduction.patches[0].at
            yield from ((unit, place, unit.of.segment.start) for unit in units if isinstance(unit.of, Lines))


def _weigh_questions(units: Iterable[tuple[Unit, Place, int]], transcript: Transcript, goal: int) -> None:
    """Add worth to the ends of messages that ask what a short turn of a user answers: it says nothing without them."""
    asking = [
        message.id
        for user in reversed(transcript.messages)
        if is_turn(user) and (message := question_before(transcript, user)[1])
    ]
    ends: dict[MessageId, tuple[int, Unit]] = {}
    for unit, (id, _), start in units:
        if start >= ends.get(id, (-1, unit))[0]:
            ends[id] = start, unit
    room = goal * QUESTION_ROOM
    for id in asking:
        if id in ends and (room := room - ends[id][1].cost) >= 0:
            ends[id][1].extra += QUESTION


def _extra(draft: Draft, reduction: Reduction) -> float:
    """Return what any line of an output is worth by token, said elsewhere or not: that of a short error."""
    wrong = reduction.result is not None and reduction.result.is_error
    return WRONG if wrong and len(_text_of(draft, reduction)) <= SHORT else 0.0


def _without_echo(draft: Draft, reduction: Reduction, units: list[Unit]) -> list[Unit]:
    """Return the pieces of an output; of an error those that do not only repeat the arguments of its call.

    The one that says what went wrong gets the worth of a short error, however long the output is.
    """
    result = reduction.result
    call = draft.view.call_of(draft.base[reduction.position], result) if result and result.is_error else None
    if call is None or result is None or len(units) == 1:
        return units
    text = _text_of(draft, reduction)
    error = cause(call, original_result(draft, reduction.position, result))
    wrong = text.find(error) if error else -1
    left: list[Unit] = []
    for unit in units:
        segment = unit.of.segment if isinstance(unit.of, Lines) else None
        if segment and segment.start <= wrong < segment.stop:
            unit.extra = max(unit.extra, WRONG)
        elif segment and text[segment.start : segment.stop].strip() in call.arguments:
            continue
        left.append(unit)
    return left


def _edited(draft: Draft, reduction: Reduction, worth: Mapping[str, float]) -> float:
    """Return what a line of an output is worth by token while it stands nowhere else: of a file likely to be edited."""
    if reduction.result is None or reduction.result.is_error:
        return 0.0
    call = draft.view.call_of(draft.base[reduction.position], reduction.result)
    ref = reads(call) if call else None
    return EDITED * max((worth[atom] for atom in names_of(ref.path)), default=0.0) if ref else 0.0


def _price(draft: Draft, reduction: Reduction, ended: int) -> float:
    """Return how many times its size a line of an output costs: more of what was settled since.

    `ended` is where the last turn that has come to its end did.
    """
    result = reduction.result
    call = draft.view.call_of(draft.base[reduction.position], result) if result else None
    if call is None:
        return 1.0
    transcript, message = draft.view.transcript, draft.base[reduction.position]
    if stale_mark(transcript, message.id, call):
        return STALE
    looks_up = not reads(call) and (target_of(call).looks or LOOKS_UP.search(plain_name(call.name)) is not None)
    return LOOKED_UP if looks_up and transcript.index.get(message.id, ended) < ended else 1.0


def _pieces(draft: Draft, reduction: Reduction, first: Unit | None, worths: tuple[float, float, float]) -> list[Unit]:
    """Return the parts in which what a move took away can come back, each behind `first`.

    `worths` are those by token: whatever else is said, while it stands nowhere else, and as news.
    """
    position, text = reduction.position, _text_of(draft, reduction)
    extra, once, news = worths
    if text:
        some = _segments(draft, reduction, text)
        single = len(some) == 1
        if reduction.result and not reduction.harness:
            by_segment = statements_of_segments(original_result(draft, position, reduction.result))
            if own := [pair for pair in zip(some, by_segment, strict=True) if without_reminders(text, pair[:1])]:
                some, by_segment = zip(*own, strict=True)
            call = draft.view.call_of(draft.base[position], reduction.result)
            files = files_displayed_by(call) if call and not single else ()
            if files and not any(map(is_prose, files)):
                says = [pair for pair in zip(some, by_segment, strict=True) if says_something(text, pair[0])]
                some, by_segment = zip(*says, strict=True) if says else (some, by_segment)
        else:
            by_segment = (frozenset(),) * len(some)
        if single:
            cost = max(reduction.saved, 1)
            if first and by_segment[0]:  # a pointer takes as much as half of a short output
                tokens = sum(map(len, by_segment[0])) / CHARS
                news *= max(tokens / cost, 1) * min(tokens / (cost + first.cost), 1)
            lines = Lines(position, reduction, some[0])
            return [Unit(lines, cost, some[0].atoms, first, extra, news, by_segment[0], once)]
        count = draft.view.counter.text
        tokens, marker = count(text) / len(text), count(MARKER)
        return [
            Unit(
                Lines(position, reduction, segment),
                max((segment.stop - segment.start) * tokens + marker, 1),
                *(segment.atoms, first, extra, news, statements, once),
            )
            for segment, statements in zip(some, by_segment, strict=True)
        ]
    paths = {patch.at for patch in reduction.patches}
    parts = [part for part in draft.base[position].parts if part.at in paths]
    if any(isinstance(part, Reasoning) for part in parts):
        return []
    calls = [spoken(part) for part in parts if isinstance(part, ToolCall)]
    atoms = frozenset().union(*map(names_of, calls), *map(words_between, calls))
    return [Unit(reduction, max(reduction.saved, 1), atoms, first, extra, news)]


def _text_of(draft: Draft, reduction: Reduction) -> str:
    return original_result(draft, reduction.position, reduction.result).text if reduction.result else reduction.words


def _segments(draft: Draft, reduction: Reduction, text: str) -> tuple[Segment, ...]:
    if reduction.harness:
        return reduction.harness.pieces
    return (
        segments_of(original_result(draft, reduction.position, reduction.result))
        if reduction.result
        else segments(text)
    )


def _show(draft: Draft, choices: Sequence[Choice], lines: dict[int, list[Segment]]) -> None:
    """Show what was chosen, lines beside those of the same text that are shown."""
    touched: dict[int, Reduction] = {}
    for choice in choices:
        match choice:
            case Lines(reduction=reduction, segment=segment):
                touched[id(reduction)] = reduction
                lines.setdefault(id(reduction), []).append(segment)
            case range():
                draft.show(choice)
            case Reduction(position=position, patches=patches):
                draft.undo(position, (patch.at for patch in patches))
    for key, reduction in touched.items():
        _show_lines(draft, reduction, lines[key])


def _take_back(draft: Draft, dropped: Sequence[Choice], lines: Mapping[int, list[Segment]]) -> None:
    """Take away again what did not fit, the last first; what else is shown stays."""
    touched: dict[int, Reduction] = {}
    for choice in dropped:
        match choice:
            case range():
                draft.hide(choice)
            case Reduction(position=position, patches=patches):
                draft.change(position, patches)
            case Lines(reduction=reduction):
                touched[id(reduction)] = reduction
                lines[id(reduction)].pop()
    for key, reduction in touched.items():
        _show_lines(draft, reduction, lines[key])


def _show_lines(draft: Draft, reduction: Reduction, some: Sequence[Segment]) -> None:
    """Show lines of a text in place of what a move left of it; all of it as it was where all lines are chosen."""
    position, text = reduction.position, _text_of(draft, reduction)
    if some and not reduction.harness:
        pinned = some if reduction.result else _with_pinned(draft, reduction, text, some)
        some = without_short_gaps(text, pinned)
    paths = [patch.at for patch in reduction.patches]
    if not some:
        draft.change(position, reduction.patches, paths)
    elif reduction.result:
        call = draft.view.call_of(message := draft.base[position], reduction.result)
        documents = call is not None and any(map(is_prose, files_displayed_by(call)))
        whole = sum(segment.chars for segment in some) == len(text)
        some = some if whole else passages(text, some)
        if not some:
            draft.change(position, reduction.patches, paths)
        elif not whole and sum(segment.chars for segment in some) < len(text):
            opening = f"{PARTS} {call_line(call, reduction.result)}, {_extent(text, some)}"
            opening += stale_mark(draft.view.transcript, message.id, call)
            some = with_headings(text, some) if documents else some
            some = without_reminders(text, some)
            words = f"{opening}\n{excerpt(text, some, brief=True)}"
            draft.change(position, text_replaced(reduction.result, words), paths)
        else:
            draft.undo(position, paths)
    else:
        words = (
            reduction.harness.showing(some)
            if reduction.harness
            else excerpt(text, with_headings(text, some)) + reduction.ending
        )
        draft.change(position, [Patch(reduction.patches[0].at, Text(words))], paths)


def _extent(text: str, some: Sequence[Segment]) -> str:
    """Return how much of an output segments are: of one that was cut before, how much of what it was at first."""
    cut = CUT_BEFORE.match(text)
    if cut is None:
        return extent(text, some)
    lines = "".join(text[segment.start : segment.stop] for segment in some).splitlines()
    return f"{sum(not OURS.match(line) for line in lines):,} of {cut[1]} lines"


def _with_pinned(draft: Draft, reduction: Reduction, text: str, some: Sequence[Segment]) -> list[Segment]:
    """Add the beginning of a user's turn, and the segments with its pinned sentences, to the chosen ones."""
    always = _staying_segments(text, pinned_in(draft, reduction.position, text))
    return list({segment.start: segment for segment in (*some, *always)}.values())


@text_cache  # the same turn is shown again and again while a goal is filled
def _staying_segments(text: str, pinned: tuple[str, ...]) -> tuple[Segment, ...]:
    """Return the first segment of a text, and those with its pinned sentences."""
    every = segments(text)
    starts = [segment.start for segment in every]
    staying = [*every[:1]]
    for pin, place in places_of(pinned, text):
        staying += every[bisect_right(starts, place) - 1 : bisect_left(starts, place + len(pin))]
    return tuple(staying)


def _settle(draft: Draft, log: ReductionLog, chosen: Sequence[Choice]) -> None:
    """Leave in the log what can still come back whole: batches that are hidden, moves that nothing was chosen of."""
    log.segments[:] = [batch for batch in log.segments if all(draft.hidden[position] for position in batch)]
    done = {
        (choice.reduction if isinstance(choice, Lines) else choice).place
        for choice in chosen
        if isinstance(choice, Lines | Reduction)
    }
    log.moves[:] = [reduction for reduction in log.moves if reduction.place not in done]
