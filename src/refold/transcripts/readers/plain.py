"""Plain messages of any format: a list, a request body, a message a line, or a request a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from refold.transcripts.aside import Aside
from refold.transcripts.bodies import body_of, format_of
from refold.transcripts.recorded import Recorded
from refold.transcripts.source import Document


def matches(document: Document) -> bool:
    """Tell by messages or bodies; nothing else has to be known about the file."""
    if isinstance(document.value, dict):
        return body_of(document.value) is not None or format_of([document.value]) is not None
    rows = [row for _, row in document.lines[:50]]
    return format_of(rows) is not None or any(isinstance(row, dict) and body_of(row) is not None for row in rows)


def read(document: Document) -> Iterator[Recorded]:
    """Yield one conversation of a list, a body, or lines of messages; one a request of lines of requests."""
    aside = Aside()
    found: list[Recorded] = []
    messages: list[Any] = []
    value = document.value
    lines = document.lines if not isinstance(value, dict) else [(0, value)]
    for count, (number, row) in enumerate(lines, 1):
        body = body_of(row) if isinstance(row, dict) and format_of([row]) is None else None
        if body is not None:
            name = "main" if len(lines) == 1 else f"request {count}"
            found.append(Recorded("plain", name=name, **body))
        elif isinstance(row, dict) and format_of([row]) is not None:
            messages.append(row)
        else:
            what = f"object with the keys {', '.join(list(row)[:5])}" if isinstance(row, dict) else type(row).__name__
            aside.add(f"{what}, no message", number)
    if messages:
        found.insert(0, Recorded("plain", format_of(messages) or "openai-chat", messages, name="main"))
    for at, item in enumerate(found):
        yield item if at else replace(item, notes=item.notes + aside.notes())
