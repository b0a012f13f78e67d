"""`refold models`: windows, caps and prices of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from refold._cli import completers, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from refold.models._catalog import CatalogMatch, Prices, Window

ALL = 1_000_000


@options.examples("refold models gpt-5", "refold models claude --limit 50")
@click.command("models")
@click.argument("model", required=False, metavar="[MODEL]", shell_complete=completers.models)
@click.option("--provider", metavar="NAME", help="Provider that serves the model; some reduce the window.")
@options.limit_option()
@options.as_json
def command(model: str | None, provider: str | None, limit: int, as_json: bool) -> None:
    """Show window, caps and prices of a model.

    Without MODEL, the number of known models is shown. If MODEL is a part of an id, all models whose id contains it are
    shown.
    """
    from refold._cli import show
    from refold._text.suggestions import did_you_mean
    from refold.errors import UnknownModel, UsageError
    from refold.models import _catalog as catalog
    from refold.models._names import provider_key

    if provider is not None and provider_key(provider) not in (providers := catalog.providers()):
        known = f"{did_you_mean(provider, providers)}; there are {', '.join(sorted(providers))}"
        raise UsageError(f"there is no provider {provider!r}{known}")
    if model is None:
        _all(as_json)
        return
    window, prices = catalog.window(model, provider), catalog.prices(model, provider)
    matches = catalog.find(model, ALL)
    guess = window.source == "default"
    if guess and not matches:
        near = did_you_mean(model, catalog.known())
        raise UnknownModel(f"no table knows model {model}{near}: give an id that {catalog.listing(model)} shows")
    if as_json:
        show.emit({"model": model, "window": window, "prices": prices, "matching": matches[:limit]})
        return
    if not guess:
        _one(model, window, prices)
    others = [each for each in matches if each.model != model]
    if others:
        _matching(others, limit)


def _one(model: str, window: Window, prices: Prices | None) -> None:
    from refold._cli import show

    cap = {0: "none stated"}
    show.lines(
        [
            ("model", model),
            ("window", f"{window.window:,} tokens"),
            ("input cap", cap.get(window.input_cap, f"{window.input_cap:,} tokens")),
            ("output cap", cap.get(window.output_cap, f"{window.output_cap:,} tokens")),
            ("source", f"{window.source} (assumed)" if window.assumed else window.source),
            ("prices", _prices_as_text(prices)),
        ]
    )


def _prices_as_text(prices: Prices | None) -> str:
    if prices is None:
        return "none in the table"
    cache = [
        f"{amount:g} {name}"
        for amount, name in ((prices.cache_read, "cache read"), (prices.cache_write, "cache write"))
        if amount is not None
    ]
    parts = ", ".join([f"{prices.input:g} input", f"{prices.output:g} output", *cache])
    return f"US$ {parts} per million tokens ({prices.dated}, {prices.source})"


def _matching(matches: Sequence[CatalogMatch], limit: int) -> None:
    from refold._cli import show

    headers = ("*model", ">window", ">input cap", ">output cap", ">US$/M in", ">out")
    rows = [
        (each.model, show.number(each.window.window), _cap(each.window.input_cap), _cap(each.window.output_cap),
         f"{each.prices.input:g}" if each.prices else "", f"{each.prices.output:g}" if each.prices else "")
        for each in matches[:limit]
    ]  # fmt: skip
    more = f", the {limit} shortest names" if len(matches) > limit else ""
    show.table(
        headers, rows, title=f"{show.many(len(matches), 'model')} match{'es' if len(matches) == 1 else ''}{more}"
    )


def _cap(tokens: int) -> str:
    return f"{tokens:,}" if tokens else ""


def _all(as_json: bool) -> None:
    from refold._cli import show
    from refold.models import _catalog as catalog

    matches = catalog.find("", ALL)
    dated = next((each.prices.dated for each in matches if each.prices), "")
    priced = sum(each.prices is not None for each in matches)
    providers = sorted(catalog.table().hosts)
    if as_json:
        show.emit({"models": len(matches), "priced": priced, "dated": dated, "providers": providers})
        return
    show.lines(
        [
            ("models", f"{len(matches):,}, {priced:,} with prices"),
            ("dated", dated),
            ("providers", ", ".join(providers)),
            ("look up", "refold models ID, or a part of one"),
        ]
    )
