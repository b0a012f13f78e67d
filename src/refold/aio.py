"""The verbs that wait, for code inside an event loop: the same engine with an asynchronous driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold._compaction.driver import resolve, run_async, start_compaction, start_planning
from refold._compaction.options import CompactOptions, PlanOptions, read_call

if TYPE_CHECKING:
    from typing import Unpack

    from refold._compaction.result import Result
    from refold.core._native import Messages
    from refold.core.plan import Plan

__all__ = ["acompact", "aplan"]


async def acompact(messages: Messages, **options: Unpack[CompactOptions]) -> Result:
    """Do what `refold.compact` does, awaiting the summarizer; the needs of one step are handled side by side.

    Takes the options of `refold.compact` and raises what it raises.

    Added in 0.1.0.
    """
    call = read_call("acompact", options, CompactOptions)
    return await run_async(start_compaction(messages, call), call.handlers)


async def aplan(messages: Messages, **options: Unpack[PlanOptions]) -> Plan:
    """Do what `refold.plan` does, awaiting the summarizer; takes the same options.

    Added in 0.1.0.
    """
    call = read_call("aplan", options, PlanOptions)
    run = await run_async(start_planning(resolve(messages, call)), call.handlers)
    return run.plan
