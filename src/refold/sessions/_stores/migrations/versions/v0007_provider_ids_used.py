"""Ids of what providers store are found by when they were used, so that dropping old ones reads no others."""

from alembic import op

revision = "0007_provider_ids_used"
down_revision = "0006_provider_ids"


def upgrade() -> None:
    """Make the index."""
    op.create_index("ix_provider_ids_used", "provider_ids", ["used"])
