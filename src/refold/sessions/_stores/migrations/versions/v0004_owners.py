"""Sessions have an owner, and a store has values of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0004_owners"
down_revision = "0003_settings"


def upgrade() -> None:
    """Give the sessions that are there to nobody, and make the table of values."""
    op.add_column("sessions", sa.Column("owner", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "properties", sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)
    )
