"""The fit engine: shortens a view to a size, and writes the digest of what left it."""
