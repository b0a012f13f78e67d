"""Checks JSON values against the official SDKs' own request types.

Theory of operation. The SDKs describe requests as typed dictionaries (openai, anthropic) or pydantic models
(google-genai). `check_of` compiles such a type once into a function that walks a value and reports every difference as
a `Mismatch` with its path. It differs from a pydantic adapter in three ways that the providers' servers need: keys
that a type does not have are refused, a union is decided by the literal value of its discriminating key (`type` or
`role`) so that the report names the real fault, and iterables are walked as lists. A type that has no JSON form (a file
handle, a callable) accepts everything.
"""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typing_extensions

from refold.core._json import Json
from refold.testing.judge._problem import Mismatch, Path

__all__ = ["Check", "Compiler", "faults"]

Check: TypeAlias = Callable[[Any, Path, list[Mismatch]], None]
_WRAPPERS = (typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired)
_TAGS = ("type", "role")
_SCALARS: dict[Any, tuple[type, ...]] = {str: (str,), bytes: (str, bytes), int: (int,), float: (int, float)}
_JSON = {str: "string", bytes: "string", int: "integer", float: "number", bool: "boolean"}


class Compiler:
    """Compiles types to checks, each type once.

    `snake`: a pydantic field is also accepted under its Python name (protocol buffers' JSON form accepts both).
    `extra` names keys per type name that are required by the type and absent in documented requests, or absent in
    the type and present in documented requests. `wider` gives a key of a type another type.
    """

    def __init__(
        self,
        *,
        snake: bool = False,
        extra: Mapping[str, frozenset[str]] | None = None,
        wider: Mapping[tuple[str, str], Any] | None = None,
    ) -> None:
        self._snake = snake
        self._extra = extra or {}
        self._wider = wider or {}
        self._known: dict[Any, Check] = {}

    def check_of(self, kind: object) -> Check:
        """Return the check of a type."""
        kind = _bare(kind)
        try:
            known = self._known.get(kind)
        except TypeError:  # an unhashable annotation
            return self._compiled(kind)
        if known is None:
            checks: list[Check] = []
            self._known[kind] = _later(checks)  # types may refer to themselves
            checks.append(self._compiled(kind))
            known = self._known[kind] = checks[0]
        return known

    def _compiled(self, kind: object) -> Check:
        if kind in (None, type(None)):
            return _none
        if kind is bool:
            return _boolean
        if kind in _SCALARS:
            return _scalar(kind)
        origin = get_origin(kind)
        if origin is Literal:
            return _literal(get_args(kind))
        if origin in (Union, types.UnionType):
            return self._union([_bare(member) for member in get_args(kind)])
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(get_args(kind))
        if isinstance(origin, type) and issubclass(origin, Iterable):
            return self._listing(get_args(kind))
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _named(kind)
        if _fields(kind) is not None:
            return self._object(kind)
        return _anything

    def _listing(self, arguments: Sequence[object]) -> Check:
        item = self.check_of(arguments[0]) if arguments else _anything

        def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
            if not isinstance(value, list | tuple):
                mismatches.append(Mismatch("type", at, _json(value), ("array",)))
                return
            for place, entry in enumerate(value):
                item(entry, (*at, place), mismatches)

        return check

    def _mapping(self, arguments: Sequence[object]) -> Check:
        item = self.check_of(arguments[1]) if len(arguments) == 2 else _anything

        def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
            if not isinstance(value, dict):
                mismatches.append(Mismatch("type", at, _json(value), ("object",)))
            elif item is not _anything:
                for key, entry in value.items():
                    item(entry, (*at, key), mismatches)

        return check

    def _object(self, kind: Any) -> Check:
        fields = _fields(kind) or {}
        wider = self._wider
        checks = {
            name: self.check_of(wider.get((kind.__name__, name), annotation))
            for name, (annotation, _) in fields.items()
        }
        if self._snake:
            checks |= {snake: checks[name] for name in fields if (snake := _snaked(name)) != name}
        checks |= {name: _anything for name in self._extra.get(kind.__name__, ()) if name not in checks}
        loose = self._extra.get(kind.__name__, frozenset())
        required = [name for name, (_, needed) in fields.items() if needed and name not in loose]

        def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
            if not isinstance(value, dict):
                mismatches.append(Mismatch("type", at, _json(value), ("object",)))
                return
            mismatches.extend(Mismatch("missing", (*at, name)) for name in required if name not in value)
            for key, entry in value.items():
                inner = checks.get(key)
                if inner is None:
                    mismatches.append(Mismatch("unknown", (*at, key)))
                else:
                    inner(entry, (*at, key), mismatches)

        return check

    def _union(self, members: list[Any]) -> Check:
        flat = [inner for member in members for inner in _flat(member)]
        if any(self.check_of(member) is _anything for member in flat):
            return _anything
        objects = [member for member in flat if _fields(member) is not None]
        others = [(member, self.check_of(member)) for member in flat if _fields(member) is None]
        choose = self._choice(objects) if objects else None
        names = tuple(dict.fromkeys(name for member, _ in others if (name := _name(member))))
        expected = (*names, "object") if objects else names
        free = "object" in names  # a mapping in addition to the named keys takes every key (a JSON schema)

        def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
            if isinstance(value, dict) and choose is not None and not free:
                choose(value, at, mismatches)
                return
            best: list[Mismatch] | None = None
            for _, inner in others:
                trial: list[Mismatch] = []
                inner(value, at, trial)
                if not trial:
                    return
                if any(len(fault.at) > len(at) or fault.kind == "value" for fault in trial):
                    best = best or trial
            mismatches.extend(best or [Mismatch("type", at, _json(value), expected)])

        return check

    def _needed(self, kind: Any, key: str) -> bool:
        """Tell whether an object type requires a key."""
        return bool((_fields(kind) or {}).get(key, (None, False))[1]) and key not in self._extra.get(kind.__name__, ())

    def _choice(self, objects: list[Any]) -> Check:
        """Return the check of a union of objects, decided by the literal values of its discriminating keys."""
        checks = [self.check_of(kind) for kind in objects]
        tags = [_tags(kind) for kind in objects]
        used = [key for key in _TAGS if sum(key in own for own in tags) > len(objects) / 2]
        memo: dict[tuple[Any, ...], tuple[list[Check], Mismatch | None]] = {}

        def fitting(value: Json) -> tuple[list[Check], Mismatch | None]:
            fits = list(range(len(objects)))
            for key in used:
                tag = value.get(key)
                left = [n for n in fits if key not in tags[n] or (tag in tags[n][key] if key in value else True)]
                if key not in value:
                    left = [n for n in left if not self._needed(objects[n], key)] or left
                if not left or (key in value and not any(key in tags[n] for n in left)):
                    known = dict.fromkeys(str(tag) for n in fits for tag in tags[n].get(key, ()))
                    return [], Mismatch("tag", (key,), str(tag), tuple(known))
                fits = left
            return [checks[n] for n in fits], None

        def check(value: Json, at: Path, mismatches: list[Mismatch]) -> None:
            question = tuple((key in value, tag if isinstance(tag := value.get(key), str) else None) for key in used)
            if question not in memo:
                memo[question] = fitting({key: value[key] for key in used if key in value})
            fits, fault = memo[question]
            if fault is not None:
                mismatches.append(Mismatch(fault.kind, (*at, *fault.at), fault.got, fault.expected))
                return
            best: list[Mismatch] | None = None
            for inner in fits:
                trial: list[Mismatch] = []
                inner(value, at, trial)
                if not trial:
                    return
                if best is None or _distance(trial, at) < _distance(best, at):
                    best = trial
            mismatches.extend(best or ())

        return check


