"""The fit engine: shortens a view to a size, and writes the digest of the removed messages."""
