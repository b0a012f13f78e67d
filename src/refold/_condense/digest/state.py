"""Where the work stands and what comes next: the last intent the assistant stated, its tasks, the last check.

It is told from the end of the whole transcript, whether that stays or leaves, because who reads on begins there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from refold._condense.call_outline import call_line, one_line
from refold._condense.digest.conclusions import SENTENCE, prose
from refold._condense.digest.findings import no_work
from refold._condense.digest.outcomes import answered, ended
from refold._condense.digest.targets import target_of
from refold._condense.digest.task_lists import newest_task_list
from refold._condense.digest.turns import turns_at
from refold.core._speakers import is_turn
from refold.core.messages import memoized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.messages import Message
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = ["STATE", "TODO", "state"]

STATE = "State and next step"  # the section of a digest
TODO = "to do: "
INTENT_LENGTH = 320  # characters
FEW = 3  # calls that are named where more than these have followed the last words
BACK = 60  # messages at the end that are searched for what the assistant meant to do
CHECKS_BACK = 400  # and for the last check
INTENT = re.compile(
    r"\b(?:now (?:I|let|we)\b|next(?: step)?s?\b|let me\b|let's\b|I(?:'|’)ll\b|I will\b|I(?:'|’)m going to\b|"
    r"I am going to\b|going to\b|I need to\b|we need to\b|I should\b|remaining\b|still (?:need|have) to\b|then I\b|"
    r"I(?:'|’)m (?:now )?\w+ing\b)|"
    r"\b(?:jetzt|als nächstes|ich werde|maintenant|ensuite|je vais|ahora|voy a|a continuación)\b|"
    r"次に|接下来|下一步|现在",
    re.I,
)


def state(view: View) -> tuple[str, ...]:
    """Return lines on the state of the work, the most telling first."""
    return (*_intent(view), *_last_check(view), *_to_do(view.transcript))


def _to_do(transcript: Transcript) -> Iterator[str]:
    """Yield the tasks that remain; of a list that is older than the current request with its turn."""
    tasks = newest_task_list(transcript)
    if tasks is None:
        return
    turns = turns_at(transcript)
    turn = turns[transcript.index[tasks.message]]
    of_turn = f" (list of turn {turn})" if turn < turns[-1] else ""
    yield from (f"{TODO}{line}{of_turn}" for line in tasks.remaining)


def _intent(view: View) -> Iterator[str]:
    """Yield what the assistant said last: what it meant to do, or how it ended the turn, and calls since."""
    transcript = view.transcript
    works = False
    calls: list[str] = []
    for position in range(len(transcript.messages) - 1, max(len(transcript.messages) - BACK, 0) - 1, -1):
        message = transcript.messages[position]
        if is_turn(message):
            if not works:  # nothing was done on the newest request: what was before it is no state of it
                yield "no work on the current request yet"
            break
        works = works or bool(message.calls)
        calls += [call_line(call) for call in reversed(message.calls)]
        if message.role == "assistant" and (words := _stated(message)):
            turn = turns_at(transcript)[position]
            ends = not works and any(each.calls for each in transcript.messages)  # some agents act by words alone
            yield f"the assistant's last words (turn {turn}{', which they end' if ends else ''}): {words}"
            break
    if len(calls) > FEW:
        yield f"last calls: {'; '.join(reversed(calls[:FEW]))}"


@memoized
def _stated(message: Message) -> str:
    """Return the sentences of an answer that say what comes next, else how it ends."""
    text = prose(message).strip()
    if not text or no_work(text):
        return ""
    sentences = [sentence for each in SENTENCE.split(text) if len(sentence := each.strip(" -*#>\n")) > 1]
    meant = [sentence for sentence in sentences if INTENT.search(sentence)]
    if not meant:
        return one_line(" ".join(sentences[-2:]), INTENT_LENGTH)
    return one_line(" ".join(meant[-2:]), INTENT_LENGTH)


def _last_check(view: View) -> Iterator[str]:
    """Yield the last run of tests, a build or another check, and how it ended."""
    transcript = view.transcript
    stop = max(len(transcript.messages) - CHECKS_BACK, 0)
    for position in range(len(transcript.messages) - 1, stop - 1, -1):
        for call, result in answered(view, [transcript.messages[position]]):
            if target_of(call).checks:
                how = ended(call, result)
                if how:
                    yield f"last check (turn {turns_at(transcript)[position]}): {call_line(call)} → {how}"
                    return
