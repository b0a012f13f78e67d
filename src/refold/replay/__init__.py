"""Replays recorded conversations: what a compaction preserves and loses of what the rest of the recording needed."""
