"""Budgets: the context window, the reserve for the response, and limits on either."""

from __future__ import annotations

from math import sqrt
from typing import TypeAlias

from msgspec import Struct, field

from refold.core.token_units import ReportedTokens
from refold.errors import BadBudget

__all__ = [
    "Breakdown",
    "Budget",
    "Exactly",
    "LeastCost",
    "Limit",
    "Never",
    "Reserve",
    "Share",
    "ShareReserve",
    "TableReserve",
    "Usage",
    "WhenItPays",
]


MESSAGES_ONLY_CAP = 0.35  # of what system prompt and tools leave


class Breakdown(Struct, frozen=True, omit_defaults=True):  # W01, N01
    """The parts of a request, in tokens. `system` is a system prompt apart from the messages.

    `prompt` is a prompt about to be sent that is not among the messages yet, `files` what is attached to it.
    `kinds` and `roles` split `messages` by kind of part and by role, if that was requested.
    """

    system: int = 0
    tools: int = 0
    messages: int = 0
    prompt: int = 0
    files: int = 0
    kinds: dict[str, int] = {}
    roles: dict[str, int] = {}

    @property
    def overhead(self) -> int:
        """Everything that no compaction of messages can shrink."""
        return self.system + self.tools + self.prompt + self.files

    @property
    def total(self) -> int:
        """All of it."""
        return self.overhead + self.messages


class Budget(Struct, frozen=True, omit_defaults=True):
    """A context window and the part of it reserved for the response, in tokens.

    Raises:
        BadBudget: a window of zero or less, or a reserve that is negative or leaves nothing.

    Added in 0.1.0.
    """

    window: int
    output_reserve: int = 0

    def __post_init__(self) -> None:
        if self.window <= 0:
            raise BadBudget(f"a context window of {self.window:,} tokens cannot hold anything; give a positive number")
        if not 0 <= self.output_reserve < self.window:
            raise BadBudget(
                f"an output reserve of {self.output_reserve:,} tokens does not fit into a window of {self.window:,}; "
                "lower the reserve or name a larger window"
            )

    @property
    def input(self) -> int:  # W14
        """The input budget: what a request may hold."""
        return self.window - self.output_reserve


class Reserve(Struct, frozen=True, omit_defaults=True):
    """The part of a window reserved for the response: the given maximum, or a share of the window up to a cap."""

    share: float = 0.35  # N10
    cap: int = 64_000  # N10
    given_cap: int | None = None

    def __post_init__(self) -> None:
        if min(self.share, self.cap, self.given_cap or 0) < 0:
            raise BadBudget(f"{self} holds a negative number: give a share of the window and numbers of tokens")

    def __call__(self, window: int, max_output: int | None) -> int:
        """Return the reserve in tokens, always leaving at least one token for input."""
        if max_output is None:
            reserve = min(self.cap, int(window * self.share))
        else:
            reserve = max_output if self.given_cap is None else min(max_output, self.given_cap)
        return max(0, min(reserve, window - 1))

    def of_model(self, window: int, max_output: int | None, largest: int) -> int:
        """Return the reserve for a model whose largest response is known (0: it is not), where none is given."""
        return self(window, max_output if max_output is not None else largest or None)


class ShareReserve(Reserve, frozen=True, omit_defaults=True):  # O02
    """A reserve of a share of the window, also for a model whose largest response is larger than that."""

    def of_model(self, window: int, max_output: int | None, largest: int) -> int:
        """Return the reserve: a given maximum counts, the model's largest response does not."""
        return self(window, max_output)


class TableReserve(Reserve, frozen=True, omit_defaults=True):  # W14
    """A reserve that a table has for each model (`refold.models`); for a model that is not in it, as `Reserve`."""

    table: str = ""


class Share(Struct, frozen=True, omit_defaults=True, tag="share"):  # L01
    """A share of the input budget or of the window, minus a constant; `inclusive` says whether reaching it counts.

    `floor` is a share that the constant never takes it below: on a small window 13,000 tokens are all there is.
    `min_message_share` is the least share of what system prompt and tools leave that a goal has for messages, `cap` the
    share of the base up to which it rises for that: 60,000 tokens of tools would else leave nothing under half of a
    window.

    Added in 0.1.0.
    """

    share: float
    of_window: bool = False
    minus: int = 0
    inclusive: bool = False
    floor: float = 0.0
    min_message_share: float = field(default=0.0, name="free")
    cap: float = field(default=0.72, name="most")

    def __post_init__(self) -> None:
        if min(self.share, self.minus, self.floor, self.min_message_share, self.cap) < 0:
            raise BadBudget(f"{self} holds a negative number: shares are from 0 to 1, `minus` is a number of tokens")

    def tokens(self, budget: Budget, fixed: int = 0) -> int:
        """Return the limit in tokens under a budget; `fixed` are those that no compaction shrinks."""
        whole = int(self._exact(budget))
        if not self.min_message_share:
            return whole
        least = fixed + int((budget.input - fixed) * self.min_message_share)
        return max(whole, min(least, int(budget.input * self.cap)))

    def reached(self, tokens: int, budget: Budget, fixed: int = 0) -> bool:
        """Tell whether a size has reached the limit, on the inclusive or the exclusive reading of it."""
        exact = self._exact(budget)
        return tokens >= exact if self.inclusive else tokens > exact

    def _exact(self, budget: Budget) -> float:
        base = budget.window if self.of_window else budget.input
        return max(base * self.share - self.minus, base * self.floor)


