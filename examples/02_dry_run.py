"""Look before you leap: make a plan, print it, keep it as JSON, apply it later."""

import json
from collections import Counter
from pathlib import Path

import refold

body = json.loads(Path(__file__).with_name("small.json").read_bytes())
messages = body["messages"]

plan = refold.plan(messages, tools=body["tools"], budget=1_200)

print(f"policy {plan.policy}, because of: {plan.cause}")
for step in plan.steps:
    print(f"  {step.label}: {step.before:,} -> {step.after:,} tokens with {step.stop - step.start} edits")
print("edits:", dict(Counter(type(edit).__name__ for edit in plan.edits)))

saved = refold.dump_plan(plan)  # bytes: a file, a database row, a message to someone who decides
print(f"as JSON: {len(saved):,} bytes, id {plan.id}")

result = refold.apply(refold.load_plan(saved), messages)
print(f"applied: {len(messages)} messages became {len(result.messages)}")

try:
    refold.apply(plan, messages[1:])
except refold.RefoldError as error:
    print(f"on other messages it is refused: {type(error).__name__}")
