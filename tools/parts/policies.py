"""What the docs say of policies: the table of all, and of each its numbers, steps and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from refold import policies
from refold.core import budget, policy
from tests.golden import cases
from tools.parts.words import sentence, shown, table

__all__ = ["PARTS", "telling"]


def _policies(path: Path) -> str:
    folder = "docs/policies" if path.name == "README.md" else "policies"
    rows = []
    for name in policies.names():
        found = policies.find(name)
        steps = " · ".join(step.name for step in found.steps)
        rows.append((f"[`{name}`]({folder}/{name}.md)", found.summary, _limit(found.trigger), _goal(found.goal), steps))
    return table(("policy", "what it does", "starts", "stops", "steps"), rows)


def _policy(path: Path) -> str:
    found = policies.find(path.stem)
    counter = "exactly, by the model's tokenizer" if found.counter is None else f"`{shown(found.counter)}`"
    facts = [
        ("counts", counter),
        ("measures", sentence(type(found.gauge))),
        ("starts", _limit(found.trigger)),
        ("stops", _goal(found.goal)),
        ("keeps for the answer", _reserve(found.reserve)),
        ("renews the session", "yes") if found.renews_session else ("", ""),
        *_after_overflow(found),
    ]
    steps = [
        (str(number), step.name, f"`{step.when}`", f"`{shown(step.stage)}`")
        for number, step in enumerate(found.steps, 1)
    ]
    return (
        f"{table(('what', 'how'), [fact for fact in facts if fact[0]])}\n\n"
        f"{table(('', 'step', 'when', 'stage and its options'), steps)}"
    )


def _after_overflow(found: policy.Policy) -> Iterator[tuple[str, str]]:
    after = found.after_overflow
    if after is None:
        yield "after an overflow", "the same"
        return
    changed = [f"stops {_goal(after.goal)}"] if after.goal != found.goal else []
    same = {step.stage for step in found.steps}
    changed += [f"{step.name} with `{shown(step.stage)}`" for step in after.steps if step.stage not in same]
    yield "after an overflow", "; ".join(changed) or "the same"


def _pictures(path: Path) -> str:
    found = []
    for case in telling(path.stem):
        made = cases.made(path.stem, case)
        sizes, used = made.plan.sizes, ", ".join(made.plan.stages_used) or "nothing to do"
        window = cases.window(path.stem, case)
        found.append(
            f"![{path.stem}: {case}, before and after](../pictures/{path.stem}-{case}.svg)\n\n"
            f"*{case}*: {len(made.messages)} messages of {sizes.before:,} tokens in a window of {window:,}, "
            f"{sizes.after:,} tokens after ({used}). Tokens are this policy's own count; the plan is "
            f"[tests/golden/{path.stem}/{case}.plan.json](../../tests/golden/{path.stem}/{case}.plan.json)."
        )
    return "\n\n".join((*found, "`make docs` makes these pictures and figures from the plans."))


def telling(policy: str) -> tuple[str, ...]:
    """Return the cases that show steps which no case before them shows."""
    seen: set[str] = set()
    found = []
    for case in cases.CASES:
        used = set(cases.made(policy, case).plan.stages_used)
        if used - seen:
            found.append(case)
        seen |= used
    return tuple(found)


def _limit(limit: budget.Limit) -> str:
    match limit:
        case budget.Share(
            share=share, of_window=of_window, minus=minus, inclusive=inclusive, floor=floor, min_message_share=free
        ):
            whole = "window" if of_window else "input budget"
            said = f"the {whole}" if share == 1 else f"{round(100 * share)} % of the {whole}"
            less = f" − {minus:,} tokens" if minus else ""
            least = f", at least {round(100 * floor)} %" if floor else ""
            rest = f", with {round(100 * free)} % of what system prompt and tools leave for messages" if free else ""
            return f"{'at' if inclusive else 'above'} {said}{less}{least}{rest}"
        case budget.LeastCost(size=size, most=most):
            return f"at {size:,} tokens, the size of least cost, at most {round(100 * most)} % of the input budget"
        case budget.Exactly(count=count, inclusive=inclusive):
            return f"{'at' if inclusive else 'above'} {count:,} tokens"
        case budget.WhenItPays(share=share):
            return f"at {round(100 * share)} % of the input budget as soon as it pays, above the input budget at once"
        case budget.Never():
            return "never"


def _goal(limit: budget.Limit) -> str:
    return _limit(limit).replace("above", "at")


def _reserve(reserve: budget.Reserve) -> str:
    given = "the given maximum" if reserve.given_cap is None else f"the given maximum, at most {reserve.given_cap:,}"
    rest = f"{given}; without one min({reserve.cap:,}, {round(100 * reserve.share)} % of the window)"
    return f"what its own table has for the model; for other models {rest}" if _is_tabled(reserve) else rest


def _is_tabled(reserve: budget.Reserve) -> bool:
    return isinstance(reserve, budget.TableReserve)


PARTS: dict[str, Callable[[Path], str]] = {
    "pictures": _pictures,
    "policies": _policies,
    "policy": _policy,
}
