"""An oversized output loses what is not needed before it is sent for the first time, when no cache holds it yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._condense.call_facts import reads
from refold._condense.call_outline import ERROR, PARTS, WRONG_SIGNS, call_line, may_be_wrong
from refold._condense.placeholders import text_replaced
from refold._condense.shorten import shorten
from refold._condense.steering import scores_of, wanted_in
from refold._condense.view_positions import first_unseen, last_request
from refold._salience.atoms import names_of
from refold._salience.cover import Unit, choose
from refold._salience.mentions import mentions_of
from refold._salience.segments import excerpt, segments, segments_in_part
from refold.core.edits import Edit, Rewrite
from refold.core.messages import Text, texts
from refold.core.policy import Pure, require_counts, require_shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold._salience.segments import Segment
    from refold.core.budget import Budget
    from refold.core.counting import Counter
    from refold.core.messages import Message, ToolResult
    from refold.core.view import View

__all__ = ["TruncateNew"]

# Chosen by hand: the beginning says what an output is, the end how it went.
HEAD, TAIL, WRONG = 0.3, 0.25, 0.2  # of what is kept: the beginning, the end, lines that tell of errors
WANTED = 0.3  # of what is kept: the lines that are asked for, and rare errors, before all else
LONG = 400  # characters of a segment, on the average, from which segments are too coarse: words without end
ROUNDS = 4  # of choosing fewer lines, until they fit
NAMES = 24  # that are looked for between the ends of an output above `looked_at`: the longest, as they are the rarest


class TruncateNew(Pure, frozen=True):
    """Cut new output above a limit to whole lines: what is asked for, head, tail, errors, lines that its call names.

    The limit is `tokens`, or `share` of the input budget if that is less: a larger output could jump from under the
    trigger over the budget. With `command_tokens` it is that for output that shows no file, which no edit will quote;
    such output stays whole where more of it is wanted than would be kept. `keep_share` of the limit stays. Only output
    that the model has not answered yet is examined, so nothing that was sent changes, and the cost of a pass depends on
    the new output. Users' texts, images and files stay. The whole output stays in the transcript; the line before the
    rest names the id that recalls it. Nothing is cut if the goal is the whole budget.

    Of an output of more than `looked_at` characters only the ends are read, and lines between them with signs of errors
    or with names: this takes little longer for an output of any size.
    """

    tokens: int = 16_000  # agents' own caps are at 10,000 tokens (Codex) and 30,000 characters: those stay as they are
    command_tokens: int | None = None
    share: float = 0.2
    keep_share: float = 0.5
    looked_at: int | None = None

    def __post_init__(self) -> None:
        require_shares(self, "share", "keep_share")
        optional = [name for name in ("command_tokens", "looked_at") if getattr(self, name) is not None]
        require_counts(self, "tokens", *optional, least=1)

    def wakes(self, budget: Budget) -> int:
        """Return the least limit in tokens: with fewer new ones there is nothing to do."""
        return max(min(self.tokens, self.command_tokens or self.tokens, int(budget.input * self.share)), 1)

    def edits(self, view: View, answers: tuple[object, ...] = ()) -> tuple[Edit, ...]:
        """Return a rewrite for each new output above the limit."""
        least = self.wakes(view.budget)
        if view.goal_tokens >= view.budget.input:
            return ()
        return tuple(
            Rewrite(message.id, patch.at, patch.to)
            for message in view.messages[first_unseen(view) :]
            if message.results and view.size(message) > least
            for result in message.results
            if any(isinstance(inner, Text) for inner in result.content)
            for text in self._shorter(view, message, result, least)
            for patch in text_replaced(result, text)
        )

    def _shorter(self, view: View, message: Message, result: ToolResult, least: int) -> Iterator[str]:
        """Yield what stays of an output: an opening that says what this is part of, and lines; nothing if it stays."""
        text, call, size = result.text, view.call_of(message, result), view.counter.text(result.text)
        most = max(min(self.tokens, int(view.budget.input * self.share)), 1)
        limit = most if call is not None and reads(call) else least
        if size <= limit:
            return
        whole = text.count("\n") + 1
        opening = f"{PARTS} {call_line(call, result)}, {whole:,} lines; all of it is kept, recall {message.id}"
        room = max(int(limit * self.keep_share) - view.counter.text(f"{opening}\n"), 0)
        names = _relevant_names(view, message, result)
        wanted: tuple[int, ...] = ()
        if self.looked_at and len(text) > self.looked_at:
            rarest = sorted(names, key=lambda name: (-len(name), name))[:NAMES]
            pieces = segments_in_part(text, self.looked_at, (*WRONG_SIGNS, *rarest))
        else:
            pieces = segments(text)
            wanted = wanted_in(scores_of(view.transcript), (message.id, result.at))
            if size <= most and _much_is_wanted(pieces, names, wanted, room / size):
                return
        yield f"{opening}\n{_parts(text, pieces, room, size, view.counter, names, wanted)}"


def _much_is_wanted(pieces: Sequence[Segment], names: frozenset[str], wanted: tuple[int, ...], share: float) -> bool:
    """Tell whether more than a share of a text is asked for, or named by the call or the request."""
    starts = set(wanted)
    wanted_chars = sum(piece.chars for piece in pieces if piece.start in starts or not piece.atoms.isdisjoint(names))
    return wanted_chars > share * sum(piece.chars for piece in pieces)


def _relevant_names(view: View, message: Message, result: ToolResult) -> frozenset[str]:
    """Return the identifiers that the call of an output, the words before it and the last request name."""
    call = view.call_of(message, result)
    request = last_request(view)
    names = names_of(call.arguments) if call else frozenset()
    asking = view.messages[first_unseen(view) - 1] if first_unseen(view) else None
    if asking is not None:
        names |= mentions_of(asking).in_text
    return names | names_of("\n".join(texts(request))) if request is not None and not request.results else names


def _parts(
    text: str, pieces: Sequence[Segment], limit: int, size: int, counter: Counter, names: frozenset[str],
    wanted: tuple[int, ...],
) -> str:  # fmt: skip
    """Return of a text of `size` tokens at most `limit`: chosen lines in their order, with markers between."""
    if sum(piece.chars for piece in pieces) >= LONG * len(pieces):
        return shorten(text, limit, counter.text)
    chars = limit * len(text) / size
    for _ in range(ROUNDS):
        chosen = excerpt(text, list(_chosen(text, pieces, chars, names, wanted)))
        size = counter.text(chosen)
        if size <= limit:
            return chosen
        chars *= 0.97 * limit / size
    return shorten(text, limit, counter.text)


def _chosen(
    text: str, pieces: Sequence[Segment], chars: float, names: frozenset[str], wanted: tuple[int, ...]
) -> Iterator[Segment]:
    """Yield segments of up to so many characters: what is wanted, head, tail, errors, what is named, then more."""
    taken: set[int] = set()

    def take(order: Iterator[int], room: float) -> Iterator[Segment]:
        for position in order:
            if position in taken:
                continue
            room -= pieces[position].chars
            if room < 0:
                return
            taken.add(position)
            yield pieces[position]

    many = len(pieces)
    spent = 0
    wrong = (position for position in range(many) if _tells_of_error(text, pieces[position]))
    numbers = {piece.start: position for position, piece in enumerate(pieces)}
    first = (numbers[start] for start in wanted if start in numbers)
    edges = (iter(range(many)), HEAD), (iter(range(many - 1, -1, -1)), TAIL)
    for order, share in ((first, WANTED), *edges, (wrong, WRONG)):
        for piece in take(order, chars * share):
            spent += piece.chars
            yield piece
    covered = set().union(*(pieces[position].atoms for position in taken))
    units = [
        Unit(position, piece.chars, piece.atoms & names)
        for position, piece in enumerate(pieces)
        if position not in taken and not piece.atoms.isdisjoint(names)
    ]
    for unit in choose(units, dict.fromkeys(names, 1.0), covered, chars - spent):
        taken.add(unit.of)
        spent += pieces[unit.of].chars
        yield pieces[unit.of]
    yield from take(iter(range(many)), chars - spent)


def _tells_of_error(text: str, piece: Segment) -> bool:
    words = text[piece.start : piece.stop]
    return may_be_wrong(words) and ERROR.search(words) is not None
