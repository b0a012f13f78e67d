"""What an act would change, with what it costs: a rewind and its undoing, pins, the policy; and the acts so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException

from refold import policies
from refold._page.figures import limits_of, size_at
from refold.core.messages import MessageId
from refold.core.plan import PlanId
from refold.models import _catalog as catalog
from refold.models._cache_rules import token_prices
from refold.sessions._entries import Configured, Position, Rewound
from refold.sessions._saved_settings import CHOSEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refold._page.history import History, LoggedEvent, ViewRow

__all__ = ["Act", "Proposal", "acts_of", "change_of", "dollars_of"]

MILLION = 1_000_000
RECORDED = 30  # acts that the history of a conversation shows, the newest first


class Proposal(Struct, frozen=True):
    """What is to be done: a position to go to, or settings; with words for the question and the button."""

    question: str
    button: str
    to: Position | None = None
    forward: bool = False
    settings: dict[str, Any] = {}
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Act(Struct, frozen=True):
    """An act in the history of a conversation; `undo` is the number of its step where it can be undone.

    `by` is empty where nobody is recorded, as of a compaction that its policy found due.
    """

    at: float
    what: str
    compacted: bool
    by: str
    undo: int | None


def acts_of(history: History) -> list[Act]:
    """Return the acts of people, and compactions, the newest first; each says whether it can be undone."""
    acts: list[Act] = []
    for step in range(len(history.events), 0, -1):
        event = history.events[step - 1]
        what = _what(event)
        if not what:
            continue
        undo = step if _way_back(history, step) is not None else None
        acts.append(Act(event.at, what, event.plan is not None, getattr(event.entry, "by", ""), undo))
        if len(acts) >= RECORDED:
            break
    return acts


def _what(event: LoggedEvent) -> str:
    """Return what an event did, empty for one that is no act."""
    match event.entry:
        case Configured(settings=settings, by=by) if by and not {"policy", CHOSEN}.isdisjoint(settings):
            policy = settings.get(CHOSEN, settings.get("policy"))
            return f"changed the policy to {policy}" if policy else "took the policy back"
        case Configured(settings=settings, by=by) if by and "pinned" in settings:
            pinned = settings["pinned"] or []
            return f"changed the pins: {len(pinned):,} now" if pinned else "removed all pins"
        case Rewound(forward=forward):
            return "went forward again" if forward else "rewound"
        case _ if event.plan is not None:
            plan = event.plan
            return f"compacted by {plan.policy}, {plan.sizes.before:,} to {plan.sizes.after:,} tokens"
        case _:
            return ""


def _way_back(history: History, step: int) -> Position | dict[str, Any] | None:
    """Return the position, or the settings, that undo an event; None where that would change nothing."""
    event, now = history.events[step - 1], history.state
    if event.plan is not None:
        return _before(history, event.plan.id) if event.plan.id in now.active else None
    match event.entry:
        case Configured(settings=settings):
            before = history.at(step - 1).settings
            changed = {name: before.get(name) for name in settings if name in ("policy", "pinned", CHOSEN)}
            return changed if any(now.settings.get(name) != value for name, value in changed.items()) else None
        case Rewound():
            then = history.at(step - 1)
            here = now.ids[: len(then.ids)] == then.ids
            to = Position(now.tip, len(now.ids), then.active) if here else then.position
            return None if (to.tip, to.plans) == (now.tip, now.active) else to
        case _:
            return None


def _forward(history: History) -> Proposal:
    """Return what undoes the last rewind that is not undone.

    Raises:
        HTTPException: there is none since the last compaction (409).
    """
    for step in range(len(history.events), 0, -1):
        event = history.events[step - 1]
        if event.plan is not None:
            break
        if isinstance(event.entry, Rewound) and not event.entry.forward and _way_back(history, step) is not None:
            return replace(_undone(history, step), forward=True)
    raise HTTPException(409, "Nothing was rewound since the last compaction.")


def _undone(history: History, step: int) -> Proposal:
    """Return what undoes an event.

    Raises:
        HTTPException: it is undone already, or what it was of is no more (409).
    """
    back, undone = _way_back(history, step), history.state.undone
    match back:
        case None:
            raise HTTPException(409, "There is nothing to undo any more.")
        case dict():
            return Proposal("Take this change back?", "Take it back", settings=back, facts=_settings_facts(back))
        case _ if history.events[step - 1].plan is not None:
            return _moved(history, back, "Take this compaction back?", "Rewind")
        case _:
            forward = bool(undone) and (undone[-1].tip, undone[-1].plans) == (back.tip, back.plans)
            return _moved(history, back, "Undo this rewind?", "Go there again", forward=forward)


def _before(history: History, plan: str) -> Position:
    """Return the position before a compaction, with all messages there are."""
    state = history.state
    return Position(state.tip, len(state.ids), state.active[: state.active.index(PlanId(plan))])


def _before_plan(history: History, plan: str) -> Proposal:
    """Return the rewind to before a compaction."""
    to = _before(history, plan)
    more = len(history.state.active) - len(to.plans)
    question = "Take this compaction back?" if more == 1 else f"Take this compaction and {more - 1:,} later back?"
    return _moved(history, to, question, "Rewind")


def _to_message(history: History, message: str) -> Proposal:
    """Return the rewind to a message: a session goes back to it, a conversation of a client to the plans of then."""
    state = history.state
    to = state.at_message(MessageId(message))
    left = len(state.ids) - to.length
    if history.resent:
        to, left = Position(state.tip, len(state.ids), to.plans), 0
    change = _moved(history, to, f"Rewind to message {state.ids.index(MessageId(message)) + 1:,}?", "Rewind")
    if not left:
        return change
    leave = "message leaves" if left == 1 else "messages leave"
    fact = f"{left:,} later {leave} the conversation; the store has them still."
    return replace(change, facts=(fact, *change.facts))


def _moved(history: History, to: Position, question: str, button: str, *, forward: bool = False) -> Proposal:
    """Return the way to a position, with what it costs: what comes back, and what the prompt cache loses."""
    state = history.at(len(history.events))
    before, ratio, fixed = size_at(history, state)
    rows = history.view(state)
    missing = [id for id in to.plans if id not in state.plans]
    if missing:
        raise HTTPException(409, "A compaction that this would put in force again is not in the store.")
    entry = Rewound(to, forward)
    state.apply(entry)
    after, ratio, fixed = size_at(history, state)
    limits = limits_of(history)
    same = _same(rows, history.view(state), history)
    prices = token_prices(limits.model or None)
    rewritten = max(after - fixed - round(same * ratio), 0)
    cost = round(max(prices.write - prices.read, 0) * rewritten)
    each = round(prices.read * (after - before))
    facts = [f"The next request has about {after:,} tokens in place of {before:,}."]
    if after > before:
        facts.append(f"{after - before:,} tokens of originals come back, and are read with every later call: "
                     f"as much as {each:,} tokens of input{dollars_of(each, limits.model)} each time.")  # fmt: skip
    if rewritten:
        facts.append(f"The prompt cache is good up to the first change: about {rewritten:,} tokens are written to it "
                     f"again, once, as much as {cost:,} tokens of input{dollars_of(cost, limits.model)}.")  # fmt: skip
    warnings = []
    if limits.window and after > limits.window:
        warnings.append(f"That is above the window of {limits.window:,} tokens: the next request is compacted again.")
    elif limits.trigger and after >= limits.trigger:
        above = f"That is above {limits.trigger:,} tokens, from which {limits.policy} compacts"
        warnings.append(f"{above}: it does so again when the conversation has grown.")
    return Proposal(question, button, to, forward, facts=tuple(facts), warnings=tuple(warnings))


def _same(rows: list[ViewRow], others: list[ViewRow], history: History) -> int:
    """Return the characters of the messages that two views begin with alike."""
    count = 0
    for row, other in zip(
        (row for row in rows if not row.hidden), (row for row in others if not row.hidden), strict=False
    ):
        if row.message != other.message:
            break
        count += history.sizes.get(row.message.id, 0)
    return count


def dollars_of(tokens: int, model: str) -> str:
    """Return the price of tokens of input in brackets; empty where none is known."""
    prices = catalog.prices(model) if model else None
    return "" if prices is None else f" (${tokens * prices.input / MILLION:.4f})"


def _pin(history: History, message: str, *, off: bool) -> Proposal:
    """Return the change of the pins by one message."""
    state, id = history.state, MessageId(message)
    pinned = [each for each in state.settings.get("pinned") or [] if each != id]
    where = f"message {state.ids.index(id) + 1:,}"
    if off:
        return Proposal(f"Unpin {where}?", "Unpin", settings={"pinned": pinned or None},
                      facts=("Later compactions may shorten it or leave it out.",))  # fmt: skip
    size = round(history.sizes.get(id, 0) * size_at(history, state)[1])
    facts = [f"Every later compaction leaves it word for word: about {size:,} tokens stay in each request."]
    rows = {row.message.id: row for row in history.view(state)}
    row = rows.get(id)
    if row is not None and (row.hidden or row.message.patches):
        facts.append("A compaction has shortened it or left it out: it comes back when that one is taken back.")
    return Proposal(f"Pin {where}?", "Pin", settings={"pinned": [*pinned, id]}, facts=tuple(facts))


def _policy(history: History, name: str) -> Proposal:
    """Return the change of the policy; empty takes back what was chosen."""
    if name and name not in policies.names():
        raise HTTPException(400, "There is no policy of that name.")
    now = limits_of(history).policy
    facts = [f"Later compactions are made by {name or 'the policy of the settings'}, in place of {now}. "
             "It costs nothing itself: what is compacted stays as it is."]  # fmt: skip
    if name:
        facts.append(policies.find(name).summary)
    question = f"Compact this conversation by {name}?" if name else "Take the chosen policy back?"
    settings: dict[str, Any] = {"policy": name or None}
    if history.resent:  # the gateway saves there what acted last
        settings = {CHOSEN: name, "policy": name} if name else {CHOSEN: None}
    return Proposal(question, "Change the policy", settings=settings, facts=tuple(facts))


def _settings_facts(settings: Mapping[str, Any]) -> tuple[str, ...]:
    facts = []
    if not {"policy", CHOSEN}.isdisjoint(settings):
        policy = settings.get(CHOSEN, settings.get("policy"))
        facts.append(f"The policy is {policy or 'that of the settings'} again.")
    if "pinned" in settings:
        facts.append(f"{len(settings['pinned'] or []):,} messages are pinned again.")
    return tuple(facts)


def change_of(kind: str, values: Mapping[str, str], history: History) -> Proposal:
    """Return what a form asks for.

    Raises:
        HTTPException: what it names is not there any more (404).
    """
    message, state = values.get("message", ""), history.state
    place = message.removeprefix("live:")
    if place != message and place.isdecimal() and len(place) < 10 and int(place) < len(state.ids):
        message = state.ids[int(place)]  # it was not read yet when the page was written
    if kind in ("pin", "rewind") and "plan" not in values and message not in state.ids:
        raise HTTPException(404)
    match kind:
        case "pin":
            return _pin(history, message, off=values.get("off") == "1")
        case "policy":
            return _policy(history, values.get("policy", ""))
        case "forward":
            return _forward(history)
        case "rewind" if "plan" not in values:
            return _to_message(history, message)
        case "rewind":
            if values["plan"] not in state.active:
                raise HTTPException(409, "This compaction was taken back already.")
            return _before_plan(history, values["plan"])
        case _:
            step = values.get("step", "")
            number = int(step) if step.isascii() and step.isdecimal() and len(step) < 10 else 0
            if not 0 < number <= len(history.events):
                raise HTTPException(404)
            return _undone(history, number)
