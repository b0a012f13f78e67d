"""The options of the public functions: typed for the caller, and read into one value that rejects misspelt names."""

from __future__ import annotations

import sys
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from refold._text.suggestions import did_you_mean
from refold.errors import UnknownOption, UsageError
from refold.handlers import Handlers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold._compaction.meter import Meter
    from refold.core._native import SDKValue, SystemPrompt, ToolDefinitions
    from refold.core.budget import Budget, Limit, Usage
    from refold.core.counting import Counter
    from refold.core.events import Observer
    from refold.core.messages import MessageId
    from refold.core.needs import Summarizer
    from refold.core.plan import Plan
    from refold.core.policy import Policy
    from refold.core.view import Cause

__all__ = [
    "Call",
    "CheckOptions",
    "CompactOptions",
    "HandlerOptions",
    "MeterOptions",
    "ModelOptions",
    "Options",
    "PlanOptions",
    "RunOptions",
    "check_names",
    "read_call",
    "read_options",
    "refuse_blocking",
    "resolve_handlers",
]


class ModelOptions(TypedDict, total=False):
    """What a request consists of apart from its messages, and how much it may hold."""

    budget: Budget | int | None
    """A `Budget`, or a number of tokens into which everything must fit (then the goal is that number too)."""
    model: str | None
    """The model's id; its window and tokenizer are used."""
    provider: str | None
    """Who serves the model, where its id does not say, as in "bedrock".

    Its rows of the window tables are used, and its multiplier where the policy counts by provider.
    """
    window: int | None
    """The context window in tokens; overrides what is known of the model."""
    system: SystemPrompt | None
    """The system prompt where the provider keeps it apart; counted, returned unchanged."""
    tools: ToolDefinitions | None
    """Tool definitions; counted."""
    max_output: int | None
    """Tokens that the response may have."""
    counter: Counter | str | None
    """"exact" (the model's tokenizer), "policy" (the policy's own estimate), or a counter.

    By default a budget in plain tokens is counted exactly and a window as the policy counts.
    """


class MeterOptions(ModelOptions, total=False):
    """The options of `Meter`: those of `check` that stay the same from call to call."""

    format: str | None
    """The name of the messages' format; detected from the messages by default."""
    policy: str | Policy
    """A policy's name, a path to a file with one, or a `Policy`."""
    goal: int | float | Limit | None
    """Where compaction may stop: tokens (int), a share of the input budget (float up to 1.0), or a limit."""
    wait: bool
    """Let a compaction that the window does not force wait until it pays, under a policy that does (`WhenItPays`)."""
    expected_calls: int | None
    """How many more calls the session will make; by default as many as so far."""


class CheckOptions(MeterOptions, total=False):
    """The options of `check`."""

    usage: Usage | Mapping[str, Any] | SDKValue | None
    """The provider's last usage report, or a `Usage`; it calibrates the estimate."""
    prompt: SystemPrompt | None
    """The prompt that is about to be sent and is not among the messages yet; counted, not sent."""
    files: Sequence[str | Mapping[str, Any]]
    """Texts of the files attached to that prompt, or mappings with `content`; counted, not sent."""
    plans: Sequence[Plan]
    """Plans that are active on these messages, oldest first."""


class HandlerOptions(TypedDict, total=False):
    """Who handles the needs of a compaction."""

    summarize: Summarizer | None
    """Any function, sync or async, from a request (`.text`, `.messages`, `.instructions`, `.previous`, `.max_tokens`,
    `.language`) to a string; an exception is a refusal, and so is a response that is no summary.
    """
    handlers: Handlers | None
    """Handlers of all needs (files, archive, the provider's count); they replace `summarize`."""
    redact: bool
    """Remove known shapes of secrets from what a summarizer is sent; the conversation itself keeps them."""


class RunOptions(CheckOptions, HandlerOptions, total=False):
    """The options of a run of a policy over a conversation."""

    force: bool
    """Compact although it is not due."""
    cause: Cause | str | None
    """"threshold", "overflow", "silent_overflow" or "manual" (which `force` means)."""
    instructions: str | None
    """What a summary should pay attention to (L07)."""
    pinned: Sequence[MessageId]
    """Ids of messages that stay word for word whatever the policy; `Session.pin` remembers them."""


