"""Merges several responses into one: recall calls are left out, and the content around them is joined."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Struct

from refold._recall.search import Asking
from refold.core._json import Json, string_of

__all__ = ["BREAK", "RecallCall", "RecallRound", "ResponseMerger", "added", "asking", "sound"]

BREAK = "\n\n"  # between the words before a recall and those after it, where a dialect has one text for both
GIVEN_UP = "[The model asked for what was left out more often than this gateway answers in one turn.]"


class RecallCall(Struct, frozen=True):
    """One call of a tool: its id, its arguments as they came, and the tool's name where it is one of the client's."""

    id: str
    arguments: Any = None
    name: str = ""


class RecallRound(Struct, frozen=True):
    """One round of the model, read: what goes back upstream as its words, and what it calls.

    `others` are calls of the client's tools beside; `dropped` are the places (of blocks, calls or items) that the
    client never sees; `cut` says that the round did not end by itself.
    """

    turn: list[Json]
    recalls: tuple[RecallCall, ...] = ()
    others: tuple[RecallCall, ...] = ()
    cut: bool = False
    dropped: frozenset[int] = frozenset()
    usage: Json = {}

    @property
    def only(self) -> bool:
        """Whether the round waits for originals, and for nothing else."""
        return bool(self.recalls) and not self.others and not self.cut


class ResponseMerger:
    """What the rounds of one answer have in common; a subclass knows one dialect.

    Events and bodies are decoded JSON. `merge_event` takes all events of a stream in order, those of earlier
    rounds too.
    """

    usage_key = "usage"
    named = False  # whether events bear their name beside their data
    line = "\n"

    def __init__(self) -> None:
        self.round = 0
        self.spent: Json = {}
        self.dropped: frozenset[int] = frozenset()

    def starts_recall(self, data: Json) -> bool:
        """Tell whether an event begins a call of the recall tool."""
        raise NotImplementedError

    def may_belong_to_recall(self, data: Json) -> bool:
        """Tell whether an event may yet belong to a call of the recall tool that follows."""
        return False

    def is_preamble(self, data: Json) -> bool:
        """Tell whether an event says nothing yet."""
        raise NotImplementedError

    def merge_event(self, data: Json, *, closing: bool) -> list[Json]:
        """Return an event as the client gets it; nothing where it is of a recall, or ends a round before the last."""
        raise NotImplementedError

    def read_round(self, body: Json) -> RecallRound:
        """Read the body of one round."""
        raise NotImplementedError

    def joined(self, bodies: list[Json]) -> Json:
        """Return one body for all rounds: what they said without recalls, and what they used together."""
        raise NotImplementedError

    def results(self, recall_round: RecallRound, texts: list[str]) -> list[Json]:
        """Return what goes back upstream after the round's own words: the results of its calls."""
        raise NotImplementedError

    def follows(self, recall_round: RecallRound) -> None:
        """Go on with the next round."""
        self.spent = added(self.spent, recall_round.usage)
        self.round += 1
        self.dropped = frozenset()

    def error(self, body: Json) -> Json:
        """Return an error's body as an event of a stream that has begun."""
        return body

    def event(self, data: Json) -> bytes:
        """Return an event as bytes."""
        name = f"event: {data.get('type', 'message')}\n" if self.named else ""
        try:
            text = msgspec.json.encode(data)
        except UnicodeEncodeError:  # half a surrogate pair, whose other half is in the next event
            text = json.dumps(data, separators=(",", ":")).encode()
        return name.encode() + b"data: " + text + (self.line * 2).encode()


def added(before: Json, after: Json) -> Json:
    """Return two reports of usage as one: figures summed, whatever else there is as the later one has it."""
    merged = dict(before)
    for key, value in after.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            merged[key] = added(old, value)
        elif _figure(value) and _figure(old):
            merged[key] = old + value
        elif value is not None or key not in merged:
            merged[key] = value
    return merged


def asking(arguments: Any) -> Asking:
    """Read the arguments of a call; what a model gets wrong is asked for by an empty query."""
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return Asking(arguments)
    if not isinstance(arguments, dict):
        return Asking("")
    query, line = arguments.get("query"), arguments.get("from_line")
    whole = isinstance(line, int | float) and not isinstance(line, bool)
    return Asking(string_of(query), max(int(line or 0), 0) if whole else 0)


def sound(arguments: object) -> str:
    """Return the arguments of a call as a provider takes them back: JSON of an object, whatever the model has made."""
    try:
        if isinstance(arguments, str) and isinstance(msgspec.json.decode(arguments or "{}"), dict):
            return arguments or "{}"
    except (msgspec.DecodeError, UnicodeEncodeError):
        pass
    return msgspec.json.encode({"query": asking(arguments).query}).decode()


def _figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
