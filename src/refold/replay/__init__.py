"""Recorded conversations replayed: what a compaction keeps and loses of what the rest of the recording needed."""
