"""Conversations from one line a message, views of them, and a summarizer that follows a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from refold.core.budget import Breakdown, Budget, Exactly, Limit, Usage
from refold.core.counting import CharCounter, Counter
from refold.core.messages import (
    Image,
    Message,
    Part,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from refold.core.needs import Answer, Need, Provided, Refused, SummaryNeed
from refold.core.token_units import ReportedTokens
from refold.core.transcript import ROOT, Transcript, chain
from refold.core.view import Cause, FormatTraits, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.view import Rule

__all__ = ["ScriptedSummarizer", "talk", "view_of"]

_ROLES: dict[str, Role] = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}


def talk(*lines: str) -> Transcript:
    """Return a transcript from one line a message, without any provider's format.

    `"s: be brief"`, `"u: hello"` and `"a: hi"` are words. `"a: looking | read(a.py) as c1 | read(b.py)"` adds calls to
    an assistant message; a call without `as` gets the id `name-n`, its argument text becomes `{"path": …}` unless it
    is JSON already. `"t: c1 = text"` is a result, `"t! c1 = text"` an error, `"t: c1 = x | c2 = y"` two results in one
    message, `[image]` in a result a picture. Without an id a result answers the oldest open call.
    """
    messages: list[Message] = []
    parent = ROOT
    open_: list[str] = []
    for number, line in enumerate(lines):
        head, _, rest = line.partition(": ") if ": " in line[:4] else line.partition(" ")
        role = _ROLES[head[0]]
        parts = _results(rest, open_, error=head.endswith("!")) if role == "tool" else _words(role, rest, number, open_)
        parent = chain(parent, f"{head} {rest}".encode())
        messages.append(Message(parent, role, parts))
    return Transcript(tuple(messages))


def view_of(
    transcript: Transcript,
    *,
    window: int = 100_000,
    reserve: int = 0,
    goal: int | Limit | None = None,
    counter: Counter | None = None,
    cause: Cause = Cause.MANUAL,
    rules: tuple[Rule, ...] = (),
    traits: FormatTraits | None = None,
    system: int = 0,
    tools: int = 0,
    usage: Usage | None = None,
    instructions: str = "",
) -> View:
    """Return the first view of a transcript; sizes are characters (one a token) unless a counter says otherwise."""
    counter = counter or CharCounter(1)
    budget = Budget(window, reserve)
    view = View(
        transcript=transcript,
        start=transcript.messages,
        budget=budget,
        goal=Exactly(goal) if isinstance(goal, int) else goal or Exactly(budget.input),
        counter=counter,
        rules=rules,
        traits=traits or FormatTraits(),
        overhead=Breakdown(system=system, tools=tools),
        usage=usage,
        cause=cause,
        instructions=instructions,
    )
    return replace(view, measured=ReportedTokens(view.estimated))


class ScriptedSummarizer:
    """A summarizer that gives scripted answers in turn, the last one for ever, and records its requests.

    An answer that is an exception is raised; `None` refuses.
    """

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers = answers or ("A summary.",)
        self.needs: list[SummaryNeed] = []

    def __call__(self, need: SummaryNeed) -> str:
        """Answer a summary request."""
        answer = self.answers[min(len(self.needs), len(self.answers) - 1)]
        self.needs.append(need)
        if isinstance(answer, Exception):
            raise answer
        return answer or ""

    def answer(self, need: Need) -> Answer:
        """Answer any need: summaries by script, all else refused."""
        if not isinstance(need, SummaryNeed):
            return Refused("only summaries are scripted", "absent")
        text = self(need)
        return Provided(text=text) if text else Refused("scripted refusal", "empty")


def _words(role: Role, rest: str, number: int, open_: list[str]) -> tuple[Part, ...]:
    words, *calls = [piece.strip() for piece in rest.split(" | ")] if role == "assistant" else [rest]
    parts: list[Part] = [Text(words, at=("content", 0))] if words else []
    for place, call in enumerate(calls):
        call_text, _, call_id = call.partition(" as ")
        name, _, argument = call_text.partition("(")
        argument = argument.removesuffix(")")
        call_id = call_id or f"{name}-{number}.{place}"
        arguments = argument if argument.startswith("{") else f'{{"path": "{argument}"}}' if argument else "{}"
        parts.append(ToolCall(call_id, name, arguments, at=("content", len(parts))))
        open_.append(call_id)
    return tuple(parts)


def _results(rest: str, open_: Sequence[str], *, error: bool) -> tuple[Part, ...]:
    parts: list[Part] = []
    waiting = open_ if isinstance(open_, list) else list(open_)
    for place, piece in enumerate(rest.split(" | ")):
        call_id, equals, text = piece.partition(" = ")
        if not equals:
            call_id, text = (waiting[0] if waiting else ""), piece
        if call_id in waiting:
            waiting.remove(call_id)
        content: list[Text | Image] = [Text(text.replace("[image]", ""), at=("content", place, "content", 0))]
        if "[image]" in text:
            content.append(Image("image/png", at=("content", place, "content", 1)))
        parts.append(ToolResult(call_id, tuple(content), is_error=error, at=("content", place)))
    return tuple(parts)
