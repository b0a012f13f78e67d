"""Summarizes the results of a batch with DuckDB: the figures of `refold replay`, over any number of transcripts.

A standard error is that of the mean over conversations, or of the ratio of two sums; with many conversations it is what
`refold replay` finds by bootstrap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from refold.batch._packages import needed
from refold.batch._schema import AT_SIZES, LIMITS_AT_SIZES, RECORDED
from refold.replay._run import NONE
from refold.replay._summary import METRICS, Figure, PolicySummary, size_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.batch._manifest import ResultFolder

__all__ = ["BatchReport", "ErrorCount", "ModelCosts", "RecordedCosts", "report_of"]

REASONS = 20  # that are listed, the most frequent first
CYCLES = {
    "fits": "cycles_fit",
    "planted_once": "planted_once",
    "planted": "planted",
    "own": "own",
    "valid": "cycles_valid",
}

Figures = dict[str, Figure]


class ErrorCount(Struct, frozen=True):
    """How many files and conversations have the same error, and a file that has it."""

    error: str
    count: int
    example: str


class ModelCosts(Struct, frozen=True):
    """What one policy costs on the conversations of one model, in US dollars; `change` is against doing nothing."""

    model: str
    policy: str
    conversations: int
    calls: int
    dollars: float
    change: float


class RecordedCosts(Struct, frozen=True):
    """What the conversations of one model really cost, by the usage reports in the files."""

    model: str
    conversations: int
    calls: int
    prompt: int
    cache_read: int
    output: int
    dollars: float
    misses: int
    dollars_of_misses: float


class BatchReport(Struct, frozen=True):
    """The results of a batch: files, those with an error, and figures by policy, size, model and error."""

    files: int
    files_with_errors: int
    conversations: int
    policies: list[PolicySummary]
    limits: dict[str, Figures]
    models: list[ModelCosts]
    recorded: list[RecordedCosts]
    errors: list[ErrorCount]


def report_of(folder: ResultFolder) -> BatchReport:
    """Summarize the results in a folder that is `opened`.

    Raises:
        UsageError: duckdb is not installed.
    """
    source = _Source(folder)
    records = folder.records().values()
    by_policy = source.rows(_SUMS)
    return BatchReport(
        files=len(records),
        files_with_errors=sum(record.errors > 0 for record in records),
        conversations=max((row[1] for row in by_policy), default=0),
        policies=_summaries(source, by_policy),
        limits=_by_size(source.rows(_BY_SIZE.format(figures=_figures(LIMITS_AT_SIZES, "entry."), column="limits")),
                        LIMITS_AT_SIZES).get(NONE, {}),
        models=[ModelCosts(*row) for row in source.rows(_MODELS)],
        recorded=[RecordedCosts(*row) for row in source.rows(_RECORDED)],
        errors=[ErrorCount(*row) for row in source.rows(_ERRORS)],
    )  # fmt: skip


# The order of policies is that of the settings: the rows of a conversation have it, and `none` is the first.
_SUMS = f"""
    WITH base AS (SELECT file, conversation, usd_total AS bill FROM replays WHERE policy = '{NONE}'),
    paired AS (
        SELECT replays.*, base.bill FROM replays JOIN base USING (file, conversation) WHERE policy <> '{RECORDED}'
    ),
    ratio AS (SELECT policy AS name, sum(usd_total) / nullif(sum(bill), 0) AS change FROM paired GROUP BY policy)
    SELECT policy, count(*), sum(calls), sum(compactions), max(peak_context),
        round(sum(tokens_prompt) / greatest(sum(calls), 1)), sum(usd_calls), sum(summaries), sum(usd_summaries),
        sum(reads_again), sum(usd_read_again), sum(usd_total), sum(usd_cache_damage), sum(rules_broken),
        sum(calls_too_long), coalesce(any_value(change), 1) - 1,
        sqrt(sum((usd_total - change * bill) ** 2)) / nullif(sum(bill), 0)
    FROM paired JOIN ratio ON policy = name GROUP BY policy
"""  # noqa: S608 - of constants
_BY_POLICY = "SELECT policy, {figures} FROM replays WHERE policy <> 'recorded' GROUP BY policy"
_BY_SIZE = """
    WITH entries AS (SELECT policy, unnest({column}) AS entry FROM replays WHERE {column} IS NOT NULL)
    SELECT policy, entry.size, {figures} FROM entries GROUP BY ALL
"""
_DRIFT = """
    WITH cycled AS (
        SELECT policy, recall_fifth AS last, recall_once AS once FROM replays WHERE recall_once IS NOT NULL
    ),
    ratio AS (SELECT policy AS name, sum(last) / nullif(sum(once), 0) AS drift FROM cycled GROUP BY policy)
    SELECT policy, coalesce(any_value(drift), 1), sqrt(sum((last - drift * once) ** 2)) / nullif(sum(once), 0),
        count(*)
    FROM cycled JOIN ratio ON policy = name GROUP BY policy
