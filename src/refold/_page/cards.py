"""The card of a compaction: one that runs, and the newest that is done, with what it did to which output."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct

from refold._counting import counter_for
from refold._inspect.message_labels import full_text
from refold._page.figures import REMEMBERED, limits_of, size_at
from refold._page.parts import STATUSES, SUMMARIES, status_of
from refold._text.printable import clean
from refold.core.edits import Hide, Insert, Rewrite, patched
from refold.sessions._entries import Rewound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from refold._page.history import History, ViewRow
    from refold._page.parts import Status
    from refold.core.messages import Message, MessageId, ToolResult
    from refold.core.plan import Plan

__all__ = ["CardTarget", "CompactionCard", "Pulse", "RunningCard", "done_card", "running_card"]

MOST_COUNTED = 100_000  # characters of an output whose tokens are counted; of longer ones they are estimated
TARGETS = 30  # outputs that a card lists, the largest first
COUNTED = 2_000  # messages that are read to count the results in them
BEFORE = 6  # messages before an output among which its call is looked for
LONGEST = 12_000  # characters of a summary
REJECTED = "summary was rejected"  # how a refusal begins that the guard has written


class RunningCard(Struct, frozen=True):
    """A compaction that runs: by which policy, of how many messages, results of tools and tokens.

    Of one of another process only that it runs is known; the counts are those of the conversation then.
    """

    policy: str = ""
    messages: int = 0
    targets: int = 0
    tokens: int = 0


class Pulse(Struct, frozen=True):
    """What a watcher of a conversation sees change: whether a compaction runs, and what is in force."""

    running: RunningCard | None
    plans: tuple[str, ...]

    @property
    def key(self) -> str:
        """A text that differs where something else is to be seen."""
        text = "\0".join(["running" if self.running else "", *self.plans])
        return blake2b(text.encode(), digest_size=8).hexdigest()


class CardTarget(Struct, frozen=True):
    """An output that a compaction made smaller: its tool, sizes in tokens, and how; `counted`, else estimated."""

    tool: str
    position: int
    message: MessageId
    before: int
    after: int
    counted: bool
    status: Status
    step: str


class CompactionCard(Struct, frozen=True):
    """The newest compaction: what it did, when, by whom, in how many seconds, and what the guard says.

    `more` outputs became smaller that `targets` does not list; `passed` is None where no summary was judged.
    """

    plan: Plan
    at: float
    by: str
    seconds: float
    active: bool
    targets: tuple[CardTarget, ...]
    more: int
    verdict: str
    passed: bool | None
    summary: str


def running_card(history: History, pulse: Pulse) -> RunningCard | None:
    """Return the card of a compaction that runs; None where none does."""
    running = pulse.running
    if running is None or running.messages:
        return running
    ids = [row.message.id for row in history.view(history.state) if not row.hidden]
    results = sum(len(message.results) for message in history.messages(ids).values()) if len(ids) <= COUNTED else 0
    return RunningCard(messages=len(ids), targets=results, tokens=size_at(history, history.state)[0])


def done_card(history: History) -> CompactionCard | None:
    """Return the card of the newest compaction, taken back or not; None without one."""
    step = next((step for step in range(len(history.events), 0, -1) if history.events[step - 1].plan is not None), 0)
    if not step:
        return None
    event = history.events[step - 1]
    plan = event.plan
    assert plan is not None
    targets, more = _targets(history, step, plan)
    summaries = [edit.message for edit in plan.edits if isinstance(edit, Insert) and _is_summary(edit.message)]
    verdict, passed = _verdict(plan, summaries)
    return CompactionCard(
        plan, event.at, getattr(event.entry, "by", ""), getattr(event.entry, "seconds", 0.0),
        plan.id in history.state.active, targets, more, verdict, passed,
        "\n\n".join(full_text(message) for message in summaries)[:LONGEST],
    )  # fmt: skip


def _verdict(plan: Plan, summaries: list[Message]) -> tuple[str, bool | None]:
    """Return what the guard said of the summary of a model, and whether it let it pass; None where it had no say."""
    rejected = [record.refused for record in plan.steps if REJECTED in record.refused]
    accepted = [record.guard for record in plan.steps if record.guard]
    if rejected:
        return "; ".join(rejected), False
    if accepted:
        return f"summary {'; '.join(dict.fromkeys(accepted))}", True
    if any(message.note is not None and message.note.kind == "summary" for message in summaries):
        return "did not judge this summary", None
    return "no summary, nothing to guard", None


def _is_summary(message: Message) -> bool:
    return message.note is not None and message.note.kind in SUMMARIES


@lru_cache(REMEMBERED)
def _targets(history: History, step: int, plan: Plan) -> tuple[tuple[CardTarget, ...], int]:
    """Return the largest outputs that a plan made smaller, and how many more it touched; only these are read."""
    rewound = any(isinstance(event.entry, Rewound) for event in history.events[step:])
    state = history.at(step) if rewound else history.state  # whose view is remembered: messages came since, no more
    places = {id: place for place, id in enumerate(state.ids)}
    touched: dict[MessageId, None] = {}
    for edit in plan.edits:
        match edit:
            case Rewrite(message=id):
                touched[id] = None
            case Hide(messages=ids):
                touched |= dict.fromkeys(ids)
            case _:
                pass
    largest = sorted((id for id in touched if id in places), key=lambda id: -history.sizes.get(id, 0))
    rows = {row.message.id: row for row in history.view(state)}
    ratio = size_at(history, state)[1]
    counter = counter_for(limits_of(history).model or None, None, history.head.format)

    def size(text: str) -> int:
        return counter.text(text) if len(text) <= MOST_COUNTED else round(len(text) * ratio)

    wanted = {
        id: None for each in largest[:TARGETS] for id in state.ids[max(places[each] - BEFORE, 0) : places[each] + 1]
    }
    messages = history.messages(list(wanted))
    called = {call.call_id: call.name for message in messages.values() for call in message.calls}
    targets = [
        target for id in largest[:TARGETS] if id in messages
        for target in _of_message(messages[id], rows.get(id), places[id], called, size, exact=counter.exact)
    ]  # fmt: skip
    return tuple(targets), max(len(largest) - TARGETS, 0)


def _of_message(
    message: Message,
    row: ViewRow | None,
    place: int,
    called: Mapping[str, str],
    size: Callable[[str], int],
    *,
    exact: bool,
) -> list[CardTarget]:
    hidden = row is None or row.hidden
    now = message if row is None else patched(message, row.message.patches) if row.message.patches else message
    status = STATUSES["hidden"] if hidden else status_of(message, now, hidden=False)
    left: dict[str, ToolResult] = {} if hidden else {result.call_id or result.name: result for result in now.results}
    step = row.by[-1][1] if row is not None and row.by else ""
    targets = []
    for result in message.results:
        after = left.get(result.call_id or result.name)
        text, shorter = result.text, after.text if after is not None else ""
        if len(shorter) < len(text):
            tool = clean(called.get(result.call_id) or result.name, 80) or "a tool"
            counted = exact and len(text) <= MOST_COUNTED
            targets.append(CardTarget(tool, place, message.id, size(text), size(shorter), counted, status, step))
    return targets
