"""Bring a long conversation under a number of tokens: no model, no key, one call."""

import json
from pathlib import Path

import refold

body = json.loads(Path(__file__).with_name("long-session.json").read_bytes())

result = refold.compact(body["messages"], system=body["system"], tools=body["tools"], budget=100_000)

sizes = result.sizes
print(f"{len(body['messages'])} messages of {sizes.before:,} tokens became {len(result.messages)} of {sizes.after:,}")
print(f"steps that did something: {', '.join(result.plan.stages_used)}")

untouched = {id(message) for message in body["messages"]}
same = sum(id(message) in untouched for message in result.messages)
broken = refold.violations(result.messages)
print(f"{same} messages are the very objects that went in; provider rules broken: {len(broken)}")
