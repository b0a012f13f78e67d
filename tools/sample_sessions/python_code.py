"""Python modules of the made-up order service: model, repository, service, handlers and tests of each entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from refold.testing._seeded_random import SeededRandom
from tools.sample_sessions.shop import Entity, pieces, shop

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["handlers", "model", "repository", "service", "tests"]

_TYPES = {"cents": "int"}
_EMPTY = {"str": '""', "int": "0", "cents": "0", "bool": "False", "datetime": "EPOCH"}


def model(entity: Entity, dice: SeededRandom) -> str:
    """Return the module with the value and its states."""
    title = entity.title
    states = "\n".join(f'    {status.upper()} = "{status}"' for status in entity.statuses)
    moves = _moves(entity, dice)
    fields = "\n".join(f"    {column}: {_TYPES.get(kind, kind)} = {_EMPTY[kind]}" for column, kind in entity.columns)
    rows = "\n".join(f'            {column}=row["{column}"],' for column, _ in entity.columns)
    return f'''"""{title}: {entity.purpose}."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Mapping

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class {title}Status(Enum):
{states}


MOVES = {{
{moves}
}}


@dataclass(frozen=True, slots=True)
class {title}:
    id: str
{fields}
    status: {title}Status = {title}Status.{entity.statuses[0].upper()}
    version: int = 1

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "{title}":
        return cls(
            id=row["id"],
{rows}
            status={title}Status(row["status"]),
            version=row["version"],
        )

    def may_become(self, status: {title}Status) -> bool:
        """{dice.fill(dice.pick(pieces().docs), **words(entity, dice))}"""
        return status in MOVES.get(self.status, set())
'''


def repository(entity: Entity, dice: SeededRandom) -> str:
    """Return the module with the entity's SQL."""
    title, table = entity.title, entity.table
    columns = ", ".join(("id", *(column for column, _ in entity.columns), "status", "version"))
    finders = "\n".join(_finder(entity, column, dice) for column in dice.some(entity.of("str", "int"), 3))
    return f'''"""SQL of {table}; the only module that names the table."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

from orderdesk.db import Connection, StaleRow
from orderdesk.models.{entity.name} import {title}, {title}Status

COLUMNS = "{columns}"
PAGE = {dice.between(4, 40) * 25}


class {title}Repository:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, id: str) -> {title}:
        row = self._connection.one(f"SELECT {{COLUMNS}} FROM {table} WHERE id = %s", (id,))
        return {title}.from_row(row)

    @contextmanager
    def locked(self, id: str) -> Iterator[{title}]:
        with self._connection.transaction():
            row = self._connection.one(f"SELECT {{COLUMNS}} FROM {table} WHERE id = %s FOR UPDATE", (id,))
            yield {title}.from_row(row)

    def list_by_status(self, status: {title}Status, limit: int = PAGE) -> list[{title}]:
        sql = f"SELECT {{COLUMNS}} FROM {table} WHERE status = %s ORDER BY id LIMIT %s"
        return [{title}.from_row(row) for row in self._connection.all(sql, (status.value, limit))]

    def page(self, after: str = "", size: int = PAGE) -> list[{title}]:
        sql = f"SELECT {{COLUMNS}} FROM {table} WHERE id > %s ORDER BY id LIMIT %s"
        return [{title}.from_row(row) for row in self._connection.all(sql, (after, size))]
{finders}
    def save(self, {entity.name}: {title}) -> {title}:
        changed = self._connection.update("{table}", {entity.name}, where_version={entity.name}.version)
        if changed == 0:
            raise StaleRow("{table}", {entity.name}.id)
        return self.get({entity.name}.id)
'''


def service(entity: Entity, dice: SeededRandom) -> str:
    """Return the module with what can be done with the entity."""
    title = entity.title
    constants = [f"{noun.upper()}_{dice.pick(('LIMIT', 'MINUTES', 'SIZE'))}" for noun in dice.some(shop().nouns, 4)]
    named = "\n".join(f"{constant} = {dice.between(3, 96) * 5}" for constant in constants)
    methods = "\n".join(_method(entity, verb, constants, dice.fork(verb)) for verb in entity.verbs)
    return f'''"""What can be done with {entity.table}: {entity.purpose}."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

from orderdesk.errors import Conflict, Forbidden, Invalid, TooLate, Unavailable
from orderdesk.ledger import Entry
from orderdesk.models.{entity.name} import {title}, {title}Status
from orderdesk.money import spread
from orderdesk.service import Service

log = logging.getLogger(__name__)

{named}


class {title}Service(Service[{title}]):
{methods}'''


def handlers(entity: Entity, dice: SeededRandom) -> str:
    """Return the module with the HTTP handlers."""
    title, name = entity.title, entity.name
    parts = []
    for verb in entity.verbs:
        column, kind = dice.pick(entity.columns)
        code, limit = _code(entity, dice), dice.between(2, 60) * 10
        parts.append(f'''
