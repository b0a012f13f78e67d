"""`refold policies`: lists the policies, or describes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import completers, options

if TYPE_CHECKING:
    from refold.core.budget import Limit
    from refold.core.policy import Policy, Stage


@options.examples("refold policies opal")
@click.command("policies")
@click.argument("policy", required=False, shell_complete=completers.policies)
@options.as_json
def command(policy: str | None, as_json: bool) -> None:
    """List the policies, or show the steps of one.

    With POLICY, or a file with a policy, its steps and their options are shown.
    """
    from refold import policies
    from refold._cli import show

    if policy is None:
        listed = [policies.find(each) for each in policies.names()]
        if as_json:
            show.emit([_plain(policy) for policy in listed])
        else:
            _list(listed)
        return
    chosen = options.policy_of(policy)
    if as_json:
        show.emit(_plain(chosen))
    else:
        _one(chosen)


def _list(listed: list[Policy]) -> None:
    from refold._cli import show

    headers = ("policy", "trigger", "goal", "*steps", "*summary")
    rows = [
        (policy.name, limit(policy.trigger), limit(policy.goal), ", ".join(step.name for step in policy.steps),
         policy.summary)
        for policy in listed
    ]  # fmt: skip
    show.table(headers, rows)


def _one(policy: Policy) -> None:
    from refold._cli import show

    show.lines(
        [
            ("policy", policy.name),
            *([("summary", policy.summary)] if policy.summary else []),
            ("trigger", limit(policy.trigger)),
            ("goal", limit(policy.goal)),
            ("counter", repr(policy.counter) if policy.counter else "the model's own tokenizer"),
            ("gauge", type(policy.gauge).__name__),
            ("reserve", repr(policy.reserve)),
            ("after overflow", "another policy" if policy.after_overflow else "the same policy"),
            ("fingerprint", policy.fingerprint),
        ]
    )
    headers = ("step", "stage", "when", "*options")
    rows = [
        (step.name, type(step.stage).__name__, str(step.when), ", ".join(_options(step.stage))) for step in policy.steps
    ]
    show.table(headers, rows, title=" ")


def limit(value: Limit) -> str:
    """Return a limit in words."""
    from refold.core.budget import Exactly, LeastCost, Never, Share, WhenItPays

    match value:
        case Share(share=share, of_window=of_window, minus=minus):
            less = f" - {minus:,}" if minus else ""
            return f"{share:.0%} of {'window' if of_window else 'input'}{less}"
        case Exactly(count=count):
            return f"{count:,} tokens"
        case LeastCost(size=size, most=most):
            return f"{size:,} tokens (least cost), at most {most:.0%} of input"
        case WhenItPays(share=share):
            return f"{share:.0%} of input, as soon as it pays"
        case Never():
            return "never"


def _options(stage: Stage) -> list[str]:
    fields: tuple[str, ...] = getattr(stage, "__struct_fields__", ())
    return [f"{name}={getattr(stage, name)!r}" for name in fields]


def _plain(policy: Policy) -> dict[str, object]:
    return {
        "name": policy.name, "summary": policy.summary, "trigger": limit(policy.trigger), "goal": limit(policy.goal),
        "fingerprint": policy.fingerprint,
        "steps": [
            {
                "label": step.name,
                "stage": type(step.stage).__name__,
                "when": str(step.when),
                "options": _options(step.stage),
            }
            for step in policy.steps
        ],
    }  # fmt: skip
