"""An index of words over all messages, and leases: one compaction of a session at a time."""

import sqlalchemy as sa
from alembic import context, op

from refold.sessions._stores.search_index import index_all

revision = "0002_search_and_leases"
down_revision = "0001_transcripts"


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
    index_all(database, op.get_bind())
