"""Tells what an agent has worked through for the current request: the subjects of its calls, by tool.

An agent that reads forty e-mails or looks up forty customers sees from its own calls which of them are done. Where the
calls leave with their outputs, it begins anew, and never comes to an end where one compaction holds fewer than all.
Files, commands and searches have sections of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_facts import act_of, is_shell, reads, subject, writes
from refold._condense.call_outline import one_line
from refold._condense.digest.outcomes import answered, failed
from refold._condense.digest.previous import earlier_entries
from refold._condense.digest.task_lists import keeps_tasks
from refold._condense.digest.turns import turns_at, turns_in_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from refold.core.messages import Message
    from refold.core.view import View

__all__ = ["WORKED_THROUGH", "worked_through"]

WORKED_THROUGH = "Calls for the current request that went well, by tool"  # the section of a digest
FEWEST = 4  # different subjects of the calls of a tool; with fewer it works through no list
IN_LINE = 8  # subjects in a line, so that a share of the digest can hold some of the lines
SUBJECT = 60  # characters
BETWEEN = "; "  # subjects
LINE = re.compile(r"(?P<tool>turn (?P<turn>\d+): \S+: )(?P<subjects>.+)")


def worked_through(view: View, messages: Sequence[Message], staying: Sequence[Message]) -> tuple[str, ...]:
    """Return the calls that leave the view with these messages, by turn and tool, newest first.

    Those that earlier digests tell follow. Calls that stay show themselves.
    """
    transcript = view.transcript
    turns, in_work, index = turns_at(transcript), turns_in_work(transcript), transcript.index
    stays = {call.call_id for message in staying for call in message.calls}
    subjects: dict[str, dict[str, None]] = {}
    for message in reversed(messages):
        turn = turns[index[message.id]]
        for call, result in answered(view, [message]) if turn in in_work else ():
            known = act_of(call) or is_shell(call) or reads(call) or writes(call) or keeps_tasks(call)
            if not (known or call.call_id in stays or failed(call, result)):
                about = one_line(subject(call)[0].replace(BETWEEN, ", "), SUBJECT)
                subjects.setdefault(f"turn {turn}: {call.name}: ", {})[about] = None
    few = {tool for tool, about in subjects.items() if len(about) < FEWEST}
    for line in reversed(earlier_entries(transcript).lines(WORKED_THROUGH)):
        if (match := LINE.fullmatch(line)) and int(match["turn"]) in in_work:
            few.discard(match["tool"])
            subjects.setdefault(match["tool"], {}).update(dict.fromkeys(match["subjects"].split(BETWEEN)))
    return tuple(line for tool, about in subjects.items() if tool not in few for line in _lines(tool, [*about]))


def _lines(tool: str, subjects: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(subjects), IN_LINE):
        yield tool + BETWEEN.join(subjects[start : start + IN_LINE])
