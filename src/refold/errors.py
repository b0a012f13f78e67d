"""Everything refold raises on purpose, drawn as one tree.

RefoldError
├── UsageError               the caller asked for what cannot be done
│   ├── UnknownOption        a verb has no option of that name
│   ├── UnknownFormat        no such format, or none that can be told from the messages
│   ├── UnknownPolicy        no policy of that name
│   ├── UnknownModel         a model was required to be known and is not
│   ├── BadBudget            a window, goal or limit that cannot hold
│   ├── BadValue             a message, edit or limit that cannot exist
│   ├── BadMessages          the messages are not a list of the named format
│   ├── UnreadableTranscript a file that is not a transcript, with the line
│   ├── UnreadablePlan       not a plan, or one of a later version
│   └── StalePlan            a plan made for another transcript
├── OutsideError             someone else said no
│   ├── SummaryRefused       no summary could be had
│   ├── ContextOverflow      a provider refused the request for its size
│   └── StoreError           the place where sessions are kept
│       ├── SessionNotFound  no session of that id in it
│       ├── WriteConflict    somebody else wrote first, or is compacting
│       ├── StoreLocked      somebody else holds it longer than was waited
│       ├── StoreCorrupt     not a store, or a damaged one; left as it is
│       ├── StoreTooNew      written by a later version of refold
│       └── StoreFull        no room for what was to be written
├── BrokenConversation       provider rules that do not hold and that no step repairs
└── CannotFit                every step ran and the view is still above the input budget

A UsageError is the caller's mistake: nothing was changed, mend the call. An OutsideError is a
refusal from outside: nothing was changed, the call may be repeated. BrokenConversation and
CannotFit carry the plan as far as it got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from refold.core.plan import Plan
    from refold.core.view import Violation

__all__ = [
    "BadBudget",
    "BadMessages",
    "BadValue",
    "BrokenConversation",
    "CannotFit",
    "ContextOverflow",
    "OutsideError",
    "RefoldError",
    "SessionNotFound",
    "StalePlan",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreTooNew",
    "SummaryRefused",
    "UnknownFormat",
    "UnknownModel",
    "UnknownOption",
    "UnknownPolicy",
    "UnreadablePlan",
    "UnreadableTranscript",
    "UsageError",
    "WriteConflict",
]


class RefoldError(Exception):
    """Anything refold raises on purpose.

    Added in 0.1.0.
    """


class UsageError(RefoldError):
    """The caller asked for what cannot be done; nothing was changed."""


class UnknownOption(UsageError, TypeError):
    """A verb has no option of that name; a TypeError too, as for any function."""


class UnknownFormat(UsageError):
    """No format of that name, or none that can be told from the messages."""


class UnknownPolicy(UsageError):
    """No policy of that name."""


class UnknownModel(UsageError):
    """A model that no table knows, where a known one was required."""


class BadBudget(UsageError):
    """A window, reserve, goal or limit that cannot hold."""


class BadValue(UsageError, ValueError):
    """A message, edit or limit that cannot exist; a ValueError too."""


class BadMessages(UsageError):
    """The messages are not what the named format calls a list of messages."""


class UnreadableTranscript(UsageError):
    """A file that is no transcript, or a damaged line in one."""


class UnreadablePlan(UsageError):
    """Not a plan, a damaged plan, or one written by a later version."""


class StalePlan(UsageError):
    """A plan that was made for another transcript."""


class OutsideError(RefoldError):
    """Someone outside this library said no; nothing was changed."""


class SummaryRefused(OutsideError):
    """No summary could be had, and the policy does not go on without one."""


class ContextOverflow(OutsideError):
    """A provider refused the request because it does not fit its context window."""


class StoreError(OutsideError):
    """The store could not be used; what it held before is still there, and the message names the store."""


class SessionNotFound(StoreError):
    """The store holds no session of that id."""


class WriteConflict(StoreError):
    """Somebody else wrote to the session first, or is compacting it; nothing of this write was kept."""


class StoreLocked(StoreError):
    """Somebody else held the store longer than this program waits."""


class StoreCorrupt(StoreError):
    """A file that is not a store, or a store with damaged content; it is left as it is."""


class StoreTooNew(StoreError):
    """A store that a later version of refold wrote."""


class StoreFull(StoreError):
    """No room for what was to be written, on the disk or under the store's own limit."""


class BrokenConversation(RefoldError):
    """Provider rules that do not hold, and that no step of the policy repairs."""

    def __init__(self, message: str, violations: tuple[Violation, ...] = ()) -> None:
        super().__init__(message)
        self.violations = violations


class CannotFit(RefoldError):
    """Every step ran and the view is still above the input budget.

    `plan` is what could be done, `sizes` says what is left and cannot shrink, in tokens by cause.
    """

    def __init__(self, message: str, plan: Plan, sizes: Mapping[str, int]) -> None:
        super().__init__(message)
        self.plan = plan
        self.sizes = dict(sizes)
