"""Which identifiers, lines and segments of a conversation are likely to be needed again; no model is asked."""
