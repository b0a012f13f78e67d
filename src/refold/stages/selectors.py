"""Selectors: which texts to shorten, and where to cut. Values, so that a policy prints and compares as one."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from refold._condense.call_facts import failed
from refold._condense.quoted_requests import SUMMARIES
from refold._condense.view_positions import cut_after, cut_before, is_forced, leading, visible_request
from refold.core.edits import Insert, Rewrite
from refold.core.messages import Reasoning, Text, ToolResult
from refold.core.policy import require_counts, require_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from refold.core.messages import Content, Message, MessageId, Part, Path, Role
    from refold.core.view import View

__all__ = ["CutSelector", "KeepRatio", "KeepTokens", "LargestThenOldest", "TextSelector", "TextTarget"]


class TextTarget(Struct, frozen=True):
    """A text to shorten: that of one tool result, or that of a message (`result=None`)."""

    message: Message
    result: ToolResult | None = None

    @property
    def key(self) -> tuple[MessageId, Path | None]:
        """The address of the target: its message, and the path of its result."""
        return self.message.id, None if self.result is None else self.result.at

    @property
    def words(self) -> tuple[Text, ...]:
        """The texts that would be shortened."""
        parts: Sequence[Part | Content] = self.message.parts if self.result is None else self.result.content
        return tuple(part for part in parts if isinstance(part, Text))

    @property
    def characters(self) -> int:
        """How long those texts are together."""
        return sum(len(part.text) for part in self.words)


class TextSelector(Protocol):
    """Selects texts to shorten, in the order of selection."""

    def __call__(self, view: View) -> tuple[TextTarget, ...]:
        """Return the targets."""


class CutSelector(Protocol):
    """Selects the position before which messages are summarized."""

    def __call__(self, view: View) -> int | None:
        """Return the place, or None where nothing is to be cut off."""


class LargestThenOldest(Struct, frozen=True):  # W05
    """Select tool results, largest first, then assistant messages, oldest first, then user messages, oldest first.

    Stops when the expected savings cover the excess over the goal. Never selected: the first user message, the last
    request where only a copy or a summary of ours has it, the last `recent` of each role, error results, texts under
    `smallest` characters, messages of this run, and texts that this run has shortened already. Summaries of earlier
    runs may be selected, and do not count among the last. `keep_share` of a text is expected to stay.
    `at_least` is the share of the present size to save regardless of the goal, for a run after an overflow.
    """

    keep_share: float = 0.25  # W05, COMPACTION_RATIO
    recent: int = 3  # W05, PROTECT_RECENT
    smallest: int = 500  # W05, MIN_COMPACTION_SIZE
    at_least: float = 0.0

    def __post_init__(self) -> None:
        require_shares(self, "keep_share", "at_least")
        require_counts(self, "recent", "smallest")

    def __call__(self, view: View) -> tuple[TextTarget, ...]:
        """Return the targets in the order of the three passes."""
        wanted = max(view.over_goal, int(view.tokens * self.at_least))
        before = self._sizes_before(view)
        chosen: list[TextTarget] = []
        for target in self._candidates(view):
            if wanted <= 0:
                break
            shortened = target.characters < before.get(target.key, 0)
            if target.characters >= self.smallest and not shortened:
                chosen.append(target)
                wanted -= self._saving(view, target)
        return tuple(chosen)

    def _sizes_before(self, view: View) -> dict[tuple[MessageId, Path | None], int]:
        """Return how long the texts were, before this run, of the messages that it has rewritten."""
        rewritten = {edit.message for edit in view.edits if isinstance(edit, Rewrite)}
        return {
            target.key: target.characters
            for message in view.start
            if message.id in rewritten
            for target in (TextTarget(message), *(TextTarget(message, result) for result in message.results))
        }

    def _saving(self, view: View, target: TextTarget) -> int:
        tokens = sum(view.counter.text(part.text) for part in target.words)
        thought = [part for part in target.message.parts if isinstance(part, Reasoning)] if not target.result else []
        dropped = sum(view.counter.text(part.text) for part in thought)
        return int(tokens * (1 - self.keep_share)) + dropped

    def _candidates(self, view: View) -> Iterable[TextTarget]:
        fixed = {edit.message.id for edit in view.edits if isinstance(edit, Insert)}
        if (request := visible_request(view)) and request.note:  # a copy, or a summary that quotes it
            fixed.add(request.id)
        messages = [message for message in view.messages if message.id not in fixed]
        results = [TextTarget(message, result) for message in messages for result in message.results]
        older = results[: len(results) - self.recent] if len(results) > self.recent else []
        yield from sorted((t for t in older if t.result and not failed(t.result)), key=lambda t: -t.characters)
        yield from map(TextTarget, self._older(messages, "assistant"))
        first = next((message.id for message in messages if message.role == "user" and message.note is None), None)
        yield from (TextTarget(message) for message in self._older(messages, "user") if message.id != first)

    def _older(self, messages: Sequence[Message], role: Role) -> list[Message]:
        """Return all of a role but the newest; our own summaries are candidates wherever they stand."""
        own = [message for message in messages if message.role == role]
        spoken = [message for message in own if message.note is None]
        newest = {message.id for message in spoken[max(len(spoken) - self.recent, 0) :]}
        return [m for m in own if m.id not in newest and (m.note is None or m.note.kind in SUMMARIES)]


class KeepTokens(Struct, frozen=True):  # O04
    """Keep about so many tokens of the newest messages, in whole turns if possible.

    Walks back until the kept part exceeds the budget, then takes the nearest user message at or after that position;
    without one the turn is split at the next cut. `share` is a part of the window instead of a number. The kept part
    never uses room that system, tools and files take. A forced run with no cut keeps the last 2 messages and what
    belongs to them.
    """

    tokens: int = 20_000  # O04
    share: float | None = None

    def __post_init__(self) -> None:
        require_shares(self, "share")
        require_counts(self, "tokens")

    def __call__(self, view: View) -> int | None:
        """Return the place of the cut, or None when everything may stay."""
        start = leading(view)
        exceeding = self._exceeding(view, start)
        if exceeding is None:
            return self._all_but_two(view, start) if is_forced(view) else None
        turn = (
            position
            for position in range(max(exceeding, start + 1), len(view.messages))
            if position in view.cuts and view.messages[position].role == "user" and view.messages[position].note is None
        )
        clean = next(turn, None)
        if clean is not None:
            return clean
        split = cut_after(view, exceeding, start) or cut_before(view, exceeding, start)
        return split or (self._all_but_two(view, start) if is_forced(view) else None)

    def _exceeding(self, view: View, start: int) -> int | None:
        wanted = self.tokens if self.share is None else int(view.budget.window * self.share)
        budget = min(wanted, max(view.goal_tokens - view.overhead.total - sum(view.sizes[:start]), 0))
        total = 0
        for position in range(len(view.messages) - 1, start - 1, -1):
            total += view.sizes[position]
            if total > budget:
                return position
        return None

    def _all_but_two(self, view: View, start: int) -> int | None:
        position = len(view.messages) - 2  # O04
        return cut_before(view, position, start) or cut_after(view, position, start)


class KeepRatio(Struct, frozen=True):  # N05
    """Keep a share of the newest messages, rounded up, and at least a few; a short list is not cut."""

    ratio: float = 0.3  # N05
    at_least: int = 4  # N05
    skip_at: int = 4  # N05

    def __post_init__(self) -> None:
        require_shares(self, "ratio")
        require_counts(self, "at_least", "skip_at")

    def __call__(self, view: View) -> int | None:
        """Return the place of the cut, or None in a list of `skip_at` messages or fewer."""
        start = leading(view)
        count = len(view.messages) - start
        if count <= self.skip_at:
            return None
        position = len(view.messages) - max(ceil(count * self.ratio), self.at_least)
        return cut_before(view, position, start) or cut_after(view, position, start)