class Exactly(Struct, frozen=True, omit_defaults=True, tag="exactly"):  # V01
    """A number of tokens, whatever the window; with `messages_only` of messages, without system prompt and tools.

    Messages then have at most 35 % of what those leave: a goal near to a trigger would soon be due again.

    Added in 0.1.0.
    """

    count: int
    inclusive: bool = False
    messages_only: bool = field(default=False, name="beside")

    def __post_init__(self) -> None:
        if self.count < 0:
            raise BadBudget(f"a limit of {self.count:,} tokens is below nothing: give a number of tokens")

    def tokens(self, budget: Budget, fixed: int = 0) -> int:
        """Return the limit in tokens."""
        if not self.messages_only:
            return self.count
        return fixed + min(self.count, int((budget.input - fixed) * MESSAGES_ONLY_CAP))

    def reached(self, tokens: int, budget: Budget, fixed: int = 0) -> bool:
        """Tell whether a size has reached the limit."""
        limit = self.tokens(budget, fixed)
        return tokens >= limit if self.inclusive else tokens > limit


class LeastCost(Struct, frozen=True, omit_defaults=True, tag="least_cost"):
    """The size at which a compaction costs least over a long run, never above a share `most` of the input budget.

    Prices are shares of the price of input: `read` of a cached token, `write` of one put into the cache. A request has
    `compacted_size` tokens of messages after a compaction and grows by `growth` a call; `refetch_tokens` is what is
    read again after a compaction, in tokens of input. The bill with a compaction every L calls is least at
    L = sqrt(2F / (read * growth)), F = (write - read) * compacted_size + refetch_tokens: messages then have
    compacted_size + growth * L tokens.

    Raises:
        BadBudget: a price that is not above zero, or a growth that is not.

    Added in 0.1.0.
    """

    read: float = 0.10
    write: float = 1.25
    compacted_size: int = field(default=30_000, name="kept")
    growth: int = 1_000
    # three calls that read 50,000 cached tokens, and 10,000 tokens of what they bring
    refetch_tokens: int = field(default=25_000, name="again")
    most: float = 0.8

    def __post_init__(self) -> None:
        if min(self.read, self.write, self.growth) <= 0:
            raise BadBudget("prices and growth are above zero; where nothing is cached, read and write are 1.0")

    @property
    def size(self) -> int:
        """The size of the messages in tokens, whatever the window."""
        once = max(self.write - self.read, 0.0) * self.compacted_size + self.refetch_tokens
        return self.compacted_size + int(sqrt(2 * self.growth * once / self.read))

    def tokens(self, budget: Budget, fixed: int = 0) -> int:
        """Return the limit in tokens under a budget; `fixed` are those of system prompt and tools."""
        return min(self.size + fixed, int(budget.input * self.most))

    def reached(self, tokens: int, budget: Budget, fixed: int = 0) -> bool:
        """Tell whether a size has reached the limit."""
        return tokens >= self.tokens(budget, fixed)


class WhenItPays(Struct, frozen=True, omit_defaults=True, tag="when_it_pays"):
    """A share of the input budget from which on a compaction takes place as soon as it pays (`core.break_even`).

    Above the input budget it takes place in any case. `loss` is the share of the bill so far by which a compaction may
    raise it, if the session ends before the compaction pays.

    Raises:
        BadBudget: a number that is negative.

    Added in 0.1.0.
    """

    share: float = 0.8
    loss: float = 0.01

    def __post_init__(self) -> None:
        if min(self.share, self.loss) < 0:
            raise BadBudget(f"{self} holds a negative number: shares are from 0 to 1")

    def tokens(self, budget: Budget, fixed: int = 0) -> int:
        """Return the size in tokens from which on a compaction may take place."""
        return int(budget.input * self.share)

    def reached(self, tokens: int, budget: Budget, fixed: int = 0) -> bool:
        """Tell whether a size has reached that, whether or not a compaction pays."""
        return tokens >= budget.input * self.share


class Never(Struct, frozen=True, tag="never"):  # V01, zero or less
    """No limit: a trigger that never fires."""

    def tokens(self, budget: Budget, fixed: int = 0) -> int:
        """Return the window, since nothing smaller is asked."""
        return budget.window

    def reached(self, tokens: int, budget: Budget, fixed: int = 0) -> bool:
        """Return False."""
        return False


Limit: TypeAlias = Share | Exactly | LeastCost | WhenItPays | Never


class Usage(Struct, frozen=True, omit_defaults=True):
    """The provider's last usage report, in tokens; cached input is part of `prompt`.

    `covers` is the number of leading messages in that call's prompt; None means all but the newest assistant message
    and what follows it.

    Added in 0.1.0.
    """

    prompt: int
    completion: int = 0
    cached: int = 0
    covers: int | None = None

    def __post_init__(self) -> None:
        if min(self.prompt, self.completion, self.cached, self.covers or 0) < 0:
            raise BadBudget("a usage report holds a negative number of tokens; pass the provider's report unchanged")

    @property
    def reported(self) -> ReportedTokens:
        """The prompt, as a size in the provider's unit."""
        return ReportedTokens(self.prompt)
