"""The public verbs, synchronous: plan, compact, apply, rewind, check, violations, repair, count, window."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold import formats
from refold._compaction.request import Options, all_checked, counter_for, format_for, request_for
from refold._compaction.result import (
    Check,
    Result,
    checked_result,
    must_recount,
    named,
    proven,
    rewound,
    view_breakdown,
)
from refold.core._engine import Planning, due, planning, without_ignored
from refold.core.budget import Budget, Limit, Usage
from refold.core.counting import Counter, count_all
from refold.core.events import (
    CompactionApplied,
    CompactionFailed,
    CompactionStarted,
    Observer,
    notify,
)
from refold.core.plan import Plan
from refold.core.policy import Policy
from refold.core.view import Cause, Violation
from refold.errors import BrokenConversation, UsageError
from refold.handlers import Handlers
from refold.policies._internal import REPAIR

if TYPE_CHECKING:
    from refold._compaction.meter import Meter
    from refold._compaction.request import Request
    from refold.models._catalog import Window

__all__ = ["apply", "check", "compact", "count", "plan", "repair", "rewind", "violations", "window"]


def compact(
    messages: Sequence[Any],
    *,
    format: str | None = None,
    policy: str | Policy = "refold",
    budget: Budget | int | None = None,
    model: str | None = None,
    window: int | None = None,
    goal: int | float | Limit | None = None,
    system: Any = None,
    tools: Any = None,
    usage: Usage | Mapping[str, Any] | None = None,
    summarize: Any = None,
    force: bool = False,
    cause: Cause | str | None = None,
    instructions: str | None = None,
    max_output: int | None = None,
    counter: Counter | str | None = None,
    plans: Sequence[Plan] = (),
    outside: Handlers | None = None,
    redact: bool = True,
    meter: Meter | None = None,
    alternate: bool = False,
    observers: Sequence[Observer] = (),
) -> Result:
    """Keep a conversation inside its budget; messages in the provider's own shape, in and out.

    Untouched messages come out as the very same objects, the input is never changed, and nothing happens while
    compaction is not due.

    Args:
        messages: the provider's list of messages (OpenAI chat or Responses, Anthropic, Gemini, Bedrock).
        format: the list's format; told from the messages when left out.
        policy: a policy's name, a path to a file with one, or a `Policy`.
        budget: a `Budget`, or a number of tokens into which everything must fit (then the goal is that number too).
        model: a model's id; its window and tokenizer are used.
        window: the context window in tokens; wins over what is known of the model.
        goal: where compaction may stop: tokens (int), a share of the input budget (float up to 1.0), or a limit.
        system: the system prompt where the provider keeps it apart; counted, returned unchanged.
        tools: tool definitions; counted.
        usage: the provider's last usage report, or a `Usage`; it calibrates the measure.
        summarize: any function, sync or async, from a request (`.text`, `.messages`, `.instructions`, `.previous`,
            `.max_tokens`, `.language`) to a string; an exception is a refusal, and so is what is no summary.
        force: compact although it is not due.
        cause: "threshold", "overflow", "silent_overflow" or "manual" (which `force` means).
        instructions: what a summary should heed (L07).
        max_output: tokens the answer may have.
        counter: "exact" (the model's tokenizer), "policy" (the policy's own estimate), or a counter. By default a
            budget in plain tokens is counted exactly and a window as the policy counts.
        plans: plans already in force on these messages, oldest first.
        outside: who answers the other needs (files, archive, the provider's count) and takes `summarize`'s place.
        redact: remove known shapes of secrets from what a summarizer is sent; the conversation itself keeps them.
        meter: a `Meter` that has seen these messages; what it has read and counted is not read again.
        alternate: write neighbours of one role as one message, for servers whose chat template demands it.
        observers: functions that are told when it starts, ends or fails.

    Raises:
        UsageError: arguments that cannot be, messages that are not of the format, or a coroutine function as summarizer
            inside a running event loop, which this would block: await `acompact` there.
        CannotFit: every step ran and the whole is still above the input budget; `plan` and `sizes` say what is left.
        BrokenConversation: provider rules that would not hold in the result.
        SummaryRefused: the policy needs a summary and none could be had.

    Added in 0.1.0.
    """
    options = Options(
        format=format, policy=policy, budget=budget, model=model, window=window, goal=goal, system=system, tools=tools,
        usage=usage, cause=cause, force=force, instructions=instructions, max_output=max_output, counter=counter,
        plans=plans,
    )  # fmt: skip
    refuse_blocking(summarize, outside, "await refold.acompact(…)")
    request = requested(messages, options, meter)
    with told(request, tuple(observers)) as applied:
        made = drive(request, answering(outside, summarize, redact=redact))
        result = proven(request, made, messages, alternate=alternate)
        applied(made)
    return result


def plan(
    messages: Sequence[Any],
    *,
    format: str | None = None,
    policy: str | Policy = "refold",
    budget: Budget | int | None = None,
    model: str | None = None,
    window: int | None = None,
    goal: int | float | Limit | None = None,
    system: Any = None,
    tools: Any = None,
    usage: Usage | Mapping[str, Any] | None = None,
    summarize: Any = None,
    force: bool = False,
    cause: Cause | str | None = None,
    instructions: str | None = None,
    max_output: int | None = None,
    counter: Counter | str | None = None,
    plans: Sequence[Plan] = (),
    outside: Handlers | None = None,
    redact: bool = True,
    meter: Meter | None = None,
) -> Plan:
    """Return what a compaction would do, without doing it; the arguments are those of `compact`.

    Added in 0.1.0.
    """
    options = Options(
        format=format, policy=policy, budget=budget, model=model, window=window, goal=goal, system=system, tools=tools,
        usage=usage, cause=cause, force=force, instructions=instructions, max_output=max_output, counter=counter,
        plans=plans,
    )  # fmt: skip
    refuse_blocking(summarize, outside, "await refold.aplan(…)")
    return drive(requested(messages, options, meter), answering(outside, summarize, redact=redact))


def apply(
    plan: Plan,
    messages: Sequence[Any],
    *,
    format: str | None = None,
    system: Any = None,
    plans: Sequence[Plan] = (),
    alternate: bool = False,
) -> Result:
    """Put a plan on the messages it was made for, or on a longer list that begins with them.

    `plans` are those already in force. `system` is returned unchanged.

    Raises:
        StalePlan: the plan was made for another conversation.

    Added in 0.1.0.
    """
    shape = format_for(messages, format or plan.format or None)
    transcript = formats.read(shape, messages)
    in_force = all_checked((*plans, plan), transcript)
    return checked_result(shape, transcript, messages, in_force, system, alternate=alternate)


def rewind(
    result: Result | Sequence[Any], plans: Sequence[Plan] = (), *, to: int = -1, format: str | None = None
) -> list[Any]:
    """Take plans back and return the native messages under those that stay.

    `result` is a `Result`, or the original messages with the `plans` in force. `to` is how many plans stay, 0 for the
    originals; negative counts from the end, so the default takes back the newest. Where a plan was made for a model
    that binds thinking to what stands before it, messages that were added under it lose theirs when it is taken back.

    Raises:
        UsageError: the messages are not of the format, or their format cannot be told.

    Added in 0.1.0.
    """
    originals = result.originals if isinstance(result, Result) else result
    in_force = result.plans if isinstance(result, Result) else tuple(plans)
    shape = format_for(originals, result.format if isinstance(result, Result) else format)
    remaining = in_force[: to if to >= 0 else max(len(in_force) + to, 0)]
    return formats.assemble(shape, rewound(formats.read(shape, originals), in_force, remaining))


def check(
    messages: Sequence[Any],
    *,
    format: str | None = None,
    policy: str | Policy = "refold",
    budget: Budget | int | None = None,
    model: str | None = None,
    window: int | None = None,
    system: Any = None,
    tools: Any = None,
    usage: Usage | Mapping[str, Any] | None = None,
    max_output: int | None = None,
    counter: Counter | str | None = None,
    plans: Sequence[Plan] = (),
) -> Check:
    """Measure a request against its budget: size, limit, whether compaction is due, and what it is made of (N01).

    A request that cannot fit is measured like any other: its ratio is above 1.
    One call reads and counts everything; `Meter.check` does the same for a growing list at the price of what is new.

    Added in 0.1.0.
    """
    options = Options(
        format=format, policy=policy, budget=budget, model=model, window=window, system=system, tools=tools,
        usage=usage, max_output=max_output, counter=counter, plans=plans,
    )  # fmt: skip
    request = request_for(messages, options, measuring=True)
    view = request.view
    return Check(view.tokens, view.budget.input, due(request.policy, view), view_breakdown(view))


def violations(messages: Sequence[Any], *, format: str | None = None) -> tuple[Violation, ...]:
    """Return every provider rule the messages break, with positions; none for a valid conversation.

    Added in 0.1.0.
    """
    shape = format_for(messages, format)
    return formats.broken(shape, formats.read(shape, messages).messages)


def repair(
    messages: Sequence[Any], *, format: str | None = None, model: str | None = None, system: Any = None
) -> Result:
    """Make a conversation valid for its provider: pair calls and results, drop empty content, mend arguments.

    The result's plan says what was done; a valid conversation comes back as the same objects with an empty plan. The
    rules are those that `violations` checks (docs/formats.md has their sources). For a model that binds thinking to
    what stands before it, and where no model is named, the thinking behind the first repaired message is removed.

    Raises:
        UsageError: the messages are not of the format, or their format cannot be told.
        BrokenConversation: a breach that no repair mends, with its positions.

    Added in 0.1.0.
    """
    options = Options(
        format=format, policy=REPAIR, budget=Budget(10**12), counter="policy", force=True, model=model, system=system
    )
    request = request_for(messages, options)
    made = drive(request, Handlers())
    if made.empty and request.view.ignored and violations(messages, format=request.format.name):
        made = without_ignored(made, request.view)  # what the provider ignores breaks a rule
    result = proven(request, made, messages)
    if left := violations(result.messages, format=result.format):
        raise BrokenConversation(f"{len(left)} rules of {result.format} cannot be mended: {named(left)}", left)
    return result


def count(
    content: str | Sequence[Any],
    *,
    model: str | None = None,
    format: str | None = None,
    system: Any = None,
    tools: Any = None,
    counter: Counter | str = "exact",
) -> int:
    """Count the tokens of a text, or of messages with system prompt and tools, by the model's own tokenizer.

    What the provider does not read is not counted: everything before a compaction block, tools that are deferred and
    were not loaded.

    Added in 0.1.0.
    """
    scale = counter_for(counter, model)
    if isinstance(content, str):
        return scale.text(content)
    shape = format_for(content, format)
    messages = formats.read(shape, content).messages
    messages = messages[shape.anchor(messages) :]
    apart = scale.text(formats.system_text(system)) if system else 0
    schemas = scale.tools(formats.tools_text(tools, formats.loaded_in(messages))) if tools else 0
    return apart + schemas + count_all(scale, messages)


def window(model: str, provider: str | None = None, override: Any = None, *, allocated: int | None = None) -> Window:
    """Return a model's window, input cap and output cap, where the figures are from, and whether they are assumed.

    `override` is the user's own figure, which wins; `allocated` the window a local server has set aside, which caps.

    Added in 0.1.0.
    """
    from refold.models import _catalog as catalog

    return catalog.window(model, provider, override, allocated=allocated)


def drive(request: Request, outside: Handlers) -> Plan:
    """Plan, answering what is asked for; plan again by exact count where the policy's estimate was too low."""
    request = request.asking(outside.summarize is not None)
    made = driven(planned(request), outside)
    if must_recount(request, made):
        made = driven(planned(request.recounted()), outside)
    return made


def requested(messages: Sequence[Any], options: Options, meter: Meter | None) -> Request:
    """Return the request of messages, from the meter that has seen them where there is one."""
    return request_for(messages, options) if meter is None else meter.request(messages, options)


def answering(outside: Handlers | None, summarize: Any, *, redact: bool = True) -> Handlers:
    """Return who answers needs: the one given, or one that only summarizes; either may have secrets sent."""
    if outside is None:
        return Handlers(summarize=summarize, redact=redact)
    if not isinstance(outside, Handlers):
        raise UsageError(f"outside is of type {type(outside).__name__}: give an Outside, or a function as summarize=")
    return outside if redact else replace(outside, redact=False)


def refuse_blocking(summarize: Any, outside: Handlers | None, remedy: str) -> None:
    """Refuse a coroutine function as summarizer where waiting for it would block the event loop that runs here.

    Raises:
        UsageError: it would; the remedy is named.
    """
    function = summarize if outside is None else getattr(outside, "summarize", None)
    waits = iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    if waits and _in_event_loop():
        raise UsageError(
            f"an asynchronous summarizer inside a running event loop, which this call would block: use {remedy}"
        )


def _in_event_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # kept out of `import refold`; where it was never imported, no loop runs
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def planned(request: Request) -> Planning:
    """Return the planning of a request, not yet begun."""
    earlier = [plan.id for plan in request.options.plans]
    return planning(request.policy, request.view, format=request.format.name, earlier=earlier)


@contextmanager
def told(request: Request, watchers: tuple[Observer, ...]) -> Iterator[Callable[[Plan], None]]:
    """Tell the watchers that a compaction begins, where one is due, and how it ends; yield what takes its plan."""
    view = request.view
    if watchers and due(request.policy, view):
        notify(watchers, CompactionStarted(len(view.messages), view.tokens, view.cause))
    done: list[Plan] = []
    try:
        yield done.append
    except Exception as error:
        notify(watchers, CompactionFailed(f"{type(error).__name__}: {error}"))
        raise
    for made in done:
        if not made.empty:
            notify(watchers, CompactionApplied(made))


def driven(run: Planning, outside: Handlers) -> Plan:
    """Return the plan of a run whose needs are answered from outside."""
    try:
        needs = next(run)
        while True:
            needs = run.send(tuple(map(outside.answer, needs)))
    except StopIteration as done:
        made: Plan = done.value
        return made
