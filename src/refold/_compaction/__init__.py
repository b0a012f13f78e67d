"""The compaction of one conversation: a request is resolved, planned and proved."""
