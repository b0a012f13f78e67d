"""What a recorded conversation cost: each call by the provider's own figures, why its cache broke, and the check.

The check makes the same calls again with the model of the cache, nothing compacted, and compares: a simulation that
misses the past says nothing about what another policy would have cost. Breaks of the cache are events of the past that
no rule foresees (a client that changed its request, an entry the provider dropped), so the check takes them from the
file; what the rules alone would have charged is given beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from refold.errors import UsageError
from refold.replay._timestamps import Stamp
from refold.replay.pricing import CallTokens, Spent, Tariff

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from refold.transcripts import RecordedConversation

__all__ = ["Bill", "Break", "Explained", "PricedCall", "explained", "simulated"]

SLACK = 0.05  # of what could have been read: providers cut at block and step, which is no break
CLOSE = 0.02  # a simulated bill this near to the real one is right
SMALLER = 0.95  # a prompt below this share of the one before had something taken out


class PricedCall(Struct, frozen=True):
    """One call: how many leading messages it sent, its tokens, what it cost, seconds since the one before."""

    covers: int
    tokens: CallTokens
    spent: Spent
    since: float | None = None
    broke: str = ""


class Bill(Struct, frozen=True):
    """Calls added up: tokens and US dollars."""

    calls: int
    tokens: CallTokens
    spent: Spent


class Break(Struct, frozen=True):
    """A call that read less from the cache than the one before had left there: why, and the tokens sent again."""

    call: int
    cause: str
    tokens: int
    dollars: float


class Explained(Struct, frozen=True):
    """A past bill: its calls, the sum, the breaks of the cache, the simulated bill, and why that differs.

    `simulated` has the file's breaks, `unbroken` is by the rules alone; `difference` is by what share the simulated
    bill is above the real one.
    """

    calls: tuple[PricedCall, ...]
    bill: Bill
    breaks: tuple[Break, ...]
    simulated: Bill
    unbroken: Bill
    difference: float
    reasons: tuple[str, ...] = ()


def explained(recorded: RecordedConversation, tariff: Tariff, stamps: Sequence[Stamp] = ()) -> Explained:
    """Explain what a recorded conversation cost.

    `stamps` are those of `refold.replay._timestamps.stamps`; without them an expired cache looks like a changed
    request.

    Raises:
        UsageError: the file holds no usage report.
    """
    if not recorded.usage:
        raise UsageError(
            f"{recorded.path or recorded.name}: it holds no usage reports, so what was paid cannot be told: "
            "`refold replay` estimates it"
        )
    known_stamps = list(stamps) or [Stamp()] * len(recorded.usage)
    cached = any(report.cache_read or report.cache_write for report in recorded.usage)
    calls: list[PricedCall] = []
    breaks: list[Break] = []
    for place, report in enumerate(recorded.usage):
        tokens = CallTokens(report.prompt, report.cache_read, report.cache_write, report.completion)
        since = _since(known_stamps, place)
        cause = _cause(recorded, place, known_stamps, tariff) if place and cached else ""
        calls.append(
            PricedCall(report.covers, tokens, tariff.spent(tokens, long=known_stamps[place].long), since, cause)
        )
        if cause:
            again = max(min(recorded.usage[place - 1].prompt, report.prompt) - report.cache_read, 0)
            price = tariff.spent(
                CallTokens(again, 0, again if report.cache_write else 0), long=known_stamps[place].long
            )
            price_if_cached = tariff.spent(CallTokens(again, again))
            breaks.append(Break(place, cause, again, price.dollars - price_if_cached.dollars))
    broken = {each.call: recorded.usage[each.call].cache_read for each in breaks}
    by_rules = simulated(recorded, tariff, known_stamps, broken) if cached else calls
    bill, again_bill = _sum(calls), _sum(by_rules)
    difference = again_bill.spent.dollars / bill.spent.dollars - 1 if bill.spent.dollars else 0.0
    reasons = _reasons(calls, by_rules, tariff) if abs(difference) > CLOSE else ()
    unbroken = _sum(simulated(recorded, tariff, known_stamps))
    return Explained(tuple(calls), bill, tuple(breaks), again_bill, unbroken, difference, reasons)


def simulated(
    recorded: RecordedConversation,
    tariff: Tariff,
    stamps: Sequence[Stamp] = (),
    broken: Mapping[int, int] | None = None,
) -> list[PricedCall]:
    """Make the calls of a recording again with the model of the cache: each reads its longest live beginning.

    The sizes of the prompts are the provider's. What it says of reads and writes is not looked at, but for the first
    call's read, which earlier conversations left behind, and for `broken`: what lived on at the calls that broke.
    Where the session compacted itself, only the fixed part lives on.
    """
    known_stamps = list(stamps) or [Stamp()] * len(recorded.usage)
    fixed = recorded.usage[0].cache_read if recorded.usage else 0
    calls: list[PricedCall] = []
    live = fixed
    for place, report in enumerate(recorded.usage):
        since = _since(known_stamps, place)
        if place and (_compacted(recorded, place) or report.prompt < recorded.usage[place - 1].prompt * SMALLER):
            live = min(live, fixed)
        if since is not None and since > _life(known_stamps[place - 1], tariff):
            live = 0
        live = (broken or {}).get(place, live)
        read = _cut(min(live, report.prompt), tariff)
        written = report.prompt - read if tariff.writes_apart and report.prompt >= tariff.rules.least else 0
        tokens = CallTokens(report.prompt, read, written, report.completion)
        calls.append(PricedCall(report.covers, tokens, tariff.spent(tokens, long=known_stamps[place].long), since))
        live = report.prompt
    return calls


def _cut(tokens: int, tariff: Tariff) -> int:
    """Return what can be read of a live beginning: nothing below the minimum, whole steps above."""
    rules = tariff.rules
    return tokens // rules.step * rules.step if tokens >= rules.least else 0


def _life(stamp: Stamp, tariff: Tariff) -> int:
    return tariff.rules.life_long if stamp.long else tariff.rules.life


def _since(stamps: Sequence[Stamp], place: int) -> float | None:
    now, before = stamps[place].seconds, stamps[place - 1].seconds if place else None
    return now - before if now is not None and before is not None else None


def _compacted(recorded: RecordedConversation, place: int) -> bool:
    before, now = recorded.usage[place - 1].covers, recorded.usage[place].covers
    return any(before < boundary <= now for boundary in recorded.boundaries)


def _cause(recorded: RecordedConversation, place: int, stamps: Sequence[Stamp], tariff: Tariff) -> str:
    """Say why a call read less than the one before had left in the cache; nothing where it did not."""
    before, now = recorded.usage[place - 1], recorded.usage[place]
    left = _cut(before.prompt, tariff)
    if now.cache_read >= left * (1 - SLACK):
        return ""
    since = _since(stamps, place)
    if _compacted(recorded, place):
        return "the session compacted itself"
    if stamps[place].model and stamps[place - 1].model and stamps[place].model != stamps[place - 1].model:
        return f"another model ({stamps[place - 1].model} before)"
    if now.prompt < before.prompt * SMALLER:
        return "something was taken out of the request"
    if since is not None and since > _life(stamps[place - 1], tariff):
        return f"expired after {_life(stamps[place - 1], tariff) // 60} minutes without a call"
    if now.cache_read:
        return "changed within the request, or only an older entry was found"
    return "nothing was found: changed at the beginning, or dropped by the provider"


def _reasons(calls: Sequence[PricedCall], by_rules: Sequence[PricedCall], tariff: Tariff) -> tuple[str, ...]:
    """Say where a simulated bill differs by more than 2 %."""
    missed = [guess.tokens.read - call.tokens.read for call, guess in zip(calls, by_rules, strict=True)]
    large = [tokens for tokens, call in zip(missed, calls, strict=True) if abs(tokens) > call.tokens.prompt * SLACK]
    over, under = [tokens for tokens in large if tokens > 0], [-tokens for tokens in large if tokens < 0]
    reasons = []
    if over:
        reasons.append(f"{len(over):,} calls read {sum(over):,} tokens less than was left")
    if under:
        reasons.append(f"{len(under):,} calls read {sum(under):,} tokens that should have been gone by the rules")
    rest = sum(missed) - sum(large)
    if rest:
        reasons.append(f"{abs(rest):,} tokens are {'less' if rest > 0 else 'more'} read in small differences")
    written = sum(guess.tokens.written - call.tokens.written for call, guess in zip(calls, by_rules, strict=True))
    if tariff.writes_apart and written:
        reasons.append(f"{written:,} tokens more are written in the simulation")
    if not tariff.rules.sure:
        reasons.append(f"{tariff.rules.name}: the provider promises no cache")
    return tuple(reasons)


def _sum(calls: Sequence[PricedCall]) -> Bill:
    tokens = [call.tokens for call in calls]
    total = CallTokens(
        sum(each.prompt for each in tokens), sum(each.read for each in tokens),
        sum(each.written for each in tokens), sum(each.output for each in tokens),
    )  # fmt: skip
    return Bill(len(calls), total, sum((call.spent for call in calls), Spent()))
