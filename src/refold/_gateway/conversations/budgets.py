"""Resolves the policy, budget and trigger of a request from settings, tables and learned windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from refold import policies
from refold._compaction.request import policy_counter
from refold._counting import counter_for
from refold._gateway.conversations.triggers import triggered
from refold._gateway.wire.routes import ROUTES
from refold.core.break_even import TokenPrices
from refold.core.budget import Budget, Never
from refold.core.policy import When
from refold.errors import BadBudget
from refold.models import _catalog as catalog
from refold.models._cache_rules import token_prices
from refold.models._thinking import binds_thinking
from refold.recovery._learned_windows import LearnedWindows
from refold.sessions._saved_settings import settings_to_save

if TYPE_CHECKING:
    from collections.abc import Collection

    from refold._gateway.settings import GatewaySettings
    from refold.core.budget import Limit
    from refold.core.counting import Counter
    from refold.core.policy import Policy

__all__ = ["Bound", "Budgets", "load_vocabularies"]

MODELS = ("gpt-4o",)  # whose vocabulary also stands for those of models that publish none
SPLIT_WORD = "xqzjvkw8f3kq"  # a word that no vocabulary has whole, so that the table of its pieces is made as well
MOST = 4_096  # combinations of model and length of answer that are remembered


class Bound(Struct, frozen=True):
    """A policy at work on one model: the budget, the size in tokens from which it acts, and who counts.

    `wakes` is how many new tokens it takes before a step of every call may act, and `first` before one that runs first;
    None where there is no such step. `assumed` says that the model's window is not known; `binds_thinking`, that the
    model takes thinking only behind what it was produced behind. By `prices` it is decided whether a compaction pays.
    """

    policy: Policy
    budget: Budget
    trigger: int
    counter: Counter
    assumed: bool = False
    wakes: int | None = None
    first: int | None = None
    binds_thinking: bool = False
    prices: TokenPrices = TokenPrices()

    def due(self, tokens: int) -> bool:
        """Tell whether a request of this size is to be compacted."""
        if isinstance(self.policy.trigger, Never):
            return False
        return self.policy.trigger.reached(tokens, self.budget) or tokens > self.budget.input

    def settings(self, model: str) -> dict[str, Any]:
        """Return what the session of a conversation saves: policy, model and budget, and from which size it acts."""
        saved = settings_to_save({"policy": self.policy, "model": model, "budget": self.budget})
        return saved | {"trigger": self.trigger}


def load_vocabularies(models: Collection[str] = MODELS) -> None:
    """Load the vocabularies of some models; it takes 0.2 s of one call for each, in which no other thread runs."""
    for model in models:
        counter_for(model).text(SPLIT_WORD)


class Budgets:
    """Answers what bounds a request."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._learned = LearnedWindows()
        self._known: dict[tuple[str, int | None, str, str, Limit | None, bool], Bound] = {}
        self._policies = {ROUTES[route]: name for route, name in settings.route_policies.items()}
        self._triggers = {ROUTES[route]: limit for route, limit in settings.route_triggers.items()}

    def load_vocabularies(self) -> None:
        """Load the vocabularies of the models that the settings name, and of those that no setting names."""
        settings = self._settings
        load_vocabularies({*MODELS, *settings.windows, *settings.policies, *settings.triggers})

    def bound(
        self, model: str, max_output: int | None, policy: str = "", format: str = "", trigger: Limit | None = None,
        *, long: bool = False,
    ) -> Bound:  # fmt: skip
        """Return what bounds a request to a model whose answer may have so many tokens.

        `policy` and `trigger` are what the request asks for, before what is set for its model, its route, and all;
        `long` asks for a window of a million.
        """
        settings = self._settings
        name = policy or settings.policies.get(model) or self._policies.get(format) or settings.policy
        if trigger is None:
            trigger = settings.triggers.get(model) or self._triggers.get(format) or settings.trigger
        key = model, max_output, name, format, trigger, long
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST:
                self._known.clear()
            bound = self._bound(model, max_output, policies.find(name), trigger, format, long=long)
            known = self._known[key] = replace(
                bound, binds_thinking=binds_thinking(format, model), prices=token_prices(model)
            )
        return known

    def learn(self, model: str, window: int) -> None:
        """Take a model's true window from a provider's refusal."""
        self._learned.learn(model, "", window)
        self._known.clear()

    def _bound(
        self, model: str, max_output: int | None, policy: Policy, due: Limit | None, format: str, *, long: bool
    ) -> Bound:
        settings = self._settings
        configured = settings.windows.get(model, settings.window)
        table = catalog.window(f"{model}[1m]" if long else model, None, configured)
        size = self._learned.window(model, "", table.window) or table.window
        if due is not None:
            policy = triggered(policy, due, size)
        assumed = table.assumed and self._learned.get(model) is None
        beyond_input = table.window - table.input_cap if table.input_cap and size == table.window else 0
        reserve = policy.reserve.of_model(size, max_output, 0 if configured else table.output_cap)
        tabled = (
            None
            if configured or long or size != table.window
            else catalog.table_budget(policy.reserve, model, max_output)
        )
        try:
            budget = tabled or Budget(size, max(reserve, beyond_input))
        except BadBudget:
            budget = Budget(size, size // 2)
        if budget.input < size // 8:  # a client that asks for the whole window as an answer means "as much as there is"
            budget = Budget(size, policy.reserve(size, None))
        trigger = policy.trigger.tokens(budget)
        counter = policy_counter(policy, model, format) or counter_for(model, None, format)
        return Bound(policy, budget, min(trigger, budget.input), counter, assumed,
                     policy.wakes(budget), policy.wakes(budget, When.FIRST))  # fmt: skip
