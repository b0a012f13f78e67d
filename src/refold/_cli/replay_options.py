"""Options that `refold replay` and `refold cost` share: prices and the policies to replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from refold._cli import options

if TYPE_CHECKING:
    from refold.replay.pricing import UserPrices

ALL = "all"
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
            help=f"US dollars for a million {what}; from the table of models by default.",
        )(function)  # fmt: skip
    return function


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
