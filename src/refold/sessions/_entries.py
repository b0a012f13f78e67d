"""The entries of a session's log; each is written once and never changed."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from refold.core._plan_json import dump_plan, load_plan
from refold.core.messages import MessageId
from refold.core.plan import Plan, PlanId

__all__ = [
    "Appended",
    "Configured",
    "Entry",
    "Noted",
    "Planned",
    "Position",
    "Renewed",
    "Rewound",
    "SessionOpened",
    "UsageEntry",
    "body_of",
    "entry_of",
    "kind_of",
]


class SessionOpened(Struct, frozen=True, omit_defaults=True, tag="opened"):
    """The session was created; `parent` is a session it continues, up to and with that one's entry `at`."""

    format: str
    parent: str = ""
    at: int = 0


class Appended(Struct, frozen=True, omit_defaults=True, tag="appended"):
    """Messages were appended, by their ids.

    `under` are the plans that the request was sent under which they answer, None for the active ones; `settings` is a
    digest of system prompt and tools then. Both tell later whether thinking may be sent again (`core.preserved`).
    `format` is that of the session from now on, where these are the first messages to show it.
    """

    ids: tuple[MessageId, ...]
    under: tuple[PlanId, ...] | None = None
    settings: str = ""
    format: str = ""


class Planned(Struct, frozen=True, omit_defaults=True, tag="planned"):
    """A plan became active; `plan` is its wire form as JSON text, `by` who made it so by hand.

    `seconds` is how long it took to make, 0 where that was not measured.
    """

    plan: str
    by: str = ""
    seconds: float = 0.0

    @staticmethod
    def of(plan: Plan, by: str = "", seconds: float = 0.0) -> Planned:
        """Return the entry of a plan."""
        return Planned(dump_plan(plan).decode(), by, seconds)

    def read(self) -> Plan:
        """Return the plan."""
        return load_plan(self.plan)


class Position(Struct, frozen=True):
    """A state to return to: the newest message, the number of messages, and the active plans, oldest first."""

    tip: MessageId
    length: int
    plans: tuple[PlanId, ...] = ()


class Rewound(Struct, frozen=True, omit_defaults=True, tag="rewound"):
    """The session went back to a position, or forward again; `by` is who did it, where that is known."""

    to: Position
    forward: bool = False
    by: str = ""


class UsageEntry(Struct, frozen=True, omit_defaults=True, tag="reported"):
    """A provider's usage report, in tokens, with the report as it came; `covers` counts messages of the view.

    `aside`: the call was not of the conversation, such as a summary's; it is billed, and says nothing of the view.
    `vocabulary` is there where plans in flight, which are not stored, made the view: the provider's tokens per token of
    an exact count, 0 where that is unknown. A process that resumes the session cannot make that view again.
    """

    prompt: int
    completion: int = 0
    cached: int = 0
    covers: int | None = None
    native: Any = None
    aside: bool = False
    vocabulary: float | None = None


class Noted(Struct, frozen=True, tag="noted"):
    """A note that only its writer reads, about the newest message; the newest note counts."""

    text: str


class Configured(Struct, frozen=True, omit_defaults=True, tag="configured"):
    """Settings of the session from here on, by name, as JSON values; null is one that was removed.

    `by` is who changed them, where that is known.
    """

    settings: dict[str, Any]
    by: str = ""


class Renewed(Struct, frozen=True, tag="renewed"):
    """The conversation continues as another session (V09)."""

    session: str


Entry: TypeAlias = SessionOpened | Appended | Planned | Rewound | UsageEntry | Noted | Configured | Renewed

_decoder = msgspec.json.Decoder(Entry)


def kind_of(entry: Entry) -> str:
    """Return the kind of an entry: the tag of its struct."""
    return str(entry.__struct_config__.tag)


def body_of(entry: Entry) -> str:
    """Return an entry as JSON text."""
    return msgspec.json.encode(entry).decode()


def entry_of(body: str) -> Entry:
    """Return the entry of JSON text.

    Raises:
        msgspec.DecodeError: it is not an entry.
    """
    entry: Entry = _decoder.decode(body)
    return entry