@route("POST", "/v2/{entity.table}/{{id}}/{verb.replace("_", "-")}", limit_per_minute={limit})
def {verb}(request: Request, id: str) -> Response:
    body = request.json(required=("{column}",), optional=("note", "dry_run"))
    if not isinstance(body["{column}"], {_TYPES.get(kind, "str" if kind == "datetime" else kind)}):
        return problem(422, "{code}", field="{column}")
    try:
        done = services(request).{name}.{verb}(id, actor=request.actor, request_id=request.id)
    except {dice.pick(("Conflict", "TooLate", "Forbidden"))} as error:
        return problem({dice.pick((403, 404, 409, 410))}, error.code, {name}=id)
    return ok({name}_json(done), etag=done.version)
''')
    fields = "\n".join(f'        "{column}": {name}.{column},' for column, _ in entity.columns)
    return f'''"""HTTP handlers of {entity.table}; amounts leave as integer cents."""

from __future__ import annotations

from orderdesk.errors import Conflict, Forbidden, TooLate
from orderdesk.http import Request, Response, ok, problem, route, services
from orderdesk.models.{name} import {title}


def {name}_json({name}: {title}) -> dict[str, object]:
    return {{
        "id": {name}.id,
{fields}
        "status": {name}.status.value,
    }}

{"".join(parts)}'''


def tests(entity: Entity, dice: SeededRandom) -> str:
    """Return the module with the entity's tests."""
    parts = [
        f'''"""Tests of the {entity.name.replace("_", " ")} service."""

import pytest

from orderdesk.errors import Conflict
from orderdesk.models.{entity.name} import {entity.title}Status
'''
    ]
    for verb in entity.verbs:
        shapes = dice.some(pieces().tests, dice.between(1, 3))
        parts.extend(dice.fill(shape, **words(entity, dice, verb)) for shape in shapes)
    return "\n\n".join(parts)


def words(entity: Entity, dice: SeededRandom, verb: str = "") -> dict[str, object]:
    """Return a value for every slot that pieces of code have."""
    text = entity.of("str", "int")
    status, after = dice.pick(entity.statuses), dice.pick(entity.statuses[1:])
    other = dice.pick(shop().entities)
    field, field2 = dice.pick(text), dice.pick(text)
    return {
        "e": entity.name, "E": entity.title, "name": entity.name, "verb": verb or dice.pick(entity.verbs),
        "field": field, "field2": field2, "value": _value(field, entity, dice), "value2": _value(field2, entity, dice),
        "cents": dice.pick(entity.of("cents") or entity.of("int") or ("version",)),
        "when": dice.pick(entity.of("datetime") or ("updated_at",)),
        "status": status, "STATUS": status.upper(), "next": after, "NEXT": after.upper(), "past": f"{verb}_done",
        "other": other.name, "otherverb": dice.pick(other.verbs), "n": dice.between(2, 9), "m": dice.between(1, 9),
        "noun": dice.pick(shop().nouns), "adj": dice.pick(shop().adjectives), "person": dice.pick(shop().people),
        "code": _code(entity, dice), "ticket": dice.between(311, 1_290), "hex": dice.hex(12),
        "CONST": dice.between(6, 180) * 5,
    }  # fmt: skip


def _moves(entity: Entity, dice: SeededRandom) -> str:
    state = f"{entity.title}Status."
    lines = []
    for status in entity.statuses:
        after = ", ".join(f"{state}{to.upper()}" for to in dice.some(entity.statuses, dice.between(1, 3)))
        lines.append(f"    {state}{status.upper()}: {{{after}}},")
    return "\n".join(lines)


def _method(entity: Entity, verb: str, constants: Sequence[str], dice: SeededRandom) -> str:
    kinds = pieces()
    chosen = [
        *dice.some(kinds.guards, dice.between(1, 2)),
        *dice.some(kinds.work, dice.between(2, 3)),
        dice.pick(kinds.ends),
    ]
    body = "".join(
        dice.fill(piece, **(words(entity, dice, verb) | {"CONST": dice.pick(constants)})) for piece in chosen
    )
    doc = dice.fill(dice.pick(kinds.docs), **words(entity, dice, verb))
    head = f"    def {verb}(self, id: str, *, actor: str, request_id: str, dry_run: bool = False) -> {entity.title}:"
    return f'{head}\n        """{doc}"""\n        {entity.name} = self._repo.get(id)\n{body}'


def _finder(entity: Entity, column: str, dice: SeededRandom) -> str:
    order = dice.pick([name for name, _ in entity.columns])
    kind = "int" if column in entity.of("int") else "str"
    return f"""
    def find_by_{column}(self, {column}: {kind}) -> list[{entity.title}]:
        sql = f"SELECT {{COLUMNS}} FROM {entity.table} WHERE {column} = %s ORDER BY {order}, id"
        return [{entity.title}.from_row(row) for row in self._connection.all(sql, ({column},))]
"""


def _code(entity: Entity, dice: SeededRandom) -> str:
    return f"{entity.name[:3].upper()}-{dice.between(100, 899)}"


def _value(column: str, entity: Entity, dice: SeededRandom) -> str:
    if column in entity.of("int"):
        return str(dice.between(1, 9_000))
    if column.endswith("_id"):
        return f'"{column[:3]}_{dice.letters(10)}"'
    return f'"{dice.pick(shop().adjectives)}-{dice.pick(shop().nouns)}"'
