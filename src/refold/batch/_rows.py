"""The rows of one transcript: what each policy costs and preserves, what was really paid, or the error."""

from __future__ import annotations

from hashlib import blake2b
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from refold import transcripts
from refold.batch._schema import RECORDED
from refold.batch._storage import content_of
from refold.errors import UsageError
from refold.replay._parallel import Job, done
from refold.replay._summary import limits_of, summed
from refold.replay._timestamps import stamps
from refold.replay.cost import explained
from refold.replay.pricing import tariff_for
from refold.transcripts._selection import selected, with_format

if TYPE_CHECKING:
    from refold.batch._settings import BatchSettings
    from refold.replay._run import Run
    from refold.replay._summary import PolicySummary
    from refold.replay.pricing import CallTokens, Spent
    from refold.transcripts import RecordedConversation

__all__ = ["error_row", "rows_of"]

LONGEST = 300  # characters of an error

Row = dict[str, Any]


def rows_of(path: str, settings: BatchSettings) -> list[Row]:
    """Return the rows of a file: one for each conversation and policy, or one with the error.

    Nothing is raised: a file that cannot be read or replayed must not stop the others.
    """
    try:
        content = content_of(path)
    except OSError as error:
        return [error_row(path, f"cannot be read: {error.strerror or type(error).__name__}")]
    except Exception as error:  # a storage's own errors
        return [error_row(path, f"cannot be read: {type(error).__name__}: {error}")]
    about = {"file": clean(path), "digest": digest_of(content), "bytes": len(content)}
    try:
        conversations = transcripts.read(content, lenient=settings.lenient, kind=settings.kind)
        chosen = selected(conversations, settings.select, path)
        rows: list[Row] = []
        for recorded in chosen:
            rows += _rows_of_conversation(about, recorded, content, settings)
    except Exception as error:
        return [about | {"error": _reason(error, path)}]
    return rows


def error_row(path: str, reason: str) -> Row:
    """Return the row of a file that gave no figure."""
    return {"file": clean(path), "error": clean(reason)}


def clean(text: str) -> str:
    """Return text as UTF-8 can hold it: names of files may contain other bytes, which are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def digest_of(content: bytes) -> str:
    """Return the hash by which a file's content is known again."""
    return blake2b(content, digest_size=16).hexdigest()


def _reason(error: Exception, path: str) -> str:
    """Return why a file gave no figure; of an unexpected error only type and place, as its text may quote the file."""
    if isinstance(error, UsageError):
        text = str(error).removeprefix(f"{path}: ").replace("<bytes>: ", "").replace("<bytes>:", "line ")
        text = clean(text.replace("read leniently", "read with --lenient"))
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    frames = extract_tb(error.__traceback__)
    place = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"unexpected {type(error).__name__}{place}: please report it"


def _rows_of_conversation(
    about: Row, recorded: RecordedConversation, content: bytes, settings: BatchSettings
) -> list[Row]:
    about = about | {
        "conversation": clean(recorded.name), "kind": recorded.kind, "format": recorded.format,
        "model": clean(settings.model or recorded.model or "") or None, "messages": len(recorded.messages),
    }  # fmt: skip
    path = about["file"]
    try:
        shaped = with_format(recorded, settings.format, path)
        runs = done(Job(shaped, path, content, settings.names), settings.replay)
        paid = _paid(shaped, content, settings)
    except Exception as error:
        return [about | {"error": _reason(error, path)}]
    limits = limits_of([runs])
    rows = [about | _of_policy(run, summary) for run, summary in zip(runs, summed([runs]), strict=True)]
    rows[0]["limits"] = [
        {"size": size, **{name: figure.value for name, figure in figures.items()}} for size, figures in limits.items()
    ] or None
    return [*rows, *([about | paid] if paid else [])]


def _paid(recorded: RecordedConversation, content: bytes, settings: BatchSettings) -> Row:
    """Return what a conversation really cost; nothing where the file contains no usage reports."""
    if not recorded.usage:
        return {}
    cached = any(report.cache_read for report in recorded.usage)
    tariff = tariff_for(settings.model or recorded.model, settings.prices, cached=cached)
    found_costs = explained(recorded, tariff, stamps(recorded, content))
    bill, prompts = found_costs.bill, [call.tokens.prompt for call in found_costs.calls]
    return {
        "policy": RECORDED, "calls": bill.calls, "mean_context": round(sum(prompts) / len(prompts)),
        "peak_context": max(prompts), **_tokens(bill.tokens), **_dollars(bill.spent), "usd_total": bill.spent.dollars,
        "cache_misses": len(found_costs.breaks), "tokens_sent_again": sum(each.tokens for each in found_costs.breaks),
        "usd_sent_again": sum(each.dollars for each in found_costs.breaks),
    }  # fmt: skip


def _of_policy(run: Run, summary: PolicySummary) -> Row:
    cycles = run.cycles
    row: Row = {
        "policy": run.policy, "window": run.window, "calls": len(run.context), "compactions": len(run.compactions),
        "mean_context": run.mean, "peak_context": run.peak, **_tokens(run.tokens), **_dollars(run.spent),
        "summaries": run.summaries, "usd_summaries": run.summary, "reads_again": run.refetches,
        "tokens_read_again": run.refetch_tokens, "usd_read_again": run.refetch, "usd_total": run.bill,
        "usd_cache_damage": run.damage, "calls_too_long": run.over, "rules_broken": run.broken,
    }  # fmt: skip
    row |= {name: figure.value for name, figure in summary.quality.items()}
    row["at_sizes"] = [
        {"size": size, **{name: figure.value for name, figure in figures.items()}}
        for size, figures in summary.at_sizes.items()
    ] or None
    if cycles is not None:
        row["cycles_fit"] = float(bool(cycles.planted))
        if cycles.planted:
            row |= {
                "planted_once": cycles.planted[0], "planted": cycles.planted[-1], "own": cycles.own,
                "cycles_valid": float(not cycles.broken), "recall_once": cycles.once, "recall_fifth": cycles.last,
            }  # fmt: skip
    return row


def _tokens(tokens: CallTokens) -> Row:
    return {
        "tokens_prompt": tokens.prompt, "tokens_cache_read": tokens.read, "tokens_cache_write": tokens.written,
        "tokens_input": tokens.fresh, "tokens_output": tokens.output,
    }  # fmt: skip


def _dollars(spent: Spent) -> Row:
    return {
        "usd_cache_read": spent.read, "usd_cache_write": spent.written, "usd_input": spent.fresh,
        "usd_output": spent.output, "usd_calls": spent.dollars,
    }  # fmt: skip
