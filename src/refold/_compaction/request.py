"""Resolves a caller's options: format, transcript, budget, policy and counter, ready for planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import formats, policies
from refold._compaction.options import Options
from refold._rules.reasoning import SealedReasoning
from refold._text.suggestions import did_you_mean
from refold.core.budget import (
    Breakdown,
    Budget,
    Exactly,
    Limit,
    Share,
    Usage,
    WhenItPays,
)
from refold.core.counting import CharCounter, Counter
from refold.core.edits import Insert, fold
from refold.core.plan import Plan, checked, past_compactions, usage_after
from refold.core.policy import Policy
from refold.core.token_units import UNKNOWN_RATIO, EstimatedTokens, Ratio
from refold.core.transcript import Transcript
from refold.core.usage_gauges import covered, ratio_by
from refold.core.view import Cause, ProviderLimits, View
from refold.errors import BadBudget, UsageError
from refold.formats import Format
from refold.models._cache_rules import token_prices
from refold.models._provider_factors import request_factor
from refold.models._thinking import binds_thinking

if TYPE_CHECKING:
    from refold.core._native import Messages
    from refold.core.messages import Message, MessageId
    from refold.core.view import Rule

__all__ = [
    "CHARACTERS",
    "Request",
    "check_plans",
    "counter_for",
    "format_for",
    "gauged",
    "policy_counter",
    "request_for",
    "usage_for",
]


# Where a report shows that the provider's vocabulary is another than ours, characters measure it as well as our tokens,
# and more evenly: a digest has more tokens a character than what it stands for.
CHARACTERS = CharCounter()
PERCENT = 100  # a goal of so few tokens is a share that was written as a number
MOST = 10_000_000_000  # of tokens, and of calls: more is a slip

# What an argument may be, and what to give; the others are checked where they are read.
_KINDS: Mapping[str, tuple[Any, str]] = {
    "format": (str | None, "the name of a format"),
    "policy": (str | Policy, "a policy's name, a path to a file with one, or a Policy"),
    "model": (str | None, "a model's id"),
    "provider": (str | None, "a provider's name"),
    "goal": (int | float | Limit | None, "a number of tokens, a share of the input budget up to 1.0, or a limit"),
    "instructions": (str | None, "a text"),
    "wait": (bool, "True or False"),
    "expected_calls": (int | None, "a number of calls"),
    "files": (list | tuple, "a list of texts, or of mappings with `content`"),
    "plans": (list | tuple, "a list of plans"),
    "pinned": (list | tuple, "a list of ids of messages"),
}


class Request(Struct, frozen=True):
    """A request with every option resolved.

    `view` is where a policy starts from, `transcript` the whole conversation, `ignored` the messages of the view under
    the earlier plans that stand before an anchor, so that the provider does not read them. `vocabulary` is how the
    provider counted an earlier view per token of the exact count: it holds where no report is on this view.
    """

    format: Format
    policy: Policy
    view: View
    exact: Counter
    options: Options
    transcript: Transcript
    ignored: tuple[Message, ...] = ()
    vocabulary: Ratio = UNKNOWN_RATIO

    def with_summarizer(self) -> Request:
        """Return the same request for a caller who can provide a summary."""
        return replace(self, view=replace(self.view, summarizer=True))

    def recounted(self) -> Request:
        """Return the same request measured with exact counts instead of the policy's own estimate.

        A report counts on where it says how the provider's count differs from the exact one.
        """
        view = replace(self.view, counter=self.exact, estimates={})
        again = measured(view, self.policy, self.options)
        if not again.ratio.known:
            again = measured(replace(view, usage=None), self.policy, self.options)
        return replace(self, view=again)


def request_for(
    messages: Messages,
    options: Options,
    *,
    transcript: Transcript | None = None,
    estimates: dict[MessageId, int] | None = None,
    start: tuple[Message, ...] | None = None,
    measuring: bool = False,
) -> Request:
    """Resolve a caller's arguments; `transcript` and `estimates` are what is already read and counted.

    `start` is what the plans in force, which were checked before, fold to. `measuring`: the request is only measured,
    so one that no compaction could make fit is taken as it is.

    Raises:
        UsageError: an argument that cannot be, named with its remedy.
    """
    _typed(options)
    shape = format_for(messages, options.format)
    history = formats.read(shape, messages) if transcript is None else transcript
    if start is None:
        plans = check_plans(options.plans, history)
        start = fold(history.messages, [plan.edits for plan in plans], [plan.base.tip for plan in plans])
    ignored = shape.anchor(start)
    heard = _after_anchor(history, start, ignored)
    cause = _cause(options)
    policy = _policy(options, cause)
    budget = budget_for(policy, options, measuring=measuring)
    exact = counter_for("exact", options.model, options.provider, shape.name)
    binds = binds_thinking(shape.name, options.model)
    view = View(
        transcript=heard,
        start=start[ignored:],
        budget=budget,
        goal=_goal(policy, options, budget),
        counter=_counter(options, policy, shape.name, exact),
        rules=shape.rules if not binds else tuple(map(_unopened, shape.rules)),
        traits=shape.traits,
        usage=_since(usage_for(options) or _after_plans(options.plans, history, start), ignored),
        binds_thinking=binds,
        pinned=frozenset(options.pinned),
        prices=token_prices(options.model),
        compactions=past_compactions(options.plans),
        expected_calls=options.expected_calls,
        cause=cause,
        instructions=options.instructions or "",
        estimates={} if estimates is None else estimates,
        skipped=len(history) - len(heard),
        ignored=tuple(message.id for message in start[:ignored]),
    )
    view = measured(view, policy, options)
    if view.counter == exact and view.ratio.far:
        view = measured(replace(view, counter=CHARACTERS, estimates={}), policy, options)
    fixed = view.scale.reported(EstimatedTokens(view.overhead.total)).count
    if fixed >= budget.input and not measuring:
        raise BadBudget(
            f"{_fixed_parts(view.overhead)} alone take {fixed:,} of {budget.input:,} tokens of input: "
            "name a larger window or send fewer tools"
        )
    return Request(shape, policy, view, exact, options, history, start[:ignored])


def _fixed_parts(overhead: Breakdown) -> str:
    """Return the parts that no compaction shrinks, in words."""
    prompt = ", the prompt and its files" if overhead.prompt or overhead.files else ""
    return f"system prompt and tools{prompt}"


def _after_anchor(transcript: Transcript, start: Sequence[Message], ignored: int) -> Transcript:
    """Return the part of a transcript that the provider reads: all but what stands before an anchor."""
    place = transcript.index.get(start[ignored].id, 0) if ignored else 0
    return Transcript(transcript.messages[place:]) if place else transcript


def _since(usage: Usage | None, ignored: int) -> Usage | None:
    """Return a usage report with the leading messages it counted, as the view numbers them."""
    if usage is None or usage.covers is None or not ignored:
        return usage
    return replace(usage, covers=max(usage.covers - ignored, 0))


def _unopened(rule: Rule) -> Rule:
    """Return a rule without the demand that thinking opens a tool loop, which no model makes that binds it."""
    return replace(rule, first=False) if isinstance(rule, SealedReasoning) else rule


def _typed(options: Options) -> None:
    """Refuse arguments of a type that they cannot have."""
    for name, (kinds, remedy) in _KINDS.items():
        if not isinstance(value := getattr(options, name), kinds):
            raise UsageError(f"{name} is of type {type(value).__name__}: give {remedy}")
    if options.max_output:  # 0 reserves nothing
        _whole("max_output", options.max_output)
    if options.expected_calls:  # 0: none is expected, and nothing pays
        _whole("expected_calls", options.expected_calls)
    for place, id in enumerate(options.pinned):
        if not isinstance(id, str):
            raise UsageError(f"pinned[{place}] is of type {type(id).__name__}: give the id of a message")


def _after_plans(plans: Sequence[Plan], history: Transcript, start: Sequence[Message]) -> Usage | None:
    """Return the size that the newest plan left as a report, where no newer one was passed."""
    if not plans:
        return None
    later = {message.id for message in history.messages[plans[-1].base.length :]}
    return usage_after(plans[-1], later, start)


def measured(view: View, policy: Policy, options: Options) -> View:
    """Return the view with its fixed part counted, its size read off the policy's gauge, and its limits converted."""
    overhead = fixed_part(view, options, view.counter)
    view = replace(view, overhead=overhead)
    since = sum(view.sizes[covered(view.start, view.usage) :]) + overhead.prompt + overhead.files if view.usage else 0
    return gauged(view, policy, EstimatedTokens(view.estimated), EstimatedTokens(since))


