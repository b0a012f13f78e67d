"""The made-up web shop whose order service the sample session works on: its words, as data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from refold.testing.provider._mails import mail_words

__all__ = ["CodePieces", "Entity", "Prose", "Shop", "Task", "camel", "pieces", "prose", "shop", "tasks"]


class Entity(Struct, frozen=True):
    """One thing the shop knows: a table, a class and what can be done with it."""

    name: str
    table: str
    purpose: str
    fields: tuple[str, ...]
    statuses: tuple[str, ...]
    verbs: tuple[str, ...]

    @property
    def title(self) -> str:
        """The class name."""
        return camel(self.name)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and type of each field."""
        return tuple((name, kind) for name, _, kind in (field.partition(":") for field in self.fields))

    def of(self, *kinds: str) -> tuple[str, ...]:
        """Return the names of the fields of these types."""
        return tuple(name for name, kind in self.columns if kind in kinds)


class Shop(Struct, frozen=True):
    """All words that the generated code and its logs share."""

    entities: tuple[Entity, ...]
    warehouses: tuple[str, ...]
    carriers: tuple[str, ...]
    providers: tuple[str, ...]
    channels: tuple[str, ...]
    people: tuple[str, ...]
    adjectives: tuple[str, ...]
    nouns: tuple[str, ...]


class CodePieces(Struct, frozen=True):
    """Pieces of methods and tests, with slots."""

    guards: tuple[str, ...]
    work: tuple[str, ...]
    ends: tuple[str, ...]
    docs: tuple[str, ...]
    tests: tuple[str, ...]


class Prose(Struct, frozen=True):
    """Sentences of the assistant, with slots."""

    reading: tuple[str, ...]
    searching: tuple[str, ...]
    asking: tuple[str, ...]
    thinking: tuple[str, ...]
    found: tuple[str, ...]
    editing: tuple[str, ...]
    testing: tuple[str, ...]
    commits: tuple[str, ...]


class Change(Struct, frozen=True):
    """One edit: the lines that go and those that come."""

    old: str
    new: str


class Task(Struct, frozen=True):
    """One turn: what the user asks, the faulty code that waits in the repository, how it fails and how it is mended."""

    ticket: int
    ask: str
    entity: str
    path: str
    code: str
    failing: str
    error: str
    insight: str
    changes: tuple[Change, ...]
    test: str
    outcome: str
    words: tuple[str, ...]
    picture: str = ""


class _Tasks(Struct, frozen=True):
    tasks: tuple[Task, ...]


def camel(name: str) -> str:
    """Return a class name for a snake-case one."""
    return "".join(part.capitalize() for part in name.split("_"))


@cache
def shop() -> Shop:
    """Return the shop's words."""
    names = msgspec.json.decode(_data("shop.json"))
    return msgspec.convert(names | msgspec.to_builtins(mail_words()), type=Shop)


@cache
def pieces() -> CodePieces:
    """Return the pieces of code."""
    return msgspec.toml.decode(_data("code.toml"), type=CodePieces)


@cache
def prose() -> Prose:
    """Return the assistant's sentences."""
    return msgspec.toml.decode(_data("prose.toml"), type=Prose)


@cache
def tasks() -> tuple[Task, ...]:
    """Return the tasks of the long session, in order."""
    return msgspec.toml.decode(_data("tasks.toml"), type=_Tasks).tasks


def _data(name: str) -> bytes:
    return (Path(__file__).parent / "data" / name).read_bytes()
