"""Everything refold raises on purpose, drawn as one tree.

RefoldError
├── UsageError               a mistake of the caller
│   ├── UnknownOption        a verb has no option of that name
│   ├── UnknownFormat        no such format, or it cannot be detected
│   ├── UnknownPolicy        no policy of that name
│   ├── UnknownModel         the model is unknown, and a known one is required
│   ├── BadBudget            an impossible window, goal or limit
│   ├── BadValue             an impossible message, edit or limit
│   ├── BadMessages          the messages are not a list of the named format
│   ├── UnreadableTranscript a file that is not a transcript, with the line
│   ├── UnreadablePlan       not a plan, or one of a later version
│   └── StalePlan            a plan made for another transcript
├── OutsideError             a provider, a summarizer or a store failed
│   ├── SummaryRefused       there is no summary
│   ├── ContextOverflow      a provider rejected the request for its size
│   └── StoreError           the store of sessions failed
│       ├── SessionNotFound  no session of that id
│       ├── WriteConflict    another process wrote first, or is compacting
│       ├── StoreLocked      another process locked it for too long
│       ├── StoreCorrupt     not a store, or damaged; unchanged
│       ├── StoreTooNew      written by a later version of refold
│       └── StoreFull        no room for a write
├── BrokenConversation       violations of provider rules that no step repairs
└── CannotFit                every step ran and the view is still above the input budget

A UsageError is the caller's mistake: nothing was changed, correct the call. An OutsideError is a
failure elsewhere: nothing was changed, the call may be repeated. BrokenConversation and CannotFit
contain the plan so far.
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
    """The base class of all errors that refold raises on purpose.

    Added in 0.1.0.
    """


class UsageError(RefoldError):
    """A mistake of the caller; nothing was changed."""


class UnknownOption(UsageError, TypeError):
    """The function has no option of that name; also a TypeError."""


class UnknownFormat(UsageError):
    """There is no format of that name, or the format cannot be detected from the messages."""


class UnknownPolicy(UsageError):
    """There is no policy of that name."""


class UnknownModel(UsageError):
    """The model is in no table, and a known model is required."""


class BadBudget(UsageError):
    """An impossible window, reserve, goal or limit."""


class BadValue(UsageError, ValueError):
    """An impossible message, edit or limit; also a ValueError."""


class BadMessages(UsageError):
    """The messages are not a list of messages of the named format."""


class UnreadableTranscript(UsageError):
    """The file is not a session file, or a line in it is damaged."""


class UnreadablePlan(UsageError):
    """The text is not a plan, is damaged, or was written by a later version."""


class StalePlan(UsageError):
    """The plan was made for another transcript."""


class OutsideError(RefoldError):
    """A provider, a summarizer or a store failed; nothing was changed."""


class SummaryRefused(OutsideError):
    """There is no summary, and the policy cannot continue without one."""


class ContextOverflow(OutsideError):
    """A provider rejected the request because it does not fit the context window."""


class StoreError(OutsideError):
    """The store cannot be used; its content is unchanged, and the message names the store."""


class SessionNotFound(StoreError):
    """The store contains no session of that id."""


class WriteConflict(StoreError):
    """Another process wrote to the session first, or is compacting it; this write stored nothing."""


class StoreLocked(StoreError):
    """Another process locked the store for longer than the timeout."""


class StoreCorrupt(StoreError):
    """The file is not a store, or its content is damaged; it is unchanged."""


class StoreTooNew(StoreError):
    """A later version of refold wrote the store."""


class StoreFull(StoreError):
    """There is no room for the write, on the disk or under the store's own limit."""


class BrokenConversation(RefoldError):
    """The result violates provider rules, and no step of the policy repairs them."""

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

    def __reduce__(self) -> tuple[type[CannotFit], tuple[str, Plan, dict[str, int]]]:
        return type(self), (str(self), self.plan, self.sizes)  # it may come from a process that plans
