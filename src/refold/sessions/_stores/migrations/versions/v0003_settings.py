"""Marks stores whose logs may hold settings, which earlier releases cannot read."""

revision = "0003_settings"
down_revision = "0002_search_and_leases"


def upgrade() -> None:
    """Change nothing: entries are JSON text."""
