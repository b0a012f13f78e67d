"""What the model would see now, and all that a stage is given."""

from __future__ import annotations

from enum import StrEnum
from functools import cache, cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from refold.core._approvals import unrequested_approvals
from refold.core._provider_state import guarded, remains, repeated_items
from refold.core._typed_placeholders import shaped
from refold.core.break_even import Course, PastCompaction, TokenPrices, course_of
from refold.core.budget import Breakdown, Budget, Exactly, Limit, Usage
from refold.core.counting import Counter
from refold.core.edits import Edit, Insert, Rewrite, fold
from refold.core.messages import (
    Message,
    MessageId,
    Note,
    Part,
    Role,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)
from refold.core.token_units import UNKNOWN_RATIO, EstimatedTokens, Ratio, ReportedTokens
from refold.core.transcript import Transcript, canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Cause",
    "ConstrainingRule",
    "Constraints",
    "FormatTraits",
    "Listing",
    "ProviderLimits",
    "Rule",
    "View",
    "Violation",
]


class Cause(StrEnum):
    """Why a run started."""

    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    SILENT_OVERFLOW = "silent_overflow"
    MANUAL = "manual"


class Violation(Struct, frozen=True, omit_defaults=True):
    """A violation of a provider's rule: the rule, the problem, and the messages (positions and ids)."""

    rule: str
    message: str
    at: tuple[int, ...] = ()
    ids: tuple[MessageId, ...] = ()
    calls: tuple[str, ...] = ()