def fixed_part(view: View, options: Options, counter: Counter) -> Breakdown:
    """Count what a request holds besides the messages of the view."""
    return Breakdown(
        system=counter.text(formats.system_text(options.system)) if options.system else 0,
        tools=counter.tools(formats.tools_text(options.tools, formats.loaded_in(view.start))) if options.tools else 0,
        prompt=counter.text(formats.system_text(options.prompt)) if options.prompt else 0,
        files=sum(counter.text(formats.system_text(file)) for file in options.files),
    )


def gauged(view: View, policy: Policy, estimated: EstimatedTokens, since: EstimatedTokens) -> View:
    """Return the view as the policy's gauge reads it, with its limits in the counter's unit.

    `estimated` is the estimate of the whole request, `since` of what came after the report.
    """
    gauge, usage = policy.gauge, view.usage
    ratio = ratio_by(gauge, estimated, since, usage)
    scale = ratio if gauge.follows_reports else ratio.at_least_one
    limits = view.limits or ProviderLimits(view.budget, view.goal)
    converted = limits.in_units_of(scale, EstimatedTokens(view.overhead.total))
    return replace(
        view, measured=gauge.measure(estimated, since, usage, ratio), ratio=ratio, scale=scale,
        limits=None if scale.value == 1 else limits, budget=converted.budget, goal=converted.goal,
    )  # fmt: skip


