"""Never run, only type-checked: what a user of the library writes, with every public name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import refold
from refold.core.needs import SummaryNeed
from refold.models.provider_errors import ProviderError
from refold.recovery import LearnedWindows
from refold.sessions import Session, Store

MESSAGES: refold.Messages = [{"role": "user", "content": "Hello"}]
SYSTEM: refold.SystemPrompt = "Be brief."
BLOCKS: refold.SystemPrompt = [{"type": "text", "text": "Be brief."}]
TOOLS: refold.ToolDefinitions = [{"name": "read", "input_schema": {"type": "object"}}]


def summarize(need: SummaryNeed) -> str:
    return f"{len(need.messages)} messages, in at most {need.max_tokens} tokens"


async def summarize_later(need: SummaryNeed) -> str:
    return need.text


SUMMARIZERS: list[refold.Summarizer] = [summarize, summarize_later]


def library() -> list[Any]:
    result = refold.compact(MESSAGES, format="anthropic", policy="opal", budget=refold.Budget(200_000, 8_000))
    assert_type(result, refold.Result)
    assert_type(result.messages, list[Any])
    assert_type(result.plan, refold.Plan)
    assert_type(result.sizes.saved, int)
    assert_type(refold.apply(result.plan, MESSAGES), refold.Result)
    assert_type(refold.rewind(result), list[Any])
    assert_type(refold.rewind(MESSAGES, (result.plan,), to=0), list[Any])
    assert_type(refold.repair(MESSAGES, format="openai-chat"), refold.Result)
    assert_type([violation.message for violation in refold.violations(MESSAGES)], list[str])
    assert_type(refold.dump_plan(result.plan), bytes)
    assert_type(refold.load_plan(refold.dump_plan(result.plan)), refold.Plan)
    assert_type(result.plan.stages_used, tuple[str, ...])
    return result.messages


def measures() -> int:
    full = refold.check(MESSAGES, model="gpt-4.1", system=SYSTEM, tools=TOOLS)
    assert_type(full, refold.Check)
    assert_type(full.due, bool)
    assert_type(full.ratio, float)
    meter = refold.Meter(model="gpt-4.1", system=BLOCKS)
    assert_type(meter.check(MESSAGES, usage=refold.Usage(prompt=900)), refold.Check)
    assert_type(refold.plan(MESSAGES, window=100_000, meter=meter), refold.Plan)
    assert_type(refold.window("gpt-5").window, int)
    return refold.count("text", model="gpt-5") + refold.count(MESSAGES)


def limits() -> list[refold.Result]:
    goals = (refold.Exactly(8_000), refold.Share(0.5), refold.LeastCost(), refold.WhenItPays(), 0.4, 20_000)
    return [refold.compact(MESSAGES, window=100_000, goal=goal) for goal in goals]


def policies(own: refold.Policy) -> refold.Result:
    options: refold.CompactOptions = {"policy": own, "window": 100_000, "force": True, "instructions": "Keep names."}
    return refold.compact(MESSAGES, **options)


def errors() -> str:
    try:
        refold.compact(MESSAGES, budget=10)
    except refold.RefoldError as error:
        return str(error)
    problem = refold.classify_error("prompt is too long")
    assert_type(problem, ProviderError)
    return problem.kind


def recovers(call: Callable[[refold.Messages], dict[str, Any]]) -> list[Any]:
    done = refold.recovering(call, MESSAGES, windows=LearnedWindows(), max_passes=1, summarize=summarize)
    assert_type(done.plans, tuple[refold.Plan, ...])
    return done.messages


async def in_an_event_loop(store: Store) -> int:
    async def call(messages: refold.Messages) -> dict[str, Any]:
        return {"usage": {"prompt_tokens": len(messages)}}

    assert_type(await refold.acompact(MESSAGES, budget=1_000, summarize=summarize_later), refold.Result)
    assert_type(await refold.aplan(MESSAGES, budget=1_000), refold.Plan)
    assert_type((await refold.arecovering(call, MESSAGES)).window, int | None)
    session = await refold.Session.aopen(store, "my-talk", window=100_000)
    assert_type(session, Session)
    await session.aappend(MESSAGES)
    done = await session.acompact()
    return done.tokens_saved if done is not None else 0


def sessions() -> list[Any]:
    handlers = refold.Handlers(summarize=summarize, read_file=lambda need: need.path, count=lambda need: 7)
    session = refold.Session(refold.open_store("memory"), "my-talk", policy="refold", window=128_000, tools=TOOLS)
    session.append(MESSAGES)
    session.report({"prompt_tokens": 900, "completion_tokens": 12})
    if session.needs_compaction():
        session.compact(handlers=handlers)
    return session.view()
