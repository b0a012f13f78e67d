"""An agent loop: measure before each call, compact when it is due, take the compaction back afterwards."""

import json
from pathlib import Path

import refold

WINDOW = 40_000
recorded = iter(json.loads(Path(__file__).with_name("long-session.json").read_text("utf-8"))["messages"])
meter = refold.Meter(window=WINDOW, format="anthropic")  # counts each message once, so a check costs what is new

history = [next(recorded)]
plans: list[refold.Plan] = []
sent = history
for call in range(1, 41):
    state = meter.check(sent)
    if state.due:
        # New messages join the compacted list: that list is what the next compaction starts from.
        result = refold.compact(sent, format="anthropic", window=WINDOW, meter=meter)
        sent = result.messages
        plans.append(result.plan)
        print(f"before call {call}: {state.tokens:,} of {state.limit:,} tokens, now {result.sizes.after:,}")
    exchange = [next(recorded), next(recorded)]  # stands in for a model's answer and its tool results
    history = [*history, *exchange]
    sent = [*sent, *exchange]

print(f"{len(plans)} compactions; the model would see {meter.check(sent).tokens:,} tokens of {len(history)} messages")

last = refold.compact(history, format="anthropic", window=WINDOW)
print(f"one compaction of everything: {last.sizes.before:,} -> {last.sizes.after:,} tokens")
print(f"rewound, all {len(history)} are back: {refold.rewind(last) == history}")
