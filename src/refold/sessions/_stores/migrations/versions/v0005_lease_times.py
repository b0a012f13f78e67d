"""Leases tell when they were taken, by which one is recognized that a clock set back would hold too long."""

import sqlalchemy as sa
from alembic import op

revision = "0005_lease_times"
down_revision = "0004_owners"


def upgrade() -> None:
    """Add the time; a lease of an earlier release counts as taken long ago."""
    op.add_column("leases", sa.Column("taken", sa.Double, nullable=False, server_default="0"))
