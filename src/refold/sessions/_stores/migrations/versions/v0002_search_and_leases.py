"""An index of words over all messages, and leases: one compaction of a session at a time."""

import json

import sqlalchemy as sa
from alembic import context, op

from refold import formats
from refold.core.messages import MessageId
from refold.sessions._message_json import searchable_text
from refold.sessions._stores.engines import Database
from refold.sessions._stores.search_terms import words_of

revision = "0002_search_and_leases"
down_revision = "0001_transcripts"

AT_ONCE = 500


def upgrade() -> None:
    """Make both, and index what is there."""
    op.create_table(
        "leases",
        sa.Column("session", sa.Text, sa.ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    database = context.config.attributes["database"]
    for statement in database.search_tables():
        op.execute(statement)
    _index_all(database, op.get_bind())


def _index_all(database: Database, connection: sa.Connection) -> None:
    """Index every message by the format of a session that contains it."""
    page = sa.text(
        "SELECT m.number, m.native, (SELECT s.format FROM held h JOIN sessions s ON s.id = h.session "
        "WHERE h.message = m.id LIMIT 1) FROM messages m WHERE m.number > :after ORDER BY m.number LIMIT :count"
    )
    after = 0
    while rows := connection.execute(page, {"after": after, "count": AT_ONCE}).all():
        for number, native, format in rows:
            message = formats.find(format).read(json.loads(native), MessageId(""))
            database.index(connection, [(number, words_of(searchable_text(message)))])
        after = rows[-1][0]
