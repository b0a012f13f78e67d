"""Ids of what providers store have an owner, so that one key can serve several teams."""

import sqlalchemy as sa
from alembic import op

revision = "0006_provider_ids"
down_revision = "0005_lease_times"


def upgrade() -> None:
    """Add the table; what was made before has no owner that is known."""
    op.create_table(
        "provider_ids",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("used", sa.Double, nullable=False),
    )
