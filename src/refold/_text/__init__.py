"""Text helpers without dependencies: graphemes, excerpts, identifiers, numbers of tokens."""
