"""Sessions, their messages and their logs."""

import sqlalchemy as sa
from alembic import op

revision = "0001_transcripts"
down_revision = None


def upgrade() -> None:
    """Make the four tables."""
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text, primary_key=True),
        *map(_text, ("format", "parent", "next")),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("touched", sa.Double, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("messages", sa.Integer, nullable=False),
        _text("tip"),
        sa.Column("revision", sa.Integer, nullable=False),
    )
    op.create_table(
        "messages",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        *map(_text, ("parent", "native")),
    )
    op.create_table(
        "entries",
        sa.Column("session", sa.Text, sa.ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        *map(_text, ("kind", "body")),
    )
    op.create_table(
        "held",
        sa.Column("session", sa.Text, sa.ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("message", sa.Text, sa.ForeignKey("messages.id"), primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
    )
    op.create_index("ix_held_message", "held", ["message"])


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)
