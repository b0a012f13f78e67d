"""The digest: a structured summary of messages that left the view, made from the originals."""