class PlanOptions(RunOptions, total=False):
    """The options of `plan` and `aplan`."""

    meter: Meter | None
    """A `Meter` that has seen these messages; what it has read and counted is not read again."""


class CompactOptions(PlanOptions, total=False):
    """The options of `compact` and `acompact`; the other verbs take a part of them.

    Added in 0.1.0.
    """

    alternate: bool
    """Write neighbours of one role as one message, for servers whose chat template demands it."""
    observers: Sequence[Observer]
    """Functions that are notified when a compaction starts, ends or fails."""


class Options(Struct, frozen=True, kw_only=True):
    """The options of a request as the caller passed them, with defaults; `CompactOptions` says what each means."""

    format: str | None = None
    policy: str | Policy = "refold"
    budget: Budget | int | None = None
    model: str | None = None
    provider: str | None = None
    window: int | None = None
    goal: int | float | Limit | None = None
    system: SystemPrompt | None = None
    tools: ToolDefinitions | None = None
    usage: Usage | Mapping[str, Any] | SDKValue | None = None
    prompt: SystemPrompt | None = None
    files: Sequence[str | Mapping[str, Any]] = ()
    cause: Cause | str | None = None
    force: bool = False
    instructions: str | None = None
    max_output: int | None = None
    counter: Counter | str | None = None
    plans: Sequence[Plan] = ()
    wait: bool = True
    expected_calls: int | None = None
    pinned: Sequence[MessageId] = ()


class Call(Struct, frozen=True, kw_only=True):
    """A call of `compact` or `plan` apart from its messages: the options of the request, and who takes part."""

    options: Options
    handlers: Handlers
    meter: Meter | None = None
    alternate: bool = False
    observers: tuple[Observer, ...] = ()


REQUEST_OPTIONS = frozenset(Options.__struct_fields__)


def check_names(verb: str, options: Mapping[str, object], kind: type) -> None:
    """Refuse a name that is no option of a verb; `kind` is the TypedDict of its options.

    Raises:
        UnknownOption: there is such a name; the nearest option is suggested.
    """
    known: frozenset[str] = kind.__optional_keys__  # type: ignore[attr-defined]
    for name in options:
        if name not in known:
            near = did_you_mean(name, sorted(known)) or f"; its options are {', '.join(sorted(known))}"
            raise UnknownOption(f'{verb} has no option "{name}"{near}')


def read_options(verb: str, options: Mapping[str, Any], kind: type) -> Options:
    """Return the options of a verb that takes no handlers.

    Raises:
        UnknownOption: a misspelt name.
    """
    check_names(verb, options, kind)
    return Options(**options)


def read_call(verb: str, options: Mapping[str, Any], kind: type) -> Call:
    """Return the options of a verb, apart from its messages.

    Raises:
        UnknownOption: a misspelt name.
    """
    check_names(verb, options, kind)
    return Call(
        options=Options(**{name: value for name, value in options.items() if name in REQUEST_OPTIONS}),
        handlers=resolve_handlers(
            options.get("handlers"), options.get("summarize"), redact=options.get("redact", True)
        ),
        meter=options.get("meter"),
        alternate=options.get("alternate", False),
        observers=tuple(options.get("observers", ())),
    )


def resolve_handlers(handlers: Handlers | None, summarize: Summarizer | None, *, redact: bool = True) -> Handlers:
    """Return the handlers of a call: those passed, or a summarizer alone; `redact=False` switches redaction off.

    Raises:
        UsageError: `handlers` is of another type.
    """
    if handlers is None:
        return Handlers(summarize=summarize, redact=redact)
    if not isinstance(handlers, Handlers):
        raise UsageError(
            f"handlers is of type {type(handlers).__name__}: pass a refold.Handlers, or a function as summarize="
        )
    return handlers if redact else replace(handlers, redact=False)


def refuse_blocking(handlers: Handlers, remedy: str) -> None:
    """Refuse a coroutine function as summarizer where waiting for it would block the running event loop.

    Raises:
        UsageError: it would; the remedy is named.
    """
    function = handlers.summarize
    waits = iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    asyncio = sys.modules.get("asyncio")  # not imported by `import refold`; without the import no loop runs
    if not waits or asyncio is None:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        f"an asynchronous summarizer inside a running event loop, which this call would block: use {remedy}"
    )
