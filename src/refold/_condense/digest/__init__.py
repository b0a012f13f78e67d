"""The digest: a structured summary of removed messages, written from the originals without a model."""