def _later(checks: list[Check]) -> Check:
    """Return a check that is the first of a list once it is there."""

    def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
        checks[0](value, at, mismatches)

    return check


def faults(check: Check, value: object, at: Path = ()) -> list[Mismatch]:
    """Return every difference between a value and a compiled type."""
    mismatches: list[Mismatch] = []
    check(value, at, mismatches)
    return mismatches


def _distance(trial: list[Mismatch], at: Path) -> tuple[int, int]:
    """Return how far a value is from a type: fewest faults first, then faults that lie deepest."""
    return len(trial), -max(len(fault.at) - len(at) for fault in trial)


def _bare(kind: object) -> Any:
    """Return a type without annotations and markers."""
    while get_origin(kind) in (Annotated, *_WRAPPERS):
        kind = get_args(kind)[0]
    return kind


def _flat(kind: object) -> list[Any]:
    kind = _bare(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return [inner for member in get_args(kind) for inner in _flat(member)]
    return [kind]


def _fields(kind: object) -> dict[str, tuple[Any, bool]] | None:
    """Return the keys of an object type with their types and whether they are required; None for other types."""
    if typing.is_typeddict(kind) or typing_extensions.is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {name: (annotation, _required(kind, name, annotation)) for name, annotation in hints.items()}
    model = getattr(kind, "model_fields", None) if isinstance(kind, type) else None
    if not isinstance(model, dict):
        return None
    return {(field.alias or name): (field.annotation, field.is_required()) for name, field in model.items()}


def _required(kind: Any, name: str, annotation: Any) -> bool:
    """Tell whether a key is required; markers that are strings in the source are unknown to the class itself."""
    marker = get_origin(annotation)
    if marker in (typing.Required, typing_extensions.Required):
        return True
    return name in kind.__required_keys__ and marker not in (typing.NotRequired, typing_extensions.NotRequired)


def _tags(kind: object) -> dict[str, tuple[Any, ...]]:
    """Return the literal values of an object type's discriminating keys."""
    named: dict[str, tuple[Any, ...]] = {}
    for name, (annotation, _) in (_fields(kind) or {}).items():
        if name in _TAGS:
            literals = [inner for inner in _flat(annotation) if get_origin(inner) is Literal]
            if literals:
                named[name] = tuple(value for inner in literals for value in get_args(inner))
    return named


def _snaked(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _json(value: object) -> str:
    """Return the JSON name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str() | bytes():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _name(kind: object) -> str:
    """Return the JSON name of a type, nothing for null."""
    if kind in _JSON:
        return _JSON[kind]
    origin = get_origin(kind)
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        return "string"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "object"
    return "array" if isinstance(origin, type) and issubclass(origin, Iterable) else ""


def _anything(value: object, at: Path, mismatches: list[Mismatch]) -> None:
    """Accept every value."""


def _none(value: object, at: Path, mismatches: list[Mismatch]) -> None:
    if value is not None:
        mismatches.append(Mismatch("type", at, _json(value), ("null",)))


def _boolean(value: object, at: Path, mismatches: list[Mismatch]) -> None:
    if not isinstance(value, bool):
        mismatches.append(Mismatch("type", at, _json(value), ("boolean",)))


def _scalar(kind: Any) -> Check:
    accepted, name = _SCALARS[kind], _JSON[kind]

    def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
        if not isinstance(value, accepted) or isinstance(value, bool):
            mismatches.append(Mismatch("type", at, _json(value), (name,)))

    return check


def _literal(values: tuple[Any, ...]) -> Check:
    expected = tuple(str(value) for value in values)

    def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
        if value not in values:
            mismatches.append(Mismatch("value", at, str(value), expected))

    return check


def _named(kind: type[enum.Enum]) -> Check:
    """Return the check of an enumeration, which protocol buffers write by name or by number."""
    expected = tuple(str(member.value) for member in kind)
    known = {name.lower() for name in expected}

    def check(value: object, at: Path, mismatches: list[Mismatch]) -> None:
        if isinstance(value, bool) or not isinstance(value, str | int):
            mismatches.append(Mismatch("type", at, _json(value), ("string",)))
        elif isinstance(value, str) and value.lower() not in known:
            mismatches.append(Mismatch("value", at, value, expected))

    return check
