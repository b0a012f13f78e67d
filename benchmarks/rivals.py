"""Plain ways to compact that every policy has to beat, as policies of refold: valid requests in every format.

    tail         the newest messages that fit, and nothing else
    tail+names   the same in 80 % of the goal; the rest is a bare list of the names that left, each once, newest first
    users+index  users' turns whole, old outputs cut to head and tail, then the oldest groups removed; in 12 % of the goal
                 the names that left
    peer:NAME    a row of benchmarks/peers, where its environment is installed (benchmarks/peers/run.py)

A group that does not fit whole, at the border or because it alone is above the goal, comes with the ends of its longest
texts. `compacted` makes a result of any policy or rival at an exact true size.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

import refold
from refold import formats, policies
from refold._condense.view_positions import with_text
from refold._counting import counter_for
from refold._salience.atoms import atoms_of, spoken
from refold.core._preserved_thinking import bound_parts, removals
from refold.core.edits import Edit, Hide, Rewrite
from refold.core.messages import Message, Note, Text, ToolCall, ToolResult, memoized, texts
from refold.core.policy import Policy, Pure, Step, When
from refold.stages.close_calls import CloseCalls
from refold.stages.repair import Repair

if TYPE_CHECKING:
    from refold.core.counting import Counter
    from refold.core.needs import Answer
    from refold.core.view import View

SUMMARY = "The work so far was looked into step by step, and the findings were compared with what was expected. " * 20
LEFT = "[Earlier messages were removed.]"
NAMES = "[Earlier messages were removed. Names in them:]"
FRAME = 40  # tokens of a message that is inserted, beside its words
LEAST = 200  # characters of a text that is cut
END = 300  # characters of an output's head and of its tail
CHARS = 3.0  # characters a token, at first
TRIES = 4  # of a goal that a result is above
PEERS = Path(__file__).parent / "peers"


class Compacted(Struct, frozen=True):
    """What a policy made of a history: the request's messages as the provider takes them, as values, and their size."""

    native: Sequence[Any]
    messages: Sequence[Message]
    tokens: int


