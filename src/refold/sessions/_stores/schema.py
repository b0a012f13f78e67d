"""The tables of a store, the same on SQLite and PostgreSQL; the migrations create them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
)

__all__ = [
    "entries",
    "leases",
    "messages",
    "metadata",
    "properties",
    "provider_ids",
    "session_messages",
    "sessions",
]

metadata = MetaData()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up an INTEGER key alone

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("format", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("next", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("touched", Double, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("tip", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("owner", Text, nullable=False),
)

# A message is stored once for an owner, however many sessions contain it; `native` is its JSON text as received.
# Its id is followed by `@` and the owner, if the sessions have one.
messages = Table(
    "messages",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("parent", Text, nullable=False),
    Column("native", Text, nullable=False),
)

entries = Table(
    "entries",
    metadata,
    Column("session", Text, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
)

# Which session contains which message, and which entry appended it.
session_messages = Table(
    "held",
    metadata,
    Column("session", Text, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("message", Text, ForeignKey("messages.id"), primary_key=True, index=True),
    Column("seq", Integer, nullable=False),
)

# Values that belong to the store itself.
properties = Table(
    "properties",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("session", Text, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("taken", Double, nullable=False),
    Column("until", Double, nullable=False),
)

# Whose is what a provider stores for the key that several owners share: the key is a salted hash of its id.
provider_ids = Table(
    "provider_ids",
    metadata,
    Column("key", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("used", Double, nullable=False, index=True),
)
