"""The verbs that wait, for code inside an event loop: the same engine with an asynchronous driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from refold._compaction.request import Options
from refold._compaction.result import Result, must_recount, proven
from refold.api import answering, planned, requested, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._compaction.meter import Meter
    from refold._compaction.request import Request
    from refold.core._engine import Planning
    from refold.core.events import Observer
    from refold.core.plan import Plan
    from refold.handlers import Handlers

__all__ = ["acompact", "aplan"]


async def acompact(
    messages: Sequence[Any],
    *,
    summarize: Any = None,
    outside: Handlers | None = None,
    redact: bool = True,
    meter: Meter | None = None,
    alternate: bool = False,
    observers: Sequence[Observer] = (),
    **options: Any,
) -> Result:
    """Do what `refold.compact` does, awaiting the summarizer; needs of one step are asked side by side.

    Takes the arguments of `refold.compact` and raises what it raises.

    Added in 0.1.0.
    """
    request = requested(messages, Options(**options), meter)
    with told(request, tuple(observers)) as applied:
        made = await _drive(request, answering(outside, summarize, redact=redact))
        result = proven(request, made, messages, alternate=alternate)
        applied(made)
    return result


async def aplan(
    messages: Sequence[Any],
    *,
    summarize: Any = None,
    outside: Handlers | None = None,
    redact: bool = True,
    meter: Meter | None = None,
    **options: Any,
) -> Plan:
    """Do what `refold.plan` does, awaiting the summarizer; takes the same arguments.

    Added in 0.1.0.
    """
    return await _drive(requested(messages, Options(**options), meter), answering(outside, summarize, redact=redact))


async def _drive(request: Request, outside: Handlers) -> Plan:
    request = request.asking(outside.summarize is not None)
    made = await _driven(planned(request), outside)
    if must_recount(request, made):
        made = await _driven(planned(request.recounted()), outside)
    return made


async def _driven(run: Planning, outside: Handlers) -> Plan:
    import asyncio  # kept out of `import refold`

    try:
        needs = next(run)
        while True:
            needs = run.send(tuple(await asyncio.gather(*map(outside.answer_async, needs))))
    except StopIteration as done:
        made: Plan = done.value
        return made
