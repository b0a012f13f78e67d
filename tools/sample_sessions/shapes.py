"""Conversations of shapes that are hard to compact quickly, made for measurements: each of a wanted size in tokens."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from refold._counting import counter_for
from refold.testing._seeded_random import SeededRandom
from tools.sample_sessions.sized import sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SHAPES"]

NOUNS = (
    "service order request handler limit price stock cart user session token index cache queue worker retry invoice "
    "ledger refund parcel route batch topic schema column record stream buffer socket thread filter mapper"
)
WORDS = NOUNS.split()
TRIAL = 400  # pieces whose tokens tell how many are needed
PINNED = 8  # of so many sentences one states a constraint
DEEP = 90  # levels of the nested arguments
Messages = list[dict[str, Any]]


def _identifier(dice: SeededRandom) -> str:
    one, other, number = dice.pick(WORDS), dice.pick(WORDS), dice.below(1_000_000)
    return (
        f"src/{one}/{other}_{number}.py",
        f"{one}_{other}_{number}",
        f"{one.title()}{other.title()}{number}",
        f"{one}.{other}{number}.run",
        str(number),
        f"{number:x}{dice.hex(8)}",
    )[dice.below(6)]


def _words(dice: SeededRandom, count: int) -> str:
    return " ".join(dice.pick(WORDS) for _ in range(count))


def _joined(tokens: int, seed: int, sign: str, piece: Callable[[SeededRandom, int], str]) -> str:
    """Return pieces of a text joined by a sign, as many as have that many tokens together."""
    dice = SeededRandom(f"shapes/{seed}")
    trial = counter_for(None).text(sign.join(piece(dice, number) for number in range(TRIAL)))
    return sign.join(piece(dice, number) for number in range(max(tokens * TRIAL // trial, 1)))


def _agent(output: str, name: str = "bash", arguments: str = '{"command": "dump"}', turn: str = "") -> Messages:
    """Return a session whose first call, output or turn is the large one, and a few steps after it."""
    start: Messages = [{"role": "system", "content": "You are a coding agent."}]
    if turn:
        start += [{"role": "user", "content": turn}, {"role": "assistant", "content": "I will keep to that."}]
    start.append({"role": "user", "content": "Find what breaks the order service and repair it. Never touch docs/."})
    steps = [(name, arguments, output)]
    for number in range(6):
        lines = "\n".join(f"def step_{number}_{line}(total): return total + {line}" for line in range(40))
        steps.append(("read_file", json.dumps({"path": f"src/step_{number}.py"}), lines))
    return start + [message for place, step in enumerate(steps) for message in _step(f"call_{place}", *step)]


def _step(id: str, name: str, arguments: str, output: str) -> Iterator[dict[str, Any]]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    yield {"role": "assistant", "content": "Looking.", "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": id, "content": output}


def identifiers(tokens: int, seed: int = 1) -> Messages:
    """Return one output full of identifiers, eight a line, hardly any twice."""
    return _agent(_joined(tokens, seed, "\n", lambda dice, _: " ".join(_identifier(dice) for _ in range(8))))


def outputs(tokens: int, seed: int = 1) -> Messages:
    """Return many outputs of 8,000 tokens, full of identifiers."""
    each = (_joined(8_000, seed, "\n", lambda dice, _: " ".join(_identifier(dice) for _ in range(8)))).split("\n")
    dice = SeededRandom(f"outputs/{seed}")
    found = _agent("done")
    for number in range(tokens // 8_000):
        lines = "\n".join(f"{line[:-40]} {_identifier(dice)} {_identifier(dice)}" for line in each)
        found += _step(f"more_{number}", "bash", json.dumps({"command": f"dump {number}"}), lines)
    return found


def short(tokens: int, seed: int = 1) -> Messages:
    """Return short messages, a hundred tokens each: a user and an assistant in turns."""
    dice = SeededRandom(f"short/{seed}")
    found: Messages = [{"role": "system", "content": "You are a helper."}]
    for number in range(tokens // 100):
        said = f"{_words(dice, 24)} {_identifier(dice)}. " * 2
        found.append({"role": "assistant" if number % 2 else "user", "content": f"{said}{_words(dice, 20)}."})
    return found


def base64_line(tokens: int, seed: int = 1) -> Messages:
    """Return an output that is one line of base64."""
    return _agent(_joined(tokens, seed, "", lambda dice, _: b64encode(dice.hex(48).encode()).decode()))


def json_line(tokens: int, seed: int = 1) -> Messages:
    """Return an output that is minified JSON in one line: a list of objects."""

    def item(dice: SeededRandom, number: int) -> str:
        row = {"id": number, "name": _identifier(dice), "path": f"src/{dice.pick(WORDS)}.ts", "note": _words(dice, 6)}
        return json.dumps(row, separators=(",", ":"))

    return _agent(f"[{_joined(tokens, seed, ',', item)}]")


def minified(tokens: int, seed: int = 1) -> Messages:
    """Return an output that is a minified program in one line."""

    def function(dice: SeededRandom, number: int) -> str:
        name, word = f"{dice.letters(2)}{number % 97}", dice.pick(WORDS)
        return f"function {name}(t,e){{return t.{word}?e(t.{word}_{dice.below(999)},{dice.below(9999)}):void 0}}"

    return _agent(_joined(tokens, seed, ";", function))


def long_turn(tokens: int, seed: int = 1) -> Messages:
    """Return a user's turn of that size in which one sentence of eight states a constraint."""

    def sentence(dice: SeededRandom, number: int) -> str:
        if number % PINNED == 0:
            return f"Never change {_identifier(dice)} without asking the {dice.pick(WORDS)} first."
        return (
            f"The {dice.pick(WORDS)} of {_identifier(dice)} is a {_words(dice, 2)} that the {dice.pick(WORDS)} reads."
        )

    return _agent("ok\n" * 20, turn=_joined(tokens, seed, "\n", sentence))


def nested(tokens: int, seed: int = 1) -> Messages:
    """Return a call with deeply nested arguments."""

    def tree(dice: SeededRandom, number: int) -> str:
        start = "".join(f'{{"n":{dice.below(1_000)},"{dice.pick(WORDS)}":' for _ in range(DEEP))
        return f"{start}{json.dumps(_identifier(dice))}{'}' * DEEP}"

    return _agent("ok", "call_api", f'{{"items":[{_joined(tokens, seed, ",", tree)}]}}')


def table(tokens: int, seed: int = 1) -> Messages:
    """Return an output that is a table of short rows."""

    def row(dice: SeededRandom, number: int) -> str:
        return f"| {number} | {_identifier(dice)} | {dice.pick(WORDS)} | {dice.below(100_000)} | 2026 |"

    return _agent(_joined(tokens, seed, "\n", row))


SHAPES: dict[str, Callable[[int, int], Messages]] = {
    "one output of identifiers": identifiers,
    "outputs of identifiers": outputs,
    "short messages": short,
    "one line of base64": base64_line,
    "one line of JSON": json_line,
    "one line of a program": minified,
    "one turn with constraints": long_turn,
    "nested arguments": nested,
    "a table": table,
    "a session": sized,
}
