"""Readers of session files, one kind per module: `matches(document)` detects the kind, `read(document)` yields
conversations.
"""
