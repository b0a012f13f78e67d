"""A policy is a short list of steps; a step is a stage, a pure function from view to edits, and when it runs."""

from __future__ import annotations

from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from refold.core.budget import Limit, Reserve, Share
from refold.core.counting import CharCounter
from refold.core.usage_gauges import Estimate, Gauge
from refold.errors import BadBudget

if TYPE_CHECKING:
    from refold.core.budget import Budget
    from refold.core.edits import Edit
    from refold.core.messages import Message
    from refold.core.needs import Answer, Need
    from refold.core.transcript import Transcript
    from refold.core.view import View

__all__ = [
    "Arriving",
    "AsksAgain",
    "Growing",
    "Policy",
    "Pure",
    "Stage",
    "Step",
    "TakesState",
    "Waking",
    "When",
    "require_counts",
    "require_shares",
]


class When(StrEnum):
    """When a step runs: before every call, once the trigger fired, while the view is above the goal, or the budget.

    A step that runs `FIRST` runs once the trigger fired, and where it brings the view back under the trigger, the steps
    after it do not run. Only a step for when the request could not be sent at all (`OVER_BUDGET`) may touch what a
    policy protects.
    """

    EVERY_CALL = "every_call"
    FIRST = "first"
    DUE = "due"
    OVER_GOAL = "over_goal"
    OVER_BUDGET = "over_budget"


class Stage(Protocol):
    """One way to shorten a view. Both methods are pure and may be called more than once on one view."""

    @property
    def grows(self) -> bool:
        """Whether the stage may make a view larger (a repair, a restored file); else such edits are dropped."""

    def needs(self, view: View) -> tuple[Need, ...]:
        """Return what the stage asks from outside; nothing for most."""

    def edits(self, view: View, answers: tuple[Answer, ...]) -> tuple[Edit, ...]:
        """Return the changes; none means nothing worth doing."""


@runtime_checkable
class Waking(Protocol):
    """A stage that knows how many new tokens there must be before it can have anything to do."""

    def wakes(self, budget: Budget) -> int:
        """Return that number under a budget; never less than 1."""


@runtime_checkable
class Arriving(Protocol):
    """A stage that can look at a message as it arrives, so that a pass later has less to find."""

    def arrived(self, message: Message) -> None:
        """Have a message remember what the stage will ask of it; changes nothing else."""


@runtime_checkable
class Growing(Protocol):
    """A stage that sums up what the messages of a growing conversation say, so that a pass sums up only the rest."""

    def grown(self, transcript: Transcript, length: int) -> None:
        """Have a transcript's first message remember the sum of the first `length` ones; changes nothing else."""


@runtime_checkable
class TakesState(Protocol):
    """A stage that may take away what the provider keeps state in, because the provider has refused it."""

    takes_state: ClassVar[bool]


@runtime_checkable
class AsksAgain(Protocol):
    """A stage whose further needs depend on the answers it has; `edits` gets the answers of all rounds, in order."""

    def more(self, view: View, answers: tuple[Answer, ...]) -> tuple[Need, ...]:
        """Return what the stage still asks for; nothing ends the questions."""


class Pure(Struct, frozen=True):
    """Base of the stages that ask for nothing and never make a view larger."""

    grows: ClassVar[bool] = False

    def needs(self, view: View) -> tuple[Need, ...]:
        """Return no needs."""
        return ()


def require_shares(options: Struct, *names: str) -> None:
    """Refuse options of a stage or selector that are no share: from 0 to 1, or None.

    Raises:
        BadBudget: one is outside of that.
    """
    for name in names:
        share = getattr(options, name)
        if share is not None and not 0 <= share <= 1:
            raise BadBudget(f"{type(options).__name__} has {name}={share}; a share is a number from 0 to 1")


def require_counts(options: Struct, *names: str, least: int = 0) -> None:
    """Refuse options of a stage or selector that are less than they can be.

    Raises:
        BadBudget: one is below `least`.
    """
    for name in names:
        count = getattr(options, name)
        if count < least:
            raise BadBudget(f"{type(options).__name__} has {name}={count}; give a number of {least} or more")


class Step(Struct, frozen=True):
    """A stage, when it runs, and the word its own system has for it ("prune", "truncate")."""

    stage: Stage
    when: When = When.DUE
    label: str = ""

    @property
    def name(self) -> str:
        """The label, or the stage's name in small letters."""
        return self.label or type(self.stage).__name__.lower()


class Policy(Struct, frozen=True):
    """How one system keeps a conversation inside its window; a value, compared and printed as one.

    `counter=None` means exact counts by the model's tokenizer, which the caller's side supplies.
    `after_overflow` is the policy used when a provider has refused the request for its size.

    Added in 0.1.0.
    """

    name: str
    steps: tuple[Step, ...]
    trigger: Limit = Share(0.8, inclusive=True)
    goal: Limit = Share(0.5)
    counter: CharCounter | None = None
    gauge: Gauge = Estimate()
    reserve: Reserve = Reserve()
    after_overflow: Policy | None = None
    renews_session: bool = False
    summary: str = ""

    def wakes(self, budget: Budget, when: When = When.EVERY_CALL) -> int | None:
        """Return how many new tokens it takes before a step of every call (or another `when`) may act.

        None where the policy has no such step, 0 where one of them does not say.
        """
        stages = [step.stage for step in self.steps if step.when is when]
        return min((stage.wakes(budget) if isinstance(stage, Waking) else 0 for stage in stages), default=None)

    def arrived(self, message: Message) -> None:
        """Have every step that can look at a message as it arrives."""
        for step in self.steps:
            if isinstance(step.stage, Arriving):
                step.stage.arrived(message)

    def grown(self, transcript: Transcript, length: int) -> None:
        """Have every step that can sum up the first messages of a growing conversation."""
        for step in self.steps:
            if isinstance(step.stage, Growing):
                step.stage.grown(transcript, length)

    @property
    def fingerprint(self) -> str:
        """A hash of everything the policy is; two policies that act alike have the same, in every process."""
        return blake2b(repr(_plain(self)).encode(), digest_size=8).hexdigest()


def _plain(value: object) -> object:
    """Return a value without anything whose order changes from process to process."""
    match value:
        case Struct():
            names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)  # as in JSON: those stay
            fields = ((encoded, _plain(getattr(value, name))) for name, encoded in names)
            return (type(value).__qualname__, tuple(fields))
        case frozenset() | set():
            return tuple(sorted(map(repr, map(_plain, value))))
        case tuple() | list():
            return tuple(map(_plain, value))
        case _:
            return value
