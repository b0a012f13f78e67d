"""The public verbs, synchronous: plan, compact, apply, rewind, check, violations, repair, count, window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold import formats
from refold._compaction.driver import plan_request, resolve, run_sync, start_compaction, start_planning
from refold._compaction.options import (
    CheckOptions,
    CompactOptions,
    Options,
    PlanOptions,
    read_call,
    read_options,
    refuse_blocking,
)
from refold._compaction.request import check_plans, counter_for, format_for, request_for
from refold._compaction.result import (
    Check,
    Result,
    assemble_result,
    counter_name,
    fold_plans,
    named,
    rewound,
    verified_result,
    view_breakdown,
)
from refold.core._engine import due, waiting
from refold.core.budget import Budget
from refold.core.counting import count_all
from refold.core.plan import remaining_plans
from refold.errors import BrokenConversation
from refold.handlers import Handlers
from refold.policies._internal import REPAIR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from refold.core._native import Messages, SystemPrompt, ToolDefinitions
    from refold.core.counting import Counter
    from refold.core.plan import Plan
    from refold.core.view import Violation
    from refold.models._catalog import Window

__all__ = ["apply", "check", "compact", "count", "plan", "repair", "rewind", "violations", "window"]


def compact(messages: Messages, **options: Unpack[CompactOptions]) -> Result:  # L07
    """Keep a conversation inside its budget; messages in the provider's own shape, in and out.

    Untouched messages come out as the very same objects, the input is never changed, and nothing happens while
    compaction is not due.

    Args:
        messages: the provider's list of messages (OpenAI chat or Responses, Anthropic, Gemini, Bedrock).
        format: the name of the messages' format; detected from the messages by default.
        policy: a policy's name, a path to a file with one, or a `Policy`.
        budget: a `Budget`, or a number of tokens into which everything must fit (then the goal is that number too).
        model: the model's id; its window and tokenizer are used.
        provider: who serves the model, where its id does not say: its rows of the window tables are used, and its
            multiplier where the policy counts by provider.
        window: the context window in tokens; overrides what is known of the model.
        goal: where compaction may stop: tokens (int), a share of the input budget (float up to 1.0), or a limit.
        system: the system prompt where the provider keeps it apart; counted, returned unchanged.
        tools: tool definitions; counted.
        usage: the provider's last usage report, or a `Usage`; it calibrates the estimate.
        prompt: the prompt that is about to be sent and is not among the messages yet; counted, not sent.
        files: texts of the files attached to that prompt, or mappings with `content`; counted, not sent.
        summarize: any function, sync or async, from a request (`.text`, `.messages`, `.instructions`, `.previous`,
            `.max_tokens`, `.language`) to a string; an exception is a refusal, and so is a response that is no summary.
        force: compact although it is not due.
        cause: "threshold", "overflow", "silent_overflow" or "manual" (which `force` means).
        instructions: what a summary should pay attention to.
        pinned: ids of messages that stay word for word whatever the policy; `Session.pin` remembers them.
        max_output: tokens that the response may have.
        counter: "exact" (the model's tokenizer), "policy" (the policy's own estimate), or a counter. By default a
            budget in plain tokens is counted exactly and a window as the policy counts.
        plans: plans that are active on these messages, oldest first.
        wait: let a compaction that the window does not force wait until it pays, under a policy that does
            (`WhenItPays`); False compacts as soon as the trigger is reached.
        expected_calls: how many more calls the session will make; by default as many as so far.
        handlers: handlers of all needs (files, archive, the provider's count); they replace `summarize`.
        redact: remove known shapes of secrets from what a summarizer is sent; the conversation itself keeps them.
        meter: a `Meter` that has seen these messages; what it has read and counted is not read again.
        alternate: write neighbours of one role as one message, for servers whose chat template demands it.
        observers: functions that are notified when a compaction starts, ends or fails.

    Raises:
        UsageError: a misspelt or impossible option, messages that are not of the format, or a coroutine function as
            summarizer inside a running event loop, which this would block: await `acompact` there.
        CannotFit: every step ran and the whole is still above the input budget; `plan` and `sizes` say what is left.
        BrokenConversation: provider rules that would not hold in the result.
        SummaryRefused: the policy needs a summary and none could be had.

    Added in 0.1.0.
    """
    call = read_call("compact", options, CompactOptions)
    refuse_blocking(call.handlers, "await refold.acompact(…)")
    return run_sync(start_compaction(messages, call), call.handlers)


def plan(messages: Messages, **options: Unpack[PlanOptions]) -> Plan:
    """Return what a compaction would do, without doing it; the options are those of `compact`.

    Added in 0.1.0.
    """
    call = read_call("plan", options, PlanOptions)
    refuse_blocking(call.handlers, "await refold.aplan(…)")
    return run_sync(start_planning(resolve(messages, call)), call.handlers).plan


def apply(
    plan: Plan,
    messages: Messages,
    *,
    format: str | None = None,
    system: SystemPrompt | None = None,
    plans: Sequence[Plan] = (),
    alternate: bool = False,
) -> Result:
    """Apply a plan to the messages it was made for, or to a longer list that begins with them.

    `plans` are those that are active already. `system` is returned unchanged.

    Raises:
        StalePlan: the plan was made for another conversation.

    Added in 0.1.0.
    """
    shape = format_for(messages, format or plan.format or None)
    transcript = formats.read(shape, messages)
    active = check_plans((*plans, plan), transcript)
    view = fold_plans(transcript, active)
    return assemble_result(shape, transcript, messages, view, active, system, alternate=alternate)


def rewind(
    result: Result | Messages, plans: Sequence[Plan] = (), *, to: int = -1, format: str | None = None
) -> list[Any]:
    """Undo plans and return the native messages with the remaining plans applied.

    `result` is a `Result`, or the original messages with the `plans` in force. `to` is how many plans stay, 0 for the
    originals; negative counts from the end, so the default takes back the newest. Where a plan was made for a model
    that binds thinking to what stands before it, messages that were added under it lose theirs when it is taken back.

    Raises:
        UsageError: the messages are not of the format, or their format cannot be told; or there are not so many plans.

    Added in 0.1.0.
    """
    originals = result.originals if isinstance(result, Result) else result
    in_force = result.plans if isinstance(result, Result) else tuple(plans)
    shape = format_for(originals, result.format if isinstance(result, Result) else format)
    remaining = in_force[: remaining_plans(len(in_force), to)]
    return formats.assemble(shape, rewound(formats.read(shape, originals), in_force, remaining))


def check(messages: Messages, **options: Unpack[CheckOptions]) -> Check:  # N01
    """Measure a request against its budget: size, limit, whether compaction is due, and the size of each part.

    A request that cannot fit is measured like any other: its ratio is above 1.
    `prompt` and `files` are what the next request adds to the messages; every part has its place in the breakdown.
    One call reads and counts everything; `Meter.check` does the same for a growing list at the price of what is new.

    Added in 0.1.0.
    """
    request = request_for(messages, read_options("check", options, CheckOptions), measuring=True)
    view = request.view
    budget = view.limits.budget if view.limits else view.budget
    is_due, waits = due(request.policy, view), waiting(request.policy, view)
    parts, counter = view_breakdown(view), counter_name(view.counter)
    return Check(view.measured.count, budget.input, is_due, parts, view.reported.count, waits, counter)


def violations(messages: Messages, *, format: str | None = None) -> tuple[Violation, ...]:
    """Return every provider rule the messages break, with positions; none for a valid conversation.

    Added in 0.1.0.
    """
    shape = format_for(messages, format)
    return formats.broken(shape, formats.read(shape, messages).messages)


def repair(
    messages: Messages, *, format: str | None = None, model: str | None = None, system: SystemPrompt | None = None
) -> Result:
    """Make a conversation valid for its provider: pair calls and results, drop empty content, repair arguments.

    The result's plan says what was done; a valid conversation comes back as the same objects with an empty plan. The
    rules are those that `violations` checks (docs/formats.md has their sources). For a model that binds thinking to
    what stands before it, and where no model is named, the thinking behind the first repaired message is removed.

    Raises:
        UsageError: the messages are not of the format, or their format cannot be told.
        BrokenConversation: a violation that cannot be repaired, with its positions.

    Added in 0.1.0.
    """
    options = Options(
        format=format, policy=REPAIR, budget=Budget(10**12), counter="policy", force=True, model=model, system=system
    )
    request = request_for(messages, options)
    run = plan_request(request, Handlers())
    if run.plan.empty and request.view.ignored and violations(messages, format=request.format.name):
        run = run.without_ignored()  # what the provider ignores breaks a rule
    result = verified_result(run, messages)
    if left := violations(result.messages, format=result.format):
        raise BrokenConversation(f"cannot be repaired for {result.format}: {named(left)}", left)
    return result


def count(
    content: str | Messages,
    *,
    model: str | None = None,
    format: str | None = None,
    system: SystemPrompt | None = None,
    tools: ToolDefinitions | None = None,
    counter: Counter | str = "exact",
) -> int:
    """Count the tokens of a text, or of messages with system prompt and tools, by the model's own tokenizer.

    Where no model is named, Anthropic's and Gemini's messages are counted as their newest models count.
    What the provider does not read is not counted: everything before a compaction block, tools that are deferred and
    were not loaded.

    Added in 0.1.0.
    """
    if isinstance(content, str):
        return counter_for(counter, model, format=format).text(content)
    shape = format_for(content, format)
    scale = counter_for(counter, model, format=shape.name)
    messages = formats.read(shape, content).messages
    messages = messages[shape.anchor(messages) :]
    apart = scale.text(formats.system_text(system)) if system else 0
    schemas = scale.tools(formats.tools_text(tools, formats.loaded_in(messages))) if tools else 0
    return apart + schemas + count_all(scale, messages)


def window(model: str, provider: str | None = None, override: Any = None, *, allocated: int | None = None) -> Window:
    """Return a model's window, input cap and output cap, their sources, and whether they are assumed.

    `override` is the user's own figure, which wins; `allocated` the window a local server has set aside, which caps.

    Added in 0.1.0.
    """
    from refold.models import _catalog as catalog

    return catalog.window(model, provider, override, allocated=allocated)