def format_for(messages: Messages, format: str | None) -> Format:
    """Return the named format, or the one the messages have."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise UsageError(f"messages must be a list of the provider's messages, not {type(messages).__name__}")
    return formats.find(format) if format is not None else formats.detect(messages)


def budget_for(policy: Policy, options: Options, *, measuring: bool = False) -> Budget:
    """Return the budget of a request: given, or from a window, or from what is known of the model.

    `measuring`: an answer that leaves nothing of the window leaves one token, of which any request is too many.

    Raises:
        BadBudget: none of the three was given, or a figure cannot hold.
    """
    if isinstance(options.budget, Budget):
        return options.budget
    if options.budget is not None:
        return Budget(_whole("budget", options.budget))
    if options.window is not None:
        size = _whole("window", options.window)
        return _left(size, policy.reserve(size, options.max_output), options, measuring)
    from refold.models import _catalog as catalog

    model, provider = options.model, options.provider
    if (tabled := catalog.table_budget(policy.reserve, model, options.max_output, provider)) is not None:
        return tabled
    if model is None:
        raise BadBudget("how much may the request hold? Give budget=, window= or model=")
    known = catalog.window(model, provider)
    beyond_input = known.window - known.input_cap if known.input_cap else 0
    reserve = policy.reserve.of_model(known.window, options.max_output, known.output_cap)
    return _left(known.window, max(reserve, beyond_input), options, measuring)


def _left(window: int, reserve: int, options: Options, measuring: bool) -> Budget:
    """Return the budget of a window, of which the answer must leave something."""
    if options.max_output and window - reserve <= 1 and not measuring:  # a reserve always leaves one
        raise BadBudget(
            f"max_output={options.max_output:,} leaves nothing of a window of {window:,} tokens: "
            "ask for a shorter answer, or name a larger window"
        )
    return Budget(window, reserve)


def counter_for(
    counter: Counter | str, model: str | None, provider: str | None = None, format: str | None = None
) -> Counter:
    """Return the counter given, or by the name "exact" that of the model, or of the provider or format without one."""
    if not isinstance(counter, str):
        if not callable(getattr(counter, "message", None)):
            raise UsageError(f'a counter of type {type(counter).__name__} cannot count: say "exact" or "policy"')
        return counter
    if counter != "exact":
        near = did_you_mean(counter, ("exact", "policy"))
        raise UsageError(f'no counter is called "{counter}"{near}; say "exact" or "policy", or pass a counter')
    from refold._counting import counter_for as exact

    return exact(model, provider, format)


def check_plans(plans: Sequence[Plan], transcript: Transcript) -> tuple[Plan, ...]:
    """Return plans that may be applied to a transcript one after the other.

    Raises:
        StalePlan: one of them may not.
        UsageError: one of them is no plan.
    """
    inserted: set[MessageId] = set()
    for plan in plans:
        if not isinstance(plan, Plan):
            raise UsageError(f"plans holds a value of type {type(plan).__name__}: give plans, as in result.plans")
        checked(plan, transcript, inserted)
        inserted.update(edit.message.id for edit in plan.edits if isinstance(edit, Insert))
    return tuple(plans)


def _cause(options: Options) -> Cause:
    try:
        if options.cause is not None:
            return Cause(options.cause)
    except ValueError:
        raise UsageError(
            f'no cause is called "{options.cause}"{did_you_mean(options.cause, Cause)}; causes are {", ".join(Cause)}'
        ) from None
    return Cause.MANUAL if options.force else Cause.THRESHOLD


def _policy(options: Options, cause: Cause) -> Policy:
    policy = policies.find(options.policy) if isinstance(options.policy, str) else options.policy
    if cause in (Cause.OVERFLOW, Cause.SILENT_OVERFLOW) and policy.after_overflow is not None:
        policy = policy.after_overflow
    if isinstance(options.budget, int):  # "fit into this many tokens": due when it does not
        policy = replace(policy, trigger=Exactly(_whole("budget", options.budget)))
    if not options.wait and isinstance(policy.trigger, WhenItPays):
        policy = replace(policy, trigger=Share(policy.trigger.share, inclusive=True))
    return policy


def _goal(policy: Policy, options: Options, budget: Budget) -> Limit:
    match options.goal:
        case None:
            return Exactly(options.budget) if isinstance(options.budget, int) else policy.goal
        case bool():
            raise BadBudget("goal is a number of tokens or a share, not a truth value")
        case int() as tokens if 0 < tokens <= PERCENT:
            share = f"{tokens / 100:g}"
            raise BadBudget(f"goal={tokens} means {tokens} tokens: for {tokens} % of the input budget give {share}")
        case int() as tokens if 0 < tokens <= budget.input:
            return Exactly(tokens)
        case int() as tokens:
            most = f"the input budget is {budget.input:,}"
            raise BadBudget(f"a goal of {tokens:,} tokens cannot be: {most}, so give 1 to that many, or a share")
        case float() as share if 0 < share <= 1:
            return Share(share)
        case float() as share:
            raise BadBudget(f"a goal of {share} is neither a share up to 1.0 nor a whole number of tokens")
        case limit:
            return limit


def policy_counter(
    policy: Policy, model: str | None, format: str | None, provider: str | None = None
) -> Counter | None:
    """Return a policy's own estimate, with the factor of the request's provider if it has one (N09); None without."""
    counter = policy.counter
    if isinstance(counter, CharCounter) and counter.by_provider:
        return _with_factor(counter, request_factor(model, format, provider))
    return counter


@cache  # one object for equal counters: a message remembers its size by the counter
def _with_factor(counter: CharCounter, factor: float) -> CharCounter:
    return counter if counter.factor == factor else replace(counter, factor=factor)


def _counter(options: Options, policy: Policy, format: str, exact: Counter) -> Counter:
    """Choose the scale: a budget in plain tokens is counted exactly, a share of a window as the policy counts."""
    match options.counter:
        case None if isinstance(options.budget, int):
            return exact
        case None | "policy":
            return policy_counter(policy, options.model, format, options.provider) or exact
        case "exact":
            return exact
        case other:
            return counter_for(other, options.model)


def usage_for(options: Options) -> Usage | None:
    """Return the usage report as given, or read from the provider's own shape."""
    if options.usage is None or isinstance(options.usage, Usage):
        return options.usage
    from refold.models._usage_report import reported

    report = reported(options.usage)
    return Usage(report.prompt, report.completion, report.cached_read)


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST:
        raise BadBudget(f"{name}={value!r} cannot be: give a positive whole number, at most {MOST:,}")
    return value
