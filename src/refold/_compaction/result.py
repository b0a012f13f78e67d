"""What the verbs return, and the proof that it fits and is valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import formats
from refold._compaction.request import fixed_part
from refold.core._engine import without_ignored
from refold.core._preserved_thinking import Sent, bound_parts, without_stale
from refold.core.budget import Breakdown
from refold.core.counting import CharCounter, count_all
from refold.core.edits import Hide, fold
from refold.core.messages import Message, MessageId
from refold.core.plan import Plan, Sizes, sealed
from refold.core.token_units import EstimatedTokens, Ratio, ReportedTokens, ratio_of
from refold.core.usage_gauges import covered
from refold.errors import BrokenConversation, CannotFit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.request import Request
    from refold.core._native import Messages, SystemPrompt
    from refold.core.break_even import BreakEven
    from refold.core.counting import Counter
    from refold.core.transcript import Transcript
    from refold.core.view import View, Violation
    from refold.formats import Format

__all__ = [
    "Check",
    "CompactionRun",
    "Result",
    "assemble_result",
    "counter_name",
    "exact_size",
    "fold_plans",
    "named",
    "rewound",
    "verified_result",
    "view_breakdown",
    "vocabulary_of",
    "with_exact_size",
]

_EMPTY = Message(MessageId("empty"), "user")


class Result(Struct, frozen=True):
    """A compacted conversation: native messages and system prompt, the plan, and the sizes.

    `originals` are the messages before the compaction and `plans` all active plans, oldest first, without one that
    changes nothing: together they are everything `rewind` needs.

    `origins` says for each of `messages` which of the `originals` it is, in rising order: the index, or None for a
    message that a plan made (a digest, a marker). A message that no plan touched is `originals[origin]` itself, an
    edited one stands for it; of neighbors that were joined into one message it is the first.

    Added in 0.1.0.
    """

    messages: list[Any]
    system: Any
    plan: Plan
    sizes: Sizes
    originals: list[Any]
    plans: tuple[Plan, ...]
    format: str
    origins: tuple[int | None, ...]

    def __repr__(self) -> str:
        return (
            f"<Result {self.format}: {len(self.originals):,} -> {len(self.messages):,} messages, "
            f"{self.sizes.before:,} -> {self.sizes.after:,} tokens, {self.plan.id}>"
        )


class CompactionRun(Struct, frozen=True):
    """One compaction after planning: the request, whether it was due, the plan, and the view under the plan."""

    request: Request
    due: bool
    plan: Plan
    view: View

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages under the plan, with those that the provider ignores unless the plan hides them."""
        ignored = self.request.ignored
        if not ignored or (self.plan.edits and self.plan.edits[-1] == Hide(self.view.ignored)):
            return self.view.messages
        return (*ignored, *self.view.messages)

    def without_ignored(self) -> CompactionRun:
        """Return a run whose plan changes nothing as one that hides what the provider ignores."""
        return replace(self, plan=without_ignored(self.plan, self.view))


class Check(Struct, frozen=True):
    """How full the window is: tokens of the whole request, the input budget, whether compaction is due, and why.

    `tokens` are by the policy's own gauge, which decides (`due`); `expected` is what the provider will count, as far as
    reports have shown how it counts. `breakdown` is in tokens of the counter that `counter` names: a family of
    docs/counting.md ("claude-4.7"), or "characters / 4". `waiting`: the trigger is reached, and the compaction waits
    until it pays; its `waits` says why.

    Added in 0.1.0.
    """

    tokens: int
    limit: int
    due: bool
    breakdown: Breakdown
    expected: int
    waiting: BreakEven | None = None
    counter: str = ""

    def __repr__(self) -> str:
        state = ", due" if self.due else ", waiting until it pays" if self.waiting else ""
        return f"<Check {self.tokens:,} of {self.limit:,} tokens{state}>"

    @property
    def ratio(self) -> float:
        """The share of the input budget in use; above 1.0 it does not fit."""
        return self.tokens / self.limit


