"""The columns of the result files, with their types and meanings; the docs take their table from here."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from refold.batch._packages import needed
from refold.replay._summary import LIMITS, METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["AT_SIZES", "COLUMNS", "LIMITS_AT_SIZES", "RECORDED", "SCHEMA_VERSION", "Column", "parquet_of", "table_of"]

SCHEMA_VERSION = 1  # of the columns; a folder of another version is refused
RECORDED = "recorded"  # the policy of a row on what was really paid


class Column(NamedTuple):
    """A column: its name, its Arrow type, and what it contains."""

    name: str
    type: str
    meaning: str


AT_SIZES = ("used", "fits", "bound", *METRICS)  # of each entry of the column `at_sizes`
LIMITS_AT_SIZES = LIMITS  # of each entry of the column `limits`
COLUMNS = (
    Column("file", "string", "path or URL of the transcript"),
    Column("digest", "string", "BLAKE2b hash of its content (16 bytes, hexadecimal); null if it could not be read"),
    Column("bytes", "int64", "its size"),
    Column("conversation", "string", "name of the conversation in the file"),
    Column("kind", "string", "kind of session file"),
    Column("format", "string", "format of the messages"),
    Column("model", "string", "model that the file names, or the one of the settings"),
    Column("messages", "int64", "number of messages"),
    Column("policy", "string", f"policy; `none`: no compaction, `{RECORDED}`: what was really paid; null in an error"),
    Column("error", "string", "why the file or the conversation could not be replayed; all figures are null then"),
    Column("window", "int64", "context window in tokens"),
    Column("calls", "int64", "calls of the model"),
    Column("compactions", "int64", "plans that changed something"),
    Column("mean_context", "int64", "mean prompt in tokens"),
    Column("peak_context", "int64", "largest prompt in tokens"),
    Column("tokens_prompt", "int64", "tokens of all prompts: the sum of the next three"),
    Column("tokens_cache_read", "int64", "of these, read from the prompt cache"),
    Column("tokens_cache_write", "int64", "of these, written to the prompt cache"),
    Column("tokens_input", "int64", "of these, neither read from the cache nor written to it"),
    Column("tokens_output", "int64", "tokens of the responses"),
    Column("usd_cache_read", "double", "US dollars for tokens read from the cache"),
    Column("usd_cache_write", "double", "US dollars for tokens written to the cache"),
    Column("usd_input", "double", "US dollars for other input"),
    Column("usd_output", "double", "US dollars for output"),
    Column("usd_calls", "double", "the sum of these four"),
    Column("summaries", "int64", "summaries that a model would have written"),
    Column("usd_summaries", "double", "US dollars for them"),
    Column("reads_again", "int64", "calls that read removed content again"),
    Column("tokens_read_again", "int64", "tokens of that content"),
    Column("usd_read_again", "double", "US dollars for these calls"),
    Column("usd_total", "double", "calls, summaries and content read again"),
    Column("usd_cache_damage", "double", "US dollars for cached text written again after compactions; in `usd_calls`"),
    Column("calls_too_long", "int64", "calls above the window"),
    Column("rules_broken", "int64", "provider rules that compactions violated: always a bug"),
    Column("cache_misses", "int64", f"calls that read less than the cache contained; only in `{RECORDED}`"),
    Column("tokens_sent_again", "int64", f"tokens sent again because of them; only in `{RECORDED}`"),
    Column("usd_sent_again", "double", f"US dollars for these; only in `{RECORDED}`"),
    Column("recall", "double", "needed identifiers that are still present, by weight"),
    Column("recoverable", "double", "recall, plus half of the content that a pointer still refers to"),
    Column("lost", "double", "removed content without a pointer"),
    Column("anchors", "double", "lines that later edits quote, still present word for word"),
    Column("trail", "double", "changed files that are named"),
    Column("trail_precision", "double", "named files that were changed"),
    Column("constraints", "double", "user sentences that forbid, oblige or limit, still present word for word"),
    Column("copied", "double", "identifiers that occur in the history"),
    Column("valid", "double", "results that violate no provider rule"),
    Column("age", "double", "difference between the ages of preserved and of needed content"),
    Column("repeated", "double", "runs of five lines that occur twice"),
    Column("density", "double", "weight of needed content in a thousand tokens"),
    Column("at_sizes", "sizes", "for each size: `size`, `used`, `fits`, `bound`, and `recall` to `density`"),
    Column("limits", "limits", f"for each size: `size`, {', '.join(f'`{name}`' for name in LIMITS)}; only in `none`"),
    Column("cycles_fit", "double", "1 if five compactions in a row came down to their size, else 0"),
    Column("planted_once", "double", "planted instructions still present after the first of five compactions"),
    Column("planted", "double", "planted instructions still present after the fifth"),
    Column("own", "double", "the recording's own constraints still present after the fifth"),
    Column("cycles_valid", "double", "1 if the fifth result violates no provider rule, else 0"),
    Column("recall_once", "double", "recall after a single compaction at the place of the fifth"),
    Column("recall_fifth", "double", "recall after the fifth"),
)  # fmt: skip


@cache
def _schema() -> Any:
    pa = needed("pyarrow")
    types = {
        "string": pa.string(), "int64": pa.int64(), "double": pa.float64(),
        "sizes": _figures_by_size(pa, AT_SIZES), "limits": _figures_by_size(pa, LIMITS_AT_SIZES),
    }  # fmt: skip
    fields = [pa.field(column.name, types[column.type]) for column in COLUMNS]
    return pa.schema(fields, metadata={"refold.batch.schema": str(SCHEMA_VERSION)})


def _figures_by_size(pa: Any, names: Sequence[str]) -> Any:
    return pa.list_(pa.struct([("size", pa.string()), *((name, pa.float64()) for name in names)]))


def table_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a `pyarrow.Table`; a column that a row leaves out is null there."""
    return needed("pyarrow").Table.from_pylist([dict(row) for row in rows], schema=_schema())


def parquet_of(table: Any) -> bytes:
    """Return the content of a Parquet file with the rows of a table."""
    sink = needed("pyarrow").BufferOutputStream()
    needed("pyarrow.parquet").write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content