class Rule(Protocol):
    """What a provider demands of a list of messages, with both its faces."""

    @property
    def name(self) -> str:
        """The rule's name in violations and documents."""

    def cuts(self, messages: Sequence[Message]) -> set[int]:
        """Return the positions, 0 to len(messages), where a range may begin or end."""

    def broken(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Return every violation, in order."""


class Constraints(NamedTuple):
    """Messages that leave only together, as pairs of positions, and those that do not leave at all.

    `head` counts the messages that must remain the beginning, such as answers to calls that the provider stores; `tail`
    is the position from which on the list must remain the end, such as calls that await their results.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    fixed: frozenset[int] = frozenset()
    head: int = 0
    tail: int | None = None


@runtime_checkable
class ConstrainingRule(Protocol):
    """A rule that also says which messages leave only together, where cuts cannot say it."""

    def constraints(self, messages: Sequence[Message]) -> Constraints:
        """Return what leaves only together, what does not leave, and where the end begins."""


class FormatTraits(Struct, frozen=True, omit_defaults=True):
    """The properties of a format that a stage needs to write messages for it.

    `results_together`: the results of one tool-call group share one message (else each has its own). `flags_errors`: a
    result has a field that marks it as an error (else only its text tells).
    `system_in_list`: the list may contain a system message. `system_later`: a system message of the client may follow
    others, but none of ours. `assistant_last`: the last message may be an assistant's. `alternates`: neighbours of
    one role are written as one message. `picture_results` are the kinds of results that contain one image and nothing
    else.
    """

    results_together: bool = False
    flags_errors: bool = True
    system_in_list: bool = True
    system_later: bool = False
    assistant_last: bool = True
    alternates: bool = False
    picture_results: frozenset[str] = frozenset()


class Listing(tuple[Message, ...]):
    """Messages in order, with room for what rules find out about the whole list, so that it is found out once."""

    @cached_property
    def computed(self) -> dict[Any, Any]:
        """What was found out, by the question."""
        return {}


class ProviderLimits(Struct, frozen=True):
    """Budget and goal as the provider counts."""

    budget: Budget
    goal: Limit

    def in_units_of(self, scale: Ratio, fixed: EstimatedTokens) -> ProviderLimits:
        """Return them as a counter counts, of which the provider's ratio is `scale`; `fixed` cannot shrink."""
        if scale.value == 1:
            return self
        budget = self.budget
        window = scale.estimated(ReportedTokens(budget.window)).count
        room = scale.estimated(ReportedTokens(budget.input)).count
        goal = self.goal.tokens(budget, scale.reported(fixed).count)
        return ProviderLimits(
            Budget(max(window, 1), max(min(window - room, window - 1), 0)),
            Exactly(scale.estimated(ReportedTokens(goal)).count),
        )


class View(Struct, frozen=True, dict=True):
    """The messages the model would receive now: the fold of edits over a transcript, with its size and its limits.

    `start` is the view as messages before this run (earlier plans folded in); `edits` are those of this run.

    All sizes that stages see are in the counter's unit: `tokens`, `sizes`, `goal_tokens`, and `budget` too, which with
    `goal` was converted from `limits` where a report has shown how the provider counts (`ratio`, see
    `core.token_units`; `scale` is the ratio that decides, which a gauge may bound). `measured` is what the gauge read
    at the start, `reported` what the provider will count.

    `summarizer` states whether a summarizer is available. Where the provider reads nothing before an anchor,
    transcript and `start` begin with the anchor's message; `skipped` counts the messages of the whole transcript
    before it, and `ignored` names those that no earlier plan has hidden. `estimates` is a shared memo of counts by
    message id, for messages that no edit touched. `binds_thinking`: the model accepts thinking only behind the prefix
    it was produced under (`core._preserved_thinking`). `pinned` messages stay as they are, whatever the policy; what
    they call or answer stays too, shortened perhaps. `prices`, `compactions` (those in force, each with the number of
    messages it was made for) and `expected_calls` (where the caller knows it) decide whether a compaction pays
    (`core.break_even`); `known_course` is the session's course where `transcript` is a part of the session only.
    """

    transcript: Transcript
    start: tuple[Message, ...]
    budget: Budget
    goal: Limit
    counter: Counter
    rules: tuple[Rule, ...] = ()
    traits: FormatTraits = FormatTraits()
    overhead: Breakdown = Breakdown()
    usage: Usage | None = None
    measured: ReportedTokens = ReportedTokens(0)
    ratio: Ratio = UNKNOWN_RATIO
    scale: Ratio = UNKNOWN_RATIO
    limits: ProviderLimits | None = None
    cause: Cause = Cause.THRESHOLD
    instructions: str = ""
    edits: tuple[Edit, ...] = ()
    estimates: dict[MessageId, int] = {}
    estimated_before: int | None = None
    summarizer: bool = False
    skipped: int = 0
    ignored: tuple[MessageId, ...] = ()
    binds_thinking: bool = False
    pinned: frozenset[MessageId] = frozenset()
    prices: TokenPrices = TokenPrices()
    compactions: tuple[tuple[int, PastCompaction], ...] = ()
    expected_calls: int | None = None
    known_course: Course | None = None

    @cached_property
    def course(self) -> Course:
        """The course of the session so far, with what the caller knows of its rest."""
        course = self.known_course
        if course is None:
            past = ((length - self.skipped, compaction) for length, compaction in self.compactions)
            course = course_of(self.transcript.messages, past)
        return course if self.expected_calls is None else replace(course, expected=self.expected_calls)

    @cached_property
    def messages(self) -> Listing:
        """The messages of the view, in order."""
        tip = self.start[-1].id if self.start else None
        return Listing(fold(self.start, [self.edits], [tip]) if self.edits else self.start)

    @cached_property
    def index(self) -> dict[MessageId, int]:
        """Where each message of the view stands."""
        return {message.id: place for place, message in enumerate(self.messages)}

    @cached_property
    def cuts(self) -> frozenset[int]:
        """The positions where a range may begin or end under every rule."""
        cuts = set(range(len(self.messages) + 1))
        for rule in self.rules:
            cuts &= rule.cuts(self.messages)
        return frozenset(cuts)

    @cached_property
    def broken(self) -> tuple[Violation, ...]:
        """Every violation of every rule."""
        return tuple(violation for rule in self.rules for violation in rule.broken(self.messages))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The counter's word for each message of the view, in order."""
        return tuple(map(self.size, self.messages))

    @cached_property
    def estimated(self) -> int:
        """The counter's word for the whole request."""
        return self.overhead.total + self.counter.per_conversation + sum(self.sizes)

    @cached_property
    def tokens(self) -> int:
        """The size of the whole request in the counter's unit: as measured, and after edits as the counter says.

        Where the ratio is not known, the report may be of more than the messages, which no edit takes away.
        """
        if self.estimated_before is None:
            return self.scale.estimated(self.measured).count
        return self.estimated if self.ratio.known else self._rest

    @cached_property
    def decisive(self) -> ReportedTokens:
        """The size by which it is decided whether a compaction is due."""
        if self.estimated_before is None:
            return self.measured
        return self.scale.reported(EstimatedTokens(self.tokens))

    @cached_property
    def reported(self) -> ReportedTokens:
        """The size of the whole request as the provider will count it."""
        if self.ratio.known:
            return self.ratio.reported(EstimatedTokens(self.estimated))
        return self.measured if self.estimated_before is None else ReportedTokens(self._rest)

    @property
    def _rest(self) -> int:
        """What was measured without what edits have saved, for a view whose ratio is not known."""
        assert self.estimated_before is not None
        return max(self.measured.count - self.estimated_before + self.estimated, 0)

    @cached_property
    def goal_tokens(self) -> int:
        """The goal in tokens of the whole request, never above the input budget."""
        return min(self.goal.tokens(self.budget, self.overhead.total), self.budget.input)

    @property
    def over_goal(self) -> int:
        """How many tokens are above the goal; zero or less when it is met."""
        return self.tokens - self.goal_tokens

    @cached_property
    def calls(self) -> dict[MessageId, dict[str, ToolCall]]:
        """For each message with results: the call each of its results answers, by call id."""
        return _answered(self.messages)

    def call_of(self, message: Message, result: ToolResult) -> ToolCall | None:
        """Return the call a result answers, or None where it has none."""
        answered = self.calls.get(message.id)
        return answered.get(result.call_id or result.name) if answered else None

    def size(self, message: Message) -> int:
        """Return the counter's word for one message, counted once while no edit touches it."""
        if message.patches or message.native is None:
            memo = message.__dict__
            if memo.get("counter") is not self.counter:
                memo["counter"], memo["size"] = self.counter, self.counter.message(message)
            size: int = memo["size"]
            return size
        known = self.estimates.get(message.id)
        if known is None:
            known = self.estimates[message.id] = self.counter.message(message)
        return known

    def leaves(self, message: Message) -> int:
        """Return how many tokens hiding a message saves: none where it must stay, else all but parts with state."""
        if message.id in self.stuck:
            return 0
        stays = remains(message) if message.opaques else None
        return self.size(message) - (self.counter.message(stays) if stays else 0)

    @cached_property
    def constraints(self) -> Constraints:
        """Which messages leave only together, which do not leave, and where the end begins that must remain it."""
        messages = self.messages
        rule_constraints = [rule.constraints(messages) for rule in _constraining(self.rules)]
        tails = [each.tail for each in rule_constraints if each.tail is not None]
        if messages and any(part.last for part in messages[-1].opaques):
            tails.append(len(messages) - 1)
        pairs = tuple(pair for each in rule_constraints for pair in each.pairs)
        fixed = frozenset().union(*(each.fixed for each in rule_constraints))
        return Constraints(
            pairs, fixed, max((each.head for each in rule_constraints), default=0), min(tails, default=None)
        )

    @cached_property
    def retained(self) -> int:
        """How many messages stand before an anchor: the provider has left them there, and reads them as they are."""
        messages = self.messages
        return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].opaques and messages[at].anchor), 0)

    @cached_property
    def head(self) -> int:
        """How many messages must remain the beginning, in front of all of ours."""
        anchored = bool(self.messages) and self.messages[self.retained].anchor is not None
        return max(self.retained + 1 if anchored else 0, self.constraints.head)

    @cached_property
    def stuck(self) -> frozenset[MessageId]:
        """The messages that no edit may hide: also what the system said in the middle, where the format has that.

        Of equal words only the newest stay: some clients repeat a reminder at every call.
        """
        places = set(self.constraints.fixed.union(range(self.retained)))
        if self.traits.system_in_list or self.traits.system_later:
            texts = ((at, text_of(each)) for at, each in enumerate(self.messages) if _instructs(each))
            places.update({text: at for at, text in texts}.values())
        stuck = frozenset(self.messages[place].id for place in places) - self.repeated
        return stuck | self.kept_by_pins if self.pinned else stuck

    @cached_property
    def kept_by_pins(self) -> frozenset[MessageId]:
        """The pinned messages of the view, with the calls that they answer and the results of all calls that stay."""
        staying = {message.id for message in self.messages if message.id in self.pinned}
        joined = _joined(self.messages) if staying else []
        while more := [pair for pair in joined if not staying.isdisjoint(pair) and not staying.issuperset(pair)]:
            staying.update(*more)
        return frozenset(staying)

    @cached_property
    def repeated(self) -> frozenset[MessageId]:
        """Those that are an earlier one once more, or answer nothing, among those that could not leave otherwise."""
        messages = self.messages
        again = repeated_items([message for message in messages if message.opaques or message.role == "system"])
        if not any(message.opaques for message in messages):
            return again
        return again | {messages[place].id for place in unrequested_approvals(messages)}

    @property
    def anchored(self) -> bool:
        """Tell whether the view begins with an anchor, before which the provider reads nothing."""
        return bool(self.start) and self.start[0].anchor is not None

    def insert(
        self, role: Role, parts: Sequence[Part] | str, note: Note, *, before: MessageId | None = None, salt: int = 0
    ) -> Insert:
        """Return an insert of a message of ours, before another one or at the end.

        Its id follows from the transcript, the edits so far and its content; `salt` tells equal messages apart.
        """
        content: tuple[Part, ...] = (Text(parts),) if isinstance(parts, str) else tuple(parts)
        if len(content) > 1:  # each part needs an address of its own, or a later rewrite would change them all
            content = tuple(part if part.at else replace(part, at=(place,)) for place, part in enumerate(content))
        identity = (self.transcript.tip, self.measured.count, len(self.edits), salt, role, note, content, before)
        id = MessageId("made:" + blake2b(canonical(identity), digest_size=10).hexdigest())
        return Insert(Message(id, role, content, note), before)

    def original(self, id: MessageId) -> Message | None:  # W07
        """Return a message as it was said, whatever plans did to it."""
        place = self.transcript.index.get(id)
        return None if place is None else self.transcript.messages[place]

    def after(self, edits: Sequence[Edit], *, guard: bool = True, pins: bool = True) -> View:
        """Return the view with more edits done, but for those that would take state away (see `core.state`).

        Without `guard` all are done: for state that the provider has refused. Without `pins` pinned messages may be
        changed: for repairs, and for thinking that could not be sent.
        """
        if pins and self.pinned:
            edits = [edit for edit in edits if not (isinstance(edit, Rewrite) and edit.message in self.pinned)]
        edits = guarded(self, self._shaped(edits)) if guard else tuple(edits)
        if not edits:
            return self
        before = self.estimated if self.estimated_before is None else self.estimated_before
        return replace(self, edits=(*self.edits, *edits), estimated_before=before)

    def _shaped(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Return the edits with replacements of the shape that their fields allow."""
        kinds, index = self.traits.picture_results, self.index
        if not kinds:
            return edits
        return [
            replace(edit, to=shaped(self.messages[index[edit.message]], edit.at, edit.to, kinds))
            if isinstance(edit, Rewrite) and edit.message in index
            else edit
            for edit in edits
        ]

    @cached_property
    def border(self) -> MessageId | None:
        """The message that the first cut after an anchor stands before."""
        messages = self.messages
        return next(
            (messages[place].id for place in range(max(self.head, 1), len(messages)) if place in self.cuts), None
        )


def _constraining(rules: Sequence[Rule]) -> list[ConstrainingRule]:
    return [cast("ConstrainingRule", rule) for rule in rules if _constrains(type(rule))]


@cache
def _constrains(kind: type[Rule]) -> bool:
    """Tell whether a class of rules has constraints, once a class: looking at a protocol's members takes long."""
    return issubclass(kind, ConstrainingRule)


def _instructs(message: Message) -> bool:
    """Tell whether the system, or the developer, says something in a message."""
    if message.role != "system" or message.note is not None:
        return False
    return any(isinstance(part, Text) and part.text.strip() for part in message.parts)


def _joined(messages: Sequence[Message]) -> list[tuple[MessageId, MessageId]]:
    """Return each message with results beside the message whose call a result answers."""
    callers: dict[str, MessageId] = {}
    pairs: list[tuple[MessageId, MessageId]] = []
    for message in messages:
        answered = (callers.get(result.call_id or result.name) for result in message.results)
        pairs += [(caller, message.id) for caller in answered if caller]
        callers.update((call.call_id or call.name, message.id) for call in message.calls)
    return pairs


def _answered(messages: Sequence[Message]) -> dict[MessageId, dict[str, ToolCall]]:
    """Pair results to the newest earlier call of the same id, or of the same name where there are no ids."""
    open_: dict[str, ToolCall] = {}
    by_message: dict[MessageId, dict[str, ToolCall]] = {}
    for message in messages:
        for call in message.calls:
            open_[call.call_id or call.name] = call
        for result in message.results:
            key = result.call_id or result.name
            if key in open_:
                by_message.setdefault(message.id, {})[key] = open_[key]
    return by_message