def verified_result(run: CompactionRun, messages: Messages, *, alternate: bool = False) -> Result:
    """Return the result of a run, after proving that it fits and is valid.

    Raises:
        CannotFit: still above the input budget.
        BrokenConversation: a provider's rule would not hold that held before.
    """
    request, plan = run.request, run.plan
    if run.due and plan.sizes.after > plan.sizes.limit:
        raise cannot_fit(plan, run.view)
    plans = (*request.options.plans, plan)
    system = request.options.system
    return assemble_result(
        request.format, request.transcript, messages, run.messages, plans, system, alternate=alternate
    )


def assemble_result(
    shape: Format,
    transcript: Transcript,
    messages: Messages,
    view: Sequence[Message],
    plans: tuple[Plan, ...],
    system: SystemPrompt | None,
    *,
    alternate: bool,
) -> Result:
    """Write the view that the plans give, and prove that it breaks no rule that held before.

    Raises:
        BrokenConversation: it would.
    """
    out, sources = formats.assemble_with_sources(shape, view, alternate=alternate)
    newest = plans[-1]
    if not newest.empty:
        untouched = {
            id(message.passed): message for message in view if message.native is not None and not message.patches
        }
        _refuse_new_violations(
            shape, transcript, [untouched.get(id(native)) or shape.read(native, MessageId("written")) for native in out]
        )
    in_force = plans[:-1] if newest.empty else plans
    origins = tuple(map(transcript.index.get, sources))
    return Result(out, system, newest, newest.sizes, list(messages), in_force, shape.name, origins)


def fold_plans(transcript: Transcript, plans: Sequence[Plan]) -> tuple[Message, ...]:
    """Return the view of a transcript under plans."""
    return fold(transcript.messages, [plan.edits for plan in plans], [plan.base.tip for plan in plans])


def rewound(transcript: Transcript, plans: Sequence[Plan], remaining: Sequence[Plan]) -> tuple[Message, ...]:
    """Return the view under the plans that remain, without thinking that was produced under those that go.

    A message is taken to be produced under the plans that were made before it.
    """
    taken = plans[len(remaining) :]
    now = fold_plans(transcript, remaining)
    if not any(plan.binds_thinking for plan in taken) or not any(map(bound_parts, now)):
        return now
    views = {count: Sent(fold_plans(transcript, plans[:count])) for count in range(len(plans) + 1)}

    def produced(place: int) -> Sent:
        return views[sum(1 for plan in plans if plan.base.length <= place)]

    return without_stale(transcript.messages, produced, views[len(remaining)])


def exact_size(run: CompactionRun) -> tuple[ReportedTokens, Ratio] | None:
    """Return the size of a run's result by exact count, as the provider counts, and the ratio that a report gives.

    None where the plan is empty, the policy itself counts exactly (for a model that only the counter given names, too),
    or the report shows that the provider's vocabulary is another than the one that we count with.
    """
    plan, view, exact = run.plan, run.view, run.request.exact
    of_unnamed_model = run.request.options.model is None and getattr(view.counter, "exact", False)
    if plan.empty or view.counter is exact or of_unnamed_model:
        return None
    after = EstimatedTokens(fixed_part(view, run.request.options, exact).total + count_all(exact, view.messages))
    ratio = vocabulary_of(replace(run.request, view=view))
    return None if ratio.far else (ratio.reported(after), ratio)


def vocabulary_of(request: Request) -> Ratio:
    """Return the tokens that the provider counts per token of the exact count: by a report on the view, or earlier."""
    view, exact = request.view, request.exact
    if view.usage is None:
        return request.vocabulary
    fixed = fixed_part(view, request.options, exact)
    counted = count_all(exact, view.start[: covered(view.start, view.usage)])
    return ratio_of(view.usage.reported, EstimatedTokens(fixed.system + fixed.tools + counted))


