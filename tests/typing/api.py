"""Never run, only type-checked: what a user of the library writes."""

import refold
from refold.sessions import Store


def library(messages: list[dict[str, object]]) -> list[object]:
    result = refold.compact(messages, format="anthropic", policy="opal", budget=refold.Budget(200_000, 8_000))
    saved: int = result.sizes.saved
    again: refold.Result = refold.apply(result.plan, messages)
    back: list[object] = refold.rewind(again)
    full: refold.Check = refold.check(messages, model="gpt-4.1")
    if full.due and full.ratio > 0.5:
        return refold.compact(messages, budget=32_000).messages
    data: bytes = refold.dump_plan(result.plan)
    loaded: refold.Plan = refold.load_plan(data)
    kind: str = refold.classify_error("prompt is too long").kind
    labels: tuple[str, ...] = loaded.stages_used
    tokens: int = refold.count("text", model="gpt-5")
    return [*back, saved, kind, labels, tokens]


async def waiting(messages: list[dict[str, object]]) -> refold.Result:
    async def summarize(request: object) -> str:
        return "a summary"

    return await refold.acompact(messages, budget=1_000, summarize=summarize)


async def keeping(store: Store, messages: list[dict[str, object]]) -> int:
    session: refold.Session = await refold.Session.aopen(store, "my-talk", window=100_000)
    await session.aappend(messages)
    done = await session.acompact()
    return done.tokens_saved if done is not None else 0
