"""What a session's log is made of: one entry a write, never changed afterwards."""

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
    """The session began; where it continues another one, that session and the last entry of it that counts."""

    format: str
    parent: str = ""
    at: int = 0


class Appended(Struct, frozen=True, omit_defaults=True, tag="appended"):
    """Messages joined the end, by their ids.

    `under` are the plans that the request was sent under which they answer, None for those in force; `settings` is a
    digest of system prompt and tools then. Both tell later whether thinking may be sent again (`core.preserved`).
    """

    ids: tuple[MessageId, ...]
    under: tuple[PlanId, ...] | None = None
    settings: str = ""


class Planned(Struct, frozen=True, tag="planned"):
    """A plan came into force; `plan` is its wire form as JSON text."""

    plan: str

    @staticmethod
    def of(plan: Plan) -> Planned:
        """Return the entry of a plan."""
        return Planned(dump_plan(plan).decode())

    def read(self) -> Plan:
        """Return the plan."""
        return load_plan(self.plan)


class Position(Struct, frozen=True):
    """Where a session stands: its newest message, how many there are, and the plans in force, oldest first."""

    tip: MessageId
    length: int
    plans: tuple[PlanId, ...] = ()


class Rewound(Struct, frozen=True, omit_defaults=True, tag="rewound"):
    """The session went back to a position, or forward again."""

    to: Position
    forward: bool = False


class UsageEntry(Struct, frozen=True, omit_defaults=True, tag="reported"):
    """A provider's usage report, in tokens, with the report as it came; `covers` counts messages of the view."""

    prompt: int
    completion: int = 0
    cached: int = 0
    covers: int | None = None
    native: Any = None


class Noted(Struct, frozen=True, tag="noted"):
    """Something that its writer alone reads, about what was said last; the newest one counts."""

    text: str


class Configured(Struct, frozen=True, tag="configured"):
    """Settings of the session from here on, by name, as JSON values; null is one that is not set any more."""

    settings: dict[str, Any]


class Renewed(Struct, frozen=True, tag="renewed"):
    """The conversation continues as another session (V09)."""

    session: str


Entry: TypeAlias = SessionOpened | Appended | Planned | Rewound | UsageEntry | Noted | Configured | Renewed

_decoder = msgspec.json.Decoder(Entry)


def kind_of(entry: Entry) -> str:
    """Return the word for what an entry is."""
    return str(entry.__struct_config__.tag)


def body_of(entry: Entry) -> str:
    """Return an entry as JSON text."""
    return msgspec.json.encode(entry).decode()


def entry_of(body: str) -> Entry:
    """Return the entry that JSON text holds.

    Raises:
        msgspec.DecodeError: it holds none.
    """
    entry: Entry = _decoder.decode(body)
    return entry
