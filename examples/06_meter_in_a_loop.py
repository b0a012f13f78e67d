"""An agent loop with a made-up model: measure before each call, compact when it is due, take it back afterwards."""

from typing import Any

import refold
from refold._demo.sized import exchanges

WINDOW = 40_000
meter = refold.Meter(window=WINDOW, format="openai-chat")  # counts each message once, so a check costs what is new
model = exchanges(seed=6)  # stands in for a model and its tools

said: list[dict[str, Any]] = [{"role": "user", "content": "Go through the services; never touch migrations/."}]
plans: list[refold.Plan] = []
sent = said
for call in range(1, 41):
    state = meter.check(sent)
    if state.due:
        # New messages join the compacted list: that list is what the next compaction starts from.
        result = refold.compact(sent, format="openai-chat", window=WINDOW, meter=meter)
        sent = result.messages
        plans.append(result.plan)
        print(f"before call {call}: {state.tokens:,} of {state.limit:,} tokens, now {result.sizes.after:,}")
    exchange = next(model)
    said = said + exchange
    sent = sent + exchange

print(f"{len(plans)} compactions; the model would see {meter.check(sent).tokens:,} tokens of {len(said)} messages")

last = refold.compact(said, format="openai-chat", window=WINDOW)
print(f"one compaction of everything: {last.sizes.before:,} -> {last.sizes.after:,} tokens")
print(f"rewound, all {len(said)} are back: {refold.rewind(last) == said}")
