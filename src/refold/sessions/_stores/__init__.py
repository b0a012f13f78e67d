"""Stores for sessions: in memory, in SQLite and in PostgreSQL."""
