"""Predicts which identifiers, lines and segments of a conversation are needed again; no model is called."""
