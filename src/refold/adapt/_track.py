"""One conversation of a framework: its messages by the framework's own keys, the meter, and the plans in force.

How it works. A framework passes its whole history before each call of the model. A track compares keys with those of
the last call, converts and reads what is new, and measures the view under the plans in force; the engine runs only
when a compaction is due:

    items, keys ──new ones──▶ native messages ──▶ Transcript ──plans──▶ ViewCache ──▶ meter: due? ──▶ compact ──▶ plan

Nothing of the history is stored here for good. The plans name messages by ids that are chained over their content, so
a state that was dumped fits the same history in another process, and one that does not fit is noticed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from msgspec.structs import replace

from refold import aio, api, formats, policies
from refold._compaction.driver import drive, drive_async
from refold._compaction.options import (
    CompactOptions,
    HandlerOptions,
    MeterOptions,
    check_names,
    read_call,
    refuse_blocking,
)
from refold._compaction.request import budget_for, format_for, usage_for
from refold.adapt._state import Phase, TrackState, dump_state, load_state, rewound_state
from refold.adapt._view import TrackedView, WrittenItem
from refold.core._preserved_thinking import bound_parts
from refold.core.break_even import Course, CourseCounter
from refold.core.budget import Budget, Usage
from refold.core.edits import Insert
from refold.core.plan import Plan, checked, past_compactions
from refold.core.policy import When
from refold.core.transcript import Transcript
from refold.errors import StalePlan, UnreadablePlan, UsageError
from refold.models._thinking import binds_thinking
from refold.recovery._steps import Calling, Compacting, RecoveryState, RecoverySteps, Setting, answered, begun
from refold.sessions._provenance import Provenance, digest_of_settings
from refold.sessions._view_cache import SessionMeters, ViewCache

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Unpack

    from refold._compaction.result import Result
    from refold.core._native import SDKValue, SystemPrompt, ToolDefinitions
    from refold.core.events import Observer
    from refold.core.messages import MessageId
    from refold.core.plan import PlanId
    from refold.core.policy import Policy
    from refold.formats import Format
    from refold.sessions._session_options import SessionSettings

__all__ = ["Track", "TrackOptions"]

Item = TypeVar("Item")
Reply = TypeVar("Reply")

REST = 0.05  # share of the input budget by which a request must grow before a compaction in vain is tried again
MAX_PASSES = 2  # compactions after refusals of one request


class TrackOptions(MeterOptions, HandlerOptions, total=False):
    """The options of a track: those of `refold.compact` that stay the same from call to call."""

    observers: Sequence[Observer]
    """Functions that are notified when a compaction starts, ends or fails."""


class Track(Generic[Item]):
    """One conversation of a framework: what is new is read and counted, and the plans in force are applied.

    Item is the framework's own message. Items are known by their keys, or else by equality with those of the last call
    (identity first): pass `keys` where comparing is slow or an item is another object each time. An item that changes
    under the same key, or in place, is not read again. Not for use by several threads or tasks at once: `TrackPool` is.

    Args:
        stale_plans: what to do when the framework removed or replaced messages that plans were made for: "raise"
            raises StalePlan, "drop" keeps the longest beginning of the plans that still fits.

    The other options are those of `refold.compact` that stay the same from call to call: `model`, `window`, `policy`,
    `summarize`, `observers` and others.

    Raises:
        UsageError: there is no such option, policy or format.

    Added in 0.1.0.
    """

    def __init__(self, *, stale_plans: Literal["raise", "drop"] = "raise", **options: Unpack[TrackOptions]) -> None:
        check_names("Track", options, TrackOptions)
        if stale_plans not in ("raise", "drop"):
            raise UsageError(f'stale_plans={stale_plans!r} is neither "raise" nor "drop"')
        call = read_call("Track", options, CompactOptions)
        policy = call.options.policy
        self._policy: Policy = policies.find(policy) if isinstance(policy, str) else policy
        self._options = self._defaults = replace(call.options, policy=self._policy)
        self._handlers, self._observers = call.handlers, call.observers
        self._drops = stale_plans == "drop"
        self._state = TrackState()
        self._dumped = self._state, ""  # a state and its text, which is written once
        self._verified = True  # the plans are known to fit the history
        self._keys: list[Any] = []
        self._items: list[Item] = []
        self._counts: list[int] = []  # native messages of each item
        self._owners: list[int] = []  # of each native message, its item
        self._natives: list[Any] = []
        self._transcript = Transcript()
        self._places: dict[MessageId, int] = {}
        self._under: dict[MessageId, tuple[tuple[PlanId, ...], str]] = {}
        self._format: Format | None = None
        self._digest = ""  # of the system prompt and tools, where the model binds thinking to them
        self._view = ViewCache()
        self._written: dict[int, WrittenItem[Item]] = {}
        self._course_counter = CourseCounter()
        self._meters: SessionMeters | None = None
        self._usage: Usage | None = None
        self._reported_from = 0  # usage is reported of the present view if an answer stands from here on
        self._cooldown = 0  # tokens below which a compaction is not tried again
        self._recovery: RecoveryState | None = None

    @classmethod
    def load(
        cls, state: str, *, stale_plans: Literal["raise", "drop"] = "raise", **options: Unpack[TrackOptions]
    ) -> Self:
        """Return the track whose state `dump` returned; the framework passes the history again with the next `fold`.

        Raises:
            UnreadablePlan: it is not the state of a track.
        """
        track = cls(stale_plans=stale_plans, **options)
        track._restore(load_state(state), state)
        return track

    def dump(self) -> str:
        """Return the plans in force as a string for the framework's state store; empty where there are none."""
        if self._dumped[0] is not self._state:
            self._dumped = self._state, dump_state(self._state, *self._dumped)
        return self._dumped[1]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans in force, oldest first."""
        return self._state.plans

    @property
    def settings(self) -> SessionSettings:
        """The settings that a session has as well: policy, model, window, budget, goal and max_output, where given."""
        names = ("model", "window", "budget", "goal", "max_output")
        settings = {name: value for name in names if (value := getattr(self._options, name))}
        return {"policy": self._policy, **settings}  # type: ignore[typeddict-item]

    def __len__(self) -> int:
        return len(self._keys)

    def common(self, keys: Sequence[Any]) -> int:
        """Return how many leading items have the keys that they had in the last call."""
        known, beginning = self._keys, list(keys[: len(self._keys)])
        if beginning == known:
            self._keys = beginning  # the very same objects from here on, which are compared at once
            return len(known)
        pairs = enumerate(zip(keys, known, strict=False))
        return next((at for at, (new, old) in pairs if new is not old and new != old), min(len(keys), len(known)))

    def fold(
        self,
        items: Sequence[Item],
        *,
        keys: Sequence[Any] | None = None,
        convert: Callable[[Item], Any] | None = None,
        system: SystemPrompt | None = None,
        tools: ToolDefinitions | None = None,
    ) -> TrackedView[Item]:
        """Return the messages to send for a history, compacted if that is due; call it before each call of the model.

        Args:
            items: the whole history, as the framework stores it.
            keys: what each item is known by; the items themselves by default.
            convert: a function from an item to its native message, or to a list of them; by default items are native.
            system: the system prompt where it is not among the items; that of the track by default.
            tools: the tool definitions of this call; those of the track by default.

        Raises:
            StalePlan: these plans do not fit this history: the framework removed or replaced messages that they were
                made for. The track is as it was before. Not raised with `stale_plans="drop"`.
            RefoldError: what `refold.compact` raises.
        """
        refuse_blocking(self._handlers, "await track.afold(…)")
        dropped = self._take(items, keys, convert, system, tools)
        pending = self._pending()
        new_plans = () if pending is None else self._adopt(api.compact(self._natives, **pending))
        return self._tracked_view(new_plans, dropped)

    async def afold(
        self,
        items: Sequence[Item],
        *,
        keys: Sequence[Any] | None = None,
        convert: Callable[[Item], Any] | None = None,
        system: SystemPrompt | None = None,
        tools: ToolDefinitions | None = None,
    ) -> TrackedView[Item]:
        """Do what `fold` does, awaiting the summarizer."""
        dropped = self._take(items, keys, convert, system, tools)
        pending = self._pending()
        new_plans = () if pending is None else self._adopt(await aio.acompact(self._natives, **pending))
        return self._tracked_view(new_plans, dropped)

    def call(self, send: Callable[[TrackedView[Item]], Reply], items: Sequence[Item], **options: Any) -> Reply:
        """Send what `fold` returns, and while the provider refuses it, what `recover` returns; return the reply.

        Args:
            send: calls the model with a view.
            items: the history; `options` are those of `fold`.
        """
        view = self.fold(items, **options)
        while True:
            try:
                return send(view)
            except Exception as error:  # `recover` raises what it is no remedy for
                view = self.recover(error)

    async def acall(
        self, send: Callable[[TrackedView[Item]], Awaitable[Reply]], items: Sequence[Item], **options: Any
    ) -> Reply:
        """Do what `call` does, awaiting the model and the summarizer."""
        view = await self.afold(items, **options)
        while True:
            try:
                return await send(view)
            except Exception as error:
                view = await self.arecover(error)

    def report(self, usage: Usage | Mapping[str, Any] | SDKValue) -> None:
        """Measure from now on by what the provider reported of the last call: a mapping, or an SDK's usage or response.

        Raises:
            UsageError: it is not a usage report.
        """
        self._usage = usage_for(replace(self._options, usage=usage))

    def recover(self, error: Exception) -> TrackedView[Item]:
        """Return smaller messages after the provider refused the last ones; raise the error where that is no remedy.

        What `refold.recovering` does between two calls: compact below what was refused, and remove media or reasoning
        that is not accepted. The window that a refusal tells is remembered.

        Raises:
            ContextOverflow: nothing can be made smaller, or two compactions were in vain.
            CannotFit: no compaction brings it under the window.
            Exception: `error`, where it was not about the size or the form of the request.
        """
        before = self.plans

        def perform(step: Calling | Compacting) -> Result:
            assert isinstance(step, Compacting)  # the call is the framework's
            return api.compact(step.messages, **step.arguments)

        self._recovered(drive(self._recovery_steps(error), perform))
        return self._tracked_view(self.plans[len(before) :], ())

    async def arecover(self, error: Exception) -> TrackedView[Item]:
        """Do what `recover` does, awaiting the summarizer."""
        before = self.plans

        async def perform(step: Calling | Compacting) -> Result:
            assert isinstance(step, Compacting)
            return await aio.acompact(step.messages, **step.arguments)

        self._recovered(await drive_async(self._recovery_steps(error), perform))
        return self._tracked_view(self.plans[len(before) :], ())

    def release_items(self) -> None:
        """Forget the framework's own messages, of which the next `fold` has all: some are copies for one call."""
        self._items = []

    def rewind(self, to: int = -1) -> tuple[Plan, ...]:
        """Take plans back, and return them; `to` is how many stay, negative from the end.

        The next `fold` has the originals again, and plans anew where the policy finds that due.

        Raises:
            UsageError: there are not so many plans.
        """
        before = self.plans
        self._state = rewound_state(self._state, to)
        self._plans_changed()
        return before[len(self.plans) :]

    # Internals

    def _stored_state(self, transcript: Transcript) -> str:
        """Return the state that is stored for a history which is new here, where there is a place for it."""
        return ""

    def _take(
        self,
        items: Sequence[Item],
        keys: Sequence[Any] | None,
        convert: Callable[[Item], Any] | None,
        system: SystemPrompt | None,
        tools: ToolDefinitions | None,
    ) -> tuple[Plan, ...]:
        """Read what is new of a history; return the plans that no longer fit it."""
        keys = list(items if keys is None else keys)
        if len(keys) != len(items):
            raise UsageError(f"{len(keys):,} keys for {len(items):,} items: give each item one")
        known = self.common(keys)
        groups = [_group(item if convert is None else convert(item)) for item in items[known:]]
        start = bisect_left(self._owners, known)  # the first native message that is new
        natives = [*self._natives[:start], *(native for group in groups for native in group)]
        shape, first = self._format, start  # the first native message that is read
        transcript = Transcript(self._transcript.messages[:start]) if start < len(self._natives) else self._transcript
        if natives:
            if shape is None:
                shape = format_for(natives, self._options.format)
            elif self._options.format is None and (other := formats.detect_again(shape, natives, start)) is not shape:
                shape, transcript, first, self._meters, self._view = other, Transcript(), 0, None, ViewCache()
            transcript = formats.read(shape, natives, transcript)
        if not self._keys and not self.plans and (state := self._stored_state(transcript)):
            self._restore_stored(state)
        plans, replaced = self.plans, start < len(self._natives)
        if plans and (replaced or first < start or not self._verified):
            plans = _fitting(plans, transcript)
            if len(plans) < len(self.plans) and not self._drops and first == start:
                raise _stale(self.plans[len(plans)], known, len(items))
        dropped = self.plans[len(plans) :]
        # From here on nothing fails.
        if replaced:
            for message in self._transcript.messages[start:]:
                self._places.pop(message.id, None)
                self._under.pop(message.id, None)
            phases = tuple(phase for phase in self._state.phases if phase.start <= start)
            self._state = replace(self._state, phases=phases)
        self._format, self._natives, self._transcript, self._verified = shape, natives, transcript, True
        self._keys, self._items = keys, list(items)
        del self._counts[known:], self._owners[start:]
        for at, group in enumerate(groups, known):
            self._counts.append(len(group))
            self._owners += [at] * len(group)
        if dropped:
            self._state = replace(self._state, plans=plans)
        if shape is not None:
            self._set_fixed(shape, system, tools)
        for place in range(first, len(transcript)):
            message = transcript.messages[place]
            self._places[message.id] = place
            if self._digest and bound_parts(message):
                self._set_under(message.id, place)
        if dropped or replaced:
            self._plans_changed()
        self._recovery = None
        return dropped

    def _restore(self, state: TrackState, text: str) -> None:
        """Go on with the plans and the window of a state; whether the plans fit is seen with the next history."""
        self._state, self._dumped, self._verified = state, (state, text), not state.plans
        self._narrow(state.window)

    def _restore_stored(self, text: str) -> None:
        try:
            state = load_state(text)
        except UnreadablePlan:  # of a later version, for example
            if not self._drops:
                raise
        else:
            self._restore(state, text)

    def _set_fixed(self, shape: Format, system: SystemPrompt | None, tools: ToolDefinitions | None) -> None:
        """Measure with the system prompt and tools of this call."""
        now = (
            self._defaults.system if system is None else system,
            self._defaults.tools if tools is None else tools,
        )
        changed = now != (self._options.system, self._options.tools)
        if changed:
            self._options = replace(self._options, system=now[0], tools=now[1])
        if self._meters is None:
            self._meters = SessionMeters(self._options, shape.name)
        elif changed:
            self._meters.set_fixed(*now)
        if binds_thinking(shape.name, self._options.model) and (changed or not self._digest):
            self._digest = digest_of_settings(shape, *now)

    def _set_under(self, id: MessageId, place: int) -> None:
        """Remember under which plans a message with thinking was produced."""
        phases = self._state.phases
        count = bisect_right(phases, place, key=lambda phase: phase.start)
        if count:
            self._under[id] = phases[count - 1].plans, phases[count - 1].settings

    def _sync(self) -> list[Any]:
        """Return the native messages under the plans in force."""
        if self._format is None or not self._natives:
            return []
        provenance = None
        if self._digest:
            plans = {plan.id: plan for plan in (*self._state.former, *self.plans)}
            provenance = Provenance(self._under, plans, self._digest)
        return self._view.sync(self._format, self._transcript, self.plans, provenance)

    def _pending(self) -> dict[str, Any] | None:
        """Return the arguments of a compaction, None where none is due."""
        natives = self._sync()
        if not natives:
            return None
        assert self._format is not None
        assert self._meters is not None
        self._meters.sync(self._transcript)
        report = self._usage
        if report and all(message.role != "assistant" for message in self._transcript.messages[self._reported_from :]):
            report = None  # it is on another view than this one
        meter = self._meters.view_meter
        check = meter.check_in(natives, report or self._usage_after_plan(natives), self._course)
        wakes = self._policy.wakes(Budget(check.limit), When.FIRST if check.waiting else When.EVERY_CALL)
        due = check.due or bool(wakes and meter.largest_new(wakes))
        if not due or (check.tokens < self._cooldown and check.tokens <= check.limit):
            return None
        self._cooldown = check.tokens + int(REST * check.limit)  # stays where the compaction is in vain
        if report is not None and report.covers is not None:  # neighbours of one role may be one native message
            report = replace(report, covers=max(report.covers + len(self._view.messages) - len(natives), 0))
        originals = self._meters.original_meter(self._view.messages, planned=bool(self.plans))
        options = {name: getattr(self._options, name) for name in MeterOptions.__optional_keys__}
        return {
            **options, "format": self._format.name, "usage": report, "plans": self.plans, "meter": originals,
            "handlers": self._handlers, "observers": self._observers,
        }  # fmt: skip

    def _usage_after_plan(self, natives: list[Any]) -> Usage | None:
        """Return the size that the newest plan left, as a report on the view; None where it was not calibrated."""
        if not self.plans or not self.plans[-1].sizes.calibrated:
            return None
        later = len(self._natives) - self.plans[-1].base.length
        return Usage(self.plans[-1].sizes.after, covers=max(len(natives) - later, 0))

    def _course(self) -> Course:
        return self._course_counter.course(self._transcript.messages, past_compactions(self.plans))

    def _adopt(self, result: Result) -> tuple[Plan, ...]:
        if result.plan.empty:
            return ()
        self._state = replace(self._state, plans=(*self.plans, result.plan))
        self._plans_changed()
        return (result.plan,)

    def _plans_changed(self) -> None:
        """Wait for a report on the view under the plans as they are now."""
        self._reported_from, self._cooldown = len(self._natives), 0

    def _tracked_view(self, new_plans: tuple[Plan, ...], dropped: tuple[Plan, ...]) -> TrackedView[Item]:
        natives = self._sync()
        if self._digest and natives:
            phase = Phase(len(self._natives), tuple(plan.id for plan in self.plans), self._digest)
            phases = self._state.phases
            if not phases or (phases[-1].plans, phases[-1].settings) != (phase.plans, phase.settings):
                self._state = replace(self._state, phases=(*phases, phase))
        places = [self._places.get(source) for source in self._view.sources] if natives else []
        return TrackedView(
            list(natives),
            tuple(None if place is None else self._owners[place] for place in places),
            tuple(
                place is not None and native is self._natives[place]
                for place, native in zip(places, natives, strict=True)
            ),
            self._items, self._counts, new_plans, dropped, self._written,
        )  # fmt: skip

    def _recovery_steps(self, error: Exception) -> RecoverySteps:
        if self._format is None:
            raise error
        options = replace(self._options, format=self._format.name, plans=self.plans)
        setting = Setting(options, self._handlers, self._observers, "", None, MAX_PASSES, takes_max_tokens=False)
        state = self._recovery or begun(setting, self._natives, 0)
        return (yield from answered(setting, self._natives, state, error))

    def _recovered(self, state: RecoveryState) -> None:
        self._state = replace(self._state, plans=state.plans)
        configured = budget_for(self._policy, self._options, measuring=True).window
        learned = state.window if state.window and state.window < configured else state.room
        self._narrow(learned)
        self._recovery = state
        self._plans_changed()

    def _narrow(self, window: int | None) -> None:
        """Reckon with a window that a refusal has told, where it is smaller than the one configured."""
        options = self._options
        is_configured = any(value is not None for value in (options.budget, options.window, options.model))
        if not window or (is_configured and window >= budget_for(self._policy, options, measuring=True).window):
            return
        if window != self._state.window:
            self._state = replace(self._state, window=window)
        self._options = replace(options, window=window, budget=None)
        self._meters = None if self._format is None else SessionMeters(self._options, self._format.name)


def _group(converted: Any) -> list[Any]:
    """Return what an item was converted to as a list of native messages; an SDK's object, though iterable, is one."""
    return list(converted) if isinstance(converted, list | tuple) else [converted]


def _fitting(plans: Sequence[Plan], transcript: Transcript) -> tuple[Plan, ...]:
    """Return the longest beginning of plans that may be applied to a transcript."""
    inserted: set[MessageId] = set()
    for count, plan in enumerate(plans):
        try:
            checked(plan, transcript, inserted)
        except StalePlan:
            return tuple(plans[:count])
        inserted.update(edit.message.id for edit in plan.edits if isinstance(edit, Insert))
    return tuple(plans)


def _stale(plan: Plan, known: int, items: int) -> StalePlan:
    return StalePlan(
        f"these plans do not fit this history: plan {plan.id} was made for {plan.base.length:,} messages, and of the "
        f"{items:,} items only the first {known:,} are as they were: pass the history that the plans were made for, or "
        'stale_plans="drop" to go on with the plans that still fit'
    )
