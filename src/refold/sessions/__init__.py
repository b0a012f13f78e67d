"""Conversations that outlive a process: sessions over a store in memory, SQLite or PostgreSQL."""
