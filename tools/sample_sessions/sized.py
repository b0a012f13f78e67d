"""A conversation of a wanted size, made quickly, for measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from refold._counting import counter_for
from refold.testing._seeded_random import SeededRandom
from tools.sample_sessions.shop import shop

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["exchanges", "sized"]

_encode = msgspec.json.Encoder().encode
_FRAMING = 30  # tokens around an exchange of a call and its result


def sized(tokens: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return a coding session in openai-chat shape of that many o200k tokens, within 1 %."""
    count = counter_for(None).text
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a coding agent. Never touch migrations/. Amounts are integer cents."},
        {
            "role": "user",
            "content": "Please go through the services one by one and make each refusal say what it is about.",
        },
    ]
    have = 60
    for exchange in exchanges(seed):
        if have >= tokens:
            return messages
        messages += exchange
        have += sum(count(message["content"]) for message in exchange) + _FRAMING
        have += sum(count(call["function"]["arguments"]) for call in exchange[0].get("tool_calls", ()))
    raise AssertionError("exchanges do not end")


def exchanges(seed: int = 1) -> Iterator[list[dict[str, Any]]]:
    """Yield exchanges without end: a call and its result, now and then a user's word; no two are alike."""
    dice = SeededRandom(f"sized/{seed}")
    number = 0
    while True:
        number += 1
        entity = dice.pick(shop().entities)
        if number % 25 == 0:
            text = f"Good. Next {entity.name}: only the {dice.pick(entity.verbs)} path, ticket OD-{number + 900}."
            yield [{"role": "user", "content": text}]
            continue
        path = f"orderdesk/services/{entity.name}_{dice.pick(shop().nouns)}.py"
        tool, arguments = _call(dice, path)
        id = f"call_{number:05}{dice.hex(8)}"
        call = {"id": id, "type": "function", "function": {"name": tool, "arguments": _encode(arguments).decode()}}
        text = f"Looking at {dice.pick(entity.verbs)} in {path} because of the {dice.pick(shop().nouns)}."
        yield [
            {"role": "assistant", "content": text, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": _output(dice, tool, path, dice.between(20, 110))},
        ]


def _call(dice: SeededRandom, path: str) -> tuple[str, dict[str, Any]]:
    match dice.below(4):
        case 0:
            return "bash", {"command": f"python -m pytest -q {path.replace('services', 'tests')}"}
        case 1:
            return "grep", {"pattern": dice.pick(shop().nouns), "path": path}
        case _:
            return "read_file", {"path": path}


def _output(dice: SeededRandom, tool: str, path: str, count: int) -> str:
    nouns, adjectives = shop().nouns, shop().adjectives
    entity = dice.pick(shop().entities)
    lines: list[str] = []
    for number in range(1, count + 1):
        noun, adj, verb = dice.pick(nouns), dice.pick(adjectives), dice.pick(entity.verbs)
        match tool:
            case "bash":
                line = f"{path}::test_{verb}_with_{adj}_{noun}[{dice.hex(6)}] PASSED [{number * 100 // count:>3}%]"
            case "grep":
                line = f"{path}:{number * 7}:    {noun}_{adj} = self._{verb}({entity.name}.{noun}, {dice.below(900)})"
            case _:
                line = f"{number:>6}\t        {adj}_{noun} = {entity.name}.{verb}({dice.below(5_000)})  # {noun}"
        lines.append(line)
    return "\n".join(lines)
