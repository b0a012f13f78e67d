"""Texts that a later one of their sort replaces: summaries of earlier contexts, and plans that stand in tags.

Of summaries that a harness put into a conversation only the last one counts, as of its time.

A later summary tells what the earlier ones told. Its own "pending tasks", "current work" and order to go on are those
of the moment when it was written: once an answer has ended a turn after it, their headings and the end are marked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.digest.conclusions import PLAN, plan_of
from refold._condense.digest.previous import own_text
from refold._condense.digest.turns import turn_ends
from refold.core._speakers import is_recap, is_turn
from refold.core.messages import Reasoning, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold._condense.fit_draft import Draft
    from refold.core.messages import Message

__all__ = ["OF_ITS_TIME", "SENT_BACK", "settle_plans", "settle_recaps"]

OF_ITS_TIME = "[The pending work and the next step above are of the time of that summary; what was done since follows.]"

SENT_BACK = "[This plan stands below, where the user sent it back.]"

# Headings of what was so when the summary was written, and what is written behind them.
OF_A_TIME = re.compile(
    r"^[ \t]*(?:#{1,6} |\d{1,2}[.)] )?\**(?:Pending (?:Tasks|Work)|Current (?:Work|State|Status)|"
    r"(?:Optional )?Next Steps?|Remaining (?:Tasks|Work)|In Progress):?\**:?[ \t]*$",
    re.M | re.I,
)
THEN = " [as it was then]"


def settle_recaps(draft: Draft) -> None:
    """Let summaries leave that a later one replaces, and mark the last where work on a request has ended since."""
    base = draft.base
    recaps = [position for position, message in enumerate(base) if is_recap(message)]
    if not recaps:
        return
    *older, last = recaps
    draft.drop(at for at in older if not is_turn(base[at]) and all(isinstance(part, Text) for part in base[at].parts))
    index, place = draft.view.transcript.index, draft.view.transcript.index[base[last].id]
    if max((index[id] for id in turn_ends(draft.view.transcript)), default=-1) > place:
        texts = [part for part in base[last].parts if isinstance(part, Text) and not part.ours]
        if texts and is_recap(base[last]) and not is_turn(base[last]):
            draft.annotate(last, texts[-1].at, _marked)


def _marked(text: str) -> str:
    if text.endswith(OF_ITS_TIME):
        return text
    return f"{OF_A_TIME.sub(lambda heading: heading[0] + THEN, text).rstrip()}\n{OF_ITS_TIME}"


def settle_plans(draft: Draft) -> None:
    """Let plans leave that a later plan replaces, and shorten one that the user sent back to have it carried out."""
    base = draft.base
    answers = ((at, message) for at, message in enumerate(base) if message.role == "assistant")
    plans = [(at, plan) for at, message in answers if (plan := _in_one_line(plan_of(message)))]
    turns = [(at, message) for at, message in enumerate(base) if plans and is_turn(message)]
    returned = [(at, _in_one_line(own_text(message))) for at, message in turns]
    replaced = (at for at, _ in plans[:-1] if all(isinstance(part, Text) for part in base[at].parts))
    draft.drop(each for at in replaced for each in _with_thoughts(base, at))
    for at, plan in plans:
        if any(at < later and plan in text for later, text in returned):
            for part in base[at].parts:
                if isinstance(part, Text):
                    draft.annotate(at, part.at, _sent_back)


def _with_thoughts(base: Sequence[Message], at: int) -> Iterator[int]:
    """Yield the place of an answer, and before it those of what was thought for it: one does not stand without it."""
    yield at
    while (
        at > 0 and base[at - 1].role == "assistant" and all(isinstance(each, Reasoning) for each in base[at - 1].parts)
    ):
        at -= 1
        yield at


def _sent_back(text: str) -> str:
    return PLAN.sub(lambda plan: f"<{plan[1]}>\n{SENT_BACK}\n</{plan[1]}>", text)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
