"""`refold check`: the provider's rules and the budget, with an exit code for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from refold._cli.files import InputConversation

BROKEN = 1
MAX_LISTED = 20


class CheckReport(NamedTuple):
    """What a check found: violations, calls that still await their results, and the size where a budget is known."""

    file: str
    format: str
    broken: list[tuple[str, str, tuple[int, ...]]]
    pending: list[str]
    tokens: int | None = None
    limit: int | None = None
    due: bool | None = None
    waiting: str | None = None
    counter: str | None = None

    @property
    def fits(self) -> bool:
        """Tell whether the request is inside the budget, or no budget is known."""
        return self.tokens is None or self.limit is None or self.tokens <= self.limit


@options.examples("refold check request.json --window 200k")
@click.command("check")
@options.files
@options.reading
@options.sized
@options.as_json
def command(
    files: tuple[str, ...], how: options.ReadOptions, policy_options: options.PolicyOptions, as_json: bool
) -> int:
    """Check the provider's rules, and the size.

    The size is checked with --window, --model or --budget.
    The exit code is 1 if a rule is violated or the budget is exceeded.
    """
    from refold._cli import files as reading
    from refold._cli import show

    reports = [_verdict(talk, policy_options) for talk in reading.conversations(files, how, "Checking")]
    if as_json:
        show.emit(reports[0]._asdict() if len(reports) == 1 else [each._asdict() for each in reports])
    else:
        for verdict in reports:
            _print(verdict)
    return 0 if all(not verdict.broken and verdict.fits for verdict in reports) else BROKEN


def _verdict(talk: InputConversation, policy_options: options.PolicyOptions) -> CheckReport:
    from refold import api, formats

    conversation = talk.recorded
    shape = formats.find(conversation.format)
    messages = formats.read(shape, conversation.messages).messages
    broken = [(each.rule, each.message, each.at) for each in formats.broken(shape, messages)]
    pending = [f"{call.name} {call.call_id}".strip() for call in formats.open_calls(shape, messages)]
    if not policy_options.sized:
        return CheckReport(talk.label, conversation.format, broken, pending)
    resolved = policy_options.of(conversation)
    size = api.check(
        conversation.messages,
        format=conversation.format,
        policy=resolved.policy,
        budget=resolved.budget,
        model=resolved.model,
        window=resolved.window,
        system=conversation.system,
        tools=conversation.tools,
        usage=resolved.usage,
        max_output=resolved.max_output,
        counter=resolved.counter,
        wait=resolved.wait,
        expected_calls=resolved.expected_calls,
    )
    waits = size.waiting.waits if size.waiting is not None else None
    return CheckReport(
        talk.label, conversation.format, broken, pending, size.tokens, size.limit, size.due, waits, size.counter
    )


def _print(verdict: CheckReport) -> None:
    from refold._cli import show

    file = show.clean(verdict.file)
    if not verdict.broken:
        show.line(f"{file}: valid for {verdict.format}", style="green")
    else:
        show.line(f"{file}: not valid for {verdict.format}, {show.many(len(verdict.broken), 'violation')}", style="red")
        more = len(verdict.broken) - MAX_LISTED
        rows = [(", ".join(map(str, at)), rule, show.clean(what)) for rule, what, at in verdict.broken[:MAX_LISTED]]
        rows += [("", "", f"{more:,} more, which --json lists")] if more > 0 else []
        show.table((">message", "rule", "*violation"), rows)
    if verdict.pending:
        waiting = ", ".join(verdict.pending[:5]) + (", …" if len(verdict.pending) > 5 else "")
        await_ = "awaits its result" if len(verdict.pending) == 1 else "await their results"
        show.line(f"{file}: {show.many(len(verdict.pending), 'call')} at the end {await_}: {show.clean(waiting)}")
    if verdict.tokens is not None and verdict.limit is not None:
        fill = f"{verdict.tokens:,} of {verdict.limit:,} tokens ({show.share(verdict.tokens, verdict.limit)})"
        fill += f", counted as {verdict.counter}"
        state = "too large" if not verdict.fits else "fits, compaction is due" if verdict.due else "fits"
        state += f", compaction waits: {verdict.waiting}" if verdict.waiting else ""
        show.line(f"{file}: {fill}: {state}", style="green" if verdict.fits else "red")
