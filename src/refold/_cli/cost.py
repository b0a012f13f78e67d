"""`refold cost`: explains the cost of a recorded conversation, call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from refold._cli import options, replay_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold._cli.files import InputConversation
    from refold.replay._parallel import ReplaySettings
    from refold.replay._run import Run
    from refold.replay.cost import Bill, Explained
    from refold.replay.pricing import Tariff, UserPrices


@options.examples("refold cost session.jsonl", "refold cost ~/.claude/projects --json")
@click.command("cost")
@options.files
@options.reading
@options.model_option("sets the prices; by default the file's own")
@options.policies_option(default=options.ALL)
@options.window_option("by default the model's")
@replay_options.with_prices
@click.option("--calls", "each", is_flag=True, help="Show every call.")
@options.as_json
def command(
    files: tuple[str, ...], how: options.ReadOptions, model: str | None, names: tuple[str, ...], window: int | None,
    each: bool, as_json: bool, **prices: float | None,
) -> int:  # fmt: skip
    """Explain what a recorded conversation cost, and why.

    Shown are cache reads and writes, output, and cache misses with their causes.
    The costs come from the provider's usage reports in the file. The table also shows the cost of the same calls in
    refold's model of the prompt cache without compaction; the two should agree within 2 %. For one conversation it
    also shows the cost under each policy. For many conversations use `refold replay`.
    """
    from refold._cli import files as reading
    from refold._cli import show
    from refold.errors import UsageError
    from refold.replay._parallel import ReplaySettings

    policies = replay_options.selected_policies(names)
    settings = ReplaySettings(model, window, prices=replay_options.user_prices(prices), judge=False)
    explained: list[tuple[InputConversation, Tariff, Explained]] = []
    alone = len(reading.expanded(files)) == 1
    for talk in reading.conversations(files, how, "Pricing"):
        try:
            explained.append((talk, *_explained(talk, model, settings.prices)))
        except UsageError as error:
            if alone and how.select != "all":
                raise reading.placed(error, talk.label) from None
            show.note(f"refold: {reading.placed(error, talk.label)}")
    if not explained:
        raise UsageError("none of the conversations holds usage reports with known prices: name another file")
    one = alone and len(explained) == 1
    runs = _replayed(explained[0][0], policies, settings) if one and len(policies) > 1 else []
    if as_json:
        rows_as_json = [_emitted(*row) for row in explained]
        show.emit({**rows_as_json[0], "policies": [_policy_row(run, runs) for run in runs]} if one else rows_as_json)
    elif one:
        _one(*explained[0], model=model, each=each)
        _policies(runs, explained[0][2])
    else:
        _many(explained)
    return 0


def _explained(talk: InputConversation, model: str | None, prices: UserPrices) -> tuple[Tariff, Explained]:
    from refold.replay._timestamps import stamps
    from refold.replay.cost import explained
    from refold.replay.pricing import tariff_for

    recorded = talk.recorded
    cached = any(report.cache_read for report in recorded.usage)
    tariff = tariff_for(model or recorded.model, prices, cached=cached)
    timed = stamps(recorded, talk.source) if recorded.usage else []
    return tariff, explained(recorded, tariff, timed)


def _replayed(talk: InputConversation, names: tuple[str, ...], settings: ReplaySettings) -> list[Run]:
    """Return what each policy would have cost; nothing, with a note, where that cannot be told."""
    from refold._cli import show
    from refold.errors import UsageError
    from refold.replay._parallel import Job, done

    runs: list[Run] = []
    try:
        for name in show.progress(names, "Pricing policies"):
            runs += done(Job(talk.recorded, talk.label, talk.source, (name,)), settings)
    except UsageError as error:
        show.note(f"refold: no policies are priced: {error}")
        return []
    return runs


def _policy_row(run: Run, runs: Sequence[Run]) -> dict[str, Any]:
    return {
        "policy": run.policy, "bill": run.bill, "change": _change(run, runs), "compactions": len(run.compactions),
        "summaries": run.summaries, "summary": run.summary, "refetches": run.refetches, "refetch": run.refetch,
        "over": run.over, "pays_from": _pays_from(run),
    }  # fmt: skip


def _pays_from(run: Run) -> int | None:
    """Return after how many calls a compaction of a run has paid, by their plans; the median, None without any."""
    from statistics import median_low

    known = [each.pays_from for each in run.compactions if each.pays_from]
    return median_low(known) if known else None


def _change(run: Run, runs: Sequence[Run]) -> float:
    return run.bill / runs[0].bill - 1 if runs[0].bill else 0.0


def _emitted(talk: InputConversation, tariff: Tariff, explained: Explained) -> dict[str, Any]:
    import msgspec

    fields = msgspec.structs.asdict(explained)
    return {"file": talk.label, "model": talk.recorded.model, "tariff": tariff, **fields}


def _one(talk: InputConversation, tariff: Tariff, explained: Explained, *, model: str | None, each: bool) -> None:
    from refold._cli import show

    rules = tariff.rules
    own = talk.recorded.model or "not named in the file"
    dated = f", {tariff.dated}" if tariff.dated else ""
    show.lines(
        [
            ("file", show.clean(f"{talk.label} ({talk.recorded.kind})")),
            ("model", own if model in (None, own) else f"{own}, taken as {model}"),
            ("prices", f"US$ {tariff.input:g} input, {tariff.output:g} output, {tariff.cache_read:g} cache read, "
                       f"{tariff.cache_write:g} cache write per million tokens ({tariff.source}{dated})"),
            ("cache", f"{rules.name}: from {rules.least:,} tokens, kept for {_life(tariff)}"),
            ("calls", f"{explained.bill.calls:,}"),
        ]
    )  # fmt: skip
    _bill(explained.bill)
    _breaks(explained)
    _check(explained)
    if each:
        _calls(explained)


def _bill(bill: Bill) -> None:
    from refold._cli import show

    tokens, spent = bill.tokens, bill.spent
    parts = (
        ("read from the cache", tokens.read, spent.read),
        ("put into the cache", tokens.written, spent.written),
        ("other input", tokens.fresh, spent.fresh),
        ("output", tokens.output, spent.output),
    )
    most = max((int(dollars * 1_000_000) for _, _, dollars in parts), default=0)
    rows = [
        (name, show.number(count), _usd(dollars), show.share(dollars, spent.dollars),
         show.bar(int(dollars * 1_000_000), most))
        for name, count, dollars in parts
    ]  # fmt: skip
    rows.append(("in all", show.number(tokens.prompt + tokens.output), _usd(spent.dollars), "", ""))
    show.table(("what", ">tokens", ">US$", ">share", "#"), rows, title="Bill", styles=["", "", "", "", "bold"])


def _breaks(explained: Explained) -> None:
    from refold._cli import show

    if not explained.breaks:
        cached = explained.bill.tokens.read or explained.bill.tokens.written
        show.line(
            "\nThe cache never broke." if cached else "\nThe file tells of no cache: every call paid for all input."
        )
        return
    causes: dict[str, list[Any]] = {}
    for each in explained.breaks:
        causes.setdefault(each.cause, []).append(each)
    rows = [
        (str(len(some)), show.number(sum(each.tokens for each in some)), _usd(sum(each.dollars for each in some)),
         show.share(sum(each.dollars for each in some), explained.bill.spent.dollars), cause)
        for cause, some in sorted(causes.items(), key=lambda item: -sum(each.dollars for each in item[1]))
    ]  # fmt: skip
    headers = (">breaks", ">tokens sent again", ">US$ more", ">share", "*cause")
    show.table(headers, rows, title="Breaks of the cache")


def _policies(runs: Sequence[Run], explained: Explained) -> None:
    """Show what each policy would have cost, by the rules alone, beside doing nothing and the recording."""
    from refold._cli import show

    if not runs:
        return
    least = min(run.bill for run in runs)
    paid = explained.bill.spent.dollars
    change = f"{paid / runs[0].bill - 1:+.1%}" if runs[0].bill else ""
    rows = [("as recorded", _usd(paid), change, "", "", "", "", "")]
    rows += [
        (run.policy, _usd(run.bill), f"{_change(run, runs):+.1%}", show.number(len(run.compactions)),
         show.number(_pays_from(run) or 0),
         _times(run.summary, run.summaries), _times(run.refetch, run.refetches), show.number(run.over))
        for run in runs
    ]  # fmt: skip
    headers = ("*policy", ">US$", ">change", ">compactions", ">pay from call", ">summaries", ">read again", ">too long")
    styles = ["", *("bold green" if run.bill == least else "" for run in runs)]
    show.table(headers, rows, title="What each policy would have cost, in US$", styles=styles)
    if not (explained.bill.tokens.read or explained.bill.tokens.written):
        show.line("The recording used no cache; the policies are priced as if the provider's had been used.")


def _check(explained: Explained) -> None:
    from refold._cli import show

    paid = explained.bill.spent.dollars
    rows = [
        ("the file's own figures", _usd(paid), ""),
        ("simulated, with the file's breaks", _usd(explained.simulated.spent.dollars), f"{explained.difference:+.2%}"),
        ("simulated, by the rules alone", _usd(explained.unbroken.spent.dollars),
         f"{explained.unbroken.spent.dollars / paid - 1:+.2%}" if paid else ""),
    ]  # fmt: skip
    show.table(("*bill", ">US$", ">difference"), rows, title="The same calls by the model of the cache")
    for reason in explained.reasons:
        show.line(f"  {reason}")


def _calls(explained: Explained) -> None:
    from refold._cli import show

    rows = [
        (str(place + 1), str(call.covers), show.number(call.tokens.prompt), show.number(call.tokens.read),
         show.number(call.tokens.written), show.number(call.tokens.output), _usd(call.spent.dollars),
         f"{call.since:,.0f}" if call.since is not None else "", call.broke)
        for place, call in enumerate(explained.calls)
    ]  # fmt: skip
    headers = (
        *(">call", ">messages", ">prompt", ">read", ">written", ">output", ">US$", ">seconds since"),
        "*broke",
    )
    show.table(headers, rows, title="Calls")


def _many(explained: Sequence[tuple[InputConversation, Tariff, Explained]]) -> None:
    from refold._cli import show

    rows = [
        (show.clean(talk.label), talk.recorded.model or "", show.number(each.bill.calls),
         show.number(each.bill.tokens.prompt), show.share(each.bill.tokens.read, each.bill.tokens.prompt),
         str(len(each.breaks)), _usd(sum(gap.dollars for gap in each.breaks)), _usd(each.bill.spent.dollars),
         f"{each.difference:+.1%}")
        for talk, _, each in explained
    ]  # fmt: skip
    total = sum(each.bill.spent.dollars for _, _, each in explained)
    lost = sum(gap.dollars for _, _, each in explained for gap in each.breaks)
    calls = sum(each.bill.calls for _, _, each in explained)
    rows.append((f"total of {len(explained):,}", "", show.number(calls), "", "", "", _usd(lost), _usd(total), ""))
    headers = ("*file", "model", ">calls", ">input", ">cached", ">breaks", ">US$ by breaks", ">US$", ">simulated")
    show.table(headers, rows, styles=[*[""] * len(explained), "bold"])


def _usd(dollars: float) -> str:
    return f"{dollars:,.4f}" if abs(dollars) < 1 else f"{dollars:,.2f}"


def _times(dollars: float, count: int) -> str:
    return f"{dollars:,.2f} ({count:,})" if count else "0"


def _life(tariff: Tariff) -> str:
    short, long = tariff.rules.life, tariff.rules.life_long
    return f"{_time(short)} or {_time(long)}" if long > short else _time(short)


def _time(seconds: int) -> str:
    return f"{seconds // 3600} h" if seconds >= 3600 else f"{seconds // 60} min"
