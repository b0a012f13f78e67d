"""The rest of the made-up repository: TypeScript, SQL, YAML and pages of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.sample_sessions.python_code import words
from tools.sample_sessions.shop import Entity, pieces, shop

if TYPE_CHECKING:
    from refold.testing._seeded_random import SeededRandom

__all__ = ["client", "migration", "page", "settings", "table_view"]

_TS = {"str": "string", "int": "number", "cents": "number", "bool": "boolean", "datetime": "string"}
_SQL = {
    "str": "text NOT NULL DEFAULT ''",
    "int": "integer NOT NULL DEFAULT 0",
    "cents": "bigint NOT NULL",
    "bool": "boolean NOT NULL DEFAULT false",
    "datetime": "timestamptz",
}


def client(entity: Entity, dice: SeededRandom) -> str:
    """Return the TypeScript client of an entity's endpoints."""
    fields = "\n".join(f"  {column}: {_TS[kind]};" for column, kind in entity.columns)
    calls = "\n".join(
        f"export async function {verb.title().replace('_', '')[0].lower()}{verb.title().replace('_', '')[1:]}"
        f"{entity.title}(id: string, {column}: {_TS[kind]}, signal?: AbortSignal): Promise<{entity.title}> {{\n"
        f"  const answer = await post<{entity.title}>(`/v2/{entity.table}/${{id}}/{verb.replace('_', '-')}`, "
        f"{{ {column} }}, {{ signal, timeout: {dice.between(4, 60) * 250} }});\n"
        f"  if (answer.status === {dice.pick((403, 409, 410))}) "
        f"throw new DeskError('{entity.name}.{verb}', answer.code);\n"
        "  return answer.body;\n}\n"
        for verb, (column, kind) in ((verb, dice.pick(entity.columns)) for verb in entity.verbs)
    )
    statuses = " | ".join(f"'{status}'" for status in entity.statuses)
    return f"""// {entity.title}: {entity.purpose}.
import {{ post }} from './http';
import {{ DeskError }} from './errors';

export type {entity.title}Status = {statuses};

export interface {entity.title} {{
  id: string;
{fields}
  status: {entity.title}Status;
}}

{calls}"""


def table_view(entity: Entity, dice: SeededRandom) -> str:
    """Return a TypeScript component that lists an entity."""
    shown = {
        column: f"formatCents(row.{column})" if kind == "cents" else f"row.{column}" for column, kind in entity.columns
    }
    cells = "\n".join(
        f'        <td className="{dice.pick(shop().adjectives)}">{{{value}}}</td>' for value in shown.values()
    )
    heads = "".join(f"<th>{column.replace('_', ' ')}</th>" for column, _ in entity.columns)
    return f"""import {{ useEffect, useState }} from 'react';
import type {{ {entity.title} }} from '../api/{entity.name}';
import {{ formatCents }} from '../money';

const PAGE_SIZE = {dice.between(2, 20) * 10};

type Load = (after: string, size: number) => Promise<{entity.title}[]>;

export function {entity.title}Table({{ load }}: {{ load: Load }}) {{
  const [rows, setRows] = useState<{entity.title}[]>([]);
  const [after, setAfter] = useState('');
  useEffect(() => {{
    let stopped = false;
    load(after, PAGE_SIZE).then((found) => {{ if (!stopped) setRows((old) => [...old, ...found]); }});
    return () => {{ stopped = true; }};
  }}, [after]);
  return (
    <table data-kind="{entity.name}">
      <thead><tr>{heads}<th>status</th></tr></thead>
      <tbody>{{rows.map((row) => (
        <tr key={{row.id}} onClick={{() => setAfter(row.id)}}>
{cells}
        <td>{{row.status}}</td></tr>))}}
      </tbody>
    </table>
  );
}}
"""


def migration(entity: Entity, dice: SeededRandom) -> str:
    """Return the SQL that makes an entity's table."""
    columns = "\n".join(f"    {column} {_SQL[kind]}," for column, kind in entity.columns)
    statuses = ", ".join(f"'{status}'" for status in entity.statuses)
    indexes = "\n".join(
        f"CREATE INDEX {entity.table}_{column}_idx "
        f"ON {entity.table} ({column}, {dice.pick(('id', 'status', 'version'))});"
        for column in dice.some(entity.of("str", "datetime"), 3)
    )
    return f"""-- {entity.title}: {entity.purpose}.
CREATE TABLE {entity.table} (
    id text PRIMARY KEY,
{columns}
    status text NOT NULL CHECK (status IN ({statuses})),
    version integer NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now()
);
{indexes}
COMMENT ON TABLE {entity.table} IS 'owner {dice.pick(shop().people)}, see OD-{dice.between(200, 999)}';
"""


def settings(stage: str, dice: SeededRandom) -> str:
    """Return the YAML settings of one stage."""
    lines = [f"# {stage}; secrets come from the vault, not from here", "service: orderdesk", f"stage: {stage}"]
    for entity in shop().entities:
        lines.append(f"{entity.name}:")
        lines.extend(
            f"  {dice.pick(shop().adjectives)}_{noun}: {dice.between(1, 400) * 5}"
            for noun in dice.some(shop().nouns, 4)
        )
        lines.append(f"  allowed: [{', '.join(dice.some(entity.verbs, 3))}]")
    for provider in shop().providers:
        lines.append(f"{provider}:")
        lines.append(f"  endpoint: https://{provider}.example/{stage}/v{dice.between(1, 4)}")
        lines.append(f"  timeout_ms: {dice.between(8, 60) * 250}")
        lines.append(f"  merchant: m_{dice.letters(12)}")
    return "\n".join(lines) + "\n"


def page(entity: Entity, dice: SeededRandom) -> str:
    """Return the page about an entity."""
    lines = [f"# {entity.title}", "", f"In this service a {entity.name.replace('_', ' ')} is {entity.purpose}.", ""]
    for verb in entity.verbs:
        lines.append(f"## {verb.replace('_', ' ')}")
        lines.append("")
        lines.extend(
            f"- {dice.fill(sentence, **words(entity, dice, verb))}"
            for sentence in dice.some(pieces().docs, dice.between(2, 4))
        )
        lines.append(f"- Asked for by {dice.pick(shop().people)} in OD-{dice.between(200, 1_290)}.")
        lines.append("")
    return "\n".join(lines)