"""
_MODELS = f"""
    WITH base AS (SELECT file, conversation, usd_total AS bill FROM replays WHERE policy = '{NONE}')
    SELECT coalesce(model, '') AS model_name, policy AS name, count(*), sum(calls), sum(usd_total),
        coalesce(sum(usd_total) / nullif(sum(bill), 0), 1) - 1
    FROM replays JOIN base USING (file, conversation) WHERE policy <> '{RECORDED}'
    GROUP BY model_name, name ORDER BY model_name, name <> '{NONE}', sum(usd_total), name
"""  # noqa: S608 - of constants
_RECORDED = f"""
    SELECT coalesce(model, '') AS model_name, count(*), sum(calls), sum(tokens_prompt), sum(tokens_cache_read),
        sum(tokens_output), sum(usd_total), sum(cache_misses), sum(usd_sent_again)
    FROM replays WHERE policy = '{RECORDED}' GROUP BY model_name ORDER BY sum(usd_total) DESC, model_name
"""  # noqa: S608 - of constants
_ERRORS = f"""
    SELECT any_value(error), count(*), min(file) FROM replays WHERE error IS NOT NULL
    GROUP BY regexp_replace(error, '[0-9][0-9,.]*', '#', 'g') ORDER BY count(*) DESC, min(file) LIMIT {REASONS}
"""  # noqa: S608 - of constants


class _Source:
    """The rows of a batch as a view of DuckDB, each file once."""

    def __init__(self, folder: ResultFolder) -> None:
        self._connection = needed("duckdb").connect()
        paths = [folder.results(entry) for entry in folder.entries]
        if not folder.storage.is_local:
            self._connection.register_filesystem(folder.storage.filesystem)
            paths = [folder.storage.filesystem.unstrip_protocol(path) for path in paths]
        self._connection.execute("CREATE TABLE replaced (task VARCHAR, file VARCHAR)")
        replaced = folder.replaced()
        if replaced:  # a run was ended before it took these rows out
            self._connection.executemany("INSERT INTO replaced VALUES (?, ?)", replaced)
        self._connection.execute(
            "CREATE TEMP TABLE replays AS SELECT * EXCLUDE filename FROM read_parquet(?, filename = true) AS results "
            "WHERE NOT EXISTS (SELECT 1 FROM replaced WHERE replaced.file = results.file "
            "AND parse_filename(results.filename, true) = replaced.task)",
            [paths],
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the table `replays`."""
        found_rows: list[tuple[Any, ...]] = self._connection.execute(query).fetchall()
        return found_rows


def _summaries(source: _Source, by_policy: Sequence[tuple[Any, ...]]) -> list[PolicySummary]:
    quality = {row[0]: _read(row[1:], METRICS) for row in source.rows(_BY_POLICY.format(figures=_figures(METRICS)))}
    sizes = _by_size(source.rows(_BY_SIZE.format(figures=_figures(AT_SIZES, "entry."), column="at_sizes")), AT_SIZES)
    cycles = {
        row[0]: _read(row[1:], tuple(CYCLES))
        for row in source.rows(_BY_POLICY.format(figures=_figures(tuple(CYCLES.values()))))
    }
    for policy, drift, error, count in source.rows(_DRIFT):
        cycles[policy]["drift"] = Figure(drift, error if count > 1 else None, count)
    summaries = []
    for policy, count, calls, *sums, change, error in sorted(by_policy, key=lambda row: (row[0] != NONE, row[11])):
        compactions, peak, mean, dollars, summary_count, summary, again, refetch, bill, damage, broken, over = sums
        summaries.append(PolicySummary(
            policy=policy, conversations=count, calls=int(calls), compactions=int(compactions), peak=peak,
            mean=int(mean), dollars=dollars, summaries=int(summary_count), summary=summary, refetches=int(again),
            refetch=refetch, bill=bill, damage=damage, broken=int(broken), over=int(over),
            change=Figure(change, error if count > 1 else None, count), quality=quality.get(policy, {}),
            at_sizes=sizes.get(policy, {}), cycles=cycles.get(policy, {}),
        ))  # fmt: skip
    return summaries


def _figures(names: Sequence[str], of: str = "") -> str:
    """Return the expressions for mean, standard error and count of some columns."""
    return ", ".join(
        f"avg({of}{name}), stddev_samp({of}{name}) / sqrt(count({of}{name})), count({of}{name})" for name in names
    )


def _read(values: Sequence[Any], names: Sequence[str]) -> Figures:
    """Return the figures of a row of such expressions; those without a value are left out."""
    threes = zip(names, values[::3], values[1::3], values[2::3], strict=True)
    return {name: Figure(mean, error if count > 1 else None, count) for name, mean, error, count in threes if count}


def _by_size(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> dict[str, dict[str, Figures]]:
    by_policy: dict[str, dict[str, Figures]] = {}
    for policy, size, *values in sorted(rows, key=lambda row: size_order(row[1])):
        by_policy.setdefault(policy, {})[size] = _read(values, names)
    return by_policy
