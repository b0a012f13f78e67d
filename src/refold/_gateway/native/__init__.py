"""The provider's own compaction: passed on, kept safe, or answered by the gateway for an upstream that has none."""
