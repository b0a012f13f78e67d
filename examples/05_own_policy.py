"""A policy is a list of steps in a file with a POLICY; `policy="path/to/file.py"` finds it by its path."""

import json
from pathlib import Path

import refold
from refold.core.budget import Share
from refold.core.policy import Policy, Step, When
from refold.stages.clear import Clear
from refold.stages.deduplicate import DeduplicateReads
from refold.stages.fit import Fit
from refold.stages.strip_media import StripImages

POLICY = Policy(
    name="tidy",
    summary="Pictures, repeated reads and old results go first; what then still does not fit is fitted.",
    trigger=Share(0.7, inclusive=True),
    goal=Share(0.4),
    steps=(
        Step(StripImages()),
        Step(DeduplicateReads(), When.OVER_GOAL),
        Step(Clear("[old result cleared]", keep=40), When.OVER_GOAL),
        Step(Fit(), When.OVER_GOAL),
    ),
)

if __name__ == "__main__":
    body = json.loads(Path(__file__).with_name("long-session.json").read_bytes())
    for window in (400_000, 200_000):
        result = refold.compact(
            body["messages"], system=body["system"], tools=body["tools"], policy=__file__, window=window
        )
        print(f"window {window:,}: {result.sizes.before:,} -> {result.sizes.after:,} of {result.sizes.goal:,} tokens")
        print(f"  steps: {', '.join(result.plan.stages_used)}")
