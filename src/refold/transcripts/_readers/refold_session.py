"""Sessions of refold, as `refold sessions export` writes them: a message a line, plans and usage between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from refold.core._json import Json, mapping, string
from refold.transcripts._bodies import reported
from refold.transcripts._conversation import RecordedConversation, RecordedUsage
from refold.transcripts._source import Document


def matches(document: Document) -> bool:
    """Tell by the header."""
    return bool(document.objects) and "refold_session" in document.objects[0][1]


def read(document: Document) -> Iterator[RecordedConversation]:
    """Yield the conversation as a session shows it: without what was rewound, and with the last settings."""
    header = document.objects[0][1]
    session = _RefoldSession()
    for _, row in document.objects[1:]:
        if "id" in row:
            session.append(row["id"], json.loads(row["text"]) if "text" in row else row["message"])
        else:
            session.apply(mapping(row.get("entry")))
    settings = session.settings
    yield RecordedConversation(
        "refold-session",
        string(header, "format"),
        [session.messages[id] for id in session.ids],
        system=settings.get("system"),
        tools=settings.get("tools"),
        model=settings.get("model"),
        window=settings.get("window"),
        usage=tuple(report for report in session.usage if report.covers <= len(session.ids)),
        name=string(header, "id"),
        boundaries=session.boundaries,
        earlier_stays=True,
    )


class _RefoldSession:
    """What has been read so far."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.messages: dict[str, Any] = {}
        self.parents: dict[str, str | None] = {}
        self.settings: Json = {}
        self.usage: list[RecordedUsage] = []
        self.boundaries: tuple[int, ...] = ()
        self.rewound: list[tuple[int, ...]] = []  # the boundaries before each rewind that may be taken back

    def append(self, id: str, message: Any) -> None:
        """Take in a message."""
        self.parents.setdefault(id, self.ids[-1] if self.ids else None)  # of a damaged file too, no id is behind itself
        self.messages[id] = message
        self.ids.append(id)
        self.rewound.clear()

    def apply(self, entry: Json) -> None:
        """Take in another entry."""
        match entry.get("type"):
            case "configured":
                self.settings |= entry["settings"]
            case "reported" if not entry.get("aside"):
                covered = self._covered()
                self.usage = [report for report in self.usage if report.covers < covered]
                self.usage += reported(covered, entry.get("native"))
            case "planned":
                self.boundaries = (*self.boundaries, len(self.ids))
                self.rewound.clear()
            case "rewound":
                self._rewind(entry["to"], forward=bool(entry.get("forward")))

    def _rewind(self, to: Json, *, forward: bool) -> None:
        if forward:
            self.boundaries = self.rewound.pop()
        else:
            self.rewound.append(self.boundaries)
            self.boundaries = self.boundaries[: len(to["plans"])] if "plans" in to else ()
        chain: list[str] = []
        id: str | None = to["tip"]
        while id in self.parents:
            chain.append(id)
            id = self.parents[id]
        self.ids = chain[::-1]

    def _covered(self) -> int:
        """Return how many messages the newest call was sent: all but the reply at their end."""
        length = len(self.ids)
        while length and _of_the_model(self.messages[self.ids[length - 1]]):
            length -= 1
        return length


def _of_the_model(message: Json) -> bool:
    return message.get("role") in ("assistant", "model") or message.get("type") in ("reasoning", "function_call")
