"""`refold compact`: the conversation inside its budget, written in the provider's own shape."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold._cli.files import InputConversation
    from refold._compaction.result import Result
    from refold.handlers import Handlers


@options.examples(
    "refold compact session.jsonl --window 200k -o small.json",
    "refold compact request.json --budget 50k --plan-out plan.json -o small.json",
    "refold compact session.jsonl --in-place",
)
@click.command("compact")
@options.files
@options.output
@click.option(
    "--plan-out",
    metavar="PLAN",
    type=options.PATH,
    help="Write the plan to this file, for `refold apply` and `refold diff`.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Write the compaction into the session file, which Claude Code, Codex or pi then resumes.",
)
@click.option(
    "--backup",
    metavar="FILE",
    type=options.PATH,
    help="Where --in-place keeps the original; by default FILE.orig beside the session.",
)
@options.reading
@options.budgeted
@options.summarized
@options.as_json
def command(
    files: tuple[str, ...],
    out: str,
    plan_out: str | None,
    in_place: bool,
    backup: str | None,
    how: options.ReadOptions,
    policy_options: options.PolicyOptions,
    handlers: Handlers,
    as_json: bool,
) -> int:
    """Compact conversations, and write them as they came.

    If the system prompt or the tools are separate from the messages, a request body is written, else the list of
    messages. For several files OUT is a folder. `--json` prints a report on standard error.

    With `--in-place` a session of Claude Code, Codex or pi is compacted where it is, and the agent resumes it. All that
    was in the file stays in it, and the original is kept beside it.
    """
    from refold._cli import files as reading
    from refold._cli import in_place as writing
    from refold._cli import output
    from refold.errors import UsageError

    def work(talk: InputConversation) -> Result:
        return _compacted(talk, policy_options, handlers, plan_out)

    if backup is not None and not in_place:
        raise UsageError("--backup keeps the original of a session that is written --in-place: give both")
    named = reading.expanded(files)
    if plan_out is not None and len(named) > 1:
        raise UsageError("--plan-out keeps one plan: compact one file at a time")
    if in_place:
        if out != reading.STDIN:
            raise UsageError("--in-place and --out exclude each other: give one")
        if plan_out is not None and os.path.realpath(plan_out) in {os.path.realpath(each.path) for each in named}:
            raise UsageError(f"{plan_out} is the session, and would be lost: name another file for the plan")
        return writing.compacted_in_place(files, backup, how, work, _report, as_json=as_json)

    if plan_out == out == reading.STDIN:
        raise UsageError("messages and plan cannot both go to standard output: name a file for one of them")
    if plan_out is not None:
        output.writable(plan_out)
    return each(files, out, how, "Compacting", work, as_json=as_json)


def each(
    files: tuple[str, ...], out: str, how: options.ReadOptions, doing: str, work: Callable[[InputConversation], Result],
    *, as_json: bool,
) -> int:  # fmt: skip
    """Do one work on all files and write the results; one that cannot be done is noted, and makes the exit code 1."""
    from refold._cli import files as reading
    from refold._cli import output, show
    from refold.errors import BrokenConversation, CannotFit, OutsideError, UsageError

    if how.select == "all":
        raise UsageError("--select all has no one place to write to: select one conversation at a time")
    named = reading.expanded(files)
    where = output.places(named, out)
    if where != dict.fromkeys(where, out) and not os.path.isdir(out):
        show.note(f"{out}: a new folder for {show.many(len(named), 'file')}")
    failed = 0
    for talk in reading.conversations(files, how, doing):
        try:
            with show.working(f"{doing} {talk.label}", alone=len(named) == 1):
                result = work(talk)
        except (BrokenConversation, CannotFit, OutsideError) as error:
            hint = "; `refold check` shows in which messages" if isinstance(error, BrokenConversation) else ""
            show.note(f"refold: {talk.label}: {error}{hint}")
            failed = 1
        else:
            written(talk, result, where[talk.path], as_json=as_json)
    return failed


def written(talk: InputConversation, result: Result, out: str, *, as_json: bool) -> None:
    """Write a result, and say on standard error what was done."""
    from refold._cli import output, show
    from refold._cli.plan import unsound

    output.write(out, output.dumped(output.native(talk, result.messages), lines=out.endswith((".jsonl", ".ndjson"))))
    if as_json:
        click.echo(_report(talk, result, out), err=True)
        return
    sizes, plan = result.sizes, result.plan
    did = f"{sizes.before:,} -> {sizes.after:,} tokens by {', '.join(plan.stages_used)}"
    show.note(f"{talk.label}: {did if not plan.empty else 'nothing to do, written as it was'}")
    if plan.empty:
        unsound(talk)


def _compacted(
    talk: InputConversation, policy_options: options.PolicyOptions, handlers: Handlers, plan_out: str | None
) -> Result:
    from refold._cli import output, show
    from refold._compaction.driver import plan_request
    from refold._compaction.request import request_for
    from refold._compaction.result import verified_result
    from refold.core._plan_json import dump_plan

    request = request_for(talk.recorded.messages, policy_options.of(talk.recorded))
    result = verified_result(plan_request(request, handlers), talk.recorded.messages)
    for step in result.plan.steps if handlers.summarize is not None else ():
        if step.refused:
            show.note(f"refold: {talk.label}: {step.label}: {step.refused}")
    if plan_out is not None:
        output.write(plan_out, dump_plan(result.plan, indent=2) + b"\n")
    return result


def _report(talk: InputConversation, result: Result, out: str) -> bytes:
    import msgspec

    return msgspec.json.encode(
        {"file": talk.label, "out": out, "plan": result.plan.id, "steps": result.plan.stages_used,
         "messages_before": len(result.originals), "messages_after": len(result.messages), "sizes": result.sizes,
         "repaired_pairs": result.plan.repaired_pairs, "deduplicated_files": result.plan.deduplicated_files}
    )  # fmt: skip
