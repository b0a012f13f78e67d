"""Options that `refold replay`, `refold batch` and `refold cost` share: what to replay under, and prices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from refold.replay.pricing import UserPrices

ALL = options.ALL
R = TypeVar("R")


def with_prices(function: Callable[..., R]) -> Callable[..., R]:
    """Add the options on prices; the command gets them one by one, for `user_prices`."""
    for name, what in (
        ("cache-write", "tokens written to the cache"),
        ("cache-read", "tokens read from the cache"),
        ("output", "tokens of output"),
        ("input", "tokens of input"),
    ):
        function = click.option(
            f"--price-{name}", type=click.FloatRange(min=0), metavar="USD",
            help=f"US dollars for a million {what}; by default from the table of models.",
        )(function)  # fmt: skip
    return function


def with_settings(*, policy: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add the options that say what transcripts are replayed under; `policy` is the one by default."""

    def decorated(function: Callable[..., R]) -> Callable[..., R]:
        for option in reversed(
            (
                options.policies_option(default=policy),
                options.model_option("sets prices, window and tokenizer; by default the file's own"),
                options.window_option("by default the model's"),
                click.option("--size", "sizes", multiple=True, type=options.Goal(), default=("10%", "25%", "50%"),
                             show_default=True, help="Size at which the policies are compared, in tokens or as a "
                             "share of the history; can be repeated."),
                click.option("--goal", type=options.Goal(),
                             help="Size at which compaction may stop; by default the policy's own."),
                with_prices,
            )
        ):  # fmt: skip
            function = option(function)
        return function

    return decorated


def user_prices(prices: dict[str, Any]) -> UserPrices:
    """Return the prices the user named."""
    from refold.replay.pricing import UserPrices

    return UserPrices(**{name.removeprefix("price_"): value for name, value in prices.items()})


def selected_policies(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the policies to replay, doing nothing first.

    Raises:
        UnknownPolicy: no such policy.
    """
    from refold import policies
    from refold.replay._run import NONE

    wanted = [each for name in names for each in (policies.names() if name == ALL else (name,))]
    for name in wanted:
        if name != NONE:
            options.policy_of(name)
    return (NONE, *(name for name in dict.fromkeys(wanted) if name != NONE))
