"""`refold apply`: applies a saved plan to the conversation it was made for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from refold._cli.files import InputConversation
    from refold._compaction.request import Request
    from refold.core.plan import Plan


@options.examples("refold apply plan.json session.jsonl -o small.json")
@click.command("apply")
@click.argument("plan", type=options.PATH)
@options.file
@options.output
@options.reading
@options.as_json
def command(plan: str, file: str, out: str, how: options.ReadOptions, as_json: bool) -> None:
    """Apply a plan to its conversation, and write the messages."""
    from refold import api
    from refold._cli import files, output
    from refold._cli.compact import written
    from refold.errors import UsageError

    if plan == file == files.STDIN:
        raise UsageError("plan and conversation cannot both come from standard input: name a file for one of them")
    output.writable(out)
    applied_plan = loaded(plan)
    talk = files.only(file, how)
    result = api.apply(applied_plan, talk.recorded.messages, format=talk.recorded.format, system=talk.recorded.system)
    written(talk, result, out, as_json=as_json)


def loaded(name: str) -> Plan:
    """Return the plan in a file, or on standard input.

    Raises:
        UnreadablePlan: no such file, not a plan, damaged, or of a later version.
    """
    from refold._cli.files import STDIN
    from refold.core._plan_json import load_plan
    from refold.errors import UnreadablePlan

    try:
        data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise UnreadablePlan(f"{name}: {error.strerror}: name a file with a plan") from None
    try:
        return load_plan(data)
    except UnreadablePlan as error:
        raise UnreadablePlan(f"{name}: {error}") from None


def viewed(plan: Plan, talk: InputConversation) -> Request:
    """Return the request that a plan can be shown on, after proving that the plan is for it.

    Raises:
        StalePlan: it was made for another conversation.
    """
    from refold._compaction.options import Options
    from refold._compaction.request import request_for
    from refold.core.budget import Budget
    from refold.core.plan import checked

    conversation = talk.recorded
    request = request_for(
        conversation.messages, Options(format=conversation.format, budget=Budget(10**12), model=conversation.model)
    )
    checked(plan, request.transcript)
    return request
