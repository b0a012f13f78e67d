"""Runs one summary: removes secrets, splits a text that is too large, and checks each response.

Theory of operation. The synchronous and the asynchronous driver run this one generator. So every request is cleaned and
every answer is checked here, whichever function writes the summary. First the need loses the model's thinking and, with
`redact`, the known shapes of secrets. Then `asking` yields it, and halves what is refused for its size. An answer that
is certainly no summary (`refold.summaries._no_summary`) becomes a refusal, to a half as well as to the whole. The guard
(`refold.summaries._guard`) sees the last answer only, because only that one is the summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from refold._condense.transcript_text import serialize
from refold.core._json import strings_within
from refold.core.messages import File, Reasoning, Text, ToolCall, ToolResult, texts
from refold.core.needs import Answer, Provided, Refused, SummaryNeed
from refold.summaries._chunking import Asking, asking

if TYPE_CHECKING:
    from refold.core.messages import Message, Part

__all__ = ["summarizing"]

ACCEPTED = "accepted"  # by the guard
BETWEEN = "\n\n["  # what begins each message, call and result of a conversation that is written as text


def summarizing(need: SummaryNeed, *, redact: bool = True, guarded: bool = False) -> Asking:
    """Yield requests without thinking and, with `redact`, without secrets; take their answers, return the last.

    An answer that is certainly no summary is refused with the reason; where the need is `judged`, so is one that the
    guard rejects. `guarded`: it has accepted every answer already.
    """
    clean = _cleaned(need, redact=redact)
    rounds = asking(clean)
    try:
        request = next(rounds)
        while True:
            answer = yield request
            request = rounds.send(_checked(request, answer))
    except StopIteration as done:
        answered: Answer = done.value
    return _judged(clean, answered, guarded=guarded)


def _checked(request: SummaryNeed, answer: Answer) -> Answer:
    if not isinstance(answer, Provided):
        return answer
    from refold.summaries._no_summary import certain_faults, without_thinking  # its patterns are not needed before

    text = without_thinking(answer.text)
    if faults := certain_faults(text, request):
        return Refused(f"the summary was rejected: {'; '.join(faults)}", "rejected")
    return answer if text == answer.text else replace(answer, text=text)


def _judged(need: SummaryNeed, answer: Answer, *, guarded: bool) -> Answer:
    """Return the answer with what the guard says of it, or a refusal with its reasons where it is rejected."""
    if not isinstance(answer, Provided) or not (need.judged or guarded):
        return answer
    if need.judged:
        from refold.summaries._guard import judge_answer

        judged = judge_answer(answer.text, need)
        if isinstance(judged, Refused):
            return judged
    return replace(answer, guard=ACCEPTED)


def _cleaned(need: SummaryNeed, *, redact: bool) -> SummaryNeed:
    messages = tuple(map(_unthinking, need.messages))
    if not redact:
        return replace(need, messages=messages)
    from refold.summaries._secrets import without_secrets  # its table is read only when somebody is asked

    clean = tuple(map(_redacted, messages))
    text = need.text
    if any(new is not old for new, old in zip(clean, messages, strict=True)):
        # a secret that a shortened part shows half of is removed where it is whole
        text = serialize(clean, need.lengths) if serialize(messages, need.lengths) == text else text
    return replace(
        need,
        messages=clean,
        text=_searched_by_message(text),
        instructions=without_secrets(need.instructions),
        previous=None if need.previous is None else without_secrets(need.previous),
    )


def _searched_by_message(text: str) -> str:
    """Return a conversation's text without secrets; what was found clean before is not searched again."""
    from refold.summaries._secrets import without_secrets

    messages = text.split(BETWEEN)
    clean = all(without_secrets(message) is message for message in messages)
    return text if clean else without_secrets(text)


def _unthinking(message: Message) -> Message:
    """Return a message without the model's thinking, and then without the provider's object, which holds it too."""
    if not any(isinstance(part, Reasoning) for part in message.parts):
        return message
    parts = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return replace(message, parts=parts, native=None, patches=())


def _redacted(message: Message) -> Message:
    """Return a message without secrets, and then without the provider's object; the same one where it has none."""
    from refold.summaries._secrets import without_secrets

    parts = tuple(map(_redacted_part, message.parts))
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    read = set(texts(message))  # searched above; to search a text again would cost as much again
    if same and all(text in read or without_secrets(text) is text for text in strings_within(message.native)):
        return message
    return replace(message, parts=parts, native=None, patches=())


def _redacted_part(part: Part) -> Part:
    from refold.summaries._secrets import without_secrets

    match part:
        case Text(text=text) | File(text=text) if (clean := without_secrets(text)) is not text:
            return replace(part, text=clean)
        case ToolCall(arguments=text) if (clean := without_secrets(text)) is not text:
            return replace(part, arguments=clean)
        case ToolResult(content=content):
            inner: tuple[Any, ...] = tuple(map(_redacted_part, content))
            return part if all(map(_is, inner, content)) else replace(part, content=inner)
        case _:
            return part


def _is(new: object, old: object) -> bool:
    return new is old
