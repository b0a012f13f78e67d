"""Logs may hold settings; releases before this one cannot read such an entry, and are told so by the version."""

revision = "0003_settings"
down_revision = "0002_search_and_leases"


def upgrade() -> None:
    """Change nothing: entries are JSON text."""
