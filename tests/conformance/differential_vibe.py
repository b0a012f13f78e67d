"""Compares the policy `vibe` and the agent's middleware with Vibe's own agent, decision by decision."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

import refold
from refold.agent import middleware
from refold.agent._statistics import Statistics
from refold.core.budget import Usage
from refold.core.counting import CharCounter
from refold.errors import SummaryRefused
from refold.policies import find
from tests.conformance import histories
from tests.conformance.differential import Decision, original, recorded_histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.histories import Entry, History

POLICY = find("vibe")
CLEANING = replace(POLICY, name="vibe-cleaning", steps=POLICY.steps[:1])
OPTIONS: dict[str, Any] = {"window": 4_000_000, "force": True, "counter": CharCounter(4)}
OPENS = "[Conversation summary — everything before it was compacted]"
MISSING = "Tool no response"

WORDS = "a missing response says what the description says"
PENDING = "calls at the very end are left open"
OPENING = "the summary opens with a line of its own"
NESTED = "an earlier summary is not the user's last request"
FAILED = "a failed summary leaves the history as it was"
EMPTY = "an empty summary, or a call in its place, replaces nothing"
DIFFERENCES = {
    WORDS: f'"{MISSING}" in place of a sentence about an interruption in a tag of its own.',
    PENDING: "They still await their results, which the original makes up.",
    OPENING: "By it a summary is known again where a client keeps no plans and sends it back.",
    NESTED: "The original takes its own summary for a request and quotes it in the next one, and so on.",
    FAILED: "The original leaves its own request for a summary as the last message.",
    EMPTY: "The original replaces everything by the last request alone.",
}


def decisions() -> Iterator[Decision]:
    """Yield every decision of both."""
    recorded = original("vibe")
    for history, theirs in recorded_histories("vibe"):
        yield from _cleaned(history, theirs["cleaned"])
        yield from _compacted(history, theirs)
    yield from _failed(recorded["failures"])
    yield from _due(recorded)
    for walk, steps in zip(histories.walks(), recorded["walks"], strict=True):
        for step, (ours, its) in enumerate(zip(_walked(walk), steps, strict=True)):
            yield Decision("middleware", f"{walk['middlewares']}, turn {step}", ours, its)
    for calls, theirs in zip(histories.calls(), recorded["statistics"], strict=True):
        for ours, its in zip(_counted(calls), theirs, strict=True):
            yield Decision("statistics", str(calls), ours, its)


def _digest(text: str | None) -> str:
    return sha256((text or "").encode()).hexdigest()[:16]


@cache
def _missing() -> str:
    return _digest(MISSING)


def _waiting(entries: list[Entry]) -> list[str]:
    """Return the calls at the very end that have no result yet."""
    answered = {entry.call for entry in entries if entry.role == "result"}
    last = max((at for at, entry in enumerate(entries) if entry.role not in ("call", "result")), default=0)
    return [entry.call for entry in entries[last:] if entry.role == "call" and entry.call not in answered]


def _cleaned(history: History, theirs: dict[str, Any]) -> Iterator[Decision]:
    entries = histories.with_system(history.entries)
    messages = histories.openai(entries)
    at = {id(message): place for place, message in enumerate(messages)}
    cleaned = refold.compact(messages, policy=CLEANING, **OPTIONS).messages
    put = [message for message in cleaned if id(message) not in at]
    ours = [at.get(id(message), message["role"]) for message in cleaned]
    waiting = _waiting(entries)
    its = [[role, call, text] for role, call, _, text in theirs["put"]]
    texts = [[message["role"], message.get("tool_call_id"), _digest(message["content"])] for message in put]
    names: list[str] = []
    if waiting and texts == [one for one in its if one[1] not in waiting and one[0] != "assistant"]:
        names.append(PENDING)
    elif [one[:2] for one in texts] == [one[:2] for one in its]:
        names += [WORDS] if any(one[2] == _missing() for one in texts) else []
    yield Decision(
        "cleaning: what stands where", history.name, ours, theirs["view"], (PENDING,) if names == [PENDING] else ()
    )
    yield Decision("cleaning: what is put in", history.name, texts, its, tuple(names))


def _compacted(history: History, recorded: dict[str, Any]) -> Iterator[Decision]:
    entries = histories.with_system(history.entries)
    messages = histories.openai(entries)
    for name in ("first", "second") if history.more else ("first",):
        theirs = recorded[name]
        counted: list[int] = []

        def count(need: Any, counted: list[int] = counted) -> int:
            counted.append(need.max_tokens)
            return 1

        handlers = refold.Handlers(summarize=lambda _: histories.SUMMARY, count=count, redact=False)
        result = refold.compact(messages, policy="vibe", handlers=handlers, **OPTIONS)
        after = result.messages
        text = next(message["content"] for message in after if message["role"] == "user")
        waits = (PENDING,) if _waiting(entries) and len(after) > len(theirs["roles"]) else ()
        where = f"{history.name}, {name} compaction"
        yield Decision("messages after", where, [message["role"] for message in after], theirs["roles"], waits)
        yield Decision("system message stays", where, after[0] is messages[0], theirs["system"])
        asked = [entry.text for entry in entries if entry.role == "user"][-1]
        opening, _, text = text.partition("\n\n")
        expected = _digest(f"{histories.SUMMARY}\n\nLast request from user was: {asked}")
        nested = name == "second" and not any(entry.role == "user" for entry in history.more)
        why = (NESTED,) if nested and _digest(text) == expected else ()
        yield Decision(
            "summary and last request", where, [_digest(text), len(text)], [theirs["text"], theirs["length"]], why
        )
        yield Decision("opening line", where, opening, "", (OPENING,) if opening == OPENS else ())
        yield Decision("recounted", where, len(counted), 1 if theirs["tokens"] else 0)
        yield Decision("session renewed", where, POLICY.renews_session, theirs["session"])
        entries = [*entries, *history.more]
        messages = [*after, *histories.openai(history.more)]


def _failed(recorded: dict[str, Any]) -> Iterator[Decision]:
    messages = histories.openai(histories.with_system(histories.histories()[0].entries))

    def fails(_: object) -> str:
        raise RuntimeError("refused")

    for name, summarize in (("error", fails), ("empty", lambda _: ""), ("call", lambda _: "")):
        theirs = recorded[name]
        before = list(messages)
        try:
            refold.compact(messages, policy="vibe", summarize=summarize, **OPTIONS)
            raised = False
        except SummaryRefused:
            raised = True
        ours = [raised, messages == before]
        its = [theirs["raised"], theirs["messages"] == theirs["before"]]
        expected = (FAILED,) if name == "error" else (EMPTY,)
        yield Decision("failures", name, ours, its, expected if ours == [True, True] else ())


def _due(recorded: dict[str, Any]) -> Iterator[Decision]:
    """Compare when a compaction is due: by the provider's last report, at the default and at other thresholds."""
    messages = histories.openai(histories.with_system(histories.histories()[0].entries))
    yield Decision("threshold", "default", refold.policies.threshold(recorded["threshold"]), POLICY.trigger)
    for walk, actions in zip(histories.walks(), recorded["walks"], strict=True):
        if "turns" in dict(walk["middlewares"]):
            continue
        limit = next(value for kind, value in walk["middlewares"] if kind == "compact")
        policy = replace(POLICY, trigger=refold.policies.threshold(limit))
        for tokens, action in zip(walk["tokens"], actions, strict=True):
            usage = Usage(tokens - tokens // 9, tokens // 9)
            due = refold.check(messages, policy=policy, window=4_000_000, usage=usage).due
            yield Decision("due", f"{tokens:,} of {limit:,}", due, action == "compact")


class TurnLimit:
    """Stops after so many turns, as Vibe's middleware of that name."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def before_turn(self, situation: middleware.Situation) -> middleware.MiddlewareVerdict:
        """Stop when the turns are used up."""
        stops = situation.step >= self.turns
        return middleware.MiddlewareVerdict(middleware.Action.STOP if stops else middleware.Action.CONTINUE)

    def after_turn(self, situation: middleware.Situation) -> middleware.MiddlewareVerdict:
        """Go on."""
        return middleware.MiddlewareVerdict()

    def reset(self, reason: middleware.Reset) -> None:
        """Nothing is remembered."""


def _walked(walk: dict[str, Any]) -> Iterator[str]:
    warned: list[str] = []
    made: dict[str, Any] = {
        "turns": TurnLimit,
        "compact": middleware.AutoCompact,
        "warn": lambda limit: middleware.ContextWarning(limit, warned.append),
    }
    pipeline = middleware.Pipeline([made[kind](value) for kind, value in walk["middlewares"]])
    for step, tokens in enumerate(walk["tokens"]):
        warned.clear()
        verdict = pipeline.before_turn(middleware.Situation(Statistics(context_tokens=tokens), step, 2))
        if verdict.action is middleware.Action.COMPACT:
            pipeline.reset(middleware.Reset.COMPACT)
        yield "inject_message" if warned and verdict.action is middleware.Action.CONTINUE else str(verdict.action)


def _counted(calls: list[list[float]]) -> Iterator[dict[str, float]]:
    statistics = Statistics()
    for prompt, completion, seconds in calls:
        statistics = statistics.after(Usage(int(prompt), int(completion)), seconds)
        yield {
            name: getattr(statistics, name)
            for name in (
                "prompt",
                "completion",
                "session_prompt",
                "session_completion",
                "context_tokens",
                "tokens_per_second",
            )
        }
