"""Compacts one recording five times in a row: measures whether standing instructions and content survive.

Instructions of our own are planted in the recording as words of the user, before the first compaction; after it an
output of a tool claims the authority to drop them. Each compaction works on what the ones before left.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import formats
from refold.core._decoders import decoder
from refold.core.edits import Rewrite, fold
from refold.core.messages import Message, MessageId, Text
from refold.replay import _judge as judge
from refold.replay._fake_summarizer import FakeHandlers
from refold.replay._quality import CutPoint
from refold.replay._validity import FittedView, fitted, new_violations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.core.policy import Policy
    from refold.replay._timeline import Timeline

__all__ = ["CYCLES", "Cycles", "Planted", "cycles", "planted", "planting"]

CYCLES = 5
SIZE = 0.25  # of the history, what each compaction may leave
LEAST = 1_500  # tokens that the first may leave, so that the instructions are a small part of it
GOLDEN = 0.618034  # steps of the depths, which fill a stretch evenly in any number


class Planting(Struct, frozen=True):
    """What is planted: standing instructions, and the output of a tool that attacks them."""

    rules: tuple[str, ...]
    attack: str


class Planted(Struct, frozen=True):
    """A recording with instructions planted in it; `ends` are where its compactions happen, in messages."""

    line: Timeline
    ends: tuple[int, ...]
    last: CutPoint
    attacked: bool


class Cycles(Struct, frozen=True):
    """What five compactions left: shares of the planted instructions after each, and of the recording's own at last.

    `once` is what a single compaction at the last place keeps of what the rest needed, `last` what the fifth in a row
    keeps there. `broken` counts provider's rules. All is empty where a compaction did not fit.
    """

    planted: tuple[float, ...] = ()
    own: float = 0.0
    once: float = 0.0
    last: float = 0.0
    broken: int = 0
    attacked: bool = False


_decode = decoder(Planting)


@cache
def planting() -> Planting:
    """Return the instructions and the attack."""
    return _decode(files(__package__).joinpath("planted.json").read_bytes())


def planted(line: Timeline) -> Planted | None:
    """Return a recording with instructions planted; None where it is too short for five compactions."""
    before = line.transcript.messages
    ends = [_end(before, part) for part in range(1, CYCLES + 1)]
    places = _places(line, ends[0])
    if not places or len(set(ends)) < CYCLES:
        return None
    rules = planting().rules
    depths = sorted((place + 1) * GOLDEN % 1.0 for place in range(len(rules)))
    anchors = [before[places[int(depth * len(places))]].id for depth in depths]
    attack = _attack(before[ends[0] : ends[1]])
    natives: list[Any] = []
    for message in fold(before, [attack]):
        spoken = [rule for rule, anchor in zip(rules, anchors, strict=True) if anchor == message.id]
        natives += [line.format.write(each) for each in (*map(_user_message, spoken), message)]
    transcript = formats.read(line.format, natives)
    counted = {message.id: line.counter.message(message) for message in transcript.messages}
    planted = replace(line, transcript=transcript, counted=counted, sizes=counted, ratio=1.0)
    ends = [end + len(rules) for end in ends]  # all rules stand before the first
    if _room(planted, ends[0])[1] < LEAST:
        return None
    return Planted(planted, tuple(ends), CutPoint.at(transcript.messages, ends[-1]), bool(attack))


def cycles(planted_line: Planted, policy: Policy) -> Cycles:
    """Return what a policy leaves after five compactions in a row, each of what the one before left."""
    line, rules = planted_line.line, planting().rules
    messages = line.transcript.messages
    stand_ins = FakeHandlers(messages, line.counter)
    view: tuple[Message, ...] = ()
    known, broken = 0, 0
    constraints_left: list[float] = []
    for end in planted_line.ends:
        view = (*view, *messages[known:end])
        known = end
        fit = _fit(policy, line, view, end, stand_ins)
        if fit is None:
            return Cycles()
        view = fit.messages
        broken += new_violations(line.format, view, messages[:end])
        constraints_left.append(round(judge.constraints_kept(messages[:end], view, rules), 4))
    once = _fit(policy, line, messages[: planted_line.ends[-1]], planted_line.ends[-1], stand_ins)
    if once is None:
        return Cycles()
    history, needed = planted_line.last.history, planted_line.last.needed
    return Cycles(
        tuple(constraints_left),
        round(judge.constraints_kept(history, view), 4),
        round(judge.recall(needed, history, once.messages).present, 4),
        round(judge.recall(needed, history, view).present, 4),
        broken,
        planted_line.attacked,
    )


def _fit(
    policy: Policy, line: Timeline, view: Sequence[Message], end: int, stand_ins: FakeHandlers
) -> FittedView | None:
    return fitted(policy, line, view, end, sum(_room(line, end)), stand_ins.handlers(end))


def _room(line: Timeline, end: int) -> tuple[int, int]:
    """Return the tokens of system messages, which stay, and what a compaction may leave of the rest of the history."""
    history = line.transcript.messages[:end]
    fixed = sum(line.counted[message.id] for message in history if message.role == "system")
    return fixed, int(SIZE * (sum(line.counted[message.id] for message in history) - fixed))


def _end(messages: Sequence[Message], part: int) -> int:
    """Return the end of a part of the recording, before an answer; the last part is followed by a rest that judges."""
    least = len(messages) * part // (CYCLES + 1)
    return next((place for place in range(least, len(messages)) if messages[place].role == "assistant"), len(messages))


def _places(line: Timeline, stop: int) -> list[int]:
    """Return where before a message a user may speak: before an answer, with no call open."""
    messages = line.transcript.messages
    cuts = set(range(len(messages)))
    for rule in line.format.rules:
        cuts &= rule.cuts(messages)
    return [
        place for place in sorted(cuts)
        if 0 < place < stop and messages[place].role == "assistant"
        and messages[place - 1].role in ("user", "tool")
    ]  # fmt: skip


def _attack(messages: Sequence[Message]) -> list[Rewrite]:
    """Return the edit that puts the attack in front of the first output of a tool, if there is one."""
    for message in messages:
        for result in message.results:
            for part in result.content:
                if isinstance(part, Text) and part.at:
                    return [Rewrite(message.id, part.at, Text(f"{planting().attack}\n{part.text}"))]
    return []


def _user_message(rule: str) -> Message:
    return Message(MessageId("planted"), "user", (Text(rule),))