class Rival(Pure, frozen=True):
    """A stage that is tried again with a smaller goal where what it estimated is more than it thought."""

    names: float = 0.0  # share of the goal for a list of names

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return edits that fit the goal, if there are any."""
        goal = view.goal_tokens
        edits: tuple[Edit, ...] = ()
        for _ in range(TRIES):
            edits = self.within(view, goal)
            after = view.after(edits)
            excess = after.after(removals(after)).over_goal  # the run itself takes thinking that is no longer valid
            if excess <= 0:
                break
            goal -= excess + FRAME // 4
        return edits

    def within(self, view: View, goal: int) -> tuple[Edit, ...]:
        """Return the edits for a goal."""
        raise NotImplementedError


class NewestText(Rival, frozen=True):
    """Hide all but the newest messages; list the names that left."""

    def within(self, view: View, goal: int) -> tuple[Edit, ...]:
        """Return the hidden, the shortened group at the border, and the list."""
        sizes = _sizes(view)
        stays = [max(size - view.leaves(message), 0) for message, size in zip(view.messages, sizes, strict=True)]
        fixed = view.overhead.total + view.counter.per_conversation + sum(stays)
        listed = int(goal * self.names)
        room = goal - fixed - listed - FRAME
        cuts = sorted(view.cuts)
        start, shortened = len(view.messages), ()
        for low, high in reversed(list(pairwise(cuts))):
            size = sum(sizes[low:high]) - sum(stays[low:high])
            if size > room:
                group = view.messages[low:high]
                shortened = _ends(view.counter, group, room - FRAME) or (
                    _ends(view.counter, group, 0) if start == len(view.messages) else ()
                )
                start = low if shortened else start
                break
            room -= size
            start = low
        return (*shortened, *_without(view, set(range(start)), listed, shortened))


class UsersAndIndex(Rival, frozen=True):
    """Keep users' turns, cut outputs to head and tail, hide the oldest other groups, list the names that left."""

    def within(self, view: View, goal: int) -> tuple[Edit, ...]:
        """Return the shortened, the hidden, and the list."""
        listed = int(goal * self.names)
        sizes = _sizes(view)
        excess = view.tokens - sum(view.sizes) + sum(sizes) - (goal - listed - FRAME)
        edits: dict[int, list[Rewrite]] = {}

        def shorten(place: int, kind: type[Text | ToolResult], end: int = END) -> int:
            message = view.messages[place]
            changes = [_shortened(message, part, end) for part in message.parts if isinstance(part, kind)]
            edits[place] = [found for found in changes if found]
            before = sizes[place]
            sizes[place] = _size(view.counter, view.after(edits[place]).messages[place])
            return before - sizes[place]

        for place, message in enumerate(view.messages):
            if excess > 0 and message.results:
                excess -= shorten(place, ToolResult)
        hidden: set[int] = set()
        for low, high in list(pairwise(sorted(view.cuts)))[:-1]:
            group = list(zip(view.messages[low:high], sizes[low:high], strict=True))
            if excess > 0 and not any(message.role in ("user", "system") for message, _ in group):
                excess -= sum(min(view.leaves(message), size) for message, size in group)
                hidden |= set(range(low, high))
        for place, message in enumerate(view.messages):
            if excess > 0 and message.role == "user" and place not in hidden:
                excess -= shorten(place, Text)
        for low, high in list(pairwise(sorted(view.cuts)))[:-1]:  # all else was not enough
            if excess > 0 and low not in hidden:
                pairs = zip(view.messages[low:high], sizes[low:high], strict=True)
                excess -= sum(min(view.leaves(message), size) for message, size in pairs)
                hidden |= set(range(low, high))
        for place in sorted(edits.keys() - hidden, reverse=True):  # what was cut too much
            if excess < -2 * FRAME and edits[place] and isinstance(edits[place][0].to, ToolResult):
                more = int(-excess * CHARS / 2 / len(edits[place]))
                excess -= shorten(place, ToolResult, END + more)
                if excess > 0:  # denser than thought
                    excess -= shorten(place, ToolResult, END + more // 2)
        changed = [edit for place, some in edits.items() if place not in hidden for edit in some]
        return (*changed, *_without(view, hidden, listed, changed))


def _sizes(view: View) -> list[int]:
    return [
        _size(view.counter, message) if bound_parts(message) else size
        for message, size in zip(view.messages, view.sizes, strict=True)
    ]


def _size(counter: Counter, message: Message) -> int:
    """Return the tokens of a message behind a change: without the thinking that is bound to what stood before it."""
    bound = bound_parts(message)
    return counter.message(replace(message, parts=tuple(part for part in message.parts if part not in bound)))


def _without(view: View, hidden: set[int], listed: int, changed: Sequence[Rewrite]) -> tuple[Edit, ...]:
    """Return the hiding of messages, and a message in their place with the names that left, shortened texts' too."""
    leaving = [
        message
        for place, message in enumerate(view.messages)
        if place in hidden and message.role != "system" and view.leaves(message)
    ]
    touched = {edit.message for edit in changed}
    if not leaving and not (touched and listed):
        return ()
    text = LEFT
    if listed:
        out = hidden - {place for place, message in enumerate(view.messages) if message.role == "system"}
        rest = [message for place, message in enumerate(view.after(changed).messages) if place not in out]
        kept = frozenset().union(*(atoms_of("\n".join(texts(message))) for message in rest))
        left = [message for place, message in enumerate(view.messages) if place in out or message.id in touched]
        names = dict.fromkeys(name for message in reversed(left) for name in _named(message) if name not in kept)
        text = _filled(view.counter, list(names), listed)
    first = next(message for message in view.messages if message.role != "system")
    marker = view.insert("user", text, Note("marker"), before=leaving[0].id if leaving else first.id)
    return (marker, Hide(tuple(message.id for message in leaving))) if leaving else (marker,)


def _filled(counter: Counter, names: Sequence[str], room: int) -> str:
    """Return as many names as have room, from the first on."""
    count = len(names)
    text = NAMES
    for _ in range(6):
        text = f"{NAMES}\n{' '.join(names[:count])}"
        size = counter.text(text)
        if size <= room and (count == len(names) or size > room * 0.98):
            break
        count = min(int(count * room / size * (1.0 if size <= room else 0.995)), len(names))
    return text


@memoized
def _named(message: Message) -> tuple[str, ...]:
    """Return the names in a message, the last one first."""
    parts = (spoken(part) if isinstance(part, ToolCall) else _words(part) for part in message.parts)
    words = re.findall(r"[\w./-]+", "\n".join(parts))
    return tuple(dict.fromkeys(name for word in reversed(words) for name in sorted(atoms_of(word))))


def _words(part: object) -> str:
    return part.text if isinstance(part, Text | ToolResult) else ""


def _ends(counter: Counter, group: Sequence[Message], room: int) -> tuple[Rewrite, ...]:
    """Return the texts of a group cut to their ends so that it fits; none where that does not suffice.

    Room 0 cuts all texts as far as they can be cut.
    """
    parts = [(m, part) for m in group for part in m.parts if isinstance(part, Text | ToolResult) and _words(part)]
    parts = [(m, part) for m, part in parts if m.role != "system"]
    sizes = [counter.text(_words(part)) for _, part in parts]
    frame = sum(map(counter.message, group)) - sum(sizes)
    level = (room - frame) / max(len(parts), 1)
    if room and level < LEAST / CHARS:
        return ()
    edits: list[Rewrite] = []
    spare = 0.0
    for (message, part), size in sorted(zip(parts, sizes, strict=True), key=lambda pair: pair[1]):
        if room and size <= level + spare:
            spare += level - size
            continue
        text = _words(part)
        chars = int(len(text) * (level + spare) / size * 0.97) if room else LEAST
        if chars < len(text):
            edits.append(Rewrite(message.id, part.at, _with(part, text[-chars:])))
        spare = 0.0
    return tuple(edits)


def _shortened(message: Message, part: Text | ToolResult, end: int) -> Rewrite | None:
    text = _words(part)
    if len(text) <= 2 * end + 40:
        return None
    return Rewrite(message.id, part.at, _with(part, f"{text[:end]}\n[... shortened ...]\n{text[-end:]}"))


def _with(part: Text | ToolResult, text: str) -> Text | ToolResult:
    return replace(part, text=text) if isinstance(part, Text) else with_text(part, text)


def _policy(name: str, stage: Pure) -> Policy:
    around = (Step(CloseCalls(), When.DUE, "close calls"), Step(Repair(), When.DUE, "repair"))
    again = tuple(replace(step, label=f"{step.label} again") for step in around)
    return Policy(name, (*around, Step(stage, When.OVER_GOAL), *again))


RIVALS = {
    name: _policy(name, stage)
    for name, stage in {
        "tail": NewestText(),
        "tail+names": NewestText(names=0.2),
        "users+index": UsersAndIndex(names=0.12),
    }.items()
}
PEER = "peer:"
MODEL_FREE = frozenset({"refold", *RIVALS})  # asked for no summary: one that says nothing would be dropped after checks


def names() -> tuple[str, ...]:
    """Return the names of all policies and rivals."""
    return (*policies.names(), *RIVALS)


def compacted(name: str, known: Sequence[Any], format: str, goal: int) -> Compacted | str:
    """Return what a policy or rival makes of a history within an exact number of tokens (o200k), or what went wrong."""
    if name.startswith(PEER):
        return _compacted_by_peer(name.removeprefix(PEER), known, format, goal)
    counter = counter_for("gpt-4o")
    aim = goal
    for _ in range(TRIES):
        try:
            result = refold.compact(
                list(known),
                format=format,
                policy=RIVALS.get(name, name),
                budget=aim,
                counter=counter,
                force=True,
                summarize=None if name in MODEL_FREE else lambda _: SUMMARY,
            )
        except refold.RefoldError as error:
            return type(error).__name__
        messages = formats.read(formats.find(format), result.messages).messages
        size = sum(map(counter.message, messages)) + counter.per_conversation
        if size <= goal:
            return Compacted(result.messages, messages, size)
        aim = int(aim * goal / size * 0.99)
    return "over"


def _compacted_by_peer(name: str, known: Sequence[Any], format: str, goal: int) -> Compacted | str:
    """Return what a row of benchmarks/peers makes of the same words in the shape of OpenAI's chat completions."""
    sys.path[:0] = [each for each in (str(PEERS), str(PEERS.parent)) if each not in sys.path]
    import cases
    import environments
    import scoring

    plain = cases.plain(formats.read(formats.find(format), known).messages)
    try:
        result = scoring.made_to_size(_peer(name), {"messages": plain}, goal)
    except environments.Trouble as trouble:
        return str(trouble)[:80]
    if result.size > goal:
        return "over"
    return Compacted(result.messages, result.kept, result.size)


@cache
def _peer(name: str) -> Any:
    """Return the process of a peer.

    Raises:
        SystemExit: there is no such row, or its environment is not installed.
    """
    import adapters
    import environments

    family = next((each.family for each in adapters.peers() if each.name == name), None)
    if family is None or not environments.python_of(family).exists():
        sys.exit(f"{name} is not installed: run python benchmarks/peers/run.py --only '{name}' once")
    return environments.Worker(family, name)
