"""Rebuilds the search index over all messages of a store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import text

from refold import formats
from refold.core.messages import MessageId
from refold.sessions._message_json import searchable_text
from refold.sessions._stores.search_terms import words_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from refold.sessions._stores.engines import Database

__all__ = ["index_all"]

AT_ONCE = 500


def index_all(database: Database, connection: Connection) -> None:
    """Index every message by the format of a session that contains it."""
    page = text(
        "SELECT m.number, m.native, (SELECT s.format FROM held h JOIN sessions s ON s.id = h.session "
        "WHERE h.message = m.id LIMIT 1) FROM messages m WHERE m.number > :after ORDER BY m.number LIMIT :count"
    )
    after = 0
    while rows := connection.execute(page, {"after": after, "count": AT_ONCE}).all():
        for number, native, format in rows:
            message = formats.find(format).read(json.loads(native), MessageId(""))
            database.index(connection, number, words_of(searchable_text(message)))
        after = rows[-1][0]
