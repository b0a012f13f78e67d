"""What a person sees of a compaction: a card while it runs, and one in its place when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from refold.core.edits import Hide, Insert, Rewrite
from refold.core.messages import Message, MessageId, text_of, texts
from refold.core.view import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.core.break_even import BreakEven
    from refold.core.messages import Path
    from refold.core.plan import Plan

__all__ = ["Card", "DoneCard", "FailedCard", "ShortenedMessage", "StartedCard", "done_card", "targets_of"]

SUMMARIES = frozenset({"summary", "outline", "digest"})


class ShortenedMessage(Struct, frozen=True):
    """One tool result or message that a compaction shortened: characters before and after, and the step.

    `name` is the tool's for a result, else the role.
    """

    name: str
    original: int
    compacted: int
    method: str

    @property
    def reduction(self) -> float:
        """The share of it that went."""
        return 1 - self.compacted / self.original if self.original else 0.0


class StartedCard(Struct, frozen=True, tag="compaction_started"):
    """A compaction is running: messages in total and to be changed, tokens, and the trigger."""

    messages: int
    targets: int
    tokens: int
    threshold: int
    window: int
    cause: Cause = Cause.THRESHOLD

    @property
    def force(self) -> bool:  # W16
        """Tell whether it runs although the trigger did not fire."""
        return self.cause is not Cause.THRESHOLD

    @property
    def line(self) -> str:
        """The card as a line."""
        messages = "1 message" if self.messages == 1 else f"{self.messages:,} messages"
        return f"Compacting conversation history… {messages}, {self.targets:,} of them to be shortened"


class DoneCard(Struct, frozen=True, tag="compaction"):
    """A compaction is done; replaces the card that reported it as running.

    Tokens and messages are those of the whole request before and after; `summary` is the summary's length in
    characters, `seconds` the duration. `repaired_pairs` counts calls and results that got the half they had lost,
    `deduplicated_files` files of which only the latest read stays. `break_even` is what the compaction costs and saves.
    """

    targets: tuple[ShortenedMessage, ...]
    before: int
    after: int
    messages_before: int
    messages_after: int
    window: int
    seconds: float = 0.0
    summary: int = 0
    plan: str = ""
    repaired_pairs: int = 0
    deduplicated_files: int = 0
    break_even: BreakEven | None = None

    @property
    def saved(self) -> int:
        """Tokens saved; never negative."""
        return max(self.before - self.after, 0)

    @property
    def line(self) -> str:  # V10
        """The card as a line."""
        change = (self.after - self.before) / self.before if self.before else 0.0
        return f"Compaction complete: {self.before:,} → {self.after:,} tokens ({change:+.0%})"


class FailedCard(Struct, frozen=True, tag="compaction_failed"):
    """A compaction failed; the conversation is unchanged."""

    reason: str

    @property
    def line(self) -> str:
        """The card as a line."""
        return f"Compaction failed, nothing was changed: {self.reason}"


Card: TypeAlias = StartedCard | DoneCard | FailedCard


def done_card(
    plan: Plan,
    before: Sequence[Message],
    after: Sequence[Message],
    *,
    window: int = 0,
    seconds: float = 0.0,
) -> DoneCard:  # V01
    """Return the card of a plan; `before` and `after` are the messages of the view it was made on, and its result."""
    summary = sum(
        len(text_of(edit.message))
        for edit in plan.edits
        if isinstance(edit, Insert) and edit.message.note is not None and edit.message.note.kind in SUMMARIES
    )
    return DoneCard(
        targets_of(plan, before, after),
        plan.sizes.before,
        plan.sizes.after,
        len(before),
        len(after),
        window,
        seconds,
        summary,
        plan.id,
        plan.repaired_pairs,
        plan.deduplicated_files,
        plan.break_even,
    )


def targets_of(plan: Plan, before: Sequence[Message], after: Sequence[Message] = ()) -> tuple[ShortenedMessage, ...]:
    """Return what a plan makes smaller, in the order of the conversation; `method` is the label of the step.

    A tool result is a target of its own in every format, also where one message carries several (W15).
    """
    methods = _methods(plan)
    present = {message.id: message for message in after}
    names = {call.call_id: call.name for message in before for call in message.calls}
    targets: list[ShortenedMessage] = []
    for message in before:
        labels = methods.get(message.id, {})
        sizes, left = _sizes(message), _sizes(present.get(message.id))
        for place, result in enumerate(message.results):
            if label := _label(labels, result.at):
                name = result.name or names.get(result.call_id, "") or "tool"
                targets.append(ShortenedMessage(name, sizes[place], left.get(place, 0), label))
        own = [label for at, label in labels.items() if at is None or not _in_result(message, at)]
        if own and (sizes[None] or not message.results):
            targets.append(ShortenedMessage(message.role, sizes[None], left.get(None, 0), own[0]))
    return tuple(targets)


def _methods(plan: Plan) -> dict[MessageId, dict[Path | None, str]]:
    """Return the label of the first step that changed a part, by message and path; None is the whole message."""
    methods: dict[MessageId, dict[Path | None, str]] = {}
    for step in plan.steps:
        for edit in plan.edits[step.start : step.stop]:
            match edit:
                case Rewrite(message=id, at=at):
                    methods.setdefault(id, {}).setdefault(at, step.label)
                case Hide(messages=ids):
                    for id in ids:
                        methods[id] = {None: step.label}
                case Insert():
                    pass
    return methods


def _label(labels: Mapping[Path | None, str], result: Path) -> str:
    """Return the label of the step that changed a result, or a part of it; none is empty."""
    return next((label for at, label in labels.items() if at is None or at[: len(result)] == result), "")


def _in_result(message: Message, at: Path) -> bool:
    return any(at[: len(result.at)] == result.at for result in message.results)


def _sizes(message: Message | None) -> dict[int | None, int]:
    """Return the characters of each result by its place among the results, and of all else (None)."""
    if message is None:
        return {}
    results: dict[int | None, int] = {place: len(result.text) for place, result in enumerate(message.results)}
    return results | {None: sum(map(len, texts(message))) - sum(results.values())}