def with_exact_size(run: CompactionRun, size: ReportedTokens, ratio: Ratio) -> CompactionRun:
    """Return a run whose plan has its size afterwards by exact count, where a report shows that it is the provider's.

    A policy counts characters, and one ratio for a whole request is wrong for what stays of it when that is of another
    kind than what leaves: in long chats by up to 18 % (`benchmarks/chat_runs.py`). Without a report all sizes are the
    policy's own estimate, of which no part is replaced; a count that the provider made of the result stays.
    """
    sizes = run.plan.sizes
    is_reported = run.view.ratio.known or run.request.vocabulary.known
    if not ratio.same or not is_reported or sizes.after != run.view.reported.count:
        return run
    return replace(run, plan=sealed(replace(run.plan, sizes=replace(sizes, after=size.count))))


def cannot_fit(current_plan: Plan, view: View) -> CannotFit:
    """Return the error that says what is left and cannot shrink, in tokens."""
    fixed = view.overhead
    sizes = {"system": fixed.system, "tools": fixed.tools, "prompt": fixed.prompt, "files": fixed.files}
    for message, size in zip(view.messages, view.sizes, strict=True):
        sizes[f"{message.role} messages"] = sizes.get(f"{message.role} messages", 0) + size
    largest, place = max(zip(view.sizes, range(len(view.sizes)), strict=True), default=(0, 0))
    which = _original(view, place)
    named = ", ".join(f"{name} {size:,}" for name, size in sizes.items() if size)
    return CannotFit(
        f"policy {current_plan.policy} cannot bring the request under {current_plan.sizes.limit:,} tokens; "
        f"{current_plan.sizes.after:,} are left ({named}; {which} alone has {largest:,}): "
        "allow a larger budget, or shorten what is named",
        current_plan,
        sizes | {"largest message": largest},
    )


def _original(view: View, place: int) -> str:
    """Return which of the caller's messages stands at a place of a view."""
    if not view.messages:
        return "no message"
    message = view.messages[place]
    position = view.transcript.index.get(message.id)
    return (
        f"the {message.note.kind if message.note else 'message'} of a plan"
        if position is None
        else f"message {position}"
    )


def view_breakdown(view: View) -> Breakdown:
    """Return what a view is made of, by system, tools, messages, kind of part and role, in the counter's tokens.

    What frames the list as a whole is counted as messages, so that the parts add up to the request.
    """
    kinds: dict[str, int] = {}
    roles: dict[str, int] = {}
    framing = view.counter.message(_EMPTY)
    for message, size in zip(view.messages, view.sizes, strict=True):
        roles[message.role] = roles.get(message.role, 0) + size
        for part in message.parts:
            kind = str(part.__struct_config__.tag)
            alone = view.counter.message(replace(_EMPTY, parts=(part,))) - framing if len(message.parts) > 1 else size
            kinds[kind] = kinds.get(kind, 0) + alone
    return replace(view.overhead, messages=view.counter.per_conversation + sum(view.sizes), kinds=kinds, roles=roles)


def counter_name(counter: Counter) -> str:
    """Return the family whose vocabulary a counter uses, or by how many characters it divides; else its type."""
    match counter:
        case CharCounter(per_token=per_token, factor=factor, margin=margin):
            return f"characters / {per_token / factor / margin:.3g}"
        case _:
            return getattr(counter, "family", "") or type(counter).__name__


def _refuse_new_violations(shape: Format, transcript: Transcript, written: list[Message]) -> None:
    broken = formats.broken(shape, written)
    if not broken:
        return
    known = {(violation.rule, violation.message) for violation in formats.broken(shape, transcript.messages)}
    fresh = tuple(violation for violation in broken if (violation.rule, violation.message) not in known)
    if fresh:
        raise BrokenConversation(f"rules of {shape.name} would not hold: {named(fresh)}", fresh)


def named(violations: Sequence[Violation]) -> str:
    """Return the first three violations in words, and how many more there are."""
    some = "; ".join(f"{violation.rule}: {violation.message}" for violation in violations[:3])
    return f"{some}; and {len(violations) - 3:,} more" if len(violations) > 3 else some
