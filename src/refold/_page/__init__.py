"""The page: conversations in a browser, with every compaction, its reasons and what it costs and saves."""
